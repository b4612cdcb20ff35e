"""Set functions and positions of elements; results of data-dependent size need ``size=``."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.compressed import at_front, beside, chosen_places, packed, unraveled
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import take
from stepwell.frontend.joining import concat, stack
from stepwell.frontend.manipulation import expand_dims, ravel, reshape
from stepwell.frontend.operands import array, unified
from stepwell.frontend.promotion import BOOL, INTEGER, cast, full
from stepwell.frontend.sorting import argsort, searchsorted, sort
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor

MAX_COMPARED = 128
"""The most elements that are compared pairwise, which costs less than sorting them."""


class Unique(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def _check_size(name: str, size: int | None) -> int:
    if size is None:
        raise TraceError(
            f"numpy.{name} of a traced value has a result whose shape only the run knows; "
            f"say how long it may become: stepwell.numpy.{name}(x, size=n)"
        )
    n = operator.index(size)
    if n < 0:
        raise ValueError(f"size must be a number of elements, got {n}")
    return n


@public(method=True)
def nonzero(a: Any, *, size: int | None = None, fill_value: Any = 0) -> tuple[Any, ...]:
    """Return the indices of the nonzero elements, one array for each axis, as int64.

    size : the length of the arrays: excess elements are dropped, ``fill_value`` is the padding.
        Without it, how many there are is known at run time only: they are indices, and may be
        computed with as a slice ``x[:n]`` may, but a traced function cannot return them
    source : `numpy.nonzero`, `jax.numpy.nonzero`
    """
    return _places(array(a), "nonzero", size, fill_value)


def _places(value: Tensor, name: str, size: int | None, fill_value: Any) -> tuple[Any, ...]:
    if not value.ndim:
        raise ValueError(f"Calling {name} on 0d arrays is not allowed.")
    truths = e.logical_not(e.logical_not(value))
    if size is None:
        return chosen_places(truths)
    flat = packed(ravel(truths), _check_size(name, size))
    missing = e.less(flat, 0)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * value.ndim
    pairs = zip(unraveled(flat, value.shape), fills, strict=True)
    return tuple(e.where(missing, cast(array(fill), INTEGER), place) for place, fill in pairs)


@public()
def argwhere(a: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """Return the indices of the nonzero elements, one row for each; see `nonzero`."""
    places = _places(array(a), "argwhere", size, fill_value)
    return beside(places) if size is None else stack(places, axis=1)


@public()
def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """Return the flat indices of the nonzero elements; see `nonzero`."""
    return _places(ravel(array(a)), "flatnonzero", size, fill_value)[0]


@public()
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Tensor:
    """`numpy.isin`."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    value, others = unified(array(element), array(test_elements))
    others = ravel(others)
    if not others.size:
        found = full(value.shape, False, BOOL)
    elif others.size <= MAX_COMPARED:
        found = r.any(e.equal(expand_dims(value, -1), others), axis=-1)
    else:
        row = sort(others)
        place = searchsorted(row, value)
        found = e.equal(take(row, e.clip(place, 0, others.size - 1)), value)
    return e.logical_not(found) if invert else found


class _Groups(NamedTuple):
    """Sorted elements, and which of them differ from the preceding one."""

    row: Tensor
    order: Tensor
    first: Tensor


def _grouped(x: Any, equal_nan: bool) -> _Groups:
    flat = ravel(array(x))
    order = argsort(flat)
    row = take(flat, order)
    if flat.size < 2:
        return _Groups(row, order, full((flat.size,), True, BOOL))
    other = e.not_equal(row[1:], row[:-1])
    if equal_nan and row.kind.kind == "float":
        other = e.logical_and(other, e.logical_not(e.isnan(row[:-1])))
    return _Groups(row, order, concat([full((1,), True, BOOL), other]))


def _selected(row: Tensor, mask: Tensor, size: int, fill_value: Any) -> tuple[Tensor, Tensor]:
    """Return the selected elements of a row, and their places in it."""
    places = packed(mask, size)
    if not row.size:
        fill = 0 if fill_value is None else fill_value
        return full((size,), 0, row.kind) + cast(array(fill), row.kind), places
    values = take(row, e.clip(places, 0, row.size - 1))
    fill = values[0] if fill_value is None and size else cast(array(fill_value or 0), row.kind)
    return e.where(e.less(places, 0), fill, values), places


