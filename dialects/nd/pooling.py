"""Pooling: the maximum or the mean of each window of the last axes."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from stepwell.core.shapes import Shape
from stepwell.core.shapes import composite as shapes
from stepwell.core.shapes.contraction import Window
from stepwell.dialects.nd.base import FLOAT, NUMBER, check_elements, tensor_of
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.composite import meaning
from stepwell.dialects.nd.reduction import WindowMaxOp, WindowSumOp
from stepwell.dialects.nd.syntax import AXES, SpelledOp, axes, axes_or, element, lists, shape_of
from stepwell.dialects.readings import decomposition, shape


class PoolOp(SpelledOp, ABC):
    """A window over the last axes of x, one for each number of ``window``.

    ``strides`` default to the window's sizes, ``low`` and ``high`` (padding) to 0.

    * (C1) The window's sizes are positive, and no more than x has axes.
    * (C2) Strides are positive, padding is not negative, each with one number per window size.
    """

    x = operand_def(TensorType)
    y = result_def(TensorType)
    window = prop_def(AXES)
    strides = opt_prop_def(AXES)
    low = opt_prop_def(AXES)
    high = opt_prop_def(AXES)

    def __init__(
        self,
        x: SSAValue,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        low: Sequence[int] | None = None,
        high: Sequence[int] | None = None,
        **properties: Attribute,
    ) -> None:
        properties |= lists(window=window, strides=strides, low=low, high=high)
        result = shapes.pool(shape_of(x), _moves(properties))
        super().__init__(
            operands=[x], result_types=[TensorType(element(x), result)], properties=properties
        )

    @property
    def moves(self) -> Window:
        """The geometry of the window."""
        return _moves(self.properties)

    def full(self) -> tuple[Shape, Shape, Shape, Shape]:
        """Return window, strides, low and high with an entry for every axis of x."""
        moves = self.moves
        before = len(shape_of(self.x)) - len(moves.size)
        ones, zeros = (1,) * before, (0,) * before
        return (
            ones + moves.size,
            ones + moves.strides,
            zeros + moves.low,
            zeros + moves.high,
        )


def _moves(properties: Mapping[str, Any]) -> Window:
    size = axes(properties["window"])
    ones, zeros = (1,) * len(size), (0,) * len(size)
    strides = axes_or(properties.get("strides"), size)
    low, high = (axes_or(properties.get(side), zeros) for side in ("low", "high"))
    return Window(size, strides, low, high, ones, ones)


@irdl_op_definition
class MaxPoolOp(PoolOp):
    """``y`` = the maximum of each window of x; positions outside of x are ignored.

    A window completely outside gives -inf, or the least integer. Constraints as `PoolOp`.
    """

    name = "nd.max_pool"

    def verify_(self) -> None:
        """Refuse i1; the shape rule checks the rest."""
        check_elements(tensor_of(self.x), NUMBER)
        super().verify_()


@irdl_op_definition
class AvgPoolOp(PoolOp):
    """``y`` = the mean of each window of x.

    Positions outside of x do not count, or count as 0 with ``count_include_pad``. Constraints as
    `PoolOp`.
    """

    name = "nd.avg_pool"
    count_include_pad = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        """Refuse integers; the shape rule checks the rest."""
        check_elements(tensor_of(self.x), FLOAT)
        super().verify_()


@shape(MaxPoolOp, AvgPoolOp)
def _pool_shape(op: PoolOp) -> Sequence[Attribute]:
    # pool_c1, pool_c2
    return (TensorType(element(op.x), shapes.pool(shape_of(op.x), op.moves)),)


@decomposition(MaxPoolOp)
def _max_pool(builder: Builder, op: MaxPoolOp) -> Sequence[SSAValue]:
    return (Composer(builder).of(WindowMaxOp(op.x, *op.full())),)


@decomposition(AvgPoolOp)
@meaning
def _avg_pool(c: Composer, op: AvgPoolOp, x: SSAValue) -> SSAValue:
    """Divide the sum of each window by the number of its elements in x."""
    moves = op.moves
    total = c.of(WindowSumOp(x, *op.full()))
    if op.count_include_pad is not None or not any((*moves.low, *moves.high)):
        return c.div(total, c.full(total, prod(moves.size)))
    return c.div(total, c.of(WindowSumOp(c.full(x, 1), *op.full())))


OPS = (MaxPoolOp, AvgPoolOp)
