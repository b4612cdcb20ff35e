"""Elements chosen by a condition that only the run knows: their places, their statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw


def _chosen(x: Any, t: Any) -> Any:
    i, out = np.where(x > t)[0], np.zeros(9)
    values = x[i]
    out[: len(i)] = np.sort(values)
    total = 0.0
    for k in np.flatnonzero(x > t):
        total += x[k] * k
    x[i] -= 1.0
    last = i[-1] if i.size > 0 else -1
    return out, total, last, values.sum(), np.median(values), values.std(), np.diff(values).sum()


def _chosen_rows(a: Any, t: Any) -> Any:
    rows = a[a[:, 0] > t]
    i, j = np.nonzero(a > t)
    centred = rows - rows.mean(axis=0)
    a[np.where(a[:, 1] > t)[0], 0] = 5.0
    return (
        rows[:, 1].sum(),
        rows.var(axis=0),
        rows.T @ rows,
        (rows @ np.ones(3)).sum(),
        rows.size,
        (centred**2).sum(axis=0),
        a[i, j].sum(),
        np.argwhere(a > t).sum(axis=0),
        np.compress(a[:, 0] > t, a, axis=0).sum(axis=0),
        np.take(a, np.flatnonzero(a > t)).sum(),
    )


@pytest.mark.parametrize("function, shape", [(_chosen, 9), (_chosen_rows, (6, 3))])
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_places_of_a_condition_are_indices(function: Any, shape: Any) -> None:
    compiled = sw.jit(function)
    for t in (0.4, -1.0, 2.0):  # some elements, all, none
        given = np.random.default_rng(3).random(shape)
        same = given.copy()
        for found, wanted in zip(compiled(given, t), function(same, t), strict=True):
            for one, other in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
        np.testing.assert_allclose(given, same)


def test_a_choice_without_elements_has_no_last_one() -> None:
    with pytest.raises(IndexError, match="index -1 is out of bounds for axis 0 with size 0"):
        sw.jit(lambda x: x[x > 9][-1])(np.zeros(3))


def _longest(x: Any) -> Any:
    """The longest increasing subsequence, by slices and by elements."""
    rows, best, i = np.ones(len(x), np.int64), np.ones(len(x), np.int64), 0
    for i in range(1, len(x)):
        rows[i] = 1 + np.max(np.where(x[:i] < x[i], np.clip(rows[:i], 0, 99), 0))
        for j in range(i):
            if x[j] < x[i] and best[j] >= best[i]:
                best[i] = best[j] + 1
    return rows, best, x[:i].var(), np.count_nonzero(x[:i] > 0.5)


def test_slices_are_chosen_from_and_measured() -> None:
    given = np.random.default_rng(5).random(20)
    for found, wanted in zip(sw.jit(_longest)(given), _longest(given), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_a_truth_of_numpy_stands_beside_a_traced_one() -> None:
    both = sw.jit(lambda x: (x > 0 and np.bool_(True), x > 0 or np.bool_(False)))
    assert [bool(v) for v in both(3.0)] == [True, True]


def _segments(ends: Any, x: Any, near: Any, rows: Any) -> Any:
    """Largest elements, softmax and means of rows of segments; an oscillator of two numbers."""
    means = np.zeros((len(ends) - 1, 3))
    at, out, y = np.zeros(len(ends) - 1, np.int64), np.zeros_like(x), np.array([1.0, 0.0])
    for i in range(len(ends) - 1):
        a, b = ends[i], ends[i + 1]
        if b - a and (i or x[a] > 0):
            at[i] = a + np.argmax(x[a:b])
            e = np.exp(x[a:b] - x[a:b].max())
            out[a:b] = e / e.sum()
            means[i] = rows[near[a:b]].mean(axis=0) + x[a:b] @ rows[near[a:b]]
            y = y + 0.1 * np.array([y[1], -y[0]])
    return at, out, y, means


def test_segments_of_an_array() -> None:
    x = np.random.default_rng(6).normal(size=40)
    x[25] = np.nan
    near, rows = np.arange(40) % 7, np.random.default_rng(7).random((7, 3))
    given = np.array([0, 3, 3, 20, 28, 40]), x, near, rows
    for found, wanted in zip(sw.jit(_segments)(*given), _segments(*given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def _of_unknown_length(x: Any, t: Any) -> Any:
    total, best = 0.0, 0
    for i, j in zip(*np.nonzero(x > t), strict=True):
        total += x[i, j] * (i + 2 * j)
    for k, v in enumerate(x[x > t]):
        total += k * v
    flat = np.floor(x.ravel() * 4)
    values, first, counts = np.unique(flat, return_index=True, return_counts=True)
    rest = np.delete(x[0], np.where(x[0] > t)[0])
    tails, n = np.zeros(12), 0
    for v in x.ravel():  # the longest increasing subsequence
        k = np.searchsorted(tails[:n], v)
        tails[k] = v
        if k == n:
            n += 1
    best = values[np.argmax(counts)]
    doubled = np.fromiter((v * 2 for v in x[0]), dtype=float)
    return total, best, first.sum(), counts.max(), len(values), rest.sum(), n, doubled


def test_results_of_unknown_length_are_walked_and_measured() -> None:
    compiled = sw.jit(_of_unknown_length)
    x = np.random.default_rng(5).random((3, 4))
    for t in (0.5, 2.0):
        for found, wanted in zip(compiled(x, t), _of_unknown_length(x, t), strict=True):
            np.testing.assert_allclose(found, wanted)


def test_functions_of_python_are_pointed_to() -> None:
    with pytest.raises(sw.TraceError, match=r"made by numpy.frompyfunc.*write numpy.vectorize"):
        sw.jit(lambda x: np.frompyfunc(lambda v: v + 1, 1, 1)(x))(np.zeros(3))
