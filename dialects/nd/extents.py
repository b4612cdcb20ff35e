"""The `extents` rules of `nd`: symbolic result shapes, and the conditions on unknown sizes.

The rules compute with formulas as `core.shapes` computes with numbers. Composite ops need no rule:
the ops of their decomposition have rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from stepwell.core.formulas import Formula, product
from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.contraction import free_axes
from stepwell.core.shapes.shape import END, broadcast_unknown
from stepwell.dialects.nd.calls import CallOp
from stepwell.dialects.nd.contraction import ConvolutionOp, DotGeneralOp
from stepwell.dialects.nd.control import ConditionOp, IfOp, ScanOp, WhileOp, YieldOp
from stepwell.dialects.nd.convert import BitcastOp, CastOp
from stepwell.dialects.nd.creation import ConstantOp, Creation
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOpBase,
)
from stepwell.dialects.nd.reduction import ArgReduceOp, CumulativeOp, ReduceOp, WindowOp
from stepwell.dialects.nd.shape import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from stepwell.dialects.nd.sizes import DimOp, FromIndexOp
from stepwell.dialects.nd.sorting import OrderOp, OrderStatisticsOp
from stepwell.dialects.nd.syntax import axes, shape_of
from stepwell.dialects.readings import extents
from stepwell.dialects.size_conditions import Shape, named
from stepwell.dialects.sizing import Sizing

ZERO, ONE = Formula(), Formula.of(1)
LONGEST_UNKNOWN = (1 << 31) - 1
"""The greatest size of an unknown axis of argmax: indices along it are compared in 32 bits."""


@extents(Elementwise)
def _elementwise(op: Elementwise, s: Sizing) -> Sequence[Shape]:
    return [s.same_shapes(*op.operands)]


@extents(CastOp, BitcastOp, ReverseOp, CumulativeOp, OrderOp)
def _same(op: Any, s: Sizing) -> Sequence[Shape]:
    return [s.shape(op.x)]


@extents(ConstantOp)
def _constant(op: ConstantOp, s: Sizing) -> Sequence[Shape]:
    return [tuple(map(Formula.of, shape_of(op.y)))]


def _declared_shape(static: Sequence[int], sizes: Sequence[SSAValue], s: Sizing) -> Shape:
    """Return a shape whose `?` are given by index operands, in order."""
    rest = iter(sizes)
    return tuple(s.number(next(rest)) if n == DYNAMIC else Formula.of(n) for n in static)


@extents(Creation)
def _creation(op: Creation, s: Sizing) -> Sequence[Shape]:
    return [_declared_shape(shape_of(op.y), op.sizes, s)]


@extents(DimOp)
def _dim(op: DimOp, s: Sizing) -> Sequence[Formula]:
    return [s.shape(op.x)[op.axis.value.data]]


@extents(FromIndexOp)
def _from_index(op: FromIndexOp, s: Sizing) -> Sequence[Shape]:
    return [()]


@extents(BroadcastOp)
def _broadcast(op: BroadcastOp, s: Sizing) -> Sequence[Shape]:
    x, dims, result = s.shape(op.x), axes(op.dims), shape_of(op.y)
    y = list(map(Formula.of, result))
    for axis, to in enumerate(dims):
        if result[to] == DYNAMIC:
            y[to] = x[axis]
    unknown = broadcast_unknown(shape_of(op.x), dims, result)
    for axis, size in zip(unknown, op.sizes, strict=True):
        y[axis] = s.number(size)
    return [tuple(y)]


@extents(ReshapeOp)
def _reshape(op: ReshapeOp, s: Sizing) -> Sequence[Shape]:
    x = s.shape(op.x)
    if op.sizes or DYNAMIC not in shape_of(op.y):
        y = _declared_shape(shape_of(op.y), op.sizes, s)
    else:
        same = x[shape_of(op.x).index(DYNAMIC)]
        y = tuple(same if n == DYNAMIC else Formula.of(n) for n in shape_of(op.y))
    have, want = product(x), product(y)
    words = (f"{named(op.x)} has ", have, f" elements, but {named(op.y)} would have ", want)
    s.equal(have, want, words)
    return [y]


@extents(TransposeOp)
def _transpose(op: TransposeOp, s: Sizing) -> Sequence[Shape]:
    x = s.shape(op.x)
    return [tuple(x[a] for a in axes(op.permutation))]


@extents(SliceOp)
def _slice(op: SliceOp, s: Sizing) -> Sequence[Shape]:
    return [tuple(_sliced(n, *r) for n, r in zip(s.shape(op.x), op.ranges, strict=True))]


def _sliced(n: Formula, start: int, limit: int, stride: int) -> Formula:
    """Return the length of a slice, with Python's rules for negative and large bounds."""
    end = n if limit == END else _clamped(n, limit)
    length = Formula.apply("max", end - _clamped(n, start), ZERO)
    return Formula.apply("floor/", length + Formula.of(stride - 1), Formula.of(stride))


