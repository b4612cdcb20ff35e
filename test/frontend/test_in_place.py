"""Loops over arrays that are written in place: right, and without copies of what they work in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import in_place_programs
import numpy as np
import pytest

import stepwell as sw


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 400, 8))]
)
def test_random_programs(first: int, tmp_path: Path) -> None:
    said = [in_place_programs.check(seed, tmp_path) for seed in range(first, first + 8)]
    assert not [text for text in said if text.startswith("wrong")]
    assert said.count("") >= 4, said


def jacobi(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[1:-1, 1:-1] = 0.25 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:])


def waves(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        u[1:, :] -= 0.5 * (v[1:, :] - v[:-1, :])
        v[:-1, :-1] -= 0.7 * (u[:-1, 1:] - u[:-1, :-1])


def seidel(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            u[i, 1:-1] = (u[i - 1, 1:-1] + u[i + 1, 1:-1] + v[i, :-2]) / 3.0


def eliminated(u: Any, v: Any, steps: int) -> None:
    for i in range(u.shape[0]):
        u[i, :] -= v[0, :] * v[i, 0]
        u[:, i] = v[i] + steps


def exchanged(u: Any, v: Any, steps: int) -> None:
    for i in range(u.shape[0] // 2):
        j = u.shape[0] - 1 - i
        kept = u[i].copy()
        u[i] = u[j]
        u[j] = kept


def moved(u: Any, v: Any, steps: int) -> None:
    for i in range(u.shape[0] - 1):
        u[i] = u[i + 1]


def elements(u: Any, v: Any, steps: int) -> None:
    for i in range(u.shape[0]):
        u[i, i] = v[i, 0] + steps


def red_and_black(u: Any, v: Any, steps: int) -> None:
    for _ in range(steps):
        u[1:-1:2, 1:-1:2] = 0.25 * (u[:-2:2, 1:-1:2] + u[2::2, 1:-1:2] + u[1:-1:2, :-2:2])
        u[2:-1:2, 2:-1:2] = 0.25 * (u[1:-2:2, 2:-1:2] + u[3::2, 2:-1:2] + v[2:-1:2, 1:-2:2])


@pytest.mark.parametrize(
    "function", [red_and_black, jacobi, waves, seidel, eliminated, exchanged, moved, elements]
)
def test_nothing_whole_is_copied_in_a_loop(function: Any) -> None:
    n = 21
    jitted = sw.jit(function, static_argnames=("steps",))
    rng = np.random.default_rng(1)
    for _ in range(2):
        u, v = rng.standard_normal((2, n, n))
        a, b = u.copy(), v.copy()
        jitted(u, v, 10)
        function(a, b, 10)
        np.testing.assert_allclose(u, a, rtol=1e-9)
        np.testing.assert_allclose(v, b, rtol=1e-9)
    text = jitted.trace(u, v, 10).lower("buffers").text  # pyright: ignore[reportPossiblyUnboundVariable]
    start = text.find("scf.while")  # none where the whole loop is one kernel
    loop = text[start : text.rindex("scf.yield")] if start >= 0 else ""
    whole = [f"{n}x{n}xf64", f"{n - 1}x{n}xf64", f"{n - 2}x{n - 2}xf64", f"{n - 1}x{n - 1}xf64"]
    made = [
        line for line in loop.splitlines() if "memref.view %arena" in line or "memref.copy" in line
    ]
    assert not [line for line in made if any(w in line.partition(" to ")[2] for w in whole)], made


def test_a_view_and_its_base_are_both_carried() -> None:
    def halved(u: Any) -> None:
        part = u[11:17]
        for _ in range(16, -1, -1):
            part[:] *= 0.5

    u, v = np.ones(17), np.ones(17)
    sw.jit(halved)(u)
    halved(v)
    np.testing.assert_array_equal(u, v)


def test_two_arrays_alternate_by_their_addresses() -> None:
    def body(state: Any) -> Any:
        a, b, left = state
        return b.at[1:-1].set(0.5 * (a[:-2] + a[2:])), a, left - 1

    @sw.jit
    def run(u: Any, steps: Any) -> Any:
        return sw.lax.while_loop(lambda s: s[2] > 0, body, (u, u, steps))[0]

    u = np.arange(50.0) ** 2
    for steps in (0, 1, 2, 5):
        a, b = u.copy(), u.copy()
        for _ in range(steps):
            b[1:-1] = 0.5 * (a[:-2] + a[2:])
            a, b = b, a
        np.testing.assert_allclose(run(u, steps), a)
    text = run.trace(u, 3).lower("buffers").text
    assert "memref.copy" not in text[text.index("scf.while") : text.rindex("scf.yield")]


def test_blocks_by_at() -> None:
    def by_at(x: Any, v: Any, i: Any) -> Any:
        x = x.at[1:-1, 1:].set(v[1:-1, 1:])
        x = x.at[i].add(v[0])
        x = x.at[:, i].multiply(2.0)
        x = x.at[::-1, 0].max(0.0)
        return x.at[i, 1:3].min(v[i, :2])

    x, v = np.random.default_rng(2).standard_normal((2, 6, 6))
    for i in (0, 3, 5, -2):
        y = x.copy()
        y[1:-1, 1:] = v[1:-1, 1:]
        y[i] += v[0]
        y[:, i] *= 2.0
        y[::-1, 0] = np.maximum(y[::-1, 0], 0.0)
        y[i, 1:3] = np.minimum(y[i, 1:3], v[i, :2])
        np.testing.assert_allclose(sw.jit(by_at)(x, v, i), y)
    text = sw.jit(by_at).trace(x, v, 1).module.text
    assert "scatter" not in text
    outside = sw.jit(lambda x, i: x.at[i].set(7.0))  # left out, as JAX documents it
    np.testing.assert_array_equal(outside(x, 6), x)
    np.testing.assert_array_equal(outside(x, -7), x)


def test_arguments_that_change_places_are_exchanged_without_copies() -> None:
    def run(u: Any, v: Any, steps: Any) -> Any:
        i = 0
        while i < steps:
            v[1:-1] = 0.5 * (u[:-2] + u[2:])
            u, v = v, u
            i += 1
        return u

    text = sw.jit(run).trace(np.ones(50), np.ones(50), 3).lower("buffers").text
    assert "memref.copy" not in text[text.index("scf.while") : text.rindex("scf.yield")]
