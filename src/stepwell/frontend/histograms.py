"""Counting in bins: `bincount`, `histogram`, `digitize`, with NumPy's signatures and dtypes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reducing as red
from stepwell.frontend.checks import check
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import take
from stepwell.frontend.manipulation import flip, ravel
from stepwell.frontend.operands import WIDE, array, common, diff, linspace, ufunc, unified
from stepwell.frontend.promotion import BOOL, INTEGER, cast, full, lift
from stepwell.frontend.sorting import searchsorted
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public()
def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None
) -> Tensor:
    """Return how often each of 0, 1, ... ``length - 1`` occurs in ``x``, as int64.

    weights : of the shape of x: the summands instead of 1, as float64
    minlength : the size of the result, if no element of x is beyond it. If that is not known while
        tracing, the program checks it when it runs
    length : the size of the result; larger numbers are not counted. NumPy's default depends on the
        maximum of x, so a traced x needs one of the two
    raises TraceError : x is traced, and neither is given
    raises ValueError : when the program runs: x has a negative number, or one that ``minlength``
        has no place for
    source : `numpy.bincount`, `jax.numpy.bincount`
    """
    if length is None and not isinstance(x, Tensor):
        length = int(np.asarray(x).max(initial=-1)) + 1
    if length is None and not minlength:
        raise TraceError(
            "numpy.bincount of a traced value has a result whose length only the run knows; "
            "use numpy.bincount(x, minlength=n) if all numbers are below n, "
            "stepwell.numpy.bincount(x, length=n), "
            "or numpy.add.at(counts, x, 1) with counts = numpy.zeros(n, int)"
        )
    value = array(x)
    if value.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    if value.kind.kind == "float":
        raise TypeError("Cannot cast array data from floats to int64 according to the rule 'safe'")
    if length is None:
        length = operator.index(minlength)
        _check_within(value, length)
    if weights is None:
        return counted(value, None, max(length, minlength))
    weight = cast(array(weights), WIDE)
    if weight.shape != value.shape:
        raise ValueError("The weights and list don't have the same length.")
    return counted(value, weight, max(length, minlength))


def _check_within(value: Tensor, length: int) -> None:
    """Make the program raise if an element is negative, or ``length`` or more."""
    low, high = value.graph.ranges.of(value) or (0, 1)  # booleans have no range
    if value.size and low < 0:
        least = red.min(value)
        words = "'list' argument must have no negative elements"
        check(e.greater_equal(least, 0), "ValueError", [words])
    if value.size and high >= length:
        words = "numpy.bincount: minlength has no place for ", "; give a larger one"
        most = red.max(cast(value, INTEGER))
        check(e.less(most, length), "ValueError", words, [most])


def counted(places: Tensor, weight: Tensor | None, length: int) -> Tensor:
    """Return sums of weights, or counts, by position; positions out of range are dropped."""
    kind = INTEGER if weight is None else weight.kind
    updates = full(places.shape, 1, INTEGER) if weight is None else weight
    where = cast(places, INTEGER)
    if not length or not places.size:
        return full((length,), 0, kind)
    operands = [full((length,), 0, kind), updates, where]
    trace = places.graph
    return trace.emit("scatter_add", operands, [(kind, (length,))], (), axes=(0,))[0]


def _outer_edges(a: Tensor, range: Any) -> tuple[Any, Any]:
    """Return the first and the last edge."""
    if range is None:
        if not a.size:
            return 0, 1
        low, high = red.min(a), red.max(a)
        even = e.equal(low, high)
        if low.kind.kind != "float":
            low, high = cast(low, WIDE), cast(high, WIDE)
        return e.where(even, low - 0.5, low), e.where(even, high + 0.5, high)
    low, high = range
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        return low, high
    if low > high:
        raise ValueError("max must be larger than min in range parameter.")
    if not np.isfinite([low, high]).all():
        raise ValueError(f"supplied range of [{low}, {high}] is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _edges(a: Any, bins: Any, range: Any) -> tuple[Tensor, int | None, Any]:
    """Return the edges, the number of bins if their widths are equal, and the outer edges."""
    value = ravel(array(a))
    if isinstance(bins, str):
        raise TraceError(
            f"bins={bins!r} has a number of bins that only the run knows; give the number"
        )
    if np.ndim(bins) == 0 and not isinstance(bins, Tensor | list | tuple):
        try:
            n = operator.index(bins)
        except TypeError:
            raise TypeError("`bins` must be an integer, a string, or an array") from None
        if n < 1:
            raise ValueError("`bins` must be positive, when an integer")
        low, high = _outer_edges(value, range)
        kind = common(low, high, value)
        kind = kind if kind.kind == "float" else WIDE
        ends = [lift(v, kind) if not isinstance(v, Tensor) else cast(v, kind) for v in (low, high)]
        return linspace(ends[0], ends[1], n + 1), n, ends
    edges = array(bins)
    if edges.ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    if not isinstance(bins, Tensor) and not _increases(bins):
        raise ValueError("`bins` must increase monotonically, when an array")
    return edges, None, None


def _increases(bins: Any) -> bool:
    plain: Any = np.asarray(bins)
    return bool((plain[1:] >= plain[:-1]).all())


def edges_of(a: Any, bins: Any, range: Any) -> Tensor:
    """Return the edges of bins, given their number or the edges."""
    return _edges(a, bins, range)[0]


@public()
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """`numpy.histogram_bin_edges`, with a number of bins or their edges."""
    return _edges(a, bins, range)[0]


@public()
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """`numpy.histogram`, with a number of bins or their edges."""
    shaped = array(a)
    weight = None if weights is None else array(weights)
    if weight is not None and weight.shape != shaped.shape:
        raise ValueError("weights should have the same shape as a.")
    value = ravel(shaped)
    edges, n, ends = _edges(value, bins, range)
    if n is None:
        place = searchsorted(*_together(edges, value), side="right") - 1
        bins_n = edges.shape[0] - 1
        last = e.equal(*_together(value, edges[-1]))
        place = e.where(last, bins_n - 1, place)
    else:
        bins_n = n
        place = _equal_bin(value, edges, n, *ends)
    given = None if weight is None else ravel(weight)
    if given is not None and given.kind is BOOL:  # whether any weight is true
        counts = e.not_equal(counted(place, cast(given, INTEGER), max(bins_n, 0)), 0)
    else:
        counts = counted(place, given, max(bins_n, 0))
    if not density:
        return counts, edges
    widths = cast(diff(edges), WIDE)
    return counts / widths / red.sum(counts), edges


def _together(x: Tensor, y: Tensor) -> list[Tensor]:
    return unified(x, y)


def _equal_bin(value: Tensor, edges: Tensor, n: int, first: Tensor, last: Tensor) -> Tensor:
    """Return each number's index among n equal bins, or -1: by division and exact correction."""
    number = value if value.kind.kind == "float" else cast(value, WIDE)
    number, first, last = unified(number, first, last)
    inside = e.logical_and(e.greater_equal(number, first), e.less_equal(number, last))
    quotient = (number - first) / (last - first) * n
    quotient = e.where(inside, quotient, full((), 0, quotient.kind))
    place = cast(quotient, INTEGER)
    place = ufunc(np.minimum, place, n - 1)
    below = e.less(number, take(edges, place, mode="clip"))
    place = e.where(below, place - 1, place)
    above = e.logical_and(
        e.greater_equal(number, take(edges, place + 1, mode="clip")), e.not_equal(place, n - 1)
    )
    place = e.where(above, place + 1, place)
    return e.where(inside, place, -1)


@public()
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """`numpy.digitize`; traced bins are assumed to be sorted, increasing or decreasing."""
    value, edges = array(x), array(bins)
    if edges.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    side = "left" if right else "right"
    n = edges.shape[0]
    if not isinstance(bins, Tensor):
        if _increases(bins):
            return searchsorted(*_together(edges, value), side=side)
        if not _increases(np.asarray(bins)[::-1]):
            raise ValueError("bins must be monotonically increasing or decreasing")
        return n - searchsorted(*_together(flip(edges), value), side=side)
    if not n:
        return searchsorted(*_together(edges, value), side=side)
    falls = e.greater(edges[0], edges[-1])
    row, value = _together(e.where(falls, flip(edges), edges), value)
    place = searchsorted(row, value, side=side)
    return e.where(falls, n - place, place)
