"""Medians and quantiles, by ranks: `median`, `quantile`, `percentile` and their nan variants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.joining import concat
from stepwell.frontend.manipulation import broadcast_to, expand_dims, permute_dims, reshape
from stepwell.frontend.operands import WIDE, array, in_one_row, stored, ufunc, with_kept
from stepwell.frontend.promotion import INTEGER, cast, full, is_number
from stepwell.frontend.sorting import of_ranks
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


def _row(a: Any, axis: Any) -> tuple[Tensor, tuple[int, ...]]:
    """Return ``a`` with the reduced axes merged to the last one, and its shape."""
    value = array(a)
    return in_one_row(value, axis), value.shape


def _known_ranks(row: Tensor, ranks: list[int]) -> Tensor:
    """Return known ranks, the same for each row."""
    return broadcast_to(array(np.array(ranks, np.int64)), (*row.shape[:-1], len(ranks)))


def _with_nan(row: Tensor, found: Tensor) -> Tensor:
    """Return NaN for rows that contain NaN, else ``found``."""
    nan = r.any(e.isnan(row), -1)
    return e.where(nan, full((), math.nan, found.kind), found)


def _counts(row: Tensor) -> Tensor:
    """Return the number of elements of each row that are not NaN."""
    return r.sum(e.logical_not(e.isnan(row)), -1, keepdims=True)


@public()
def median(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Tensor:
    """`numpy.median`: NaN if any element is NaN."""
    row, shape = _row(a, axis)
    n = row.shape[-1]
    if not n:
        found = full(row.shape[:-1], math.nan, row.kind if row.kind.kind == "float" else WIDE)
    else:
        both = of_ranks(row, _known_ranks(row, sorted({(n - 1) // 2, n // 2})))
        found = _middle(both[..., 0], both[..., -1])
        if row.kind.kind == "float":
            found = _with_nan(row, found)
    return stored(with_kept(found, shape, axis, keepdims), out)


def _middle(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of two, in the dtype of NumPy's mean."""
    if low.kind.kind != "float":
        low, high = cast(low, WIDE), cast(high, WIDE)
    wide = cast(low, WIDE) if low.kind.bytes == 2 else low
    total = e.divide(e.add(wide, cast(high, wide.kind)), full((), 2.0, wide.kind))
    return e.where(e.equal(low, high), low, cast(total, low.kind))


@public()
def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Tensor:
    """`numpy.nanmedian`: NaN if all elements are NaN."""
    value = array(a)
    if value.kind.kind != "float" or not value.size:
        return median(value, axis, out, overwrite_input, keepdims)
    row, shape = _row(value, axis)
    count = _counts(row)
    low = e.clip(e.floor_divide(e.subtract(count, 1), 2), 0, None)
    high = e.clip(e.floor_divide(count, 2), 0, row.shape[-1] - 1)
    both = of_ranks(row, concat([low, high], axis=-1))
    found = _middle(both[..., 0], both[..., 1])
    return stored(with_kept(found, shape, axis, keepdims), out)


_PLACES: dict[str, Any] = {
    "linear": lambda n, q: (n - 1) * q,
    "hazen": lambda n, q: n * q + 0.5 - 1,
    "weibull": lambda n, q: q * (n + 1) - 1,
    "median_unbiased": lambda n, q: n * q + (1 / 3.0 + q * (1 - 2 / 3.0)) - 1,
    "normal_unbiased": lambda n, q: n * q + (3 / 8.0 + q * (1 - 6 / 8.0)) - 1,
    "interpolated_inverted_cdf": lambda n, q: n * q - 1,
    "lower": lambda n, q: ufunc(np.floor, (n - 1) * q),
    "higher": lambda n, q: ufunc(np.ceil, (n - 1) * q),
    "midpoint": lambda n, q: _between((n - 1) * q),
    "nearest": lambda n, q: ufunc(np.rint, (n - 1) * q),
    "inverted_cdf": lambda n, q: ufunc(np.ceil, n * q) - 1,
    "closest_observation": lambda n, q: _odd_place(n * q - 1.5),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
}
"""The position of the quantile q among n sorted numbers, counted from 0, by method."""


def _between(place: Any) -> Any:
    return 0.5 * (ufunc(np.floor, place) + ufunc(np.ceil, place))


def _odd_place(place: Tensor) -> Tensor:
    """Return the next integer above the place; an odd integer is returned itself."""
    before = e.floor(place)
    odd = e.equal(e.remainder(before, 2), 1)
    return e.where(e.logical_and(e.equal(place, before), odd), before, before + 1)