@public()
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Return the distinct elements, in ascending order.

    size : the length of the result: the largest elements are dropped, or ``fill_value`` is the
        padding (default: the least element). Padding has the index of the least element and the
        count 0. Without it, the length is known at run time only, as that of `nonzero`
    source : `numpy.unique`, `jax.numpy.unique`
    """
    n = _check_size("unique", size) if size is not None else array(ar).size
    if axis is not None:
        raise TraceError("unique of rows (axis=) is not known to Stepwell")
    groups = _grouped(ar, equal_nan)
    values, places = _selected(groups.row, groups.first, n, fill_value)
    count = cast(r.sum(groups.first), INTEGER)

    def sized(value: Tensor) -> Any:
        return value if size is not None else at_front(value, count)

    found: list[Any] = [sized(values)]
    if return_index:
        found.append(sized(take(groups.order, places, mode="clip") if groups.row.size else places))
    if return_inverse:
        found.append(_inverse(groups, array(ar).shape))
    if return_counts:
        found.append(sized(_counts(groups, n)))
    return found[0] if len(found) == 1 else tuple(found)


def _group_numbers(groups: _Groups) -> Tensor:
    return r.cumulative_sum(cast(groups.first, INTEGER), axis=0) - 1


def _inverse(groups: _Groups, shape: tuple[int, ...]) -> Tensor:
    """Return for each element the number of its unique element."""
    if not groups.row.size:
        return full(shape, 0, INTEGER)
    empty = full(groups.order.shape, 0, INTEGER)
    operands = [empty, _group_numbers(groups), groups.order]
    trace = empty.graph
    (back,) = trace.emit("scatter", operands, [(INTEGER, empty.shape)], (), axes=(0,))
    return reshape(back, shape)


def _counts(groups: _Groups, size: int) -> Tensor:
    zero = full((size,), 0, INTEGER)
    if not groups.row.size or not size:
        return zero
    operands = [zero, full(groups.row.shape, 1, INTEGER), _group_numbers(groups)]
    return zero.graph.emit("scatter_add", operands, [(INTEGER, (size,))], (), axes=(0,))[0]


@public()
def unique_values(x: Any, *, size: int | None = None, fill_value: Any = None) -> Tensor:
    """Return the distinct elements, in ascending order; each NaN is distinct. See `unique`."""
    _check_size("unique_values", size)
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


@public()
def unique_counts(x: Any, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """Return the distinct elements, and how often each occurs in ``x``. See `unique`."""
    _check_size("unique_counts", size)
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCounts(*found)


@public()
def unique_inverse(x: Any, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """Return the distinct elements, and for each of ``x`` its index in them. See `unique`."""
    _check_size("unique_inverse", size)
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverse(*found)


@public()
def unique_all(x: Any, *, size: int | None = None, fill_value: Any = None) -> Unique:
    """Return the distinct elements, first places, inverse and counts. See `unique`."""
    _check_size("unique_all", size)
    return Unique(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


@public()
def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Tensor:
    """Return the elements in either of two arrays, ascending. ``size`` as in `unique`."""
    _check_size("union1d", size)
    both = concat(unified(ravel(array(ar1)), ravel(array(ar2))))
    return unique(both, size=size, fill_value=fill_value)


def _chosen(ar1: Any, ar2: Any, size: int, fill_value: Any, invert: bool) -> Tensor:
    x, y = unified(ravel(array(ar1)), ravel(array(ar2)))
    groups = _grouped(x, equal_nan=True)
    mask = e.logical_and(groups.first, isin(groups.row, y, invert=invert))
    return _selected(groups.row, mask, size, 0 if fill_value is None else fill_value)[0]


@public()
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Tensor:
    """Return the elements in both arrays, ascending. ``size`` as in `unique`; default fill 0."""
    return _chosen(ar1, ar2, _check_size("intersect1d", size), fill_value, invert=False)


@public()
def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Tensor:
    """Return the elements of the first array only, ascending; ``size`` as in `unique`, fill 0."""
    return _chosen(ar1, ar2, _check_size("setdiff1d", size), fill_value, invert=True)


@public()
def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Tensor:
    """Return the elements in exactly one array, ascending; ``size`` as in `unique`, fill 0."""
    n = _check_size("setxor1d", size)
    x, y = unified(ravel(array(ar1)), ravel(array(ar2)))
    groups = _grouped(concat([x, y]), equal_nan=True)
    both = e.logical_and(isin(groups.row, x), isin(groups.row, y))
    mask = e.logical_and(groups.first, e.logical_not(both))
    return _selected(groups.row, mask, n, 0 if fill_value is None else fill_value)[0]
