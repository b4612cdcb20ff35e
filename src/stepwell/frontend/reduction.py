"""Sums, extremes and similar reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.core.dtypes import DTYPES
from stepwell.frontend import elementwise as e
from stepwell.frontend.elementwise import axes_of, check_axis
from stepwell.frontend.limits import isclose
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import BOOL, FLOAT, INTEGER, as_dtype, cast, fresh, lift
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


def along(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes to reduce, in ascending order; None stands for all axes."""
    if axis is None:
        return tuple(range(rank))
    given = axes_of(axis)
    if not rank and len(given) == 1 and given[0] in (0, -1):
        return ()  # NumPy allows axis 0 for a value without axes
    axes = tuple(check_axis(a, rank) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"an axis is named twice in {given}")
    return tuple(sorted(axes))


def folded(op: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Return the result of a reduction op of `nd` along ``axis``."""
    axes = along(axis, x.ndim)
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    result = x
    if axes:
        result = x.graph.emit(op, [x], [(x.kind, shape)], (), axes=axes)[0]
    if keepdims:
        result = reshape(result, tuple(1 if a in axes else n for a, n in enumerate(x.shape)))
    return result


def _summed(x: Tensor, dtype: Any) -> Tensor:
    """Return ``x`` in the accumulator dtype: integers become i64, as in NumPy."""
    if dtype is not None:
        return cast(x, as_dtype(dtype))
    if x.kind.kind in ("bool", "signed"):
        return cast(x, INTEGER)
    return cast(x, as_dtype("ui64")) if x.kind.kind == "unsigned" else x


def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum along ``axis``; integers are summed as 64-bit integers."""
    return fresh(folded("reduce_sum", _summed(lift(a), dtype), axis, keepdims))


def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product along ``axis``; integers are multiplied as 64-bit integers."""
    return fresh(folded("reduce_prod", _summed(lift(a), dtype), axis, keepdims))


def max(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element along ``axis``; NaN if any element is NaN."""
    return _extreme("reduce_max", a, axis, keepdims)


def min(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element along ``axis``; NaN if any element is NaN."""
    return _extreme("reduce_min", a, axis, keepdims)


def _extreme(op: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    value = lift(x)
    if 0 in [value.shape[a] for a in along(axis, value.ndim)]:
        raise ValueError("an empty axis has no largest or smallest element")
    if value.kind is BOOL:
        op = {"reduce_max": "reduce_or", "reduce_min": "reduce_and"}[op]
    return fresh(folded(op, value, axis, keepdims))


def all(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements along ``axis`` are true."""
    return fresh(folded("reduce_and", e.truth(a), axis, keepdims))


def any(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether some element along ``axis`` is true."""
    return fresh(folded("reduce_or", e.truth(a), axis, keepdims))


def _floating(x: Any, dtype: Any = None) -> Tensor:
    value = lift(x)
    if dtype is not None:
        return cast(value, as_dtype(dtype))
    return value if value.kind.kind == "float" else cast(value, FLOAT)


def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean along ``axis``; integers are converted to float64."""
    return fresh(folded("mean", _floating(a, dtype), axis, keepdims))


def _arg(op: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    value = lift(x)
    rank = value.ndim
    if axis is None:
        value = reshape(value, (value.size,))
    value = _with_axis(value, axis)
    at = check_axis(axis or 0, value.ndim)
    if not value.shape[at]:
        raise ValueError("an empty axis has no largest or smallest element")
    if value.kind is BOOL:
        value = cast(value, DTYPES["i8"])
    shape = tuple(n for a, n in enumerate(value.shape) if a != at)
    result = value.graph.emit(op, [value], [(INTEGER, shape)], (), axis=at)[0]
    if not keepdims:
        return result
    kept = (
        (1,) * rank if axis is None or not rank else (*value.shape[:at], 1, *value.shape[at + 1 :])
    )
    return reshape(result, kept)


@public(method=True)
def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the first largest element along ``axis`` (None: of all), as int64."""
    return _arg("argmax", a, axis, keepdims)


@public(method=True)
def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the first smallest element along ``axis`` (None: of all), as int64."""
    return _arg("argmin", a, axis, keepdims)


def _with_axis(value: Tensor, axis: Any) -> Tensor:
    """Return a value without axes as an array of one element, if its axis 0 is meant."""
    return reshape(value, (1,)) if not value.ndim and axis in (None, 0, -1) else value


def _cumulative(op: str, x: Tensor, axis: int | None, initial: bool, start: int) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                "For arrays which have more than one dimension ``axis`` argument is required."
            )
        axis = 0
    x = _with_axis(x, axis)
    at = check_axis(axis, x.ndim)
    result = x.graph.emit(op, [x], [(x.kind, x.shape)], (), axis=at)[0]
    if not initial:
        return result
    from_start = [(1, 0) if a == at else (0, 0) for a in range(x.ndim)]
    return _padded(result, from_start, start)


def _padded(x: Tensor, widths: Sequence[tuple[int, int]], value: int) -> Tensor:
    return Tensor.operators["pad"](x, widths, constant_values=value)


@public(method=True)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative sums along ``axis``; None flattens first."""
    value = lift(a)
    value, at = (reshape(value, -1), 0) if axis is None else (value, axis)
    return cumulative_sum(value, axis=at, dtype=dtype)


@public(method=True)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative products along ``axis``; None flattens first."""
    value = lift(a)
    value, at = (reshape(value, -1), 0) if axis is None else (value, axis)
    return cumulative_prod(value, axis=at, dtype=dtype)


def cumulative_sum(
    x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the cumulative sums along ``axis``."""
    value = _summed(lift(x), dtype)
    if value.kind is BOOL:
        return _running("cumulative_max", value, axis, include_initial, 0)
    return _cumulative("cumulative_sum", value, axis, include_initial, 0)


def cumulative_prod(
    x: Any, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the cumulative products along ``axis``."""
    value = _summed(lift(x), dtype)
    if value.kind is BOOL:
        return _running("cumulative_min", value, axis, include_initial, 1)
    return _cumulative("cumulative_prod", value, axis, include_initial, 1)


@public()
def cumulative_max(x: Any, *, axis: int | None = None) -> Tensor:
    """Return the cumulative maxima along ``axis``."""
    return _of_arrays("cumulative_max", x, axis)


@public()
def cumulative_min(x: Any, *, axis: int | None = None) -> Tensor:
    """Return the cumulative minima along ``axis``."""
    return _of_arrays("cumulative_min", x, axis)


def _of_arrays(op: str, x: Any, axis: int | None) -> Tensor:
    value = lift(x)
    if not value.ndim:
        raise TypeError("cannot accumulate on a scalar")
    return _running(op, value, axis)


def _running(
    op: str, value: Tensor, axis: int | None, initial: bool = False, start: int = 0
) -> Tensor:
    numbers = cast(value, DTYPES["i8"]) if value.kind is BOOL else value
    return cast(_cumulative(op, numbers, axis, initial, start), value.kind)


@public()
def logsumexp(x: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return ``log(sum(exp(x)))`` along ``axis`` without overflow."""
    return folded("logsumexp", _floating(x), axis, keepdims)


@public()
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the ``n``-th differences of neighbours along ``axis``; each removes one element."""
    value = lift(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not value.ndim:
        raise ValueError("diff requires input that is at least one dimensional")
    at = check_axis(axis, value.ndim)
    if not n:
        return fresh(value)
    value = _with_ends(value, at, prepend, append)
    head = (slice(None),) * at
    for _ in range(n):
        minus = e.not_equal if value.kind is BOOL else e.subtract
        value = minus(value[(*head, slice(1, None))], value[(*head, slice(None, -1))])
    return fresh(value)


def _with_ends(value: Tensor, axis: int, first: Any, last: Any) -> Tensor:
    """Return ``value`` with the optional ``prepend`` and ``append`` values attached."""
    parts: list[Any] = [value]
    for given, place in ((first, 0), (last, len(parts))):
        if given is not None:
            end = Tensor.operators["asarray"](given)
            if not end.ndim:
                sizes = (1 if a == axis else n for a, n in enumerate(value.shape))
                end = Tensor.operators["broadcast_to"](end, tuple(sizes))
            parts.insert(0 if place == 0 else len(parts), end)
    return Tensor.operators["concat"](parts, axis=axis) if len(parts) > 1 else value


@public()
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether all elements are close in the sense of `isclose`."""
    return all(isclose(a, b, rtol, atol, equal_nan))


@public()
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Return whether two arrays have the same shape and equal elements."""
    x, y = lift(a1), lift(a2)
    if x.shape != y.shape:
        return False
    same = x == y
    if equal_nan:
        same = e.logical_or(same, e.logical_and(x != x, y != y))
    return all(same)