def _share(place: Tensor, before: Tensor, method: str) -> Tensor:
    """Return the weight of the second of the two neighbours of a quantile."""
    past = e.subtract(place, before)
    if method == "averaged_inverted_cdf":
        return cast(e.where(e.greater(past, 0.0), 1.0, 0.5), place.kind)
    return past


def _quantile(
    a: Any, q: Any, axis: Any, method: str, keepdims: bool, percent: bool, skip: bool
) -> Tensor:
    if method not in _PLACES:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(_PLACES)}")
    value = array(a)
    share = _probability(q, value, percent)
    row, shape = _row(value, axis)
    n = row.shape[-1]
    if not n:
        raise IndexError("a quantile of no elements is not known")
    flat = reshape(share, (share.size, *(1,) * (row.ndim - 1), 1))
    count: Any = _number(n, flat)
    if skip and value.kind.kind == "float":
        count = cast(expand_dims(_counts(row), 0), flat.kind)
    place = _PLACES[method](count, flat)
    place = broadcast_to(place, (share.size, *row.shape[:-1], 1))
    last_place = ufunc(np.maximum, count - 1, 0.0)
    low_end = e.less(place, 0)
    place = ufunc(np.minimum, ufunc(np.maximum, place, 0.0), last_place)
    before = e.floor(place)
    if method in ("lower", "higher", "nearest", "inverted_cdf", "closest_observation"):
        (found,) = _at_ranks(row, before)
    else:
        after = ufunc(np.minimum, e.where(low_end, place, before + 1), last_place)
        low, high = _at_ranks(row, before, after)
        found = _between_two(low, high, _share(place, before, method))
    found = found[..., 0]
    if not skip and value.kind.kind == "float":
        found = _with_nan(row, found)
    found = with_kept(found, shape, axis, keepdims)
    return reshape(found, (*share.shape, *found.shape[1:]))


def _at_ranks(row: Tensor, *places: Tensor) -> list[Tensor]:
    """Return the elements at ranks of shape (count, ..., 1) from rows (..., n)."""
    count, rank = places[0].shape[0], row.ndim
    ranks = concat([cast(place, INTEGER) for place in places], axis=0)[..., 0]
    found = of_ranks(row, permute_dims(ranks, [*range(1, rank), 0]))
    turned = expand_dims(permute_dims(found, [rank - 1, *range(rank - 1)]), -1)
    return [turned[k * count : (k + 1) * count] for k in range(len(places))]


def _number(n: int, like: Tensor) -> Tensor:
    return full((), float(n), like.kind)


def _between_two(low: Tensor, high: Tensor, share: Tensor) -> Tensor:
    """Interpolate between two numbers; exact for the shares 0 and 1."""
    apart = high - low
    up, down = low + apart * share, high - apart * (1 - share)
    found = e.where(e.greater_equal(share, 0.5), down, up)
    return e.where(e.equal(low, high), cast(low, found.kind), found)


def _probability(q: Any, value: Tensor, percent: bool) -> Tensor:
    """Return q as floats in 0 .. 1, in NumPy's dtype for it."""
    if not isinstance(q, Tensor):
        plain = np.asarray(q)
        if plain.size and not ((plain >= 0) & (plain <= (100 if percent else 1))).all():
            raise ValueError(
                "Percentiles must be in the range [0, 100]"
                if percent
                else "Quantiles must be in the range [0, 1]"
            )
    if is_number(q) and value.kind.kind == "float":
        number: Any = q / 100 if percent else q
        return full((), number, value.kind)
    share = array(q)
    if share.kind.kind != "float":
        share = cast(share, WIDE)
    return share / 100 if percent else share


@public()
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """`numpy.quantile` by any of its methods, without weights.

    q : numbers in 0 .. 1, traced or not; their axes come first
    raises ValueError : q is out of range, or ``method`` is not one of NumPy's
    """
    _no_weights(weights)
    return stored(_quantile(a, q, axis, method, keepdims, False, False), out)


@public()
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """`numpy.percentile`: `quantile` of ``q / 100``."""
    _no_weights(weights)
    return stored(_quantile(a, q, axis, method, keepdims, True, False), out)


@public()
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """`numpy.nanquantile`: `quantile` of the elements that are not NaN."""
    _no_weights(weights)
    return stored(_quantile(a, q, axis, method, keepdims, False, True), out)


@public()
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Tensor:
    """`numpy.nanpercentile`: `percentile` of the elements that are not NaN."""
    _no_weights(weights)
    return stored(_quantile(a, q, axis, method, keepdims, True, True), out)


def _no_weights(weights: Any) -> None:
    if weights is not None:
        raise TypeError("quantiles with weights= are not known to Stepwell")
