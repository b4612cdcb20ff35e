"""Sums, extremes and means with NumPy's whole signatures: ``initial=``, ``where=``, ``out=``."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.elementwise import axes_of, check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.manipulation import broadcast_to
from stepwell.frontend.operands import WIDE, array, axes, dtype_of, floating, stored, ufunc
from stepwell.frontend.promotion import (
    BOOL,
    INTEGER,
    as_dtype,
    broadcast,
    cast,
    fresh,
    full,
    is_number,
    lift,
    wrapped_number,
)
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor

Number = bool | int | float


def chosen(value: Tensor, where: Any, instead: Number) -> Tensor:
    """Return ``value`` with ``instead`` where the mask is false; the mask True selects all."""
    if where is True:
        return value
    return e.where(_mask(where, value), value, full((), instead, value.kind))


def _mask(where: Any, value: Tensor) -> Tensor:
    mask = array(where)
    if mask.kind is not BOOL:
        raise TypeError(f"where= must be booleans, got {mask.kind.name}")
    return broadcast_to(mask, value.shape)


def _summands(a: Any, dtype: Any) -> Tensor:
    value = array(a)
    if dtype is not None:
        return cast(value, dtype_of(dtype))
    if value.kind.kind in ("bool", "signed"):
        return cast(value, INTEGER)
    return cast(value, as_dtype("ui64")) if value.kind.kind == "unsigned" else value


def _with_initial(function: Any, value: Tensor, initial: Any) -> Tensor:
    """Return ``value`` combined with the initial value of the reduction."""
    if initial is None:
        return value
    start = array(initial) if not is_number(initial) else None
    if start is None:
        start = full((), wrapped_number(initial, value.kind), value.kind)
    return ufunc(function, value, cast(start, value.kind))


@public(method=True)
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """`numpy.sum`."""
    value = chosen(_summands(a, dtype), where, 0)
    if value.kind is BOOL:
        found = r.any(value, axis, keepdims=keepdims)
    else:
        found = r.sum(value, axis, dtype=value.kind, keepdims=keepdims)
    return stored(_with_initial(np.add, fresh(found), initial), out)


@public(method=True)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """`numpy.prod`."""
    value = chosen(_summands(a, dtype), where, 1)
    if value.kind is BOOL:
        found = r.all(value, axis, keepdims=keepdims)
    else:
        found = r.prod(value, axis, dtype=value.kind, keepdims=keepdims)
    return stored(_with_initial(np.multiply, fresh(found), initial), out)


def _extreme(name: str, ours: Callable[..., Tensor], function: Any) -> Callable[..., Tensor]:
    def extreme(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Tensor:
        value = array(a)
        if initial is None:
            if where is not True:
                raise ValueError(
                    f"reduction operation '{function.__name__}' does not have an identity, "
                    "so to use a where mask one has to specify 'initial'"
                )
            if 0 in [value.shape[i] for i in r.along(axis, value.ndim)]:
                raise ValueError("an empty axis has no largest or smallest element")
            return stored(fresh(ours(value, axis, keepdims=keepdims)), out)
        start = lift(initial, value.kind) if _is_whole(initial) else array(initial)
        start = cast(start, value.kind)
        if where is not True:
            value = e.where(_mask(where, value), value, start)
        gone = r.along(axis, value.ndim)
        if 0 in [value.shape[i] for i in gone]:
            sizes = [(1 if keepdims else None) if i in gone else n for i, n in _sizes(value)]
            return stored(broadcast(start, tuple(n for n in sizes if n is not None)), out)
        return stored(ufunc(function, ours(value, axis, keepdims=keepdims), start), out)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"`numpy.{name}`."
    return public(name, f"a{name}", method=True)(extreme)


def _is_whole(initial: Any) -> bool:
    return is_number(initial) and not isinstance(initial, float)


def _sizes(value: Tensor) -> list[tuple[int, int]]:
    return list(enumerate(value.shape))


max = _extreme("max", r.max, np.maximum)
min = _extreme("min", r.min, np.minimum)


@public(method=True)
def all(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """`numpy.all`."""
    value = e.logical_not(e.logical_not(array(a)))
    return stored(fresh(r.all(chosen(value, where, True), axis, keepdims=keepdims)), out)


@public(method=True)
def any(
    a: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """`numpy.any`."""
    value = e.logical_not(e.logical_not(array(a)))
    return stored(fresh(r.any(chosen(value, where, False), axis, keepdims=keepdims)), out)


def _counted(value: Tensor, axis: Any, where: Any, keepdims: bool) -> Any:
    """Return the number of selected elements: an int, or a traced value for a traced mask."""
    if where is True:
        return math.prod(value.shape[i] for i in axes(axis, value.ndim))
    return r.sum(_mask(where, value), axis, keepdims=keepdims)


def _divided(total: Tensor, count: Any) -> Tensor:
    """Return ``total / count`` in the dtype of ``total``."""
    if isinstance(count, Tensor):
        return e.divide(total, cast(count, total.kind))
    return e.divide(total, full((), count, total.kind))


@public(method=True)
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Tensor:
    """`numpy.mean`."""
    value = _converted(a, dtype)
    if where is True:
        _check_counted(axis, value.ndim)
    if where is True and value.kind.kind == "float":
        return stored(fresh(r.mean(value, axis, keepdims=keepdims)), out)
    return stored(_mean(value, axis, where, keepdims), out)


def _check_counted(axis: Any, rank: int) -> None:
    """Check an axis along which elements are counted: a value without axes has none."""
    for each in () if axis is None else axes_of(axis):
        check_axis(each, rank)


def _converted(a: Any, dtype: Any) -> Tensor:
    return floating(a) if dtype is None else cast(array(a), dtype_of(dtype))


def _mean(value: Tensor, axis: Any, where: Any, keepdims: bool) -> Tensor:
    """Return the masked mean, computed in float32 at least: sums overflow smaller floats."""
    wide = _at_least_single(value)
    total = r.sum(chosen(wide, where, 0), axis, dtype=wide.kind, keepdims=keepdims)
    return cast(_divided(total, _counted(wide, axis, where, keepdims)), value.kind)


def _at_least_single(value: Tensor) -> Tensor:
    if value.kind.kind != "float":
        return cast(value, WIDE)
    return cast(value, as_dtype("f32")) if value.kind.bytes < 4 else value


def _variance(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any, mean: Any
) -> tuple[Tensor, Any]:
    """Return the unrounded variance, and the requested dtype."""
    if dtype is not None and dtype_of(dtype).kind != "float":
        raise TraceError("the dtype= of a variance is one of floats; convert the result")
    value = _converted(a, dtype)
    if where is True:
        _check_counted(axis, value.ndim)
    wide = _at_least_single(value)
    if mean is not None:
        middle = cast(array(mean), wide.kind)
    elif where is True:
        middle = r.mean(wide, axis, keepdims=True)
    else:
        middle = _mean(wide, axis, where, True)
    squares = chosen(e.square(e.subtract(wide, middle)), where, 0)
    total = r.sum(squares, axis, keepdims=keepdims)
    count = _counted(wide, axis, where, keepdims)
    if is_number(count) and is_number(ddof):
        return _divided(total, builtins.max(count - ddof, 0)), value.kind
    left = ufunc(np.maximum, ufunc(np.subtract, count, ddof), 0)
    return _divided(total, left), value.kind


def degrees(ddof: Any, correction: Any) -> Any:
    """Return the degrees of freedom to subtract, given by either of the two names."""
    if correction is None:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@public(method=True)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Tensor:
    """`numpy.var`."""
    found, kind = _variance(a, axis, dtype, degrees(ddof, correction), keepdims, where, mean)
    return stored(cast(found, kind), out)


@public(method=True)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Tensor:
    """`numpy.std`."""
    found, kind = _variance(a, axis, dtype, degrees(ddof, correction), keepdims, where, mean)
    return stored(cast(e.sqrt(found), kind), out)


@public()
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """`numpy.count_nonzero`."""
    truths = e.logical_not(e.logical_not(array(a)))
    return r.sum(truths, axis, keepdims=keepdims)


@public()
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.ptp`."""
    value = array(a)
    high, low = max(value, axis, keepdims=keepdims), min(value, axis, keepdims=keepdims)
    return stored(ufunc(np.subtract, high, low), out)


@public()
def cumulative_sum(
    x: Any,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """`numpy.cumulative_sum`."""
    value = _summands(x, dtype)
    found = r.cumulative_sum(value, axis=axis, dtype=value.kind, include_initial=include_initial)
    return stored(found, out)


@public()
def cumulative_prod(
    x: Any,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """`numpy.cumulative_prod`."""
    value = _summands(x, dtype)
    found = r.cumulative_prod(value, axis=axis, dtype=value.kind, include_initial=include_initial)
    return stored(found, out)
