"""Sums, extremes and their like along axes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend.elementwise import axes_of, check_axis
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import BOOL, FLOAT, INTEGER, as_dtype, cast, lift
from stepwell.frontend.tensor import Tensor


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    given = axes_of(axis)
    axes = tuple(check_axis(a, rank) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"an axis is named twice in {given}")
    return tuple(sorted(axes))


def _reduce(op: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    axes = _axes(axis, x.ndim)
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    result = x
    if axes:
        result = x.trace.emit(op, [x], [(x.kind, shape)], (), axes=axes)[0]
    if keepdims:
        result = reshape(result, tuple(1 if a in axes else n for a, n in enumerate(x.shape)))
    return result


def _summed(x: Tensor, dtype: Any) -> Tensor:
    """Return ``x`` in the dtype sums are taken in: integers become i64, as in NumPy."""
    if dtype is not None:
        return cast(x, as_dtype(dtype))
    if x.kind.kind in ("bool", "signed"):
        return cast(x, INTEGER)
    return cast(x, as_dtype("ui64")) if x.kind.kind == "unsigned" else x


def sum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum along ``axis``; integers are summed as 64-bit integers."""
    return _reduce("reduce_sum", _summed(lift(x), dtype), axis, keepdims)


def prod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product along ``axis``; integers are multiplied as 64-bit integers."""
    return _reduce("reduce_prod", _summed(lift(x), dtype), axis, keepdims)


def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return the largest element along ``axis``; NaN where there is one."""
    return _extreme("reduce_max", x, axis, keepdims)


def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return the smallest element along ``axis``; NaN where there is one."""
    return _extreme("reduce_min", x, axis, keepdims)


def _extreme(op: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    value = lift(x)
    if 0 in [value.shape[a] for a in _axes(axis, value.ndim)]:
        raise ValueError("an empty axis has no largest or smallest element")
    if value.kind is BOOL:
        op = {"reduce_max": "reduce_or", "reduce_min": "reduce_and"}[op]
    return _reduce(op, value, axis, keepdims)


def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return whether all elements along ``axis`` are true."""
    return _reduce("reduce_and", e.logical_not(e.logical_not(x)), axis, keepdims)


def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return whether some element along ``axis`` is true."""
    return _reduce("reduce_or", e.logical_not(e.logical_not(x)), axis, keepdims)


def _floating(x: Any) -> Tensor:
    value = lift(x)
    return value if value.kind.kind == "float" else cast(value, FLOAT)


def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return the mean along ``axis``; integers are taken as float32."""
    return _reduce("mean", _floating(x), axis, keepdims)


def var(
    x: Any,
    /,
    axis: Any = None,
    *,
    correction: float | None = None,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Return the mean squared distance from the mean along ``axis``, over n - ``correction``.

    ddof : what NumPy calls the correction. NaN where no more than that many elements are left
    """
    value = _floating(x)
    return cast(_variance(value, axis, _correction(correction, ddof), keepdims), value.kind)


def _correction(correction: float | None, ddof: float | None) -> float:
    if correction is not None and ddof is not None:
        raise ValueError("correction and ddof are the same: give one of them")
    return next((c for c in (correction, ddof) if c is not None), 0.0)


def _variance(value: Tensor, axis: Any, correction: float, keepdims: bool) -> Tensor:
    """Return the variance, in float32 at least: sums of squares and counts outgrow less."""
    wide = cast(value, FLOAT) if value.kind.bytes < FLOAT.bytes else value
    distance = e.subtract(wide, mean(wide, axis=axis, keepdims=True))
    count = math.prod(wide.shape[a] for a in _axes(axis, wide.ndim))
    total = sum(e.square(distance), axis=axis, keepdims=keepdims)
    return e.divide(total, float(builtins.max(count - correction, 0)))


def std(
    x: Any,
    /,
    axis: Any = None,
    *,
    correction: float | None = None,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Return the square root of `var`."""
    value = _floating(x)
    variance = _variance(value, axis, _correction(correction, ddof), keepdims)
    return cast(e.sqrt(variance), value.kind)


def _arg(op: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    value = lift(x)
    rank = value.ndim
    if axis is None:
        value = reshape(value, (value.size,))
    at = check_axis(axis or 0, value.ndim)
    if not value.shape[at]:
        raise ValueError("an empty axis has no largest or smallest element")
    if value.kind is BOOL:
        value = cast(value, as_dtype("i8"))
    shape = tuple(n for a, n in enumerate(value.shape) if a != at)
    result = value.trace.emit(op, [value], [(INTEGER, shape)], (), axis=at)[0]
    if not keepdims:
        return result
    kept = (1,) * rank if axis is None else (*value.shape[:at], 1, *value.shape[at + 1 :])
    return reshape(result, kept)


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the first largest element along ``axis`` (None: of all), as int64."""
    return _arg("argmax", x, axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the first smallest element along ``axis`` (None: of all), as int64."""
    return _arg("argmin", x, axis, keepdims)


def _cumulative(op: str, x: Tensor, axis: int | None, initial: bool, start: int) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError("say along which axis to accumulate")
        axis = 0
    at = check_axis(axis, x.ndim)
    result = x.trace.emit(op, [x], [(x.kind, x.shape)], (), axis=at)[0]
    if not initial:
        return result
    from_start = [(1, 0) if a == at else (0, 0) for a in range(x.ndim)]
    return _padded(result, from_start, start)


def _padded(x: Tensor, widths: Sequence[tuple[int, int]], value: int) -> Tensor:
    return Tensor.operators["pad"](x, widths, constant_values=value)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the sums of the elements up to each place along ``axis``."""
    value = _summed(lift(x), dtype)
    return _cumulative("cumulative_sum", value, axis, include_initial, 0)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the products of the elements up to each place along ``axis``."""
    value = _summed(lift(x), dtype)
    return _cumulative("cumulative_prod", value, axis, include_initial, 1)


def cumulative_max(x: Any, /, *, axis: int | None = None) -> Tensor:
    """Return the largest of the elements up to each place along ``axis``."""
    return _running("cumulative_max", x, axis)


def cumulative_min(x: Any, /, *, axis: int | None = None) -> Tensor:
    """Return the smallest of the elements up to each place along ``axis``."""
    return _running("cumulative_min", x, axis)


def _running(op: str, x: Any, axis: int | None) -> Tensor:
    value = lift(x)
    numbers = cast(value, as_dtype("i8")) if value.kind is BOOL else value
    return cast(_cumulative(op, numbers, axis, False, 0), value.kind)


def logsumexp(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return ``log(sum(exp(x)))`` along ``axis`` without overflow."""
    return _reduce("logsumexp", _floating(x), axis, keepdims)


def diff(x: Any, /, *, axis: int = -1) -> Tensor:
    """Return the differences of neighbours along ``axis``, one fewer than the elements."""
    value = lift(x)
    head = (slice(None),) * check_axis(axis, value.ndim)
    minus = e.not_equal if value.kind is BOOL else e.subtract
    return minus(value[(*head, slice(1, None))], value[(*head, slice(None, -1))])
