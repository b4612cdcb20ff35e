"""Loops over stencils whose edges stay as they are, of any rank and size, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(3)
SHAPES = [(3,), (4,), (130,), (3, 3), (5, 70), (37, 3), (40, 51), (3, 4, 5), (6, 9, 33)]


def sweep(u: Any, np: Any) -> Any:
    """Return ``u`` with every element inside its edges replaced by the mean of its neighbours."""
    rank = len(u.shape)
    inside = [slice(1, -1)] * rank
    total = 0.0
    for axis in range(rank):
        for side in (slice(None, -2), slice(2, None)):
            total = total + u[(*inside[:axis], side, *inside[axis + 1 :])]
    new = total * np.float32(0.5 / rank) if np is not snp else total * (0.5 / rank)
    for axis in reversed(range(rank)):
        at = [*inside[:axis]]
        edges = [u[(*at, side)] for side in (slice(None, 1), slice(-1, None))]
        new = np.concat([edges[0], new, edges[1]], axis=axis)
    return new


def expected(u: Any, count: int) -> Any:
    for _ in range(count):
        u = sweep(u, np)
    return u


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 4, 7])
def test_for(shape: tuple[int, ...], count: int) -> None:
    u = RANDOM.standard_normal(shape).astype(np.float32)
    run = sw.jit(lambda u: sw.lax.fori_loop(0, count, lambda _, v: sweep(v, snp), u))
    np.testing.assert_allclose(run(u), expected(u, count), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES[1::3], ids=str)
def test_while(shape: tuple[int, ...]) -> None:
    u = RANDOM.standard_normal(shape).astype(np.float32)
    run = sw.jit(lambda u, n: sw.lax.fori_loop(0, n, lambda _, v: sweep(v, snp), u))
    for count in (0, 1, 2, 5):
        np.testing.assert_allclose(run(u, count), expected(u, count), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(40, 51), (3, 9)], ids=str)
def test_two_grids_and_what_is_seen_on_the_way(shape: tuple[int, ...]) -> None:
    """Two grids that look at each other are carried, and a sum is stacked."""
    u, v = (RANDOM.standard_normal(shape).astype(np.float32) for _ in range(2))

    def step(carry: Any, _: Any) -> Any:
        a, b = carry
        return (sweep(a, snp), sweep(b + a, snp)), snp.sum(a)

    (a, b), sums = sw.jit(lambda u, v: sw.lax.scan(step, (u, v), None, length=5))(u, v)
    seen: list[float] = []
    for _ in range(5):
        seen.append(float(u.astype(np.float64).sum()))
        u, v = sweep(u, np), sweep(v + u, np)
    np.testing.assert_allclose(a, u, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, v, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sums, seen, rtol=1e-4, atol=1e-3)


@pytest.mark.machine("halved")
def test_a_sweep_is_one_kernel() -> None:
    u = np.zeros((40, 51), np.float32)
    run = sw.jit(lambda u: sw.lax.fori_loop(0, 10, lambda _, v: sweep(v, snp), u))
    text = str(run.trace(u).lower("buffers"))
    body = text[text.index("scf.for") : text.index("scf.yield")]
    assert body.count("kernel.launch") == 1 and "memref.copy" not in body