def _clamped(n: Formula, bound: int) -> Formula:
    if bound < 0:
        return Formula.apply("max", n + Formula.of(bound), ZERO)
    return Formula.apply("min", n, Formula.of(bound))


@extents(PadOp)
def _pad(op: PadOp, s: Sizing) -> Sequence[Shape]:
    return [
        tuple(
            n + Formula.of(a + b) + Formula.apply("max", n - ONE, ZERO) * Formula.of(c)
            for n, a, b, c in zip(s.shape(op.x), *op.amounts, strict=True)
        )
    ]


@extents(ConcatOp)
def _concat(op: ConcatOp, s: Sizing) -> Sequence[Shape]:
    first, *others = op.xs
    along, result = op.axis.value.data, list(s.shape(first))
    for other in others:
        for axis, n in enumerate(s.shape(other)):
            if axis == along:
                result[axis] = result[axis] + n
            else:
                s.same_size(result[axis], n, first, axis, other, axis)
    return [tuple(result)]


def _gathered_shape(x: Sequence[Formula], indices: Shape, along: Sequence[int]) -> Shape:
    """Return the shape of the elements read at indices along axes."""
    kept = [n for a, n in enumerate(x) if a not in along]
    return (*kept[: along[0]], *indices, *kept[along[0] :])


@extents(GatherOp)
def _gather(op: GatherOp, s: Sizing) -> Sequence[Shape]:
    x, indices, along = s.shape(op.x), s.same_shapes(*op.indices), axes(op.axes)
    for axis in along:
        _require_element(
            s, x[axis], indices, f"axis {axis} of {named(op.x)} has nothing to read, but "
        )
    return [_gathered_shape(x, indices, along)]


def _require_element(s: Sizing, size: Formula, others: Sequence[Formula], words: str) -> None:
    """Require an axis to have an element unless the number of accesses is zero."""
    count = product(others)
    low, _ = size.bounds()
    if not (low is not None and low >= 1) and count.number != 0:
        condition = ["|", [">=", size.tree(), 1], ["==", count.tree(), 0]]
        s.require(condition, (words, count, " elements are wanted of it"))


@extents(ScatterOpBase)
def _scatter(op: ScatterOpBase, s: Sizing) -> Sequence[Shape]:
    x, indices = s.shape(op.x), s.same_shapes(*op.indices)
    want = _gathered_shape(x, indices, axes(op.axes))
    for axis, (a, b) in enumerate(zip(want, s.shape(op.updates), strict=True)):
        what = f"axis {axis} of {named(op.updates)} has size "
        s.equal(a, b, (what, b, ", but by the indices it is ", a))
    return [x]


@extents(DynamicSliceOp)
def _dynamic_slice(op: DynamicSliceOp, s: Sizing) -> Sequence[Shape]:
    result, dynamic = list(s.shape(op.x)), iter(op.unknown_sizes)
    for axis, n in zip(axes(op.axes), axes(op.lengths), strict=True):
        size = s.number(next(dynamic)) if n == DYNAMIC else Formula.of(n)
        what = f" elements along axis {axis} of {named(op.x)}, which has "
        s.at_least(result[axis], size, ("cannot take ", size, what, result[axis]))
        result[axis] = size
    return [tuple(result)]


