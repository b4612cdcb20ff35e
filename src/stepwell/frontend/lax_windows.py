"""Products, convolutions and reductions of `jax.lax`, over whole axes and windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stepwell.core.shapes import Shape
from stepwell.core.shapes import contraction as shapes
from stepwell.core.shapes import reduction as windows
from stepwell.frontend import elementwise as e
from stepwell.frontend import joining as j
from stepwell.frontend import lax_elementwise as le
from stepwell.frontend import linear_algebra as linear
from stepwell.frontend import manipulation as m
from stepwell.frontend import reduction as r
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.facade import Ufunc
from stepwell.frontend.lax_arrays import pad
from stepwell.frontend.layers.convolution import convolved
from stepwell.frontend.promotion import BOOL, as_dtype, cast, fresh, lift, same_narrow
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.tensor import Tensor

DimensionNumbers = Any


def _wanted(found: Tensor, preferred: Any) -> Tensor:
    return found if preferred is None else cast(found, as_dtype(preferred))


def _widened(values: Sequence[Tensor], preferred: Any) -> list[Tensor]:
    """Return operands in the preferred accumulator dtype, if it is wider than theirs."""
    if preferred is None or as_dtype(preferred).bytes <= values[0].kind.bytes:
        return list(values)
    return [cast(v, as_dtype(preferred)) for v in values]


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """Multiply elementwise over batch axes and sum over contracted axes.

    dimension_numbers : ((axes of lhs, of rhs that are summed), (batch axes of lhs, of rhs))
    precision : has no effect: products have the precision of their dtype
    preferred_element_type : the dtype of the accumulator and of the result
    returns : batch axes, then the free axes of ``lhs``, then those of ``rhs``
    """
    try:
        (a, b), (one, other) = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(
            "dimension_numbers are ((axes of lhs, of rhs), (batch axes of lhs, of rhs)), got "
            f"{dimension_numbers!r}"
        ) from None
    x, y = _widened(same_narrow(lhs, rhs), preferred_element_type)
    found = linear.dot_general(x, y, (tuple(one), tuple(other)), (tuple(a), tuple(b)))
    return _wanted(found, preferred_element_type)


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DimensionNumbers | None = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """Return the product of vectors or matrices, or `dot_general` if dimension numbers are given.

    raises TypeError : an operand has another rank than 1 or 2
    """
    a, b = same_narrow(lhs, rhs)
    if dimension_numbers is None:
        if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2):
            raise TypeError(f"lax.dot takes vectors and matrices, got {a.ndim} and {b.ndim} axes")
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    return dot_general(a, b, dimension_numbers, precision, preferred_element_type)


class ConvDimensionNumbers(NamedTuple):
    """The batch, feature and spatial axes of a convolution.

    lhs_spec, rhs_spec, out_spec : of the input, the filters and the result
    source : `jax.lax.ConvDimensionNumbers`

    >>> import stepwell as sw
    >>> sw.lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)).lhs_spec
    (0, 1, 2)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Convert dimension numbers, such as ``("NHWC", "HWIO", "NHWC")``, to axes.

    lhs_shape, rhs_shape : of images and filters        dimension_numbers : None is NCHW and OIHW
    raises ValueError : the strings do not name each axis
    source : `jax.lax.conv_dimension_numbers`

    >>> import stepwell as sw
    >>> sw.lax.conv_dimension_numbers((1, 4, 4, 2), (3, 3, 2, 5), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    named = zip(dimension_numbers, ("NC", "OI", "NC"), strict=True)
    space = [c for c in dimension_numbers[0] if c not in "NC"]
    specs: list[tuple[int, ...]] = []
    for text, letters in named:
        if len(text) != rank or sorted(text) != sorted([*letters, *space]):
            raise ValueError(
                f"dimension numbers are like ('NCHW', 'OIHW', 'NCHW') for {rank} axes, got "
                f"{dimension_numbers!r}"
            )
        specs.append(tuple(text.index(c) for c in (*letters, *space)))
    return ConvDimensionNumbers(*specs)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """Return the padding ``(low, high)`` of each axis.

    in_shape, window_shape, window_strides : a number for each axis
    padding : 'SAME', 'SAME_LOWER' or 'VALID'
    raises ValueError : the padding is another
    source : `jax.lax.padtype_to_pads`

    >>> import stepwell as sw
    >>> sw.lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(f"padding is 'SAME', 'SAME_LOWER', 'VALID' or pairs, got {padding!r}")
    sizes = zip(in_shape, window_shape, window_strides, strict=True)
    total = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in sizes]
    pairs = [(t // 2, t - t // 2) for t in total]
    return pairs if kind == "SAME" else [(b, a) for a, b in pairs]


def _pairs(
    padding: Any, sizes: Sequence[int], extent: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    if isinstance(padding, str):
        return padtype_to_pads(sizes, extent, strides, padding)
    found = [(int(low), int(high)) for low, high in padding]
    if len(found) != len(sizes):
        raise ValueError(f"padding must have a pair for each of {len(sizes)} axes, got {padding!r}")
    return found


def _numbers(given: Any, count: int, what: str) -> Shape:
    """Return a number for each axis; the default is 1."""
    found = (1,) * count if given is None else tuple(int(n) for n in given)
    if len(found) != count:
        raise ValueError(f"{what} must have a number for each of {count} axes, got {given!r}")
    return found


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """Slide filters over images and sum the products.

    lhs : images        rhs : filters        padding : 'SAME', 'SAME_LOWER', 'VALID' or pairs
    dimension_numbers : `ConvDimensionNumbers`, or strings like ``("NCHW", "OIHW", "NCHW")``,
        the default
    batch_group_count : groups of images, each with its own group of output features
    precision : has no effect

    raises ShapeError, ValueError : sizes do not agree
    """
    image, filters = _widened(same_narrow(lhs, rhs), preferred_element_type)
    axes = conv_dimension_numbers(image.shape, filters.shape, dimension_numbers)
    image = m.permute_dims(image, tuple(axes.lhs_spec))
    filters = m.permute_dims(filters, tuple(axes.rhs_spec))
    count = image.ndim - 2
    strides = _numbers(window_strides, count, "window_strides")
    spread = _numbers(lhs_dilation, count, "lhs_dilation")
    apart = _numbers(rhs_dilation, count, "rhs_dilation")
    sizes = [shapes.dilated(n, k) for n, k in zip(image.shape[2:], spread, strict=True)]
    extent = [shapes.dilated(n, k) for n, k in zip(filters.shape[2:], apart, strict=True)]
    pairs = _pairs(padding, sizes, extent, strides)
    if any(low < 0 or high < 0 for low, high in pairs):
        inner = [(low, high, k - 1) for (low, high), k in zip(pairs, spread, strict=True)]
        image = pad(image, 0, [(0, 0, 0), (0, 0, 0), *inner])
        pairs, spread = [(0, 0)] * count, (1,) * count
    low, high = (tuple(p[k] for p in pairs) for k in (0, 1))
    window = shapes.Window(filters.shape[2:], strides, low, high, spread, apart)
    found = convolved(image, filters, window, feature_group_count, batch_group_count)
    back = sorted(range(found.ndim), key=lambda a: axes.out_spec[a])
    return _wanted(fresh(m.permute_dims(found, back)), preferred_element_type)


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """Return `conv_general_dilated` of images (N, C, ...) and filters (O, I, ...)."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Tensor:
    """Return `conv_general_dilated` of images (N, C, ...) and filters (O, I, ...)."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        preferred_element_type=preferred_element_type,
    )


_KNOWN: dict[Any, str] = {
    le.add: "add",
    le.mul: "mul",
    le.max_: "max",
    le.min_: "min",
    le.bitwise_and: "and",
    le.bitwise_or: "or",
    np.add: "add",
    np.multiply: "mul",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "and",
    np.logical_or: "or",
}
"""Functions that correspond to one op."""


def _known(computation: Any) -> str:
    if isinstance(computation, Ufunc):
        computation = computation.theirs
    try:
        return _KNOWN.get(computation, "")
    except TypeError:
        return ""


def _is_identity(op: str, start: Any, value: Tensor) -> bool:
    """Whether ``start`` is a number and the identity element of ``op``."""
    if isinstance(start, Tensor) or np.ndim(start):
        return False
    kind = value.kind.numpy
    ends = np.iinfo(kind) if kind.kind in "iu" else None
    least, most = (ends.min, ends.max) if ends else (-math.inf, math.inf)
    wanted = {"add": 0, "mul": 1, "max": least, "min": most, "and": True, "or": False}[op]
    return bool(start == wanted)


def reduce(
    operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Any
) -> Any:
    """Combine the elements along ``dimensions``, and ``init_values``, by ``computation``.

    operands, init_values : arrays and numbers, in the same structure; ``computation`` combines
        two such structures elementwise. The order of combination is unspecified
    """
    leaves, tree = flatten(operands)
    values = [lift(v) for v in leaves]
    starts = [
        cast(lift(s, v.kind), v.kind) for s, v in zip(flatten(init_values)[0], values, strict=True)
    ]
    axes = [check_axis(a, values[0].ndim) for a in dimensions]
    op = _known(computation) if len(values) == 1 else ""
    if op and not (op in ("and", "or") and values[0].kind is not BOOL):
        folded = {"add": "sum", "mul": "prod"}.get(op, op)
        folded = {"max": "or", "min": "and"}.get(op, folded) if values[0].kind is BOOL else folded
        found = r.folded(f"reduce_{folded}", values[0], tuple(axes), False)
        return unflatten(tree, [fresh(computation(starts[0], found))])
    rows = [m.moveaxis(v, axes, range(len(axes))) for v in values]
    count = math.prod(values[0].shape[a] for a in axes)
    rows = [m.reshape(v, (count, *v.shape[len(axes) :])) for v in rows]

    def both(a: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
        found = Tensor.operators["call"](computation, unflatten(tree, a), unflatten(tree, b))
        return [lift(v) for v in flatten(found)[0]]

    begin = [m.broadcast_to(s, v.shape[1:]) for s, v in zip(starts, rows, strict=True)]
    while count > 1:
        half = count // 2
        left = both([v[:half] for v in rows], [v[half : 2 * half] for v in rows])
        if count % 2:
            left = [j.concat([a, v[-1:]]) for a, v in zip(left, rows, strict=True)]
        rows, count = left, half + count % 2
    found = both(begin, [v[0] for v in rows]) if count else begin
    return unflatten(tree, [fresh(v) for v in found])


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combine the elements of each window, and ``init_value``, by ``computation``.

    computation : `add`, `max` and `min` with their identity element become one op; others are
        unrolled over the positions of a window
    padding : 'VALID', 'SAME', 'SAME_LOWER' or a pair (low, high) for each axis; it is left out
    base_dilation : the distance between elements of ``operand``; the holes are left out
    """
    leaves, tree = flatten(operand)
    values = [lift(v) for v in leaves]
    given = flatten(init_value)[0]
    rank = values[0].ndim
    size = _numbers(window_dimensions, rank, "window_dimensions")
    strides = _numbers(window_strides, rank, "window_strides")
    spread = _numbers(base_dilation, rank, "base_dilation")
    apart = _numbers(window_dilation, rank, "window_dilation")
    sizes = [shapes.dilated(n, k) for n, k in zip(values[0].shape, spread, strict=True)]
    extent = [shapes.dilated(n, k) for n, k in zip(size, apart, strict=True)]
    pairs = _pairs(padding, sizes, extent, strides)
    op = _known(computation) if len(values) == 1 else ""
    one_op = op in ("add", "max", "min") and _is_identity(op, given[0], values[0])
    one_op = one_op and max(spread, default=1) == 1 and values[0].kind is not BOOL
    if one_op and min((n for pair in pairs for n in pair), default=0) >= 0:
        name = {"add": "sum"}.get(op, op)
        return unflatten(tree, [_window_op(values[0], name, size, strides, pairs, apart)])
    wide = [
        pad(v, s, [(a, b, k - 1) for (a, b), k in zip(pairs, spread, strict=True)])
        for v, s in zip(values, given, strict=True)
    ]
    valid = _element_mask(values[0].shape, pairs, spread)
    spans = zip(wide[0].shape, extent, strides, strict=True)
    counts = [max(-(-(n - k + 1) // s), 0) for n, k, s in spans]

    def both(a: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
        result = Tensor.operators["call"](computation, unflatten(tree, a), unflatten(tree, b))
        return [lift(v) for v in flatten(result)[0]]

    totals = [
        m.broadcast_to(cast(lift(s, v.kind), v.kind), tuple(counts))
        for s, v in zip(given, values, strict=True)
    ]
    for cut in _positions(size, apart, strides, counts):
        found = both(totals, [v[cut] for v in wide])
        if not valid[cut].all():  # padding does not take part
            found = [e.where(valid[cut], f, v) for f, v in zip(found, totals, strict=True)]
        totals = found
    return unflatten(tree, [fresh(v) for v in totals])


def _positions(
    size: Sequence[int], dilation: Sequence[int], strides: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[slice, ...]]:
    """Yield, for each position in a window, the slice of its elements in all windows."""
    for places in itertools.product(*(range(n) for n in size)):
        starts = [p * k for p, k in zip(places, dilation, strict=True)]
        yield tuple(
            slice(at, at + (n - 1) * s + 1 if n else at, s)
            for at, n, s in zip(starts, counts, strides, strict=True)
        )


def _element_mask(
    shape: Sequence[int], pairs: Sequence[tuple[int, int]], spread: Sequence[int]
) -> np.ndarray[Any, Any]:
    """Return a mask of the elements of an array of ``shape`` in the result of `pad`."""
    found = np.ones((), bool)
    for n, (low, high), k in zip(shape, pairs, spread, strict=True):
        row = np.zeros(shapes.dilated(n, k), bool)
        row[::k] = True
        row = np.pad(row, (max(low, 0), max(high, 0)))
        row = row[max(-low, 0) : len(row) + min(high, 0)]
        found = found[..., None] & row
    return found


def _window_op(
    value: Tensor,
    op: str,
    size: Shape,
    strides: Shape,
    pairs: Sequence[tuple[int, int]],
    apart: Shape,
) -> Tensor:
    low, high = (tuple(p[k] for p in pairs) for k in (0, 1))
    shape = windows.window_reduce(value.shape, size, strides, low, high, apart)
    return value.graph.emit(
        f"window_{op}",
        [value],
        [(value.kind, shape)],
        (),
        window=size,
        strides=strides,
        low=low,
        high=high,
        dilation=apart,
    )[0]
