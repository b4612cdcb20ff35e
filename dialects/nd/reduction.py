"""Ops of `nd` that combine the elements of a tensor along axes: reductions and related ops."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.core.shapes import reduction as rules
from stepwell.dialects.nd.groups import like
from stepwell.dialects.nd.syntax import (
    AXES,
    SpelledOp,
    axes,
    axes_attr,
    axes_or,
    element,
    int_attr,
    lists,
    shape_of,
)
from stepwell.dialects.readings import Array, reference, shape
from stepwell.dialects.types import dtype


@dataclass(frozen=True)
class Combiner:
    """The combining function of a reduction."""

    name: str
    ufunc: np.ufunc

    def identity(self, kind: DType) -> Any:
        """Return the identity: the initial value, and the result of an empty reduction."""
        match self.name:
            case "sum" | "or":
                value: Any = 0
            case "prod":
                value = 1
            case "and":
                value = 1 if kind.kind == "bool" else -1
            case _:
                value = _extreme(kind, largest=self.name == "min")
        return np.array(value).astype(kind.numpy)[()]


def _extreme(kind: DType, largest: bool) -> Any:
    if kind.kind == "float":
        return np.inf if largest else -np.inf
    if kind.kind == "bool":
        return largest
    limits = np.iinfo(kind.numpy)
    return limits.max if largest else limits.min


SUM = Combiner("sum", np.add)
PROD = Combiner("prod", np.multiply)
MAX = Combiner("max", np.maximum)
MIN = Combiner("min", np.minimum)
AND = Combiner("and", np.bitwise_and)
OR = Combiner("or", np.bitwise_or)


def check_combines(combiner: Combiner, kind: DType) -> None:
    """Refuse undefined combinations: sums of i1, bitwise functions of floats."""
    if combiner in (SUM, PROD) and kind.kind == "bool":  # reduce_c2, cumulative_c2, window_c3
        raise VerifyException("sums and products of i1 are not defined; cast to integers first")
    if combiner in (AND, OR) and kind.kind == "float":  # reduce_c2
        raise VerifyException(f"'and' and 'or' combine integers and i1, got {kind.name}")


def _accumulator(kind: DType) -> np.dtype[Any]:
    """Return the type of partial results: f32 for the 16-bit floats, else the type itself."""
    return np.dtype(np.float32) if kind.name in ("f16", "bf16") else kind.numpy


class ReduceOp(SpelledOp, ABC):
    """The base of the reductions: y[j] = all x[i] combined where i without ``axes`` is j."""

    COMBINER: ClassVar[Combiner]
    x = operand_def(TensorType)
    y = result_def(TensorType)
    axes = prop_def(AXES)

    def __init__(self, x: SSAValue, axes: Sequence[int]) -> None:
        super().__init__(
            operands=[x],
            result_types=[like(x, rules.reduce(shape_of(x), axes))],
            properties={"axes": axes_attr(axes)},
        )

    def verify_(self) -> None:
        """Check C1 and C2."""
        super().verify_()
        check_combines(self.COMBINER, dtype(element(self.x)))


@irdl_op_definition
class ReduceSumOp(ReduceOp):
    """y[j] = the sum of x over ``axes``; 0 if empty.

    Integers wrap; f16 and bf16 are accumulated in f32 and rounded once.

    * (C1) axes are axes of x, in ascending order.
    * (C2) x is not i1.
    """

    name = "nd.reduce_sum"
    COMBINER: ClassVar = SUM


@irdl_op_definition
class ReduceProdOp(ReduceOp):
    """y[j] = the product of x over ``axes``; 1 if empty.

    Constraints are those of nd.reduce_sum.
    """

    name = "nd.reduce_prod"
    COMBINER: ClassVar = PROD


@irdl_op_definition
class ReduceMaxOp(ReduceOp):
    """y[j] = the largest of x over ``axes``; NaN if any is; -inf or the least integer if empty.

    * (C1) axes are axes of x, in ascending order.
    """

    name = "nd.reduce_max"
    COMBINER: ClassVar = MAX


@irdl_op_definition
class ReduceMinOp(ReduceOp):
    """y[j] = the smallest of x over ``axes``; NaN if any is; inf or the largest integer if empty.

    * (C1) axes are axes of x, in ascending order.
    """

    name = "nd.reduce_min"
    COMBINER: ClassVar = MIN


@irdl_op_definition
class ReduceAndOp(ReduceOp):
    """y[j] = the bitwise and of x over ``axes``; all bits set if empty.

    * (C1) axes are axes of x, in ascending order.
    * (C2) x is not a float.
    """

    name = "nd.reduce_and"
    COMBINER: ClassVar = AND


@irdl_op_definition
class ReduceOrOp(ReduceOp):
    """y[j] = the bitwise or of x over ``axes``; 0 if empty.

    Constraints are those of nd.reduce_and.
    """

    name = "nd.reduce_or"
    COMBINER: ClassVar = OR


REDUCTIONS = (ReduceSumOp, ReduceProdOp, ReduceMaxOp, ReduceMinOp, ReduceAndOp, ReduceOrOp)


@shape(*REDUCTIONS)
def _reduce_shape(op: ReduceOp) -> Sequence[Attribute]:
    return (like(op.x, rules.reduce(shape_of(op.x), axes(op.axes))),)  # reduce_c1


@reference(*REDUCTIONS)
def _reduce_reference(op: ReduceOp, operands: Sequence[Array]) -> Array:
    (x,) = operands
    kind = dtype(element(op.x))
    wide = x.astype(_accumulator(kind))
    return np.asarray(_combined(op.COMBINER, kind, wide, axes(op.axes))).astype(kind.numpy)


def _combined(combiner: Combiner, kind: DType, x: Array, over: Sequence[int]) -> Array:
    """Combine ``x`` over axes, floats in row-major order, as generated loops do."""
    identity = combiner.identity(kind)
    if kind.kind != "float" or combiner not in (SUM, PROD) or not over:
        return combiner.ufunc.reduce(x, tuple(over), dtype=x.dtype, initial=identity)
    kept = [n for axis, n in enumerate(x.shape) if axis not in over]
    count = prod(x.shape[axis] for axis in over)
    row = np.moveaxis(x, over, range(x.ndim - len(over), x.ndim)).reshape((*kept, count))
    first = np.full((*kept, 1), identity, x.dtype)
    return combiner.ufunc.accumulate(np.concatenate((first, row), -1), -1)[..., -1]


class ArgReduceOp(SpelledOp, ABC):
    """The base of argmax and argmin: the index along ``axis`` of the chosen element."""

    x = operand_def(TensorType)
    y = result_def(TensorType)
    axis = prop_def(IntegerAttr[I64])

    def __init__(self, x: SSAValue, axis: int, dtype: Attribute = i64) -> None:
        result = rules.arg_reduce(shape_of(x), axis)
        super().__init__(
            operands=[x],
            result_types=[TensorType(dtype, result)],
            properties={"axis": int_attr(axis)},
        )

    def verify_(self) -> None:
        """Check C1 and C2."""
        super().verify_()
        if element(self.y) not in (IntegerType(32), i64):  # arg_reduce_c2
            raise VerifyException(f"result must have elements i32 or i64, got {element(self.y)}")


@irdl_op_definition
class ArgmaxOp(ArgReduceOp):
    """y[j] = the index along ``axis`` of the first largest element, or of the first NaN if any.

    * (C1) axis is an axis of x, of size 1 or more; an unknown size is at most 2147483647, and the
      result is 0 if it is 0.
    * (C2) The result is i32 or i64.
    """

    name = "nd.argmax"


@irdl_op_definition
class ArgminOp(ArgReduceOp):
    """y[j] = the first index along ``axis`` where x is smallest; otherwise like nd.argmax."""

    name = "nd.argmin"


@shape(ArgmaxOp, ArgminOp)
def _arg_reduce_shape(op: ArgReduceOp) -> Sequence[Attribute]:
    result = rules.arg_reduce(shape_of(op.x), op.axis.value.data)  # arg_reduce_c1
    return (TensorType(element(op.y), result),)


@reference(ArgmaxOp, ArgminOp)
def _arg_reduce_reference(op: ArgReduceOp, operands: Sequence[Array]) -> Array:
    (x,) = operands
    axis, kind = op.axis.value.data, dtype(element(op.y)).numpy
    if x.shape[axis] == 0:
        return np.zeros(rules.reduce(x.shape, (axis,)), kind)
    choose = np.argmax if isinstance(op, ArgmaxOp) else np.argmin
    return np.asarray(choose(x, axis=axis)).astype(kind)


class CumulativeOp(SpelledOp, ABC):
    """The base of the cumulative reductions.

    y[i] = all x[j] combined where j equals i except for an index along ``axis`` of at most i's;
    ``exclusive`` excludes i itself, ``reverse`` takes larger indices instead of smaller ones.
    """

    COMBINER: ClassVar[Combiner]
    x = operand_def(TensorType)
    y = result_def(TensorType)
    axis = prop_def(IntegerAttr[I64])
    reverse = opt_prop_def(UnitAttr)
    exclusive = opt_prop_def(UnitAttr)

    def __init__(
        self, x: SSAValue, axis: int, *, reverse: bool = False, exclusive: bool = False
    ) -> None:
        super().__init__(
            operands=[x],
            result_types=[like(x, rules.cumulative(shape_of(x), axis))],
            properties={
                "axis": int_attr(axis),
                "reverse": UnitAttr() if reverse else None,
                "exclusive": UnitAttr() if exclusive else None,
            },
        )

    def verify_(self) -> None:
        """Check C1 and C2."""
        super().verify_()
        check_combines(self.COMBINER, dtype(element(self.x)))


@irdl_op_definition
class CumulativeSumOp(CumulativeOp):
    """y[i] = the sum of x up to i along ``axis``; f16 and bf16 are accumulated in f32.

    * (C1) axis is an axis of x.
    * (C2) x is not i1.
    """

    name = "nd.cumulative_sum"
    COMBINER: ClassVar = SUM


@irdl_op_definition
class CumulativeProdOp(CumulativeOp):
    """y[i] = the product of x up to i along ``axis``. Constraints of nd.cumulative_sum."""

    name = "nd.cumulative_prod"
    COMBINER: ClassVar = PROD


@irdl_op_definition
class CumulativeMaxOp(CumulativeOp):
    """y[i] = the largest of x up to i along ``axis``; NaN from the first NaN on.

    * (C1) axis is an axis of x.
    """

    name = "nd.cumulative_max"
    COMBINER: ClassVar = MAX


@irdl_op_definition
class CumulativeMinOp(CumulativeOp):
    """y[i] = the smallest of x up to i along ``axis``; NaN from the first NaN on.

    * (C1) axis is an axis of x.
    """

    name = "nd.cumulative_min"
    COMBINER: ClassVar = MIN


CUMULATIVES = (CumulativeSumOp, CumulativeProdOp, CumulativeMaxOp, CumulativeMinOp)


@shape(*CUMULATIVES)
def _cumulative_shape(op: CumulativeOp) -> Sequence[Attribute]:
    return (like(op.x, rules.cumulative(shape_of(op.x), op.axis.value.data)),)


@reference(*CUMULATIVES)
def _cumulative_reference(op: CumulativeOp, operands: Sequence[Array]) -> Array:
    (x,) = operands
    kind, axis = dtype(element(op.x)), op.axis.value.data
    wide = np.moveaxis(x.astype(_accumulator(kind)), axis, 0)
    wide = wide[::-1] if op.reverse else wide
    sums = np.asarray(op.COMBINER.ufunc.accumulate(wide, 0, dtype=wide.dtype))
    if op.exclusive and len(sums):
        sums = np.roll(sums, 1, 0)
        sums[0] = op.COMBINER.identity(kind)
    sums = sums[::-1] if op.reverse else sums
    return np.moveaxis(sums, 0, axis).astype(kind.numpy)


class WindowOp(SpelledOp, ABC):
    """The base of the windowed reductions.

    y[i] = all x[i * strides + w * dilation - low] combined for every w inside ``window``; positions
    outside of x are skipped.
    """

    COMBINER: ClassVar[Combiner]
    x = operand_def(TensorType)
    y = result_def(TensorType)
    window = prop_def(AXES)
    strides = opt_prop_def(AXES)
    low = opt_prop_def(AXES)
    high = opt_prop_def(AXES)
    dilation = opt_prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        low: Sequence[int] | None = None,
        high: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
    ) -> None:
        rank = len(window)
        given = {"strides": (strides, 1), "low": (low, 0), "high": (high, 0)}
        given["dilation"] = (dilation, 1)
        full = {k: tuple(v or (usual,) * rank) for k, (v, usual) in given.items()}
        written = {k: v for k, v in full.items() if any(n != given[k][1] for n in v)}
        super().__init__(
            operands=[x],
            result_types=[like(x, rules.window_reduce(shape_of(x), window, **full))],
            properties=lists(window=window, **written),
        )

    @property
    def geometry(self) -> tuple[Shape, Shape, Shape, Shape, Shape]:
        """Window, strides, low, high and dilation, one entry for each axis."""
        window = axes(self.window)
        ones, zeros = (1,) * len(window), (0,) * len(window)
        return (
            window,
            axes_or(self.strides, ones),
            axes_or(self.low, zeros),
            axes_or(self.high, zeros),
            axes_or(self.dilation, ones),
        )

    def verify_(self) -> None:
        """Check C1 to C3."""
        super().verify_()
        check_combines(self.COMBINER, dtype(element(self.x)))


@irdl_op_definition
class WindowSumOp(WindowOp):
    """y[i] = the sum of the window at i; ``strides`` and ``dilation`` default to 1, padding to 0.

    * (C1) window, strides, low, high and dilation have one entry for each axis of x.
    * (C2) window, strides and dilation are positive; low and high are not negative.
    * (C3) x is not i1.
    """

    name = "nd.window_sum"
    COMBINER: ClassVar = SUM


@irdl_op_definition
class WindowMaxOp(WindowOp):
    """y[i] = the largest element of the window at i. Constraints C1 and C2 of nd.window_sum."""

    name = "nd.window_max"
    COMBINER: ClassVar = MAX


@irdl_op_definition
class WindowMinOp(WindowOp):
    """y[i] = the smallest element of the window at i. Constraints C1 and C2 of nd.window_sum."""

    name = "nd.window_min"
    COMBINER: ClassVar = MIN


WINDOWS = (WindowSumOp, WindowMaxOp, WindowMinOp)


@shape(*WINDOWS)
def _window_shape(op: WindowOp) -> Sequence[Attribute]:
    return (like(op.x, rules.window_reduce(shape_of(op.x), *op.geometry)),)  # window_c1, window_c2


@reference(*WINDOWS)
def _window_reference(op: WindowOp, operands: Sequence[Array]) -> Array:
    (x,) = operands
    kind = dtype(element(op.x))
    window, strides, low, high, dilation = op.geometry
    result = rules.window_reduce(x.shape, window, strides, low, high, dilation)
    if 0 in result:
        return np.zeros(result, kind.numpy)
    identity = op.COMBINER.identity(kind)
    wide = np.full([n + a + b for n, a, b in zip(x.shape, low, high, strict=True)], identity)
    wide = wide.astype(_accumulator(kind))
    wide[tuple(slice(a, a + n) for n, a in zip(x.shape, low, strict=True))] = x
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    views = sliding_window_view(wide, reach) if reach else wide
    chosen = [slice(None, None, s) for s in (*strides, *dilation)]
    parts = views[tuple(chosen)]
    last = tuple(range(x.ndim, 2 * x.ndim))
    return np.asarray(_combined(op.COMBINER, kind, parts, last)).astype(kind.numpy)


OPS = (*REDUCTIONS, ArgmaxOp, ArgminOp, *CUMULATIVES, *WINDOWS)
