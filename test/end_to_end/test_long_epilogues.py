"""Many operations behind a product: they run in a loop over the rows of a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

STEPS = 12


def chain(a: Any, b: Any, m: Any, v: Any) -> Any:
    """Two results of forty operations on each element of a product."""
    g = a @ b
    for k in range(STEPS):
        m = m * 0.9 + g * (0.1 + k)
        v = np.maximum(v, m) - g / (k + 2.0)
    return m, v


@pytest.mark.parametrize("rows, depth, columns", [(13, 7, 33), (130, 64, 96), (70, 700, 257)])
def test_long_epilogue(rows: int, depth: int, columns: int) -> None:
    """Tiles that are whole and not, with sums in one part and in several."""
    random = np.random.default_rng(rows)
    shapes = [(rows, depth), (depth, columns), (rows, columns), (rows, columns)]
    given = [random.standard_normal(s).astype(np.float32) for s in shapes]
    got = sw.jit(chain)(*given)
    wanted = chain(*(x.astype(np.float64) for x in given))
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=1e-3 * np.abs(w).max())
