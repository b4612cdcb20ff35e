"""Loops over a window run no longer than it is, and give the same bits as those that run over all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.machine import thread_count
from stepwell.driver import pipeline
from stepwell.runtime.extension import load_extension

random = np.random.default_rng(5)
BOUNDS = [(0, 0), (2, 5), (5, 2), (0, 1000), (7, 7), (-3, 1000), (-5, -2), (13, 61), (16, 48)]
FAR = [(2**63 - 1, -(2**63) + 9), (-(2**62), 2**63 - 5)]
SIZES = [(1, 3), (17, 40), (61, 131), (128, 1100)]


def sums(x: Any, y: Any, m: Any, i: Any, j: Any) -> Any:
    return (
        x[i:j].sum(),
        x[:i].sum(),
        x[i:j] @ y[i:j],
        np.sum(x[i:] * 2),
        np.sum((x != 0)[i:j]),
        m[:, i:j].sum(),
        m[:, i:j].sum(axis=1),
        m[i:j, :].sum(axis=0),
    )


def products(x: Any, y: Any, m: Any, i: Any, j: Any) -> Any:
    out, rows = np.zeros_like(x), np.zeros_like(m)
    out[i:j] = m[:, 0] @ m[:, i:j]
    rows[:, i:j] = m[:, i:j] * 2
    rows[i:j, :] += 1
    out[:j] -= m[0] @ m.T[:, :j]
    return out, m[:, i:j] @ x[i:j], rows


def updates(x: Any, y: Any, m: Any, i: Any, j: Any) -> Any:
    x[i:j] += y[i:j] * 3
    y[:i] = x[:i]
    m[i:, :j] += np.outer(m[i:, 0], y[:j])
    m[0, i:j] = x[i:j]
    return x[i:j].sum()


def moved(x: Any, y: Any, m: Any, i: Any, j: Any) -> Any:
    n = len(x)
    places = np.clip(np.arange(n) + i, 0, n - 1)
    y[:i] += 2 * np.flip(x[:i])
    x[i:] += np.flip(y[i:])
    m[0, :j] = np.flip(m[1, :j])
    return np.dot(np.flip(x[:i]), y[:i]), x[places], y[np.clip(np.arange(n) - j, 2, n - 2)]


def extremes(x: Any, y: Any, m: Any, i: Any, j: Any) -> Any:
    low = np.minimum(np.abs(i), 2)
    return x[low : low + 1 + np.abs(j)].max(), y[low:].min(), np.max(x[: low + 1])


@pytest.fixture
def all_threads() -> Iterator[Any]:
    extension = load_extension()
    if extension is None:
        pytest.skip("no extension")
    yield extension
    extension.set_threads(thread_count())


def without_pass() -> tuple[pipeline.Stage, ...]:
    stages = pipeline.default_stages()
    return tuple(replace(s, passes=s.passes.replace("narrow-loops,", "")) for s in stages)


def arrays(kind: str, rows: int, columns: int) -> list[Any]:
    if kind[0] == "i":
        return [random.integers(-9, 9, s).astype(kind) for s in (columns, columns, (rows, columns))]
    given = [random.standard_normal(s).astype(kind) for s in (columns, columns, (rows, columns))]
    for each in given:
        each.flat[:: 1 + each.size // 3] = np.nan
    given[0][-1] = np.inf
    return given


def expected(function: Callable[..., Any], given: list[Any], i: int, j: int) -> list[Any]:
    copies = [a.copy() for a in given]
    with np.errstate(all="ignore"):
        result = function(*copies, i, j)
    return [*(result if isinstance(result, tuple) else (result,)), *copies]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", [sums, products, updates, moved, extremes])
@pytest.mark.parametrize("kind", ["float64", "float32", "int32"])
def test_what_lies_outside_is_left_out(
    function: Callable[..., Any], kind: str, all_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = SIZES[hash_of(function.__name__ + kind) % len(SIZES)]
    if function is not sums:
        size = (size[1], size[1]) if size[1] < 200 else (131, 131)
    given = arrays(kind, *size)
    narrow = sw.jit(function)
    bounds = [*BOUNDS, *FAR] if function is moved else BOUNDS
    found: dict[tuple[int, int], list[Any]] = {}
    for threads in (1, 3):
        all_threads.set_threads(threads)
        for i, j in bounds:
            copies = [a.copy() for a in given]
            result = narrow(*copies, i, j)
            flat = [*(result if isinstance(result, tuple) else (result,)), *copies]
            for got, want in zip(flat, expected(function, given, i, j), strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4, err_msg=f"{i}:{j}")
            bits = [np.asarray(a).tobytes() for a in flat]
            assert found.setdefault((i, j), bits) == bits
    monkeypatch.setattr(pipeline, "STAGES", without_pass())
    whole = sw.jit(function)
    for (i, j), bits in found.items():
        copies = [a.copy() for a in given]
        result = whole(*copies, i, j)
        flat = [*(result if isinstance(result, tuple) else (result,)), *copies]
        assert [np.asarray(a).tobytes() for a in flat] == bits, (i, j)


def hash_of(name: str) -> int:
    return sum(map(ord, name))
