"""Starts of slices that are constants, and slices that are updated in place later."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType
from xdsl.ir import BlockArgument, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.control import ScanOp, WhileOp
from stepwell.dialects.nd.creation import ConstantOp, FullOp
from stepwell.dialects.nd.indexing import DynamicUpdateSliceOp
from stepwell.dialects.nd.shape import ConcatOp, SliceOp
from stepwell.dialects.nd.syntax import axes, shape_of
from stepwell.dialects.types import dtype
from stepwell.lowering.nd_to_linalg.sizes import Size

MAX_CONCATENATIONS = 64
"""Uses of a slice that are followed: `x[:1], f(x), x[-1:]` needs one for each axis. There are
exponentially many ways through concatenations of values with themselves."""


def known_start(start: SSAValue) -> int | None:
    """Return a constant start as an index, saturated to i64, None if it is dynamic."""
    match start.owner:
        case (
            arith.ConstantOp(value=IntegerAttr(value=number))
            | FullOp(value=IntegerAttr(value=number))
        ):
            found = int(number.data)
        case ConstantOp(value=DenseIntOrFPElementsAttr() as values):
            (first, *_) = values.get_values()
            found = int(first)  # pyright: ignore
        case _:
            return None
    if isinstance(start.type, TensorType):
        kind = dtype(start.type.element_type)
        if kind.kind == "unsigned" and found < 0:
            found += 1 << 8 * kind.bytes
    return min(found, (1 << 63) - 1)


def is_best_a_view(op: SliceOp, begins: Sequence[Size]) -> bool:
    """Whether the block that a slice reads, or a disjoint one, is updated or put back later.

    An update is ``x[1:] += v`` or ``x[0] = x[1]``: if the slice is a view, results computed from it
    can be written in place. A block that a loop puts back in its place need not be copied at all.
    """
    firsts = [n for n in begins if isinstance(n, int)]
    if len(firsts) < len(begins):
        return False
    if _is_put_back(op, firsts):
        return True
    if DYNAMIC in shape_of(op.x):
        return False
    strides = [stride for _, _, stride in op.ranges]
    taken = [
        range(b, b + n * s, s) for b, n, s in zip(firsts, shape_of(op.y), strides, strict=True)
    ]
    for use in op.x.uses:
        if isinstance(use.operation, DynamicUpdateSliceOp) and use.index == 0:
            into = written(use.operation)
            if into == taken or _are_disjoint(taken, into):
                return True
    return False


def _is_put_back(op: SliceOp, begins: Sequence[int]) -> bool:
    """Whether a repeated loop concatenates a slice of a carried tensor into its old place."""
    loop = op.x.owner.parent_op() if isinstance(op.x, BlockArgument) else None
    repeated = isinstance(loop, WhileOp) or (isinstance(loop, ScanOp) and loop.count != 1)
    plain = repeated and all(stride == 1 for _, _, stride in op.ranges)
    waiting: list[tuple[SSAValue, list[int]]] = [(op.y, [0] * len(begins))] if plain else []
    for _ in range(MAX_CONCATENATIONS):
        if not waiting:
            return False
        value, at = waiting.pop()
        if value.type == op.x.type and at == list(begins):
            return True
        for use in value.uses:
            if isinstance(concat := use.operation, ConcatOp):
                axis = concat.axis.value.data
                before = [shape_of(x)[axis] for x in concat.xs[: use.index]]
                if DYNAMIC not in before:
                    waiting.append(
                        (concat.y, [*at[:axis], at[axis] + sum(before), *at[axis + 1 :]])
                    )
    return False


def _are_disjoint(a: Sequence[range], b: Sequence[range | None]) -> bool:
    """Whether two blocks are disjoint."""
    return any(y is not None and never_meet(x, y) for x, y in zip(a, b, strict=True))


def never_meet(a: range, b: range) -> bool:
    """Whether two ranges are provably disjoint."""
    if not a or not b or a[-1] < b[0] or b[-1] < a[0]:
        return True
    return (a.start - b.start) % gcd(a.step, b.step) != 0


def written(op: DynamicUpdateSliceOp) -> list[range | None]:
    """Return the range that an update writes along each axis, None where it is dynamic."""
    found: list[range | None] = [range(n) for n in shape_of(op.x)]
    for axis, start, step in zip(axes(op.axes), op.starts, op.steps, strict=True):
        n, m = shape_of(op.x)[axis], shape_of(op.update)[axis]
        room, known = n - ((m - 1) * step + 1), known_start(start)
        if room == 0:
            known = 0
        begin = None if known is None else max(min(known, room), 0)
        found[axis] = None if begin is None else range(begin, begin + m * step, step)
    return found
