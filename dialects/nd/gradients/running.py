"""Derivatives of products, cumulative products and cumulative extremes.

None of them divides: an element 0 gets the product of the others. Of equal elements that are the
largest so far, the first gets the cotangent of a cumulative maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.bitwise import OrOp
from stepwell.dialects.nd.compare import GtOp, LtOp, NeOp, SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.control import ScanOp, YieldOp
from stepwell.dialects.nd.creation import FullOp, IotaOp
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.reduction import (
    CumulativeMaxOp,
    CumulativeMinOp,
    CumulativeOp,
    CumulativeProdOp,
    CumulativeSumOp,
    ReduceProdOp,
)
from stepwell.dialects.nd.shape import ReshapeOp, TransposeOp
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.readings import gradient

MIN_CUT_ELEMENTS = 128
"""Minimum length of a row that is split into columns."""
COLUMNS = 48
"""The number of columns of a split row, approximately."""
Step = Callable[..., tuple[SSAValue, SSAValue]]
"""``(composer, carried, elements) -> next carried value, output for this element``."""


@gradient(CumulativeSumOp)
def _sum(r: Reverse, op: CumulativeSumOp, cotangents: Sequence[SSAValue | None]) -> None:
    (g,) = cotangents
    assert g is not None
    axis, exclusive = op.axis.value.data, op.exclusive is not None
    back = CumulativeSumOp(g, axis, reverse=op.reverse is None, exclusive=exclusive)
    r.accumulate(op.x, r.of(back))


@gradient(CumulativeProdOp)
def _product(r: Reverse, op: CumulativeProdOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Multiply the products before an element by the sum over later ones of partial products."""
    (g,) = cotangents
    assert g is not None
    before = r.of(
        CumulativeProdOp(op.x, op.axis.value.data, reverse=op.reverse is not None, exclusive=True)
    )

    def step(
        c: Composer, s: SSAValue, x: SSAValue, before: SSAValue, g: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        if op.exclusive is not None:
            return c.add(g, c.mul(x, s)), c.mul(before, s)
        total = c.add(g, s)
        return c.mul(x, total), c.mul(before, total)

    r.accumulate(op.x, _scanned(r, op, [op.x, before, g], step))


@gradient(CumulativeMaxOp, CumulativeMinOp)
def _extreme(
    r: Reverse, op: CumulativeMaxOp | CumulativeMinOp, cotangents: Sequence[SSAValue | None]
) -> None:
    """Sum for each element that exceeds all earlier ones the cotangents up to the next such one."""
    (g,) = cotangents
    assert g is not None
    greatest = isinstance(op, CumulativeMaxOp)

    def lead(c: Composer, best: SSAValue, x: SSAValue) -> tuple[SSAValue, SSAValue]:
        leads = c.of((GtOp if greatest else LtOp)(x, best))
        after = c.of(SelectOp(c.of(OrOp(leads, c.of(NeOp(x, x)))), x, best))  # NaN stays the best
        return after, leads

    def step(c: Composer, s: SSAValue, lead: SSAValue, g: SSAValue) -> tuple[SSAValue, SSAValue]:
        zero = c.full(g, 0)
        if op.exclusive is not None:
            kept = c.of(SelectOp(lead, zero, s))
            return c.add(g, kept), c.of(SelectOp(lead, s, zero))
        total = c.add(g, s)
        return c.of(SelectOp(lead, zero, total)), c.of(SelectOp(lead, total, zero))

    least = float("-inf" if greatest else "inf")
    leads = _scanned(r, op, [op.x], lead, least, backward=False)
    r.accumulate(op.x, _scanned(r, op, [leads, g], step))


def _scanned(
    r: Reverse,
    op: CumulativeOp,
    xs: Sequence[SSAValue],
    step: Step,
    start: float = 0,
    backward: bool = True,
) -> SSAValue:
    """Scan ``step`` over the rows along the axis, in the op's direction or against it."""
    axis, shape = op.axis.value.data, shape_of(op.x)
    order = [axis, *(a for a in range(len(shape)) if a != axis)]
    rows = [_ordered(r, x, order) for x in xs]
    sizes = [r.size(op.x, a) for a in order[1:] if shape[a] == DYNAMIC]
    type = TensorType(element(op.x), [shape[a] for a in order[1:]])
    first = r.of(FullOp.of(start, type, sizes))
    block = Block(arg_types=[type, *(TensorType(element(x), type.get_shape()) for x in rows)])
    c = Composer(Builder(InsertPoint.at_end(block)))
    block.add_op(YieldOp(step(c, *block.args)))
    reverse = (op.reverse is None) is backward
    scan = ScanOp([first], rows, Region(block), sizes=sizes, reverse=reverse)
    found = r.builder.insert(scan).results[1]
    return _ordered(r, found, sorted(range(len(order)), key=order.__getitem__))


def _ordered(r: Reverse, x: SSAValue, order: Sequence[int]) -> SSAValue:
    return x if list(order) == sorted(order) else r.of(TransposeOp(x, order))


@gradient(ReduceProdOp)
def _reduce(r: Reverse, op: ReduceProdOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Multiply, axis by axis, the product before an element by the product after it."""
    (g,) = cotangents
    assert g is not None
    over = sorted(axes(op.axes), reverse=True)
    stages = [op.x]
    for axis in over[:-1]:
        stages.append(r.of(ReduceProdOp(stages[-1], [axis])))
    for x, axis in zip(reversed(stages), reversed(over), strict=False):
        g = _times_others(r, x, axis, g)
    r.accumulate(op.x, g)


def _times_others(r: Reverse, x: SSAValue, axis: int, g: SSAValue) -> SSAValue:
    """Return ``g`` times the product of all other elements along ``axis``, for each.

    A long last axis is reshaped to rows and columns: the products of the columns are few, and scans
    over the rows are vectorized along the columns.
    """
    shape = shape_of(x)
    columns = _columns(shape[axis]) if axis == len(shape) - 1 and DYNAMIC not in shape else 0
    if not columns:
        return _product_of_others(r, x, axis, g)
    rows = r.of(ReshapeOp(x, [*shape[:axis], shape[axis] // columns, columns]))
    rest = _product_of_others(r, r.of(ReduceProdOp(rows, [axis])), axis, g)
    return r.of(ReshapeOp(_product_of_others(r, rows, axis, rest), shape))


def _columns(n: int) -> int:
    """Return the number of columns for a row of ``n`` elements; 0 if it is not split.

    >>> _columns(1024), _columns(1000), _columns(1009), _columns(64)
    (32, 40, 0, 0)
    """
    whole = [k for k in range(8, n // 2, 8) if n % k == 0]
    whole = [k for k in whole if k % 16 == 0] or whole
    return min(whole, key=lambda k: abs(k - COLUMNS), default=0) if n >= MIN_CUT_ELEMENTS else 0


def _product_of_others(r: Reverse, x: SSAValue, axis: int, g: SSAValue) -> SSAValue:
    """Multiply exclusive cumulative products from both ends, by a scan in each direction."""
    forward = CumulativeProdOp(x, axis, exclusive=True)
    before = r.of(forward)

    def step(
        c: Composer, behind: SSAValue, x: SSAValue, before: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        return c.mul(behind, x), c.mul(c.mul(g, before), behind)

    return _scanned(r, forward, [x, before], step, 1)


def places(r: Reverse, x: SSAValue, axis: int, along: SSAValue) -> list[SSAValue]:
    """Return an index for each axis of ``x``: ``along`` for ``axis``, its own for all others."""
    type = TensorType(element(along), shape_of(along))
    return [
        along if a == axis else r.of(IotaOp(type, a, r.sizes(along)))
        for a in range(len(shape_of(x)))
    ]
