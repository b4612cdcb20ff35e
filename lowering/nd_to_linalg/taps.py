"""Convolutions whose filters are as large as the image: few results, each a long sum.

The gradient of a depthwise convolution's filters is one: for each feature it has as many numbers as
the window has places, each a sum of products over images and their places. These are several
reductions that read two tensors contiguously, and no sliding window.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.contraction import ConvolutionOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import Body, computed_in, extended, signless_element
from stepwell.lowering.nd_to_linalg.generic import (
    Iterator,
    constant,
    filled,
    generic,
    mapped,
)
from stepwell.lowering.nd_to_linalg.phases import sliced
from stepwell.lowering.nd_to_linalg.shape import inserted
from stepwell.lowering.nd_to_linalg.sizes import Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering

MAX_TAPS = 64
"""The most places of a window; a larger one stays a loop that slides."""
TOGETHER = 13
"""The number of sums that fit, with their operands, in 16 registers."""


def by_taps(lowering: Lowering, op: ConvolutionOp, x: SSAValue, w: SSAValue) -> SSAValue | None:
    """Return the result of ``op`` as one sum per place; None if its shape does not fit.

    x : the image, dilated and padded
    """
    _, _, layout = op.how
    places = [shape_of(op.y)[a] for a in layout.y[2:]]
    out, batch = shape_of(op.w)[layout.w[0]], shape_of(op.x)[layout.x[0]]
    if not 1 < op.parts == out == batch or DYNAMIC in places or not 0 < prod(places) <= MAX_TAPS:
        return None
    spots = list(product(*map(range, places)))
    many = -(-len(spots) // -(-len(spots) // TOGETHER))
    sizes = Sizes(lowering)
    into = sizes.empty(shape_of(op.y), signless_element(dtype(op.element)))
    for first in range(0, len(spots), many):
        some = spots[first : first + many]
        for spot, sum in zip(some, _sums(lowering, op, x, w, some), strict=True):
            offsets = [0] * len(layout.y)
            for axis, place in zip(layout.y[2:], spot, strict=True):
                offsets[axis] = place
            into = inserted(lowering, _with_unit_axes(lowering, sum, op), into, offsets)
    return into


def _sums(
    lowering: Lowering, op: ConvolutionOp, x: SSAValue, w: SSAValue, spots: Sequence[Sequence[int]]
) -> Sequence[SSAValue]:
    """Return for each of some places the sums of all features, computed in one op."""
    window, _, layout = op.how
    sizes, kind = Sizes(lowering), computed_in(dtype(op.element))
    seen = [
        sliced(
            lowering,
            x,
            layout.x[2:],
            [
                (place * stride, size, apart)
                for place, stride, size, apart in zip(
                    spot, window.strides, window.size, window.rhs_dilation, strict=True
                )
            ],
            sizes.all_of(x),
        )
        for spot in spots
    ]
    zero, each = constant(lowering, 0, kind), [sizes.of(w, layout.w[0])]
    sums = [filled(lowering, zero, sizes.empty(each, signless_element(kind))) for _ in spots]
    loops = [AffineExpr.dimension(k) for k in range(len(layout.x))]
    maps = [
        *(_laid_out(layout.x, loops) for _ in spots),
        _laid_out(layout.w, loops),
        *(AffineMap(len(loops), 0, (loops[0],)) for _ in spots),
    ]
    iterators: list[Iterator] = ["parallel", *("reduction" for _ in loops[1:])]
    count = len(spots)

    def body(b: Body, *given: SSAValue) -> Sequence[SSAValue]:
        factor = extended(b, given[count], kind)
        read, totals = given[:count], given[count + 1 :]
        return [
            b.add(total, b.mul(extended(b, one, kind), factor))
            for one, total in zip(read, totals, strict=True)
        ]

    found = generic(lowering, [*seen, w], sums, maps, iterators, body, kind)
    result = signless_element(dtype(op.element))
    if result == signless_element(kind):
        return found
    return [
        mapped(lowering, [y], result, lambda b, total, _: b.narrow(total, result), kind)[0]
        for y in found
    ]


def _laid_out(layout: Sequence[int], loops: Sequence[AffineExpr]) -> AffineMap:
    """Return the map of a tensor with loops for batch (or output features), features, places."""
    at = dict(zip(layout, loops, strict=True))
    return AffineMap(len(loops), 0, tuple(at[a] for a in range(len(layout))))


def _with_unit_axes(lowering: Lowering, x: SSAValue, op: ConvolutionOp) -> SSAValue:
    """Return one number per feature as a tensor of the rank of the result."""
    layout = op.how[2]
    shape = [1] * len(layout.y)
    (shape[layout.y[1]],) = tensor_type(x).get_shape()
    type = TensorType(tensor_type(x).element_type, shape)
    together = ArrayAttr([ArrayAttr(IntegerAttr(k, i64) for k in range(len(shape)))])
    return lowering.insert(tensor.ExpandShapeOp(x, [], together, shape, type)).result
