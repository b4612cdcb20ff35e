"""Conversion of arguments as NumPy's functions do it: to arrays, axes, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend.creation import full_like, linspace
from stepwell.frontend.elementwise import axes_of, check_axis, clip
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import take as taken
from stepwell.frontend.joining import concat as concatenate
from stepwell.frontend.joining import split, stack
from stepwell.frontend.known import NotKnown, content
from stepwell.frontend.linear_algebra import dot
from stepwell.frontend.manipulation import (
    atleast_1d,
    atleast_2d,
    copy,
    in_order,
    permute_dims,
    reshape,
)
from stepwell.frontend.promotion import FLOAT as WIDE
from stepwell.frontend.promotion import as_dtype as dtype_of
from stepwell.frontend.promotion import cast, common, has_traced, is_number, lift
from stepwell.frontend.promotion import same_dtype as unified
from stepwell.frontend.reduction import cumprod, cumsum, diff
from stepwell.frontend.table import stored
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import ufunc, weakened

__all__ = [
    "WIDE",
    "array",
    "atleast_1d",
    "atleast_2d",
    "axes",
    "clip",
    "common",
    "concatenate",
    "copy",
    "cumprod",
    "cumsum",
    "diff",
    "dot",
    "dtype_of",
    "floating",
    "full_like",
    "in_one_row",
    "in_order",
    "known",
    "linspace",
    "split",
    "stored",
    "taken",
    "ufunc",
    "unified",
    "with_kept",
]


def array(x: Any) -> Tensor:
    """Return ``x`` as `numpy.asarray` would; lists may contain traced values."""
    if is_number(x):  # a weak number takes the dtype of arrays
        return weakened(lift(x, WIDE) if isinstance(x, float) else lift(x))
    if not isinstance(x, list | tuple):
        return lift(x)
    if not has_traced(x):
        return lift(np.asarray(x))
    return stack(unified(*(array(v) for v in x)))


def known(x: Any, what: str) -> np.ndarray[Any, Any]:
    """Return ``x`` as a NumPy array; ``what`` is the error for values known at run time only."""
    try:
        return np.asarray(content(x))
    except NotKnown:
        raise TraceError(f"{what}; pass it in static_argnames") from None


def floating(x: Any) -> Tensor:
    """Return ``x`` as floats; integers and booleans become float64."""
    value = array(x)
    return value if value.kind.kind == "float" else cast(value, WIDE)


def axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that ``axis`` names, in ascending order; None stands for all axes."""
    if axis is None:
        return tuple(range(rank))
    found = tuple(check_axis(a, rank) for a in axes_of(axis))
    if len(set(found)) < len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found))


def in_one_row(x: Tensor, axis: Any) -> Tensor:
    """Return ``x`` with the axes that ``axis`` names merged to one, the last."""
    along = axes(axis, x.ndim)
    rest = [a for a in range(x.ndim) if a not in along]
    moved = permute_dims(x, [*rest, *along])
    return reshape(moved, (*(x.shape[a] for a in rest), _product(x.shape[a] for a in along)))


def _product(sizes: Any) -> int:
    found = 1
    for n in sizes:
        found *= n
    return found


def with_kept(x: Tensor, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Tensor:
    """Return ``x``, reduced from an array of ``shape``, with the reduced axes of size 1."""
    if not keepdims:
        return x
    along = axes(axis, len(shape))
    lead = x.shape[: x.ndim - (len(shape) - len(along))]
    return reshape(x, (*lead, *(1 if a in along else n for a, n in enumerate(shape))))
