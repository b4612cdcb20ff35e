"""Functions that sort elements, or search in sorted elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import zeros
from stepwell.frontend.indexing import take, take_along_axis
from stepwell.frontend.joining import stack, unstack
from stepwell.frontend.manipulation import check_axis, reshape
from stepwell.frontend.promotion import INTEGER, as_dtype, cast, fresh, full, lift
from stepwell.frontend.table import method, public
from stepwell.frontend.tensor import Tensor

EXCHANGED = 8
"""The most integers along an axis that a sorting network sorts: 8 take 19 minima and maxima, half
the time of counting; 16 take 63, and seconds to compile."""
COMPARED = 128
"""The most elements of a row that `searchsorted` compares all, in vectors: no binary search."""
_KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")


@public()
def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> Tensor:
    """Return ``a`` sorted along ``axis``, in ascending order unless ``descending``.

    The order is NumPy's: NaN is the greatest, -0.0 equals 0.0. The order of zeros and the bits of
    NaN are preserved if ``kind`` or ``stable`` asks for a stable sort.

    axis : None for all elements in one row
    raises AxisError : a has no such axis
    raises ValueError : ``kind`` is not one of NumPy's
    source : the array API's ``sort``, `numpy.sort`
    """
    _one_of(kind, stable)
    value = lift(a)
    if value.kind.kind == "float" and (stable or kind in ("stable", "mergesort")):
        if axis is None:
            value, axis = reshape(value, (value.size,)), 0
        order = _ordered("argsort", value, axis, kind, descending)
        return take_along_axis(value, order, axis=axis) if value.ndim else fresh(value)
    return _ordered("sort", value, axis, kind, descending)


@method("sort")
def _sort(x: Tensor, axis: int = -1, kind: str | None = None, *, stable: Any = None) -> None:
    x[...] = sort(x, axis, kind, stable=stable)


@public(method=True)
def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> Tensor:
    """Return the index along ``axis`` that each element of `sort` comes from, as int64.

    Equal elements keep their order, with ``descending`` too. Arguments as in `sort`.
    """
    _one_of(kind, stable)
    return _ordered("argsort", a, axis, kind, descending)


def _one_of(kind: Any, stable: Any) -> None:
    if kind is not None and stable is not None:
        raise ValueError("`kind` and keyword parameters can't be provided at the same time.")


def _ordered(op: str, x: Any, axis: int | None, kind: str | None, descending: bool) -> Tensor:
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, got {kind!r}")
    value = lift(x)
    if axis is None:
        value, axis = reshape(value, (value.size,)), 0
    if not value.ndim and op == "argsort" and axis in (0, -1):
        return full((1,), 0, INTEGER)  # NumPy accepts a number and returns its place
    at = check_axis(axis, value.ndim)
    if op == "sort" and value.kind.kind != "float" and value.shape[at] <= EXCHANGED:
        return _exchanged(value, at, descending)
    result = INTEGER if op == "argsort" else value.kind
    properties = {"axis": at, "descending": descending}
    return value.graph.emit(op, [value], [(result, value.shape)], (), **properties)[0]


def of_ranks(row: Tensor, ranks: Tensor) -> Tensor:
    """Return the elements along the last axis that `sort` would put at ``ranks``, of i64.

    ranks : has the shape of ``row`` without the last axis
    """
    properties = {"axis": row.ndim - 1}
    result = [(row.kind, ranks.shape)]
    return row.graph.emit(
        "order_statistics", [row, cast(ranks, INTEGER)], result, (), **properties
    )[0]


def _exchanged(value: Tensor, axis: int, descending: bool) -> Tensor:
    """Return sorted integers by a network (odd-even merge sort), with rows as vector lanes."""
    rows = list(unstack(fresh(value), axis=axis))
    if len(rows) < 2:
        return fresh(value)
    first, last = (e.maximum, e.minimum) if descending else (e.minimum, e.maximum)
    for i, k in _exchanges(len(rows)):
        rows[i], rows[k] = first(rows[i], rows[k]), last(rows[i], rows[k])
    return stack(rows, axis=axis)


def _exchanges(n: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs of Batcher's odd-even merge sort of ``n`` elements, in order."""
    for size in (1 << p for p in range((n - 1).bit_length())):
        for step in (size >> k for k in range(size.bit_length())):
            for begin in range(step % size, n - step, 2 * step):
                for i in range(begin, min(begin + step, n - step)):
                    if i // (2 * size) == (i + step) // (2 * size):
                        yield i, i + step


