"""Derivatives of sums of products: each operand's is such a sum of the cotangent and the other.

That of a dot product is a dot product that contracts the free axes. The gradient of a convolution's
image convolves the cotangent with the flipped filters, with strides and image dilation exchanged;
that of its filters convolves the image with the cotangent, with batch and features exchanged and
feature groups turned into batch groups. Both accumulate in f32 for f16 and bf16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.arith import AddiOp, MuliOp, SubiOp
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import contraction as shapes
from stepwell.core.shapes import shape as rules
from stepwell.core.shapes.shape import END
from stepwell.dialects.nd.contraction import ConvolutionOp, DotGeneralOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from stepwell.dialects.nd.shape import ReshapeOp, ReverseOp, SliceOp, TransposeOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import gradient
from stepwell.dialects.types import place_of

# dot products


@gradient(DotGeneralOp)
def _dot_general(r: Reverse, op: DotGeneralOp, cotangents: Sequence[SSAValue | None]) -> None:
    (g,) = cotangents
    assert g is not None
    batch, contract = op.batch, op.contract
    ranks = len(shape_of(op.x)), len(shape_of(op.w))
    free = [shapes.free_axes(ranks[k], batch[k], contract[k]) for k in range(2)]
    shared = len(batch[0])
    split = shared + len(free[0])
    rows, columns = range(shared, split), range(split, split + len(free[1]))
    for mine, (value, other) in enumerate(((op.x, op.w), (op.w, op.x))):
        if r.wants(value):
            its = 1 - mine
            summed = (columns, free[1]) if mine == 0 else (rows, free[0])
            pairs = dict(zip(contract[its], contract[mine], strict=True))
            left = [pairs[a] for a in sorted(contract[its])]
            both = (range(shared), batch[its])
            r.accumulate(
                value,
                _product(r, value, (g, other), (both, summed), (batch[mine], free[mine], left)),
            )


def _product(
    r: Reverse,
    value: SSAValue,
    factors: tuple[SSAValue, SSAValue],
    pairs: tuple[tuple[Sequence[int], Sequence[int]], ...],
    axes: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> SSAValue:
    """Return the cotangent of ``value``: the product of g and the other operand.

    pairs : their batch axes, and their contracted axes
    axes : the axes of ``value`` that are batch axes, those that come from g, those from the other
    """
    g, other = factors
    other = r.cast(other, element(g))
    (batch, others), (summed, from_other) = pairs
    shared, mine, left = axes
    order = [*shared, *mine, *left]
    if order == sorted(order):
        product = DotGeneralOp(g, other, (batch, others), (summed, from_other))
    else:  # exchange the factors if that saves a transpose of the result
        order = [*shared, *left, *mine]
        product = DotGeneralOp(other, g, (others, batch), (from_other, summed))
    y = r.of(product)
    if order != sorted(order):
        y = r.of(TransposeOp(y, [order.index(axis) for axis in range(len(order))]))
    return r.cast(y, element(value))


# convolutions


@dataclass(frozen=True)
class _Crop:
    """The elements cropped from both ends of an axis, and the remaining padding."""

    low: int
    high: int
    first: int = 0
    last: int = 0


NARROW = 64
"""A product of fewer columns than this, and of more rows, is computed transposed."""


@gradient(ConvolutionOp)
def _convolution(r: Reverse, op: ConvolutionOp, cotangents: Sequence[SSAValue | None]) -> None:
    (g,) = cotangents
    assert g is not None
    sizes = [*shape_of(op.x), *shape_of(op.w), *shape_of(op.y)]
    if 0 in sizes:  # no products
        return
    if r.wants(op.x) and (found := _of_image(r, op, g)) is not None:
        r.accumulate(op.x, found)
    if r.wants(op.w) and (found := _of_filters(r, op, g)) is not None:
        r.accumulate(op.w, found)


def _of_image(r: Reverse, op: ConvolutionOp, g: SSAValue) -> SSAValue | None:
    """Dilate the cotangent by the strides and convolve it with the flipped filters.

    None if no window reads any element.
    """
    window, _, layout = op.how
    g, window = _placed(r, op, g, window)
    image = [shape_of(op.x)[a] for a in layout.x[2:]]
    places = [shape_of(op.y)[a] for a in layout.y[2:]]
    cuts: list[_Crop] = []
    for k, (n, p) in enumerate(zip(image, places, strict=True)):
        if window.size[k] == DYNAMIC:
            cuts.append(_Crop(0, 0))
            continue
        reach, stride = (window.size[k] - 1) * window.rhs_dilation[k], window.strides[k]
        low, high = reach - window.low[k], reach - window.high[k]
        if DYNAMIC not in (n, p):
            whole = shapes.dilated(n, window.lhs_dilation[k]) + reach
            high = whole - low - shapes.dilated(p, stride)
        else:  # the remainder of the last step is unknown: pad for the largest
            high += stride - 1
        cuts.append(_crop_of(low, high, stride))
        if p != DYNAMIC and cuts[-1].first + cuts[-1].last >= p:
            return None
    turned = sorted(a for a, n in zip(layout.w[2:], window.size, strict=True) if n != 1)
    filters = r.of(ReverseOp(op.w, turned)) if turned else op.w
    y = r.of(
        ConvolutionOp(
            _cropped(r, g, layout.y[2:], cuts),
            r.cast(_by_group(r, op, filters, layout.w), element(g)),
            groups=_groups(op),
            strides=window.lhs_dilation,
            low=[c.low for c in cuts],
            high=[c.high for c in cuts],
            lhs_dilation=window.strides,
            rhs_dilation=window.rhs_dilation,
            x_layout=layout.y,
            w_layout=(layout.w[1], layout.w[0], *layout.w[2:]),
            y_layout=layout.x,
        )
    )
    long = [
        a
        for a, n, stride in zip(layout.x[2:], image, window.strides, strict=True)
        if n == DYNAMIC and stride > 1
    ]
    if long:
        zeros = [r.index(0) for _ in long]
        y = r.of(DynamicSliceOp(y, zeros, sorted(long), [r.size(op.x, a) for a in sorted(long)]))
    if op.parts > 1:
        y = _by_group(r, op, y, (layout.x[1], layout.x[0]))
    return r.cast(y, element(op.x))


def _placed(
    r: Reverse, op: ConvolutionOp, g: SSAValue, window: shapes.Window
) -> tuple[SSAValue, shapes.Window]:
    """Return the cotangent scattered among zeros along axes whose window size is unknown.

    The result has one position for each of the image plus the reach of the window, and the window
    moves in steps of one.
    """
    layout = op.how[2]
    own = [k for k, n in enumerate(window.size) if n == DYNAMIC]
    own.sort(key=lambda k: layout.y[2 + k])
    if not own:
        return g, window
    if any(window.lhs_dilation[k] > 1 for k in own):
        said = "the gradient of a convolution's image needs a window of known size"
        help = "write the sizes in the type of the second operand, or leave out lhs_dilation"
        raise CompileError(Diagnostic("error", said, place_of(op), help=help))
    shape, sizes = list(shape_of(g)), dict[int, SSAValue]()
    first, last = [0] * len(shape), [END] * len(shape)
    starts: list[SSAValue] = []
    for k in own:
        axis = layout.y[2 + k]
        reach = _index(
            r, MuliOp, _index(r, SubiOp, r.size(op.w, layout.w[2 + k]), 1), window.rhs_dilation[k]
        )
        around = window.low[k] + window.high[k]
        room = _index(r, AddiOp, reach, r.size(op.x, layout.x[2 + k]))
        shape[axis], sizes[axis] = DYNAMIC, _index(r, AddiOp, room, around)
        first[axis], last[axis] = window.low[k], -window.high[k] or END
        starts.append(reach)
    dynamic = [sizes.get(a) or r.size(g, a) for a, n in enumerate(shape) if n == DYNAMIC]
    zeros = r.of(FullOp.of(0, TensorType(element(g), shape), dynamic))
    axes = [layout.y[2 + k] for k in own]
    strides = [window.strides[k] for k in own]
    y = r.of(DynamicUpdateSliceOp(zeros, g, starts, axes, strides))
    y = r.of(SliceOp(y, first, last, [1] * len(shape)))
    ones = tuple(1 if k in own else n for k, n in enumerate(window.strides))
    return y, replace(window, strides=ones)


def _index(
    r: Reverse, kind: type[AddiOp | SubiOp | MuliOp], a: SSAValue, b: SSAValue | int
) -> SSAValue:
    """Return the sum, difference or product of sizes."""
    return r.builder.insert(kind(a, r.index(b) if isinstance(b, int) else b)).result


def _of_filters(r: Reverse, op: ConvolutionOp, g: SSAValue) -> SSAValue | None:
    """Convolve the image with the cotangent, with window strides and dilation exchanged.

    None if no window reads any element. For a window of one element this is a dot product.
    """
    window, groups, layout = op.how
    around = {*window.low, *window.high, *(n - 1 for n in window.lhs_dilation)} - {0}
    if op.parts == 1 and set(window.size) == {1} and not around:
        return _of_single_elements(r, op, g)
    image = [shape_of(op.x)[a] for a in layout.x[2:]]
    places = [shape_of(op.y)[a] for a in layout.y[2:]]
    cuts: list[_Crop] = []
    for k, (n, p) in enumerate(zip(image, places, strict=True)):
        high, apart = window.high[k], window.lhs_dilation[k]
        if DYNAMIC not in (n, p, window.size[k]):
            read = (window.size[k] - 1) * window.rhs_dilation[k] + (p - 1) * window.strides[k] + 1
            high = read - window.low[k] - shapes.dilated(n, apart)
        last = max(-(high // apart), 0)
        cuts.append(_Crop(window.low[k], high + last * apart, 0, last))
        if n != DYNAMIC and last >= n:
            return None
    x = _cropped(r, op.x, layout.x[2:], cuts)
    y = r.of(
        ConvolutionOp(
            r.cast(x, element(g)),
            g,
            groups=op.parts,
            batch_groups=groups,
            strides=window.rhs_dilation,
            low=window.low,
            high=[c.high for c in cuts],
            lhs_dilation=window.lhs_dilation,
            rhs_dilation=window.strides,
            x_layout=(layout.x[1], layout.x[0], *layout.x[2:]),
            w_layout=(layout.y[1], layout.y[0], *layout.y[2:]),
            y_layout=(layout.w[1], layout.w[0], *layout.w[2:]),
        )
    )
    return r.cast(_cropped_to_window(r, op, y), element(op.w))


def _of_single_elements(r: Reverse, op: ConvolutionOp, g: SSAValue) -> SSAValue:
    """Multiply the features at each position of a one-element window by the cotangent."""
    window, _, layout = op.how
    rank = len(layout.x)
    steps = [1] * rank
    for axis, stride in zip(layout.x[2:], window.strides, strict=True):
        steps[axis] = stride
    x = op.x if set(steps) == {1} else r.of(SliceOp(op.x, [0] * rank, [END] * rank, steps))
    x = r.cast(x, element(g))
    if op.how[1] > 1:
        return _of_single_elements_in_groups(r, op, x, g)
    summed = [[of[0], *of[2:]] for of in (layout.y, layout.x)]
    out, features = (shape_of(op.w)[a] for a in layout.w[:2])
    first = layout.w[0] < layout.w[1]
    rows, columns = (out, features) if first else (features, out)
    turned = DYNAMIC not in (out, features) and columns < min(rows, NARROW)
    if first != turned:
        product = DotGeneralOp(g, x, contract=(summed[0], summed[1]))
    else:
        product = DotGeneralOp(x, g, contract=(summed[1], summed[0]))
    y = r.of(product)
    if turned:
        y = r.of(TransposeOp(y, (1, 0)))
    return r.cast(_reshaped(r, y, shape_of(op.w)), element(op.w))


def _of_single_elements_in_groups(
    r: Reverse, op: ConvolutionOp, x: SSAValue, g: SSAValue
) -> SSAValue:
    """Compute `_of_single_elements` for each group."""
    _, groups, layout = op.how
    parted, axes = list[SSAValue](), list[int]()
    for value, of in ((g, layout.y), (x, layout.x)):
        sizes, axis = list(shape_of(value)), of[1]
        _needs_features(op, sizes[axis])
        parted.append(
            _reshaped(r, value, [*sizes[:axis], groups, sizes[axis] // groups, *sizes[axis + 1 :]])
        )
        axes.append(axis)
    summed = [[a + (a > of[1]) for a in (of[0], *of[2:])] for of in (layout.y, layout.x)]
    first = layout.w[0] < layout.w[1]
    left, right = (0, 1) if first else (1, 0)
    y = r.of(
        DotGeneralOp(
            parted[left],
            parted[right],
            batch=([axes[left]], [axes[right]]),
            contract=(summed[left], summed[right]),
        )
    )
    if not first:
        y = r.of(TransposeOp(y, (1, 0, 2)))
    return r.cast(_reshaped(r, y, shape_of(op.w)), element(op.w))


def _cropped_to_window(r: Reverse, op: ConvolutionOp, y: SSAValue) -> SSAValue:
    """Crop ``y`` to the window's size: unused input at the end can make it larger."""
    window, _, layout = op.how
    limits, long = [END] * len(layout.w), list[int]()
    for axis, size, stride in zip(layout.w[2:], window.size, window.strides, strict=True):
        if stride > 1 and (size == DYNAMIC or shape_of(y)[axis] != size):
            if size == DYNAMIC:
                long.append(axis)
            else:
                limits[axis] = size
    if long:
        zeros = [r.index(0) for _ in long]
        y = r.of(DynamicSliceOp(y, zeros, sorted(long), [r.size(op.w, a) for a in sorted(long)]))
    if set(limits) == {END}:
        return y
    rank = len(limits)
    return r.of(SliceOp(y, [0] * rank, limits, [1] * rank))


