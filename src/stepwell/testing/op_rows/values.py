"""Draw the arguments of test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape

Array = NDArray[Any]

_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 10.0, -7.0, 100.0, 1e4, -1e4)
_LIMITS = {
    "f64": (5e-324, 2.2250738585072014e-308, 1.7976931348623157e308),
    "f32": (1.401298464324817e-45, 1.1754943508222875e-38, 3.4028234663852886e38),
    "f16": (5.960464477539063e-08, 6.103515625e-05, 65504.0),
    "bf16": (9.183549615799121e-41, 1.1754943508222875e-38, 3.3895313892515355e38),
}


def boundary(dtype: DType) -> Array:
    """Return the values at which ops of a dtype fail: zeros, limits, infinities, NaN."""
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.kind == "float":
        limits = _LIMITS[dtype.name]
        values = (*_FLOATS, *limits, *(-x for x in limits), np.inf, -np.inf, np.nan)
        return dtype.round(np.array(values, np.float64))
    info = np.iinfo(dtype.numpy)
    small = [n for n in (-8, -3, -2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 63, 64) if n >= info.min]
    return np.array([*small, info.min, info.min + 1, info.max - 1, info.max], dtype.numpy)


def anything(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Draw half of the values from the boundary values, half from the whole range."""
    return np.where(
        random.random(shape) < 0.5,
        random.choice(boundary(dtype), shape),
        spread(random, dtype, shape),
    )


def spread(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Draw finite floats of all magnitudes; integers of the whole range."""
    if dtype.kind == "bool":
        return random.random(shape) < 0.5
    if dtype.kind == "float":
        exponents = random.integers(-12, 12, shape)
        return dtype.round(random.uniform(-2, 2, shape) * 2.0**exponents)
    info = np.iinfo(dtype.numpy)
    return random.integers(info.min, info.max, shape, dtype.numpy, endpoint=True)


def small(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Draw values in [-4, 4], or [0, 8] if unsigned: sums of them stay well scaled."""
    if dtype.kind == "bool":
        return random.random(shape) < 0.5
    if dtype.kind == "float":
        return dtype.round(random.uniform(-4, 4, shape))
    low = 0 if dtype.kind == "unsigned" else -4
    return random.integers(low, low + 9, shape).astype(dtype.numpy)


def positive(random: np.random.Generator, dtype: DType, shape: Shape) -> Array:
    """Draw values in [1/4, 4], or [1, 4] for integers."""
    if dtype.kind == "float":
        return dtype.round(2.0 ** random.uniform(-2, 2, shape))
    return random.integers(1, 5, shape).astype(dtype.numpy)
