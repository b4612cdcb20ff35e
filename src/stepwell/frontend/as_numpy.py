"""NumPy's functions and methods on traced values, with NumPy's signatures: `__array_function__`.

`numpy.sum(x)` and `x.sum()` of a traced ``x`` come here. Dtypes are those of NumPy 2. Arguments
that stand in NumPy's signature and not here are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import linear_algebra as linear
from stepwell.frontend import manipulation as m
from stepwell.frontend import reduction as r
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.creation import linspace as spaced
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import take
from stepwell.frontend.promotion import (
    BOOL,
    as_dtype,
    broadcast,
    cast,
    fresh,
    full,
    is_number,
    lift,
)
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import (
    common,
    converted,
    ufunc,
    unified,
)

_WIDE = as_dtype("f64")


def dtype_of(dtype: Any) -> Any:
    """Return what NumPy calls ``dtype``; `float` is float64 there."""
    return None if dtype is None else _WIDE if dtype is float else as_dtype(dtype)


def _array(x: Any) -> Tensor:
    return lift(np.asarray(x)) if isinstance(x, list | tuple) and not _traced(x) else lift(x)


def _traced(x: Any) -> bool:
    return any(isinstance(v, Tensor) for v in x)


def _float(x: Any, dtype: Any) -> Tensor:
    value = _array(x)
    if dtype is not None:
        return cast(value, dtype_of(dtype))
    return value if value.kind.kind == "float" else cast(value, _WIDE)


def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.sum`."""
    return fresh(r.sum(_array(a), axis, dtype=dtype_of(dtype), keepdims=keepdims))


def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.prod`."""
    return fresh(r.prod(_array(a), axis, dtype=dtype_of(dtype), keepdims=keepdims))


def max(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.max`."""
    return fresh(r.max(_array(a), axis, keepdims=keepdims))


def min(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.min`."""
    return fresh(r.min(_array(a), axis, keepdims=keepdims))


def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.mean`."""
    return fresh(r.mean(_float(a, dtype), axis, keepdims=keepdims))


def var(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False
) -> Tensor:
    """`numpy.var`."""
    return fresh(r.var(_float(a, dtype), axis, correction=ddof, keepdims=keepdims))


def std(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False
) -> Tensor:
    """`numpy.std`."""
    return fresh(r.std(_float(a, dtype), axis, correction=ddof, keepdims=keepdims))


def all(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.all`."""
    return fresh(r.all(_array(a), axis, keepdims=keepdims))


def any_(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.any`."""
    return fresh(r.any(_array(a), axis, keepdims=keepdims))