@extents(DynamicUpdateSliceOp)
def _dynamic_update_slice(op: DynamicUpdateSliceOp, s: Sizing) -> Sequence[Shape]:
    x, update = s.shape(op.x), s.shape(op.update)
    steps = dict(zip(axes(op.axes), op.steps, strict=True))
    for axis, (n, m) in enumerate(zip(x, update, strict=True)):
        if axis not in axes(op.axes):
            s.same_size(n, m, op.x, axis, op.update, axis)
            continue
        if (step := steps[axis]) != 1:
            last = (m - Formula.of(1)) * Formula.of(step) + Formula.of(1)
            what = f"{named(op.update)} reaches over ", last, f" elements along axis {axis} of "
            s.at_least(n, last, (*what, f"{named(op.x)}, which has ", n))
            continue
        what = f"{named(op.update)} has size ", m, f" along axis {axis}, more than {named(op.x)}: "
        s.at_least(n, m, (*what, n))
    return [x]


@extents(ReduceOp)
def _reduce(op: ReduceOp, s: Sizing) -> Sequence[Shape]:
    return [tuple(n for a, n in enumerate(s.shape(op.x)) if a not in axes(op.axes))]


@extents(ArgReduceOp)
def _arg_reduce(op: ArgReduceOp, s: Sizing) -> Sequence[Shape]:
    x, along = s.shape(op.x), op.axis.value.data
    rest = tuple(n for a, n in enumerate(x) if a != along)
    words = f"axis {along} of {named(op.x)} has nothing to choose from, but "
    _require_element(s, x[along], rest, words)
    if shape_of(op.x)[along] == DYNAMIC:
        words = f"axis {along} of {named(op.x)} is too long for an index of 32 bits, with size "
        s.at_least(Formula.of(LONGEST_UNKNOWN), x[along], (words, x[along]))
    return [rest]


@extents(OrderStatisticsOp)
def _order_statistics(op: OrderStatisticsOp, s: Sizing) -> Sequence[Shape]:
    x, ranks, along = s.shape(op.x), s.shape(op.ranks), op.axis.value.data
    for axis, (n, m) in enumerate(zip(x, ranks, strict=True)):
        if axis != along:
            s.same_size(n, m, op.x, axis, op.ranks, axis)
    _require_element(
        s, x[along], ranks, f"axis {along} of {named(op.x)} has nothing to choose from, but "
    )
    return [ranks]


@extents(WindowOp)
def _window(op: WindowOp, s: Sizing) -> Sequence[Shape]:
    return [
        tuple(
            _places(n + Formula.of(low + high), Formula.of((window - 1) * dilation + 1), stride)
            for n, window, stride, low, high, dilation in zip(
                s.shape(op.x), *op.geometry, strict=True
            )
        )
    ]


def _places(extent: Formula, window: Formula, stride: int) -> Formula:
    """Return the number of positions of a window."""
    steps = Formula.apply("floor/", extent - window, Formula.of(stride))
    return Formula.apply("max", steps + ONE, ZERO)


def _dilated(n: Formula, apart: int) -> Formula:
    """Return the dilated extent of ``n`` elements."""
    return n if apart == 1 else Formula.apply("max", (n - ONE) * Formula.of(apart) + ONE, ZERO)


@extents(DotGeneralOp)
def _dot_general(op: DotGeneralOp, s: Sizing) -> Sequence[Shape]:
    x, w = s.shape(op.x), s.shape(op.w)
    for left, right in (op.batch, op.contract):
        for a, b in zip(left, right, strict=True):
            s.same_size(x[a], w[b], op.x, a, op.w, b)
    free_x = free_axes(len(x), op.batch[0], op.contract[0])
    free_w = free_axes(len(w), op.batch[1], op.contract[1])
    return [(*(x[a] for a in (*op.batch[0], *free_x)), *(w[a] for a in free_w))]


