"""Sums of products as one generic each: parallel loops over the result, then reduction loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import contraction as shapes
from stepwell.dialects.nd.contraction import ContractionOp, ConvolutionOp, DotGeneralOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import Body, computed_in, extended, signless_element
from stepwell.lowering.nd_to_linalg.generic import (
    constant,
    filled,
    generic,
    mapped,
    parallel,
)
from stepwell.lowering.nd_to_linalg.phases import Phase, phases, sliced
from stepwell.lowering.nd_to_linalg.shape import inserted
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering, lower
from stepwell.lowering.nd_to_linalg.taps import by_taps
from stepwell.transforms.passes import fail

Operands = Sequence[SSAValue]


@lower(DotGeneralOp)
def _dot_general(lowering: Lowering, op: DotGeneralOp, operands: Operands) -> Operands:
    x, w = operands
    (bx, bw), (cx, cw) = op.batch, op.contract
    ranks = len(shape_of(x)), len(shape_of(w))
    fx, fw = shapes.free_axes(ranks[0], bx, cx), shapes.free_axes(ranks[1], bw, cw)
    loops = [AffineExpr.dimension(i) for i in range(len(bx) + len(fx) + len(fw) + len(cx))]
    first, second, third = len(bx), len(bx) + len(fx), len(bx) + len(fx) + len(fw)
    of_x = dict(zip((*bx, *fx, *cx), [*loops[:second], *loops[third:]], strict=True))
    of_w = dict(
        zip((*bw, *fw, *cw), [*loops[:first], *loops[second:third], *loops[third:]], strict=True)
    )
    sizes = Sizes(lowering)
    shape = [sizes.of(x, a) for a in (*bx, *fx)] + [sizes.of(w, a) for a in fw]
    shape[:first] = [_static_size(a, sizes.of(w, b)) for a, b in zip(shape, bw, strict=False)]
    maps = [
        AffineMap(len(loops), 0, tuple(of_x[a] for a in range(ranks[0]))),
        AffineMap(len(loops), 0, tuple(of_w[a] for a in range(ranks[1]))),
        AffineMap(len(loops), 0, tuple(loops[:third])),
    ]
    return (_sum_of_products(lowering, op, [x, w], shape, maps),)


def _static_size(a: Size, b: Size) -> Size:
    return a if isinstance(a, int) else b


def _sum_of_products(
    lowering: Lowering,
    op: ContractionOp,
    operands: Operands,
    shape: Sequence[Size],
    maps: Sequence[AffineMap],
) -> SSAValue:
    """Sum in the accumulator's type from 0, then round to the result's type.

    The result is indexed by the first loops, one per axis; the others are reduction loops.
    """
    kind = computed_in(dtype(op.element))
    result = signless_element(dtype(op.element))
    if 0 in shape:
        return Sizes(lowering).empty(shape, result)
    into = Sizes(lowering).empty(shape, signless_element(kind))
    zero = filled(lowering, constant(lowering, 0, kind), into)
    loops = maps[0].num_dims
    iterators = parallel(len(shape))
    iterators.extend("reduction" for _ in range(loops - len(shape)))

    def body(b: Body, x: SSAValue, w: SSAValue, total: SSAValue) -> SSAValue:
        return b.add(total, b.mul(extended(b, x, kind), extended(b, w, kind)))

    (y,) = generic(lowering, operands, [zero], maps, iterators, body, kind)
    if result == signless_element(kind):
        return y
    return mapped(lowering, [y], result, lambda b, total, _: b.narrow(total, result), kind)[0]


@lower(ConvolutionOp)
def _convolution(lowering: Lowering, op: ConvolutionOp, operands: Operands) -> Operands:
    """Slide the window over the padded input; by phases if the input is dilated."""
    x, w = operands
    window, _, layout = op.how
    places = [shape_of(op.y)[a] for a in layout.y[2:]]
    along = phases(window, [shape_of(x)[a] for a in layout.x[2:]], places)
    if along:
        return (_by_phases(lowering, op, x, w, along),)
    x = _dilated_and_padded(lowering, x, window, layout)
    return (by_taps(lowering, op, x, w) or _sliding_window(lowering, op, x, w),)


def _by_phases(
    lowering: Lowering, op: ConvolutionOp, x: SSAValue, w: SSAValue, along: list[list[Phase]]
) -> SSAValue:
    """Write one convolution for each phase, and insert its results at their places."""
    window, _, layout = op.how
    extents = [shape_of(x)[a] for a in layout.x[2:]]
    low = tuple(max(0, *(-p.begin for p in each)) for each in along)
    high = tuple(
        max(0, *(p.begin + p.reads - n for p in each))
        for each, n in zip(along, extents, strict=True)
    )
    plain = replace(window, low=low, high=high, lhs_dilation=(1,) * len(low))
    x = _dilated_and_padded(lowering, x, plain, layout)
    sizes = Sizes(lowering)
    shape: list[Size] = list(shape_of(op.y))
    images = sizes.of(x, layout.x[0])
    shape[layout.y[0]] = images if op.parts == 1 else sizes.div(images, op.parts)
    shape[layout.y[1]] = sizes.of(w, layout.w[0])
    kind = dtype(op.element)
    into = sizes.empty(shape, signless_element(kind))
    if not all(p.taps for each in along for p in each):
        into = filled(lowering, constant(lowering, 0, kind), into)
    for phase in product(*along):
        if not all(p.taps for p in phase):
            continue
        read = [(p.begin + n, p.reads, 1) for p, n in zip(phase, low, strict=True)]
        taps = [(p.tap, p.taps, p.step) for p in phase]
        part = _sliding_window(
            lowering,
            op,
            sliced(lowering, x, layout.x[2:], read, sizes.all_of(x)),
            sliced(lowering, w, layout.w[2:], taps, sizes.all_of(w)),
        )
        firsts, steps = [0] * len(shape), [1] * len(shape)
        for axis, p in zip(layout.y[2:], phase, strict=True):
            firsts[axis], steps[axis] = p.first, p.step
        into = inserted(lowering, part, into, firsts, steps)
    return into


def _sliding_window(lowering: Lowering, op: ConvolutionOp, x: SSAValue, w: SSAValue) -> SSAValue:
    """Loop over the result's axes in order, then over input features and the window.

    The group of an output feature is its number divided by the features per group, so that a
    grouped convolution is one generic over one axis of features, like any other.
    """
    window, groups, layout = op.how
    rank = len(layout.y)
    loops = [AffineExpr.dimension(i) for i in range(rank)]
    n, feature, *places = (loops[a] for a in layout.y)
    c, *kernel = _append_reductions(loops, [shape_of(w)[a] for a in layout.w[1:]])
    spots = [
        _sum(p if stride == 1 else p * stride, k if apart == 1 else k * apart)
        for p, k, stride, apart in zip(
            places, kernel, window.strides, window.rhs_dilation, strict=True
        )
    ]
    maps = [
        _laid_out(
            len(loops),
            layout.x,
            [
                _index_in_group(op, op.parts, feature, n, shape_of(op.x)[layout.x[0]] // op.parts),
                _index_in_group(op, groups, feature, c, shape_of(op.w)[layout.w[1]]),
                *spots,
            ],
        ),
        _laid_out(len(loops), layout.w, [feature, c, *kernel]),
        AffineMap(len(loops), 0, tuple(loops[:rank])),
    ]
    sizes = Sizes(lowering)
    shape: list[Size] = [0] * rank
    images = sizes.of(x, layout.x[0])
    shape[layout.y[0]] = images if op.parts == 1 else sizes.div(images, op.parts)
    shape[layout.y[1]] = sizes.of(w, layout.w[0])
    for i, axis in enumerate(layout.y[2:]):
        shape[axis] = _count(sizes, x, w, op, i)
    return _sum_of_products(lowering, op, [x, w], shape, maps)


def _append_reductions(loops: list[AffineExpr], sizes: Sequence[int]) -> list[AffineExpr]:
    """Append a reduction loop for each axis longer than 1, or a single one if there is none.

    Return the index along each of these axes.
    """
    found: list[AffineExpr] = []
    for at, size in enumerate(sizes):
        needed = size != 1 or (at == 0 and set(sizes) == {1})
        found.append(AffineExpr.dimension(len(loops)) if needed else AffineExpr.constant(0))
        if needed:
            loops.append(found[-1])
    return found


def _sum(a: AffineExpr, b: AffineExpr) -> AffineExpr:
    return a if b == AffineExpr.constant(0) else a + b


def _index_in_group(
    op: ConvolutionOp, groups: int, feature: AffineExpr, number: AffineExpr, each: int
) -> AffineExpr:
    """Return the index of feature, or image, ``number`` of x in an output feature's group.

    each : the number of them per group
    """
    if groups == 1:
        return number
    outputs = shape_of(op.w)[op.how[2].w[0]]
    if outputs == DYNAMIC or each < 0:  # a dynamic size is negative
        fail(
            op,
            "the features of a grouped convolution must be known when compiling",
            help="write their numbers in the types of the operands",
        )
    group = feature if outputs == groups else feature // (outputs // groups)
    return group if each == 1 else _sum(group * each, number)


def _laid_out(loops: int, layout: Sequence[int], reads: Sequence[AffineExpr]) -> AffineMap:
    """Return the map of a tensor whose axes ``layout`` are read at ``reads``."""
    at = dict(zip(layout, reads, strict=True))
    return AffineMap(loops, 0, tuple(at[a] for a in range(len(layout))))


def _count(sizes: Sizes, x: SSAValue, w: SSAValue, op: ConvolutionOp, axis: int) -> Size:
    """Return the number of places of the window along a spatial axis of the padded input."""
    window, _, layout = op.how
    extent, kernel = sizes.of(x, layout.x[2 + axis]), sizes.of(w, layout.w[2 + axis])
    stride, apart = window.strides[axis], window.rhs_dilation[axis]
    reach = sizes.add(sizes.mul(sizes.sub(kernel, 1), apart), 1)
    room = sizes.add(sizes.sub(extent, reach), stride)
    return sizes.div(sizes.max(room, 0), stride)


def _dilated_and_padded(
    lowering: Lowering, x: SSAValue, window: shapes.Window, layout: shapes.Layout
) -> SSAValue:
    """Return ``x`` dilated and padded with zeros, ``x`` itself if neither is needed."""
    if not any((*window.low, *window.high)) and set(window.lhs_dilation) <= {1}:
        return x
    sizes = Sizes(lowering)
    wide = sizes.all_of(x)
    offsets, strides = [0] * len(wide), [1] * len(wide)
    for axis, low, high, apart in zip(
        layout.x[2:], window.low, window.high, window.lhs_dilation, strict=True
    ):
        extent = wide[axis]
        if apart > 1:
            extent = sizes.add(sizes.mul(sizes.sub(extent, 1), apart), 1)
            extent = sizes.max(extent, 0)
        wide[axis] = sizes.add(extent, low + high)
        offsets[axis], strides[axis] = low, apart
    element = tensor_type(x).element_type
    zero = constant(lowering, 0, dtype(element))
    into = filled(lowering, zero, sizes.empty(wide, element))
    return inserted(lowering, x, into, offsets, strides)
