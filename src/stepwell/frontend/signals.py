"""Filters, differences and integrals of samples, by NumPy's names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import contraction as shapes
from stepwell.frontend import elementwise as e
from stepwell.frontend import joining as j
from stepwell.frontend import manipulation as m
from stepwell.frontend import reducing as red
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.indexing import take
from stepwell.frontend.layers.convolution import convolved
from stepwell.frontend.operands import (
    WIDE,
    array,
    atleast_1d,
    concatenate,
    cumsum,
    diff,
    floating,
    ufunc,
    unified,
)
from stepwell.frontend.promotion import BOOL, INTEGER, cast, fresh, full, is_number
from stepwell.frontend.sorting import argsort, searchsorted
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor

_MODES = ("valid", "same", "full")


def _sliding_products(x: Tensor, w: Tensor, low: int, high: int) -> Tensor:
    """Return the dot products of ``w`` with every window of ``x``, which is padded with zeros."""
    kind = x.kind
    if kind is BOOL:
        x, w = cast(x, INTEGER), cast(w, INTEGER)
    image = m.reshape(x, (1, 1, x.size))
    window = shapes.Window((w.size,), (1,), (low,), (high,), (1,), (1,))
    found = convolved(image, m.reshape(w, (1, 1, w.size)), window, 1)
    found = m.reshape(found, (found.size,))
    return e.not_equal(found, 0) if kind is BOOL else found


def _row(x: Any) -> Tensor:
    value = array(x)
    value = m.reshape(value, (1,)) if not value.ndim else value
    if value.ndim != 1:
        raise ValueError("object too deep for desired array")
    return value


def _mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")


def _correlated(a: Tensor, v: Tensor, mode: str) -> Tensor:
    """Return the sums of ``a[n + k] * v[k]``; ``v`` is the shorter one."""
    k = v.size
    before = {"valid": 0, "same": k // 2, "full": k - 1}[mode]
    after = {"valid": 0, "same": k - 1 - k // 2, "full": k - 1}[mode]
    return _sliding_products(a, v, before, after)


@public()
def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """`numpy.correlate`."""
    _mode(mode)
    x, w = unified(_row(a), _row(v))
    if not x.size or not w.size:
        raise ValueError(f"{'first' if not x.size else 'second'} array argument cannot be empty")
    if w.size > x.size:
        return fresh(m.flip(_correlated(w, x, mode)))
    return _correlated(x, w, mode)


@public()
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """`numpy.convolve`."""
    _mode(mode)
    x, w = unified(_row(a), _row(v))
    if not x.size or not w.size:
        raise ValueError(f"{'a' if not x.size else 'v'} cannot be empty")
    if w.size > x.size:
        x, w = w, x
    return _correlated(x, m.flip(w), mode)


@public()
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """`numpy.interp` in float64; ``xp`` must be ascending."""
    at = cast(array(x), WIDE)
    places, values = cast(array(xp), WIDE), cast(array(fp), WIDE)
    if places.ndim != 1 or values.shape != places.shape:
        raise ValueError("fp and xp are not of the same length.")
    if not places.size:
        raise ValueError("array of sample points is empty")
    if period is not None:
        if is_number(period) and period == 0:
            raise ValueError("period must be a non-zero value")
        at, places, values = _periodic(at, places, values, period)
        left = right = None
    first = values[0] if left is None else cast(array(left), WIDE)
    last = values[-1] if right is None else cast(array(right), WIDE)
    n = places.shape[0]
    if n == 1:
        found = e.where(
            e.less(at, places[0]), first, e.where(e.greater(at, places[0]), last, values[0])
        )
        return e.where(e.isnan(at), at, found)
    j = e.clip(searchsorted(places, at, side="right") - 1, 0, n - 2)
    x0, x1, y0, y1 = take(places, j), take(places, j + 1), take(values, j), take(values, j + 1)
    slope = (y1 - y0) / (x1 - x0)
    found = slope * (at - x0) + y0
    other = slope * (at - x1) + y1
    found = e.where(
        e.isnan(found), e.where(e.logical_and(e.isnan(other), e.equal(y0, y1)), y0, other), found
    )
    found = e.where(e.equal(at, x0), y0, found)
    found = e.where(e.equal(at, places[-1]), values[-1], found)
    found = e.where(e.less(at, places[0]), first, e.where(e.greater(at, places[-1]), last, found))
    return e.where(e.isnan(at), at, found)


def _periodic(
    at: Tensor, places: Tensor, values: Tensor, period: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the arguments of `interp` with sorted samples, and one more sample at either end."""
    long = ufunc(np.absolute, cast(array(period), WIDE))
    at, places = e.remainder(at, long), e.remainder(places, long)
    order = argsort(places)
    places, values = take(places, order), take(values, order)
    wide = j.concat([places[-1:] - long, places, places[:1] + long])
    return at, wide, j.concat([values[-1:], values, values[:1]])