def argmax(a: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`numpy.argmax`."""
    return r.argmax(_array(a), axis, keepdims=keepdims)


def argmin(a: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`numpy.argmin`."""
    return r.argmin(_array(a), axis, keepdims=keepdims)


def _flat(a: Any, axis: int | None) -> tuple[Tensor, int]:
    value = _array(a)
    return (m.reshape(value, (value.size,)), 0) if axis is None else (value, axis)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`numpy.cumsum`."""
    value, at = _flat(a, axis)
    return r.cumulative_sum(value, axis=at, dtype=dtype_of(dtype))


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`numpy.cumprod`."""
    value, at = _flat(a, axis)
    return r.cumulative_prod(value, axis=at, dtype=dtype_of(dtype))


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """`numpy.count_nonzero`."""
    return r.sum(e.logical_not(e.logical_not(_array(a))), axis, keepdims=keepdims)


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """`numpy.ptp`."""
    return e.subtract(max(a, axis, keepdims), min(a, axis, keepdims))


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """`numpy.diff`."""
    value = _array(a)
    for _ in range(n):
        head = (slice(None),) * check_axis(axis, value.ndim)
        after, before = value[(*head, slice(1, None))], value[(*head, slice(None, -1))]
        value = ufunc(np.not_equal if value.kind is BOOL else np.subtract, after, before)
    return fresh(value)


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """`numpy.clip`."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    value = _array(a)
    value = value if low is None else ufunc(np.maximum, value, low)
    return fresh(value if high is None else ufunc(np.minimum, value, high))


def where(condition: Any, x: Any = None, y: Any = None) -> Tensor:
    """`numpy.where` of three arguments."""
    if x is None or y is None:
        raise TraceError(
            "numpy.where of one argument has a result whose shape only the run knows; "
            "give it what to choose: numpy.where(condition, x, y)"
        )
    return e.where(_array(condition), *unified(x, y))


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Tensor:
    """`numpy.concatenate`."""
    values = unified(*arrays) if dtype is None else [converted(a, dtype_of(dtype)) for a in arrays]
    if axis is not None and not builtins_all(v.ndim for v in values):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    return m.concat(values, axis)


def builtins_all(values: Any) -> bool:
    """Whether all ``values`` are true; the name is NumPy's here."""
    return not [v for v in values if not v]


def stack(arrays: Any, axis: int = 0) -> Tensor:
    """`numpy.stack`."""
    return m.stack(unified(*arrays), axis)


def atleast_1d(*arrays: Any) -> Any:
    """`numpy.atleast_1d`."""
    found = [m.reshape(a, (1,)) if not _array(a).ndim else _array(a) for a in arrays]
    return found[0] if len(found) == 1 else tuple(found)


def atleast_2d(*arrays: Any) -> Any:
    """`numpy.atleast_2d`."""
    values = [atleast_1d(a) for a in arrays]
    found = [m.expand_dims(v, 0) if v.ndim == 1 else v for v in values]
    return found[0] if len(found) == 1 else tuple(found)


def vstack(tup: Any) -> Tensor:
    """`numpy.vstack`."""
    return concatenate([atleast_2d(a) for a in tup], 0)


def hstack(tup: Any) -> Tensor:
    """`numpy.hstack`."""
    values = [atleast_1d(a) for a in tup]
    return concatenate(values, 0 if values[0].ndim == 1 else 1)


def column_stack(tup: Any) -> Tensor:
    """`numpy.column_stack`."""
    values = [atleast_1d(a) for a in tup]
    return concatenate([m.expand_dims(v, 1) if v.ndim == 1 else v for v in values], 1)


def reshape(a: Any, /, shape: Any, order: str = "C") -> Tensor:
    """`numpy.reshape`."""
    in_order(order)
    return m.reshape(_array(a), shape)


def in_order(order: str) -> None:
    """Refuse orders of elements other than row by row."""
    if order not in ("C", "K", "A"):
        raise TraceError(f"order='{order}' is not known to Stepwell: arrays lie row by row")


def ravel(a: Any, order: str = "C") -> Tensor:
    """`numpy.ravel`."""
    in_order(order)
    return m.ravel(_array(a))


def transpose(a: Any, axes: Any = None) -> Tensor:
    """`numpy.transpose`."""
    return m.transpose(_array(a), *([tuple(axes)] if axes is not None else []))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """`numpy.split`."""
    return m.split(_array(ary), indices_or_sections, axis)


def copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    """`numpy.copy`."""
    return fresh(_array(a))


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """`numpy.roll`."""
    return fresh(m.roll(_array(a), shift, axis))


def pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """`numpy.pad` with a constant."""
    if mode != "constant":
        raise TraceError(f"numpy.pad: mode='{mode}' is not known to Stepwell, only 'constant'")
    return m.pad(_array(array), pad_width, constant_values=constant_values)


def round_(a: Any, decimals: int = 0) -> Tensor:
    """`numpy.round` to integers."""
    value = _array(a)
    if value.kind.kind != "float" and decimals >= 0:
        return fresh(cast(value, as_dtype("f16")) if value.kind is BOOL else value)
    if decimals:
        ten = 10.0 ** abs_(decimals)
        scale, back = (e.multiply, e.divide) if decimals > 0 else (e.divide, e.multiply)
        return back(e.round(scale(value, ten)), ten)
    return e.round(value)


def abs_(number: int) -> int:
    """Return |number|."""
    return number if number >= 0 else -number


def dot(a: Any, b: Any) -> Tensor:
    """`numpy.dot`."""
    x, y = unified(a, b)
    if not x.ndim or not y.ndim:
        return ufunc(np.multiply, x, y)
    if y.ndim == 1 or x.ndim == 1 or x.ndim == y.ndim == 2:
        return linear.matmul(x, y) if y.ndim <= 2 else linear.tensordot(x, y, ((-1,), (-2,)))
    return linear.tensordot(x, y, ((-1,), (-2,)))


def inner(a: Any, b: Any) -> Tensor:
    """`numpy.inner`."""
    x, y = unified(a, b)
    if not x.ndim or not y.ndim:
        return ufunc(np.multiply, x, y)
    return linear.tensordot(x, y, ((-1,), (-1,)))


def outer(a: Any, b: Any) -> Tensor:
    """`numpy.outer`."""
    x, y = (m.ravel(v) if v.ndim else m.reshape(v, (1,)) for v in unified(a, b))
    return linear.outer(x, y)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """`numpy.tensordot`."""
    if not isinstance(axes, int):
        axes = tuple((k,) if isinstance(k, int) else tuple(k) for k in axes)
    return linear.tensordot(*unified(a, b), axes=axes)


def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Tensor:
    """`numpy.einsum`."""
    return fresh(linear.einsum(subscripts, *unified(*operands)))


def trace(a: Any, offset: int = 0) -> Tensor:
    """`numpy.trace` of a matrix."""
    value = _array(a)
    if value.ndim != 2:
        raise TraceError("numpy.trace of more than two axes is not known to Stepwell")
    return linear.trace(value, offset)


def like(number: Any) -> Callable[..., Tensor]:
    """Return `numpy.zeros_like` or `numpy.ones_like`."""

    def function(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
    ) -> Tensor:
        value = _array(a)
        kind = value.kind if dtype is None else dtype_of(dtype)
        return full(value.shape if shape is None else checked_shape(shape), number, kind)

    return function


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """`numpy.full_like`."""
    value = _array(a)
    kind = value.kind if dtype is None else dtype_of(dtype)
    sizes = value.shape if shape is None else checked_shape(shape)
    if is_number(fill_value):
        return full(sizes, kind.numpy.type(fill_value).item(), kind)
    return fresh(broadcast(cast(_array(fill_value), kind), sizes))


def isclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """`numpy.isclose`."""
    return e.isclose(*unified(a, b), rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """`numpy.allclose`."""
    return r.all(isclose(a, b, rtol, atol, equal_nan))


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, dtype: Any = None
) -> Tensor:
    """`numpy.linspace`; integers are spaced as float64."""
    first, last = (
        cast(v, _WIDE) if isinstance(v, Tensor) and v.kind.kind != "float" else v
        for v in (start, stop)
    )
    return spaced(first, last, num, endpoint, dtype=dtype_of(dtype))


def array_equal(a1: Any, a2: Any) -> Any:
    """`numpy.array_equal`."""
    x, y = _array(a1), _array(a2)
    return x.shape == y.shape and r.all(ufunc(np.equal, x, y))


def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0) -> Tensor:
    """`numpy.nan_to_num` with the default for infinities."""
    value = _array(x)
    if value.kind.kind != "float":
        return fresh(value)
    most = float(np.finfo(value.kind.numpy).max)
    finite = e.where(e.isinf(value), e.where(e.greater(value, 0), most, -most), value)
    return e.where(e.isnan(value), nan, finite)


def without_nan(of: Callable[..., Tensor], instead: float) -> Callable[..., Tensor]:
    """Return ``of`` with ``instead`` for NaN."""

    def function(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        value = _array(a)
        if value.kind.kind == "float":
            value = e.where(e.isnan(value), instead, value)
        return of(value, axis, keepdims=keepdims)

    return function


def taken(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    """`numpy.take`."""
    return take(_array(a), indices, axis, None if mode == "raise" else mode)


def result_type(*arrays: Any) -> Any:
    """`numpy.result_type`."""
    return common(*arrays).numpy


def flipped(axis: int) -> Callable[[Any], Tensor]:
    """Return `numpy.flipud` or `numpy.fliplr`."""
    return lambda m_: m.flip(_array(m_), axis)


def size(a: Any, axis: int | None = None) -> int:
    """`numpy.size`."""
    return math.prod(a.shape) if axis is None else a.shape[axis]


def lifting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` for lists too."""
    return lambda a, *args, **keywords: function(_array(a), *args, **keywords)