@extents(ConvolutionOp)
def _convolution(op: ConvolutionOp, s: Sizing) -> Sequence[Shape]:
    x, w = s.shape(op.x), s.shape(op.w)
    window, groups, layout = op.how
    n, c = (x[a] for a in layout.x[:2])
    out, inner = (w[a] for a in layout.w[:2])
    each = inner * Formula.of(groups)
    words = (f"{named(op.x)} has ", c, " features, but the groups of the window have ", each)
    s.equal(c, each, words)
    left = Formula.apply("%", out, Formula.of(groups))
    s.equal(left, ZERO, (f"{groups} groups do not divide the ", out, " output features"))
    if op.parts > 1:
        for size, what in ((n, " images of the batch"), (out, " output features")):
            left = Formula.apply("%", size, Formula.of(op.parts))
            s.equal(left, ZERO, (f"{op.parts} groups do not divide the ", size, what))
        n = Formula.apply("floor/", n, Formula.of(op.parts))
    sizes = [n, out]
    for k, (a, b) in enumerate(zip(layout.x[2:], layout.w[2:], strict=True)):
        s.at_least(w[b], ONE, (f"axis {b} of the window {named(op.w)} has no element",))
        extent = _dilated(x[a], window.lhs_dilation[k]) + Formula.of(window.low[k] + window.high[k])
        spread = _dilated(w[b], window.rhs_dilation[k])
        sizes.append(_places(extent, spread, window.strides[k]))
    result = [ZERO] * len(x)
    for axis, size in zip(layout.y, sizes, strict=True):
        result[axis] = size
    return [tuple(result)]


# -- control flow


@extents(IfOp)
def _if(op: IfOp, s: Sizing) -> Sequence[Shape]:
    branches = [
        [s.shape(v) for v in s.region(region.block, ())] for region in (op.then, op.otherwise)
    ]
    for number, (a, b) in enumerate(zip(*branches, strict=True)):
        for axis, (n, m) in enumerate(zip(a, b, strict=True)):
            what = f"axis {axis} of the branches' value for {named(op.outputs[number])} has size "
            s.equal(n, m, (what, n, " in the first, ", m, " in the second"))
        s.pin(op.otherwise.block.last_op, number, a, b)
    return branches[0]


def _require_same_sizes(
    s: Sizing, op: Any, before: Sequence[Shape], after: Sequence[SSAValue]
) -> None:
    """Require carried values to have the same sizes before and after each step."""
    for number, (was, value, shape) in enumerate(zip(op.carried, after, before, strict=True)):
        s.pin(op.body.block.last_op, number, shape, s.shape(value))
        for axis, (n, m) in enumerate(zip(shape, s.shape(value), strict=True)):
            what = f"axis {axis} of the carried value that begins as {named(was)}, has size "
            s.equal(n, m, (what, n, " before the first step, ", m, " after it"))


@extents(WhileOp)
def _while(op: WhileOp, s: Sizing) -> Sequence[Shape]:
    carried = [s.shape(v) for v in op.carried]
    s.region(op.test.block, carried)
    _require_same_sizes(s, op, carried, s.region(op.body.block, carried))
    return carried


@extents(ScanOp)
def _scan(op: ScanOp, s: Sizing) -> Sequence[Shape]:
    carried, xs = [s.shape(v) for v in op.carried], [s.shape(v) for v in op.xs]
    for x, shape in zip(op.xs[1:], xs[1:], strict=True):
        s.same_size(xs[0][0], shape[0], op.xs[0], 0, x, 0)
    count = Formula.of(op.count) if op.count != DYNAMIC else None
    stated = s.number(op.steps) if op.steps is not None else None
    count = count or (xs[0][0] if xs else stated)
    assert count is not None
    if stated is not None:
        s.equal(count, stated, ("it must take ", stated, " steps, but there are ", count))
    for x, shape in zip(op.xs, xs, strict=True):
        words = f"axis 0 of {named(x)} has size ", shape[0], ", but there are ", count, " steps"
        s.equal(shape[0], count, words)
    s.at_least(count, ZERO, ("it cannot take ", count, " steps"))
    ends = s.region(op.body.block, [*carried, *(shape[1:] for shape in xs)])
    _require_same_sizes(s, op, carried, ends[: len(carried)])
    rest, stacked = iter(op.sizes), list[Shape]()
    for y, value in zip(op.stacked, ends[len(carried) :], strict=True):
        shape = s.shape(value)
        for axis, n in enumerate(shape_of(y)[1:]):
            if n == DYNAMIC:
                size = s.number(next(rest))
                what = f"axis {axis} of the stacked value for {named(y)} has size "
                s.equal(size, shape[axis], (what, shape[axis], ", but it is given ", size))
        stacked.append((count, *shape))
    return [*carried, *stacked]


@extents(CallOp)
def _call(op: CallOp, s: Sizing) -> Sequence[Any]:
    return s.called(op, op.callee.string_value())


extents.none(YieldOp, ConditionOp, reason="it has no results")
