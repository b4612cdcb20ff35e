"""Ops of `nd` that sort the elements along an axis."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from stepwell.core.shapes import sorting as rules
from stepwell.dialects.nd.groups import like
from stepwell.dialects.nd.syntax import SpelledOp, element, int_attr, shape_of
from stepwell.dialects.readings import Array, reference, shape
from stepwell.dialects.types import dtype


class OrderOp(SpelledOp, ABC):
    """The base of sort and argsort.

    The order is that of NumPy's stable sort: NaN is greater than any number and equal to NaN, -0.0
    equals 0.0, and equal elements keep their order, with ``descending`` too.
    """

    x = operand_def(TensorType)
    y = result_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    descending = opt_prop_def(UnitAttr)

    def __init__(
        self, x: SSAValue, axis: int, *, descending: bool = False, dtype: Attribute | None = None
    ) -> None:
        result = rules.sort(shape_of(x), axis)
        super().__init__(
            operands=[x],
            result_types=[like(x, result) if dtype is None else TensorType(dtype, result)],
            properties={
                "axis": int_attr(axis),
                "descending": UnitAttr() if descending else None,
            },
        )


@irdl_op_definition
class SortOp(OrderOp):
    """y = x with the elements along ``axis`` in ascending order, or ``descending``.

    NaN is the greatest; the order of -0.0 and 0.0, and the bits of NaN, are unspecified.

    * (C1) axis is an axis of x.
    """

    name = "nd.sort"


@irdl_op_definition
class ArgsortOp(OrderOp):
    """y[k] = the index along ``axis`` of x of the element that nd.sort would put at k.

    * (C1) axis is an axis of x.
    * (C2) The result is i32 or i64.
    """

    name = "nd.argsort"

    def __init__(
        self, x: SSAValue, axis: int, *, descending: bool = False, dtype: Attribute = i64
    ) -> None:
        super().__init__(x, axis, descending=descending, dtype=dtype)

    def verify_(self) -> None:
        """Check C1 and C2."""
        super().verify_()
        if element(self.y) not in (IntegerType(32), i64):  # argsort_c2
            raise VerifyException(f"result must have elements i32 or i64, got {element(self.y)}")


@irdl_op_definition
class OrderStatisticsOp(SpelledOp):
    """y[j] = the element along ``axis`` of x that nd.sort would put at ranks[j].

    A few of them are found without sorting the others. A rank below 0 counts as 0, a rank beyond
    the end as the last.

    * (C1) axis is an axis of x.
    * (C2) ranks are i64.
    * (C3) ranks have the sizes of x along all other axes.
    * (C4) The axis has an element, unless there are no ranks.
    """

    name = "nd.order_statistics"
    x = operand_def(TensorType)
    ranks = operand_def(TensorType)
    y = result_def(TensorType)
    axis = prop_def(IntegerAttr[I64])

    def __init__(self, x: SSAValue, ranks: SSAValue, axis: int) -> None:
        result = rules.order_statistics(shape_of(x), shape_of(ranks), axis)
        super().__init__(
            operands=[x, ranks],
            result_types=[like(x, result)],
            properties={"axis": int_attr(axis)},
        )

    def verify_(self) -> None:
        """Check C1 to C4."""
        super().verify_()
        if element(self.ranks) != i64:  # order_statistics_c2
            raise VerifyException(f"ranks must be i64, got {element(self.ranks)}")


@shape(OrderStatisticsOp)
def _order_statistics_shape(op: OrderStatisticsOp) -> Sequence[Attribute]:
    result = rules.order_statistics(shape_of(op.x), shape_of(op.ranks), op.axis.value.data)
    return (like(op.x, result),)


@reference(OrderStatisticsOp)
def _order_statistics_reference(op: OrderStatisticsOp, operands: Sequence[Array]) -> Array:
    x, ranks = operands
    axis = op.axis.value.data
    if not ranks.size:
        return np.empty(ranks.shape, x.dtype)
    narrow = dtype(element(op.x)).name in ("f16", "bf16")
    order = np.argsort(x.astype(np.float32) if narrow else x, axis=axis, kind="stable")
    places = np.clip(ranks, 0, x.shape[axis] - 1)
    return np.take_along_axis(np.take_along_axis(x, order, axis), places, axis)


@shape(SortOp)
def _sort_shape(op: SortOp) -> Sequence[Attribute]:
    return (like(op.x, rules.sort(shape_of(op.x), op.axis.value.data)),)


@shape(ArgsortOp)
def _argsort_shape(op: ArgsortOp) -> Sequence[Attribute]:
    return (TensorType(element(op.y), rules.sort(shape_of(op.x), op.axis.value.data)),)


def _order(op: OrderOp, x: Array) -> Array:
    """Return the index of the source of each element of the result."""
    axis = op.axis.value.data
    if dtype(element(op.x)).name in ("f16", "bf16"):
        x = x.astype(np.float32)  # NumPy sorts NaN last only for its own float types
    if not op.descending:
        return np.argsort(x, axis=axis, kind="stable")
    from_behind = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(from_behind, axis)


@reference(SortOp)
def _sort_reference(op: SortOp, operands: Sequence[Array]) -> Array:
    (x,) = operands
    return np.take_along_axis(x, _order(op, x), op.axis.value.data)


@reference(ArgsortOp)
def _argsort_reference(op: ArgsortOp, operands: Sequence[Array]) -> Array:
    return _order(op, operands[0]).astype(dtype(element(op.y)).numpy)


OPS = (SortOp, ArgsortOp, OrderStatisticsOp)