@public()
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """`numpy.gradient`: central differences inside, one-sided ones at the edges.

    returns : an array, or a tuple with one for each axis
    """
    value = array(f)
    along = _gradient_axes(axis, value.ndim)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    steps = _steps(varargs, value, along)
    if value.kind is BOOL:
        raise TypeError("gradient takes no booleans, as NumPy's subtract takes none")
    if value.kind.kind != "float":
        value = cast(value, WIDE)
    found = [_slope(value, a, s, edge_order) for a, s in zip(along, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _gradient_axes(axis: Any, rank: int) -> list[int]:
    if axis is None:
        return list(range(rank))
    given = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    found = [check_axis(a, rank) for a in given]
    if len(set(found)) < len(found):
        raise ValueError("repeated axis")
    return found


def _steps(given: Sequence[Any], value: Tensor, along: Sequence[int]) -> list[Any]:
    """Return for each axis the step, or the coordinates of its elements."""
    if not given:
        return [1.0] * len(along)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        return [given[0]] * len(along)
    if len(given) != len(along):
        raise TypeError("invalid number of arguments")
    for a, step in zip(along, given, strict=True):
        if np.ndim(step) > 1:
            raise ValueError("distances must be either scalars or 1d")
        if np.ndim(step) == 1 and array(step).shape[0] != value.shape[a]:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
    return [step if np.ndim(step) == 0 else array(step) for step in given]


def _slope(value: Tensor, axis: int, step: Any, edge_order: int) -> Tensor:
    n = value.shape[axis]
    if n < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    kind = value.kind

    def part(start: int, stop: int | None) -> Tensor:
        return value[(*(slice(None),) * axis, slice(start, stop))]

    if isinstance(step, Tensor) and step.ndim:
        inner, first, last = _uneven(value, axis, step, edge_order, part)
    else:
        size: Any = step
        inner = (part(2, None) - part(0, -2)) / (2.0 * size)
        if edge_order == 1:
            first = (part(1, 2) - part(0, 1)) / size
            last = (part(n - 1, n) - part(n - 2, n - 1)) / size
        else:
            first = (
                part(0, 1) * (-1.5 / size) + part(1, 2) * (2.0 / size) + part(2, 3) * (-0.5 / size)
            )
            last = (
                part(n - 3, n - 2) * (0.5 / size)
                + part(n - 2, n - 1) * (-2.0 / size)
                + part(n - 1, n) * (1.5 / size)
            )
    return j.concat([cast(v, kind) for v in (first, inner, last)], axis=axis)


def _uneven(value: Tensor, axis: int, places: Tensor, edge_order: int, part: Any) -> Any:
    """Return the slopes inside and at both ends for unevenly spaced elements."""
    n = value.shape[axis]
    if places.kind.kind != "float":
        places = cast(places, WIDE)
    wide = places[1:] - places[:-1]

    def shaped(x: Tensor) -> Tensor:
        return m.reshape(x, (*(1,) * axis, x.size, *(1,) * (value.ndim - axis - 1)))

    before, after = shaped(wide[:-1]), shaped(wide[1:])
    a = -after / (before * (before + after))
    b = (after - before) / (before * after)
    c = before / (after * (before + after))
    inner = a * part(0, -2) + b * part(1, -1) + c * part(2, None)
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / wide[0]
        return inner, first, (part(n - 1, n) - part(n - 2, n - 1)) / wide[-1]
    p, q = wide[0], wide[1]
    first = (
        part(0, 1) * (-(2.0 * p + q) / (p * (p + q)))
        + part(1, 2) * ((p + q) / (p * q))
        + part(2, 3) * (-p / (q * (p + q)))
    )
    p, q = wide[-2], wide[-1]
    last = (
        part(n - 3, n - 2) * (q / (p * (p + q)))
        + part(n - 2, n - 1) * (-(q + p) / (p * q))
        + part(n - 1, n) * ((2.0 * q + p) / (q * (p + q)))
    )
    return inner, first, last


@public()
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """`numpy.trapezoid`."""
    value = array(y)
    at = check_axis(axis, value.ndim)
    wide: Any = dx
    if x is not None:
        places = array(x)
        wide = diff(places, axis=-1 if places.ndim == 1 else at)
        if places.ndim == 1:
            wide = m.reshape(wide, (*(1,) * at, wide.size, *(1,) * (value.ndim - at - 1)))
    head = (slice(None),) * at
    heights = value[(*head, slice(1, None))] + value[(*head, slice(None, -1))]
    return red.sum(wide * heights / 2.0, at)


@public()
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """`numpy.ediff1d`."""
    value = m.ravel(array(ary))
    if value.kind.kind == "bool":
        raise TypeError("numpy.ediff1d is not defined for bool: booleans have no difference")
    parts = [diff(value) if value.size else value]
    if to_begin is not None:
        parts.insert(0, _end_values(to_begin, value, "to_begin"))
    if to_end is not None:
        parts.append(_end_values(to_end, value, "to_end"))
    return j.concat(parts) if len(parts) > 1 else parts[0]


def _end_values(given: Any, value: Tensor, name: str) -> Tensor:
    end = array(given)
    if not np.can_cast(end.dtype, value.dtype, "same_kind"):
        raise TypeError(
            f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
        )
    return cast(m.ravel(end), value.kind)


@public()
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """`numpy.unwrap`."""
    value = array(p)
    at = check_axis(axis, value.ndim)
    steps = diff(value, axis=at)
    kind = ufunc(np.multiply, steps, period).kind
    exact = kind.kind != "float"
    half, odd = divmod(period, 2) if exact else (period / 2, 1)
    near: Any = -half
    steps = cast(steps, kind)
    low = e.remainder(steps - near, cast(array(period), kind)) + near
    if not exact or not odd:
        edge = e.logical_and(e.equal(low, near), e.greater(steps, 0))
        low = e.where(edge, cast(array(half), kind), low)
    change = e.where(
        e.less(ufunc(np.absolute, steps), half if discont is None else discont), 0, low - steps
    )
    head = (slice(None),) * at
    value = cast(value, kind)
    begin = value[(*head, slice(0, 1))]
    rest = value[(*head, slice(1, None))] + cumsum(cast(change, kind), at)
    return j.concat([begin, rest], axis=at)


@public()
def sinc(x: Any) -> Tensor:
    """`numpy.sinc`."""
    value = floating(x)
    angle = math.pi * e.where(
        e.equal(value, 0),
        cast(array(1.0e-20), WIDE) if value.kind is WIDE else full((), 1.0e-7, value.kind),
        value,
    )
    return ufunc(np.sin, angle) / angle


@public()
def polyval(p: Any, x: Any) -> Tensor:
    """`numpy.polyval`."""
    factors, value = array(p), array(x)
    found: Any = full(value.shape, 0, value.kind)
    for factor in factors:
        found = found * value + factor
    return fresh(found)


def _polynomials(a1: Any, a2: Any) -> list[Tensor]:
    x, y = (m.ravel(atleast_1d(array(a))) for a in (a1, a2))
    n = max(x.size, y.size)
    return [j.pad(v, ((n - v.size, 0),)) for v in (x, y)]


@public()
def polyadd(a1: Any, a2: Any) -> Tensor:
    """`numpy.polyadd`."""
    x, y = _polynomials(a1, a2)
    return x + y


@public()
def polysub(a1: Any, a2: Any) -> Tensor:
    """`numpy.polysub`."""
    x, y = _polynomials(a1, a2)
    return x - y


@public()
def polyder(p: Any, m: int = 1) -> Tensor:
    """`numpy.polyder`."""
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    value = array(p)
    for _ in range(m):
        n = max(value.size - 1, 0)
        value = value[:-1] * np.arange(n, 0, -1)
    return fresh(value)


@public()
def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """`numpy.polyint`."""
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    value = array(p)
    constants = [0.0] * m if k is None else [k] * m if np.ndim(k) == 0 else list(k)
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for constant in constants[:m]:
        end = m_reshaped(constant)
        value = concatenate([value / np.arange(value.size, 0, -1), end], 0)
    return fresh(value)


def m_reshaped(constant: Any) -> Tensor:
    """Return a number as an array of one element."""
    return m.reshape(array(constant), (1,))
