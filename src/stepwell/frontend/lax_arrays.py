"""Functions of `jax.lax` that create, rearrange, slice and join arrays, or work along an axis."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import show
from stepwell.frontend import elementwise as e
from stepwell.frontend import indexing
from stepwell.frontend import joining as j
from stepwell.frontend import manipulation as m
from stepwell.frontend import reduction as r
from stepwell.frontend.associative_scans import associative_scan
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.creation import full as _full
from stepwell.frontend.creation import iota as _iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.promotion import BOOL, as_dtype, cast, fresh, lift
from stepwell.frontend.sorting import top_k as _top_k
from stepwell.frontend.table import call_named
from stepwell.frontend.tensor import Tensor


def broadcast(operand: Any, sizes: Sequence[int]) -> Tensor:
    """Return ``operand`` repeated, with leading axes of ``sizes``."""
    value = lift(operand)
    return fresh(m.broadcast_to(value, (*checked_shape(tuple(sizes)), *value.shape)))


def broadcast_in_dim(operand: Any, shape: Any, broadcast_dimensions: Sequence[int]) -> Tensor:
    """Broadcast ``operand`` to ``shape``: its axis i becomes axis ``broadcast_dimensions[i]``.

    raises ValueError : the dimensions do not increase, or a size is neither 1 nor the shape's
    """
    value, sizes = lift(operand), checked_shape(tuple(shape))
    dims = tuple(int(d) for d in broadcast_dimensions)
    if len(dims) != value.ndim or list(dims) != sorted(set(dims)):
        raise ValueError(
            f"broadcast_dimensions must name an axis for each of {value.ndim}, rising, got {dims}"
        )
    wide = [1] * len(sizes)
    for axis, n in zip(dims, value.shape, strict=True):
        if not 0 <= axis < len(sizes) or n not in (1, sizes[axis]):
            raise ValueError(f"[{show(value.shape)}] does not fit along {dims} into {sizes}")
        wide[axis] = n
    return fresh(m.broadcast_to(m.reshape(value, tuple(wide)), sizes))


def broadcast_like(arr: Any, like_arr: Any) -> Tensor:
    """Return ``arr`` broadcast to the shape of ``like_arr``."""
    return fresh(m.broadcast_to(lift(arr), lift(like_arr).shape))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that ``shapes`` broadcast to.

    raises ValueError : they do not broadcast
    source : `jax.lax.broadcast_shapes`

    >>> import stepwell as sw
    >>> sw.lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return np.broadcast_shapes(*shapes)


def broadcast_to_rank(x: Any, rank: int) -> Tensor:
    """Return ``x`` with leading axes of size 1, so that it has ``rank`` axes."""
    value = lift(x)
    return m.reshape(value, ((1,) * (rank - value.ndim) + value.shape))


def broadcasted_iota(dtype: Any, shape: Any, dimension: int) -> Tensor:
    """Return 0, 1, ... along axis ``dimension`` of an array of ``shape``."""
    sizes = checked_shape(tuple(shape))
    return _iota(sizes, check_axis(dimension, len(sizes)), as_dtype(dtype))


def iota(dtype: Any, size: int) -> Tensor:
    """Return 0, 1, ... ``size - 1``."""
    return _iota(checked_shape((size,)), 0, as_dtype(dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return an array of ``shape`` filled with a number; a Python float is float32."""
    if dtype is None and isinstance(fill_value, float):
        dtype = np.float32
    return _full(shape, fill_value, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Return an array filled with a number, by default of the shape and dtype of ``x``."""
    value = lift(x)
    kind = value.dtype if dtype is None else dtype
    return _full(value.shape if shape is None else shape, fill_value, kind)


def empty(shape: Any, dtype: Any) -> Tensor:
    """Return zeros: no array is uninitialized."""
    return _full(shape, 0, dtype)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Tensor:
    """Return ``operand`` with the axes from start up to stop flattened into one."""
    value = lift(operand)
    low, high, _ = builtins.slice(start_dimension, stop_dimension).indices(value.ndim)
    if high < low:
        raise ValueError(f"no axes from {start_dimension} to {stop_dimension} of {value.ndim}")
    middle = math.prod(value.shape[low:high])
    return m.reshape(value, (*value.shape[:low], middle, *value.shape[high:]))


def concatenate(operands: Any, dimension: int) -> Tensor:
    """Return arrays of one dtype concatenated along axis ``dimension``."""
    values = [lift(v) for v in operands]
    if len({v.kind for v in values}) > 1:
        listed = ", ".join(str(v.dtype) for v in values)
        raise TypeError(f"lax.concatenate requires arguments to have the same dtypes, got {listed}")
    return j.concat(values, axis=dimension)


def convert_element_type(operand: Any, new_dtype: Any) -> Tensor:
    """Return ``operand`` converted to ``new_dtype``."""
    return fresh(cast(lift(operand), as_dtype(new_dtype)))


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Tensor:
    """Return the bits of ``operand`` reinterpreted as a dtype of the same width."""
    return e.bitcast(operand, new_dtype)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Tensor:
    """Return ``array`` with axes of size 1 inserted at ``dimensions`` of the result."""
    return m.expand_dims(array, tuple(dimensions))


def reshape(operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None) -> Tensor:
    """Transpose ``operand`` to the axes' order ``dimensions``, then reshape it."""
    value = lift(operand)
    if dimensions is not None:
        value = m.permute_dims(value, tuple(dimensions))
    return m.reshape(value, tuple(new_sizes))


def rev(operand: Any, dimensions: Sequence[int]) -> Tensor:
    """Return ``operand`` with the order along ``dimensions`` reversed."""
    return fresh(m.flip(operand, tuple(dimensions))) if len(tuple(dimensions)) else lift(operand)


def squeeze(array: Any, dimensions: Sequence[int]) -> Tensor:
    """Return ``array`` without the axes ``dimensions``, which have size 1."""
    return m.squeeze(array, tuple(dimensions))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Tensor]:
    """Split ``operand`` into parts of ``sizes`` along ``axis``.

    raises ValueError : the sizes do not add up to the size of the axis
    """
    value = lift(operand)
    at = check_axis(axis, value.ndim)
    if sum(sizes) != value.shape[at]:
        raise ValueError(f"sizes {tuple(sizes)} do not add up to {value.shape[at]}")
    return j.split(value, list(np.cumsum(sizes)[:-1]), axis=at)