@public(method=True)
def searchsorted(
    a: Any, v: Any, side: Literal["left", "right"] = "left", sorter: Any = None
) -> Tensor:
    """Return how many elements of ``a`` precede each element of ``v``, as int64.

    a : one axis, in ascending order, or sorted by the indices ``sorter``
    v : of any shape; the result has the same
    side : whether the place is before ("left") or after ("right") equal elements
    raises ValueError : ``a`` does not have one axis, or ``side`` is invalid
    source : the array API's ``searchsorted``, `numpy.searchsorted`
    """
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', got {side!r}")
    row, value = lift(a), lift(v)
    if row.ndim != 1:
        raise ValueError(f"a must have one axis, got {row.ndim}")
    if sorter is not None:
        row = take(row, sorter)
    (n,) = row.shape
    if 0 < n <= COMPARED:
        return _count_preceding(row, value, side)
    place = zeros(value.shape, dtype=INTEGER.numpy)
    for step in (1 << k for k in reversed(range(n.bit_length()))):
        behind = e.add(place, step)
        last = take(
            row, e.subtract(behind, 1), mode="clip"
        )  # past the end: clamped to the last element, and not counted
        goes = _before(last, value) if side == "left" else e.logical_not(_before(value, last))
        place = e.where(e.logical_and(e.less_equal(behind, n), goes), behind, place)
    return place


def _count_preceding(row: Tensor, value: Tensor, side: str) -> Tensor:
    """Return how many elements of a short row precede each value: all are compared."""
    wide = reshape(value, (*value.shape, 1))
    behind = _before(row, wide) if side == "left" else e.logical_not(_before(wide, row))
    kind = as_dtype("i32")
    found = value.graph.emit(
        "reduce_sum", [cast(behind, kind)], [(kind, value.shape)], (), axes=(value.ndim,)
    )[0]
    return cast(found, INTEGER)


def _before(x: Tensor, y: Tensor) -> Tensor:
    """Return where x is less than y; NaN is the greatest."""
    less = e.less(x, y)
    if y.kind.kind != "float":
        return less
    number = e.logical_not(e.isnan(x)) if x.kind.kind == "float" else True
    return e.logical_or(less, e.logical_and(e.isnan(y), number))


@public()
def top_k(operand: Any, k: int) -> tuple[Tensor, Tensor]:
    """Return the ``k`` greatest elements along the last axis, descending, and their places.

    operand : (..., n) of numbers or booleans
    returns : (..., k) of its dtype, and (..., k) int32. Equal elements keep their order; NaN is the
        greatest
    raises ValueError : operand has no axis, or fewer than k elements along its last
    source : `jax.lax.top_k`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(lambda x: sw.lax.top_k(x, 2))(np.array([3, 1, 2]))
    (array([3, 2]), array([0, 2], dtype=int32))
    """
    value = lift(operand)
    at = check_axis(-1, value.ndim)
    if not 0 <= k <= value.shape[at]:
        raise ValueError(f"k must lie in 0..{value.shape[at]}, got {k}")
    properties = {"axis": at, "descending": True}
    (order,) = value.graph.emit(
        "argsort", [value], [(as_dtype("i32"), value.shape)], (), **properties
    )
    places = order[..., :k]
    return take_along_axis(value, places), places
