"""Averages, covariances and counts in bins, with NumPy's signatures and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reducing as red
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.joining import concat
from stepwell.frontend.manipulation import broadcast_to, permute_dims, reshape, squeeze
from stepwell.frontend.matrices import diagonal
from stepwell.frontend.operands import (
    WIDE,
    array,
    atleast_2d,
    axes,
    common,
    dot,
    dtype_of,
    full_like,
    unified,
)
from stepwell.frontend.promotion import cast, fresh, full
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public()
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """`numpy.average`; NaN or infinite if the weights add up to 0."""
    value = array(a)
    if weights is None:
        found = red.mean(value, axis, keepdims=keepdims)
        count = value.size / max(found.size, 1)
        return (found, full_like(found, count)) if returned else found
    weight = array(weights)
    kind = common(value, weight)
    kind = kind if value.kind.kind == "float" else common(value, weight, np.float64())
    if weight.shape != value.shape:
        weight = _along(weight, value, axis)
    value, weight = cast(value, kind), cast(weight, kind)
    total = red.sum(weight, axis, keepdims=keepdims)
    found = red.sum(value * weight, axis, keepdims=keepdims) / total
    return (found, fresh(broadcast_to(total, found.shape))) if returned else found


def _along(weight: Tensor, value: Tensor, axis: Any) -> Tensor:
    """Return weights shaped for the averaged axes, with size 1 along the other axes."""
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    places = [check_axis(i, value.ndim) for i in given]
    if weight.shape != tuple(value.shape[i] for i in places):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    order = permute_dims(weight, sorted(range(len(places)), key=places.__getitem__))
    sizes = [n if i in axes(axis, value.ndim) else 1 for i, n in enumerate(value.shape)]
    return broadcast_to(reshape(order, tuple(sizes)), value.shape)


@public()
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """`numpy.cov`."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    rows = _variables(m, rowvar, "m")
    if y is not None:
        rows = concat(unified(rows, _variables(y, rowvar, "y")), axis=0)
    kind = common(rows, np.float64()) if dtype is None else dtype_of(dtype)
    rows = cast(rows, kind)
    weight = _weights(fweights, aweights, rows.shape[1])
    ddof = ddof if ddof is not None else int(not bias)
    centre, over = average(rows, axis=1, weights=weight, returned=True)
    factor: Any = rows.shape[1] - ddof
    if weight is not None:
        factor = over[0] - ddof
        if aweights is not None and ddof:
            factor = over[0] - ddof * red.sum(weight * array(aweights)) / over[0]
    rows = rows - centre[:, None]
    weighted = rows if weight is None else rows * weight
    products = dot(rows, permute_dims(weighted, (1, 0)))
    if isinstance(factor, Tensor):
        factor = cast(e.maximum(factor, 0.0), products.kind)
    else:
        factor = full((), max(float(factor), 0.0), products.kind)
    return squeeze(products * e.divide(1.0, factor))


def _variables(m: Any, rowvar: bool, name: str) -> Tensor:
    value = array(m)
    if value.ndim > 2:
        raise ValueError(f"{name} has more than 2 dimensions")
    rows = atleast_2d(value)
    return rows if rowvar or value.ndim < 2 else permute_dims(rows, (1, 0))


def _weights(fweights: Any, aweights: Any, n: int) -> Tensor | None:
    """Return the product of both weights, as float64."""
    found: Tensor | None = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        weight = array(given)
        if weight.shape != (n,):
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        weight = cast(weight, WIDE)
        found = weight if found is None else found * weight
    return found


@public()
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    """`numpy.corrcoef`."""
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return found / found
    spread = e.sqrt(diagonal(found))
    return e.clip(found / spread[:, None] / spread[None, :], -1, 1)
