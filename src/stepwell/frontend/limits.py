"""Limits of dtypes, and functions that compare, round, or replace non-finite numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from stepwell.core.dtypes import DTYPES
from stepwell.frontend import elementwise as e
from stepwell.frontend.elementwise import DOUBLE
from stepwell.frontend.promotion import (
    BOOL,
    as_dtype,
    cast,
    fresh,
    full,
    is_number,
    kind_of,
    lift,
    same_dtype,
)
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public()
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether ``|a - b| <= atol + rtol * |b|``; infinities equal themselves.

    Integers are compared as float64. equal_nan : whether NaN equals NaN
    """
    numbers = is_number(a) and is_number(b)
    given = (v if is_number(v) and not numbers else lift(v) for v in (a, b))
    x, y = same_dtype(
        *(v if is_number(v) or v.kind.kind == "float" else cast(v, DOUBLE) for v in given)
    )
    near = e.less_equal(e.abs(e.subtract(x, y)), e.add(atol, e.multiply(rtol, e.abs(y))))
    found = e.logical_or(e.equal(x, y), e.logical_and(near, e.isfinite(y)))
    return e.logical_or(found, e.logical_and(e.isnan(x), e.isnan(y))) if equal_nan else found


@public("round", "around", method=True)
def rounded(a: Any, decimals: int = 0) -> Tensor:
    """Return ``a`` rounded to ``decimals``, ties to even; integers as they are."""
    value = lift(a)
    if value.kind is BOOL and decimals:
        raise TypeError("booleans cannot be rounded to decimals; convert with astype first")
    if value.kind.kind != "float" and decimals >= 0:
        return fresh(cast(value, DTYPES["f16"]) if value.kind is BOOL else value)
    if not decimals:
        return e.round(value)
    if value.kind.kind != "float":
        return cast(cast(rounded(cast(value, DOUBLE), decimals), as_dtype("i64")), value.kind)
    ten = 10.0 ** (decimals if decimals > 0 else -decimals)
    scale, back = (e.multiply, e.divide) if decimals > 0 else (e.divide, e.multiply)
    return back(e.round(scale(value, ten)), ten)


@public()
def nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """Return ``x`` with NaN replaced by 0 and infinities by the dtype's limits, by default."""
    value = lift(x)
    if value.kind.kind != "float":
        return fresh(value)
    ends = finfo(value.kind)
    high = float(ends.max) if posinf is None else posinf
    low = float(ends.min) if neginf is None else neginf
    end = e.where(e.greater(value, 0), full((), high, value.kind), low)
    finite = e.where(e.isinf(value), end, value)
    return e.where(e.isnan(value), full((), nan, value.kind), finite)


@public(anywhere=True)
def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the NumPy dtype that arrays, numbers and dtypes promote to."""
    given = [kind_of(v) if isinstance(v, Tensor) else v for v in arrays_and_dtypes]
    return np.result_type(*(k(0) if k is int or k is float else k for k in given))


@public(anywhere=True)
def finfo(dtype: Any) -> Any:
    """Return NumPy's `finfo` of a floating dtype; of bfloat16, the same names."""
    kind = as_dtype(dtype if isinstance(dtype, type) else getattr(dtype, "dtype", dtype))
    if kind.kind != "float":
        raise ValueError(f"finfo is of floats, got {kind.name}; use iinfo")
    return BF16 if kind.name == "bf16" else np.finfo(kind.numpy)


@public(anywhere=True)
def iinfo(dtype: Any) -> Any:
    """Return NumPy's `iinfo` of an integer dtype."""
    kind = as_dtype(dtype if isinstance(dtype, type) else getattr(dtype, "dtype", dtype))
    if kind.kind not in ("signed", "unsigned"):
        raise ValueError(f"iinfo is of integers, got {kind.name}; use finfo")
    return np.iinfo(kind.numpy)


BF16 = SimpleNamespace(
    bits=16,
    dtype="bfloat16",
    eps=np.float32(2**-7),
    epsneg=np.float32(2**-8),
    iexp=8,
    machep=-7,
    max=np.float32((2 - 2**-7) * 2.0**127),
    maxexp=128,
    min=np.float32(-(2 - 2**-7) * 2.0**127),
    minexp=-126,
    negep=-8,
    nexp=8,
    nmant=7,
    precision=2,
    resolution=np.float32(0.01),
    smallest_normal=np.float32(2.0**-126),
    smallest_subnormal=np.float32(2.0**-133),
    tiny=np.float32(2.0**-126),
)
"""`finfo` of bfloat16, which NumPy lacks."""