def stack(operands: Sequence[Any], axis: int = 0) -> Tensor:
    """Return arrays of one shape stacked along a new ``axis``."""
    return j.stack(operands, axis=axis)


def unstack(x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of ``x`` along ``axis``."""
    return j.unstack(lift(x), axis=axis)


def tile(operand: Any, reps: Sequence[int]) -> Tensor:
    """Return ``operand`` repeated ``reps`` times, a number for each axis."""
    return j.tile(operand, tuple(reps))


def transpose(operand: Any, permutation: Any) -> Tensor:
    """Return ``operand`` with its axes in the order ``permutation``."""
    return m.permute_dims(operand, tuple(int(a) for a in permutation))


def slice_(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return the block from ``start_indices`` to ``limit_indices``, which must be in range.

    raises ValueError : there is not one start and limit for each axis, within its size
    """
    value = lift(operand)
    steps = (1,) * value.ndim if strides is None else tuple(strides)
    parts = list(zip(start_indices, limit_indices, steps, strict=False))
    fits = len(parts) == value.ndim == len(tuple(start_indices)) == len(tuple(limit_indices))
    inside = (
        0 <= low <= high <= n and step > 0
        for (low, high, step), n in zip(parts, value.shape, strict=False)
    )
    if not fits or not all(inside):
        raise ValueError(
            f"slice from {tuple(start_indices)} to {tuple(limit_indices)} by {steps} does not lie "
            f"within [{show(value.shape)}]"
        )
    return fresh(value[tuple(builtins.slice(*p) for p in parts)]) if value.ndim else value


def slice_in_dim(
    operand: Any,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Tensor:
    """Return ``operand[start:limit:stride]`` along ``axis``."""
    value = lift(operand)
    at = check_axis(axis, value.ndim)
    head = (builtins.slice(None),) * at
    return fresh(value[(*head, builtins.slice(start_index, limit_index, stride))])


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Tensor:
    """Return the slice ``index`` along ``axis``; ``keepdims`` keeps the axis with size 1."""
    value = lift(operand)
    at = check_axis(axis, value.ndim)
    found = value[(*(builtins.slice(None),) * at, index)]
    return m.expand_dims(found, at) if keepdims else fresh(found)


def pad(operand: Any, padding_value: Any, padding_config: Any) -> Tensor:
    """Return ``operand`` with ``(low, high, interior)`` of ``padding_value`` along each axis.

    negative low and high crop; interior elements are inserted between neighbors
    """
    value = lift(operand)
    filling = cast(lift(padding_value, value.kind), value.kind)
    config = [tuple(int(n) for n in each) for each in padding_config]
    if len(config) != value.ndim or any(len(c) != 3 or c[2] < 0 for c in config):
        raise ValueError(
            f"padding_config must have (low, high, interior) for each of {value.ndim} axes, got "
            f"{padding_config!r}"
        )
    if not config:
        return value
    low, high, inner = ([max(c[k], 0) for c in config] for k in range(3))
    shape = tuple(
        a + n + max(n - 1, 0) * k + b
        for n, a, b, k in zip(value.shape, low, high, inner, strict=True)
    )
    more = {"interior": tuple(inner)} if any(inner) else {}
    padded = value.graph.emit(
        "pad", [value, filling], [(value.kind, shape)], (), low=tuple(low), high=tuple(high), **more
    )[0]
    if all(a >= 0 and b >= 0 for a, b, _ in config):
        return padded
    cut = zip(shape, config, strict=True)
    return fresh(padded[tuple(builtins.slice(max(-a, 0), n + min(b, 0)) for n, (a, b, _) in cut)])


def dynamic_slice(
    operand: Any, start_indices: Any, slice_sizes: Any, *, allow_negative_indices: Any = True
) -> Tensor:
    """Return the block of ``slice_sizes`` that begins at the traced ``start_indices``.

    Negative starts count from the end. A start is clamped so that the block lies inside.
    """
    return indexing.dynamic_slice(operand, start_indices, slice_sizes)


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: Any = True
) -> Tensor:
    """Return ``operand`` with the block that `dynamic_slice` would read replaced by ``update``."""
    return indexing.dynamic_update_slice(operand, update, start_indices)


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Tensor:
    """Return ``slice_size`` slices along ``axis``, beginning at the traced ``start_index``."""
    value = lift(operand)
    at = check_axis(axis, value.ndim)
    starts = [start_index if a == at else 0 for a in range(value.ndim)]
    sizes = [slice_size if a == at else n for a, n in enumerate(value.shape)]
    return indexing.dynamic_slice(value, starts, sizes)


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Tensor:
    """Return the slice at the traced ``index`` along ``axis``."""
    found = dynamic_slice_in_dim(operand, index, 1, axis)
    return found if keepdims else m.squeeze(found, axis)


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Tensor:
    """Return ``operand`` with ``update`` from the traced ``start_index`` on along ``axis``."""
    value = lift(operand)
    at = check_axis(axis, value.ndim)
    starts = [start_index if a == at else 0 for a in range(value.ndim)]
    return indexing.dynamic_update_slice(value, update, starts)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Tensor:
    """Return ``operand`` with the slice at the traced ``index`` of ``axis`` set to ``update``."""
    value, part = lift(operand), lift(update)
    if part.ndim != value.ndim:
        part = m.expand_dims(part, check_axis(axis, value.ndim))
    return dynamic_update_slice_in_dim(value, part, index, axis)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Tensor:
    """Return the index of the maximum along ``axis``, in ``index_dtype``."""
    return cast(call_named("argmax", (operand, axis), {}), as_dtype(index_dtype))


def argmin(operand: Any, axis: int, index_dtype: Any) -> Tensor:
    """Return the index of the minimum along ``axis``, in ``index_dtype``."""
    return cast(call_named("argmin", (operand, axis), {}), as_dtype(index_dtype))


def _running(
    name: str, compute: Callable[[Tensor, int], Tensor], what: str
) -> Callable[..., Tensor]:
    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
        value = lift(operand)
        at = check_axis(axis, value.ndim)
        if not reverse:
            return compute(value, at)
        return fresh(m.flip(compute(m.flip(value, at), at), at))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return the cumulative {what} along ``axis``, from the end if ``reverse``."
    return function


def _log_sums(value: Tensor, axis: int) -> Tensor:
    return associative_scan(e.logaddexp, value, axis=axis)


cumlogsumexp = _running("cumlogsumexp", _log_sums, "logarithms of sums of exponentials")
cummax = _running("cummax", lambda x, a: r.cumulative_max(x, axis=a), "maxima")
cummin = _running("cummin", lambda x, a: r.cumulative_min(x, axis=a), "minima")
cumprod = _running("cumprod", lambda x, a: cast(r.cumulative_prod(x, axis=a), x.kind), "products")
cumsum = _running("cumsum", lambda x, a: cast(r.cumulative_sum(x, axis=a), x.kind), "sums")


def _reduction(name: str, op: str, what: str) -> Callable[..., Tensor]:
    def function(operand: Any, axes: Sequence[int]) -> Tensor:
        value = lift(operand)
        boolean = {"reduce_max": "reduce_or", "reduce_min": "reduce_and"}.get(op, op)
        used = boolean if value.kind is BOOL else op
        return fresh(r.folded(used, value, tuple(axes), False))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {what} along ``axes``, in the dtype of ``operand``."
    return function


reduce_and = _reduction("reduce_and", "reduce_and", "the reduction by `&`")
reduce_max = _reduction("reduce_max", "reduce_max", "the maxima")
reduce_min = _reduction("reduce_min", "reduce_min", "the minima")
reduce_or = _reduction("reduce_or", "reduce_or", "the reduction by `|`")
reduce_prod = _reduction("reduce_prod", "reduce_prod", "products")
reduce_sum = _reduction("reduce_sum", "reduce_sum", "sums")


def reduce_xor(operand: Any, axes: Sequence[int]) -> Tensor:
    """Return the reduction by ``^`` along ``axes``."""
    value = lift(operand)
    for axis in sorted((check_axis(a, value.ndim) for a in axes), reverse=True):
        value = Tensor.operators["call_ufunc"](np.bitwise_xor, "reduce", (value,), {"axis": axis})
    return fresh(value)


def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Return arrays sorted along ``dimension`` by the first ``num_keys`` of them, increasing.

    operand : an array, or arrays of one shape. NaN is the greatest; the sort is always stable
    """
    if not isinstance(operand, list | tuple):
        return call_named("sort", (operand, dimension), {})
    values = [lift(v) for v in operand]
    if not 1 <= num_keys <= len(values):
        raise ValueError(f"num_keys must lie in 1..{len(values)}, got {num_keys}")
    at = check_axis(dimension, values[0].ndim)
    for key in reversed(range(num_keys)):
        order = call_named("argsort", (values[key], at), {"stable": True})
        values = [call_named("take_along_axis", (v, order, at), {}) for v in values]
    return tuple(values)


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Tensor, Tensor]:
    """Return ``keys`` sorted along ``dimension``, and ``values`` in the same order."""
    first, second = sort((keys, values), dimension)
    return first, second


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Tensor, Tensor]:
    """Return the ``k`` greatest elements along ``axis``, decreasing, and their indices as int32.

    Equal elements keep their order; NaN is the greatest.

    raises ValueError : operand has no axis, or fewer than k elements along ``axis``
    """
    value = lift(operand)
    at = check_axis(axis, value.ndim)
    if at == value.ndim - 1:
        return _top_k(value, k)
    found, places = _top_k(m.moveaxis(value, at, -1), k)
    return m.moveaxis(found, -1, at), m.moveaxis(places, -1, at)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Tensor:
    """Return the matrix products over the last two axes; the batch axes must be equal."""
    a, b = lift(lhs), lift(rhs)
    if a.ndim < 2 or a.ndim != b.ndim:
        raise TypeError(f"lax.batch_matmul takes arrays of one rank, got {a.ndim} and {b.ndim}")
    return Tensor.operators["matmul"](a, b)
