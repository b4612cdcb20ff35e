"""Forms of NumPy that no function call of traced values shows: ``np.r_``, windows, lists."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from same_as_numpy import same_as_numpy

import stepwell as sw

X = np.arange(12.0).reshape(3, 4)
V = np.array([3.0, 1.0, 2.0, 1.0])
LABELS = np.array([0, 2, 2, 1])


def joined(x: Any, v: Any, f: Any, n: Any) -> Any:
    rows = np.r_[0.0, v, 1:3, n, [v[0], 2.0], 0:1:3j], np.r_[x, x], np.r_[f, 2.5]
    lists = np.concatenate([[v[0], 1.0], [v[1]], f]), np.vstack([[v[0], n], [1, 2]])
    wide = np.ones(2, np.result_type(f, x.dtype)), np.stack([(v[0], 1.0), v[:2]]), lists
    return rows, wide, np.c_[v, [1, 2, 3, 4], 0:4], np.c_[np.ones(3), x, x], np.c_[v[0], 1]


def windows(x: Any, v: Any) -> Any:
    view = np.lib.stride_tricks.sliding_window_view
    return view(v, 2).max(-1), view(x, (2, 3)), view(x, 3, 1), view(x, (2, 2), (1, 1))


def counts(labels: Any, small: Any, flags: Any, v: Any) -> Any:
    many = np.bincount(small, minlength=256)[:5], np.bincount(flags, minlength=2)
    return many, np.bincount(labels, minlength=3), np.bincount(labels, v, 4), labels


def lists(x: Any, v: Any, n: Any) -> Any:
    total = 0.0
    for value in v.tolist():
        total += value
    ordered = [v[2], v[0], 7.5]
    ordered.sort(reverse=True)
    found = [v[0], v[1], v[3]].index(v[3]), [n, 3, 5].index(3), (v[1], v[3]).count(1.0)
    if v[1] < 2:
        own = sorted([2, 1])  # made here, so that it may change here
        own.append(int(n))
        total += own[0] + own[2]
    place = [0.5, v[1], v[2]].index(2.0) if v[0] > 2 else [n].count(4)
    largest = sorted(v)[-1], sorted([n, 3, n + 1])[0], sorted([v[2], v[1]]), x.tolist()[1][2]
    return total, np.float32(1) * np.array(v.tolist()), ordered, found, place, largest


FLAGS = np.array([True, False, True])
PROGRAMS: list[tuple[Any, ...]] = [
    (joined, X, V, V.astype(np.float32), 3),
    *((windows, X, V), (counts, LABELS, np.array([1, 1], np.uint8), FLAGS, V), (lists, X, V, 4)),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_programs(program: tuple[Any, ...]) -> None:
    function, *arguments = program
    same_as_numpy(function, *arguments)


def test_bincount_checks_numbers_when_it_runs() -> None:
    count = sw.jit(lambda labels: np.bincount(labels, minlength=3))
    with pytest.raises(ValueError, match="minlength has no place for 3; give a larger one"):
        count(np.array([0, 3]))
    with pytest.raises(ValueError, match="'list' argument must have no negative elements"):
        count(np.array([0, -1]))
    with pytest.raises(ValueError, match="not in list"):
        sw.jit(lambda v: [v[0], v[1]].index(v[2]))(V)


def test_a_key_is_computed_once() -> None:
    seen: list[int] = []

    def key(n: int) -> int:
        seen.append(n)
        return -n % 3

    given = [3, 1, 2, 6, 4]
    sw.jit(lambda v: v * sorted(given, key=key, reverse=True)[0]).trace(V)
    assert seen == given
    found = sw.jit(lambda v: v[: sorted(given, key=key, reverse=True)[0]].sum())(V)
    assert found == V[: sorted(given, key=key, reverse=True)[0]].sum()


def removes(v: Any) -> Any:
    ordered = [v[0], v[1]]
    ordered.remove(v[1])
    return ordered


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: np.bincount(v.astype(int)), "use numpy.bincount"),
        (lambda v: sorted([1, 2], key=lambda k: v[k]), "sorted with a key of traced values"),
        (lambda v: sorted([v[0], "a"]), "sorted compares numbers of one type"),
        (lambda v: np.ones((9, 9, 9)) @ v[:1].repeat(9) + np.tile(v, 99).tolist(), "396 traced"),
        (lambda v: np.r_["0,2", v, v], "np.r_ and np.c_ of traced values take no text"),
        (lambda v: np.r_[0 : v[0].astype(int)], "a range with traced bounds has a size"),
        (lambda v: np.lib.stride_tricks.sliding_window_view(v, 2, writeable=True), "assign to"),
        (removes, "which element of a list is removed"),
    ],
)
def test_other_forms_are_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(sw.TraceError, match=message):
        sw.jit(function).trace(V)


@pytest.mark.parametrize("size", [5, (1, 1, 1), (-1, 1), (2, 2, 2)])
def test_windows_that_do_not_fit_are_refused_as_by_numpy(size: Any) -> None:
    view = np.lib.stride_tricks.sliding_window_view
    for of in (lambda x: view(x, size), sw.jit(lambda x: view(x, size))):
        with pytest.raises(ValueError, match="window"):
            of(X)
