"""Small NumPy functions: complex parts, infinities, spaced numbers, two-dimensional histograms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reducing as red
from stepwell.frontend.histograms import counted, edges_of
from stepwell.frontend.manipulation import expand_dims, ravel, reshape
from stepwell.frontend.operands import array, linspace, ufunc, unified
from stepwell.frontend.promotion import BOOL, FLOAT, as_dtype, cast, fresh, full
from stepwell.frontend.sorting import searchsorted
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public()
def real(val: Any) -> Tensor:
    """`numpy.real`: the array itself."""
    return array(val)


@public()
def imag(val: Any) -> Tensor:
    """`numpy.imag`: zeros."""
    value = array(val)
    return full(value.shape, 0, value.kind)


@public()
def isreal(x: Any) -> Tensor:
    """`numpy.isreal`: true everywhere."""
    return full(array(x).shape, True, BOOL)


@public()
def iscomplex(x: Any) -> Tensor:
    """`numpy.iscomplex`: false everywhere."""
    return full(array(x).shape, False, BOOL)


@public()
def isrealobj(x: Any) -> bool:
    """`numpy.isrealobj`."""
    return True


@public()
def iscomplexobj(x: Any) -> bool:
    """`numpy.iscomplexobj`."""
    return False


@public()
def real_if_close(a: Any, tol: Any = 100) -> Tensor:
    """`numpy.real_if_close`: the array itself."""
    return array(a)


@public()
def angle(z: Any, deg: bool = False) -> Tensor:
    """`numpy.angle`: 0, or pi for negative numbers."""
    found = ufunc(np.arctan2, 0, array(z))
    return found * (180 / math.pi) if deg else found


@public()
def fix(x: Any) -> Tensor:
    """`numpy.fix`."""
    return fresh(ufunc(np.trunc, array(x)))


@public()
def isposinf(x: Any) -> Tensor:
    """`numpy.isposinf`."""
    value = array(x)
    return e.logical_and(e.isinf(value), e.greater(value, 0))


@public()
def isneginf(x: Any) -> Tensor:
    """`numpy.isneginf`."""
    value = array(x)
    return e.logical_and(e.isinf(value), e.less(value, 0))


@public()
def array_equiv(a1: Any, a2: Any) -> Any:
    """`numpy.array_equiv`."""
    x, y = array(a1), array(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return red.all(ufunc(np.equal, x, y))


@public()
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """`numpy.logspace`."""
    found = ufunc(np.power, base, linspace(start, stop, num, endpoint, axis=axis))
    return found if dtype is None else cast(found, as_dtype(dtype))


@public()
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """`numpy.geomspace` of two numbers of the same sign; NaN if one is 0."""
    first, last = (cast(array(v), FLOAT) for v in (start, stop))
    both = e.logical_and(e.less(first, 0), e.less(last, 0))
    sign = cast(e.where(both, -1.0, 1.0), first.kind)
    low, high = (ufunc(np.log10, sign * v) for v in (first, last))
    found = logspace(low, high, num, endpoint, 10.0, None, axis)
    at = axis % found.ndim
    first, last, sign = (expand_dims(v, at) for v in (first, last, sign))
    found = sign * found
    if num:
        sizes = (*(1,) * at, num, *(1,) * (found.ndim - at - 1))
        places = reshape(array(np.arange(num)), sizes)
        found = e.where(e.equal(places, 0), first, found)
        if endpoint and num > 1:
            found = e.where(e.equal(places, num - 1), last, found)
    return found if dtype is None else cast(found, as_dtype(dtype))


@public()
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """`numpy.histogram2d`, with numbers of bins or bin edges."""
    first, second = ravel(array(x)), ravel(array(y))
    if first.shape != second.shape:
        raise ValueError("x and y must have the same length.")
    pair = bins if isinstance(bins, list | tuple) and len(bins) == 2 else (bins, bins)
    ends = (None, None) if range is None else range
    numbers: list[Tensor] = []
    edges: list[Tensor] = []
    for value, own, span in zip((first, second), pair, ends, strict=True):
        edge = edges_of(value, own, span)
        a, b = unified(edge, value)
        place = searchsorted(a, b, side="right") - 1
        last = edge.shape[0] - 2
        place = e.where(e.equal(b, a[-1]), last, place)
        numbers.append(e.where(e.greater(place, last), -1, place))
        edges.append(edge)
    rows, columns = (edge.shape[0] - 1 for edge in edges)
    outside = e.logical_or(e.less(numbers[0], 0), e.less(numbers[1], 0))
    place = e.where(outside, -1, numbers[0] * columns + numbers[1])
    weight = None if weights is None else cast(ravel(array(weights)), FLOAT)
    counts = reshape(cast(counted(place, weight, rows * columns), FLOAT), (rows, columns))
    if density:
        wide = [edge[1:] - edge[:-1] for edge in edges]
        counts = counts / red.sum(counts) / (wide[0][:, None] * wide[1][None, :])
    return counts, edges[0], edges[1]
