"""Loops over windows that need memory of their own are native: they take no array from the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.diagnostics import Diagnostic, listening

ROWS = np.array([0, 3, 3, 8, 12, 20])


def _windows(rows: Any, at: Any, x: Any, y: Any) -> Any:
    """Scatters that read what they overwrite, reversed windows, running sums."""
    counts = np.zeros(len(y), np.int64)
    for i in range(len(rows) - 1):
        a, b = rows[i], rows[i + 1]
        y[at[a:b]] += x[a:b] * x[i]
        counts[at[a:b]] += 1
        x[a:b] = x[a:b][::-1] * x[a]
        y[a:b] = np.cumsum(x[a:b]) / 8 - y[a:b]
        counts[a:b] = np.cumsum(counts[a:b])
        if a > 0:
            y[a:b] += y[a - 1 : b - 1]
    return counts


def _stored(x: Any) -> Any:
    """Arrays that an iteration makes and then changes, or reads again and again."""
    out = np.zeros(4)
    for i in range(4):
        row = x * (i + 1)
        row[3] = -1.0
        row[i] = row[i + 1] + row[3]
        weights = np.cumsum(row * row)
        for k in range(4):
            out[i] += weights[(i + 5 * k) % 20] * weights[k]
        x[:5] = row[4::-1]
    return out


@pytest.mark.parametrize("function", [_windows, _stored])
def test_they_are_native_and_right(function: Any) -> None:
    draw = np.random.default_rng(4)
    given = [ROWS, draw.integers(-20, 20, 20), draw.random(20), draw.random(20)]
    given = given if function is _windows else [draw.random(20)]
    same = [g.copy() for g in given]
    compiled, heard = sw.jit(function), list[Diagnostic]()
    with listening(heard.append):
        found = compiled(*given)
    np.testing.assert_allclose(found, function(*same), rtol=1e-12)
    for one, other in zip(given, same, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert [d.message for d in heard if "no scalar code" in d.message] == []


def test_no_element_is_written_before_all_indices_are_checked() -> None:
    def add(at: Any, y: Any) -> None:
        for i in range(2):
            y[at[3 * i : 3 * i + 3]] += 1.0

    y, at = np.zeros(4), np.array([0, 1, 0, 2, 9, 3])
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4"):
        sw.jit(add)(at, y)
    assert y.tolist() == [1.0, 1.0, 0.0, 0.0]
