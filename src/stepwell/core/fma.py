"""Multiply and add with one rounding, which NumPy lacks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fma(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """Return ``a * b + c`` of three f32 or f64 arrays, broadcast to one shape, rounded once.

    >>> a = np.array([1 + 2**-12], np.float32)
    >>> fma(a, a, -a) == np.float32(2**-12 + 2**-24)
    array([ True])
    >>> fma(np.float64([2.0]), np.float64([3.0, 4.0]), np.float64([1.0]))
    array([7., 9.])
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        if a.dtype != np.float64:
            return _by_f64(*(x.astype(np.float64) for x in (a, b, c))).astype(a.dtype)
        return _by_fractions(a, b, c)


def _by_f64(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """Return the f64 neighbour of the exact result that is odd: rounding it to f32 is correct."""
    product = a * b  # exact
    total = product + c
    left = total - product
    rest = (product - (total - left)) + (c - left)
    inexact = np.isfinite(total) & (rest != 0) & (total.view(np.int64) % 2 == 0)
    return np.where(inexact, np.nextafter(total, np.copysign(np.inf, rest)), total)


def _by_fractions(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    result = np.array(a * b + c)  # correct if an operand is not finite
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    for i in np.ndindex(result.shape):
        if finite[i]:
            value = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
            if value:  # otherwise the zero has the correct sign already
                result[i] = _nearest(value)
    return result


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