def _crop_of(low: int, high: int, apart: int) -> _Crop:
    """Return the elements to crop, ``apart`` in distance, so that padding is not negative."""
    first, last = max(-(low // apart), 0), max(-(high // apart), 0)
    return _Crop(low + first * apart, high + last * apart, first, last)


def _cropped(r: Reverse, x: SSAValue, axes: Sequence[int], cuts: Sequence[_Crop]) -> SSAValue:
    """Return ``x`` cropped by ``cuts``."""
    if not any(c.first or c.last for c in cuts):
        return x
    rank = len(shape_of(x))
    first, last = [0] * rank, [END] * rank
    for axis, cut in zip(axes, cuts, strict=True):
        first[axis], last[axis] = cut.first, -cut.last or END
    return r.of(SliceOp(x, first, last, [1] * rank))


def _by_group(r: Reverse, op: ConvolutionOp, x: SSAValue, layout: Sequence[int]) -> SSAValue:
    """Return ``x`` with the groups, the outer part of an axis, moved from one axis to another.

    layout : first the axis that has them, then the axis that gets them
    """
    groups = _groups(op)
    if groups == 1:
        return x
    source, to = layout[:2]
    shape = list(shape_of(x))
    _needs_features(op, shape[source], shape[to])
    split = [*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]]
    x = _reshaped(r, x, split)
    order = [a for a in range(len(split)) if a != source]
    order.insert(order.index(to if to < source else to + 1), source)
    x = r.of(TransposeOp(x, order))
    shape[source] //= groups
    shape[to] *= groups
    return _reshaped(r, x, shape)


def _needs_features(op: ConvolutionOp, *sizes: int) -> None:
    """Refuse a grouped convolution whose features per group are known only at run time."""
    if DYNAMIC in sizes:
        said = "to differentiate a grouped convolution its features must be known"
        help = "write their numbers in the types of its operands"
        raise CompileError(Diagnostic("error", said, place_of(op), help=help))


def _groups(op: ConvolutionOp) -> int:
    """Return the number of groups, of features or of the batch."""
    return max(op.how[1], op.parts)


def _reshaped(r: Reverse, x: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Return ``x`` reshaped; the unknown sizes of ``shape`` are those of x, in order."""
    needed = rules.reshape_unknown(shape_of(x), tuple(shape))
    return r.of(ReshapeOp(x, shape, r.sizes(x) if needed else []))
