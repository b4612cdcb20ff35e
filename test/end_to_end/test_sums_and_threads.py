"""The order of a sum, and so the bits of results, does not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from nestings import levels_in

import stepwell as sw
import stepwell.numpy as snp
from stepwell.analysis.levels import KernelLevels
from stepwell.testing.machines import kernels_for

THREADS = (1, 2, 3, 8, 64)
Program = tuple[Callable[..., Any], tuple[np.ndarray[Any, Any], ...]]


def _product(m: int, k: int, n: int, dtype: str = "float32") -> Program:
    return lambda a, b: a @ b, (_numbers(m, k, dtype=dtype), _numbers(k, n, dtype=dtype))


def _convolution(
    image: Sequence[int], filters: Sequence[int], step: int, dtype: str = "float32"
) -> Program:
    def f(x: Any, w: Any) -> Any:
        return sw.lax.conv(x, w, (step, step), "VALID")

    return f, (_numbers(*image, dtype=dtype), _numbers(*filters, dtype=dtype))


def _numbers(*sizes: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(sizes).astype(dtype)


def _layer(x: Any, w: Any) -> Any:
    y = snp.tanh(x @ w)
    y = (y - y.mean(1, keepdims=True)) / (y.std(1, keepdims=True) + 1)
    return sw.nn.softmax(y), y.sum(0), (y * y).sum()


FOUND = {
    "parts packed by tiles": (*_product(31, 1890, 91), "sapphire-rapids"),
    "several blocks of rows for two threads": (*_product(29, 2282, 305), "sapphire-rapids"),
    "f64": (*_product(137, 1551, 73, "float64"), "sapphire-rapids"),
    "a taller tile": (*_convolution((1, 72, 60, 12), (62, 72, 7, 7), 3), "sapphire-rapids"),
    "a taller tile of f64": (
        *_convolution((2, 473, 98, 38), (80, 473, 3, 3), 2, "float64"),
        "sapphire-rapids",
    ),
    "sums of rows and of columns": (_layer, (_numbers(3000, 300), _numbers(300, 40)), "zen4"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FOUND)
def test_orders(name: str) -> None:
    function, arguments, machine = FOUND[name]
    _compare(function, arguments, machine)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 9))]
)
def test_orders_at_random(seed: int) -> None:
    random = Random(seed)

    def size(most: int) -> int:
        return int(2 ** random.uniform(0, most))

    for _ in range(10):
        dtype = random.choice(["float32", "float64", "float16"])
        machine = random.choice(["zen4", "haswell", "neoverse", "sapphire-rapids"])
        _compare(*_product(size(9), size(11), size(9), dtype), machine)
        side, window, features = size(5) + 7, random.choice([1, 3, 5, 7]), size(7)
        filters = (size(7), features, window, window)
        images = (random.choice([1, 1, 3]), features, side, size(5) + 7)
        _compare(*_convolution(images, filters, random.choice([1, 2, 3]), dtype), machine)


def _compare(
    function: Callable[..., Any], arguments: Sequence[np.ndarray[Any, Any]], machine: str
) -> None:
    traced = sw.jit(function).trace(*arguments)
    one, *others = [_orders(traced, f"{machine},threads={n}".lstrip(",")) for n in THREADS]
    for threads, other in zip(THREADS[1:], others, strict=True):
        assert other == one, f"{machine}, {threads} threads: {[x.shape for x in arguments]}"


def _orders(traced: Any, machine: str) -> list[tuple[Any, ...]]:
    """Return the levels of sums of all kernels that have some."""
    return [found for k in levels_in(kernels_for(traced, machine)) if (found := tuple(_sums(k)))]


def _sums(levels: KernelLevels) -> Iterator[tuple[Any, ...]]:
    for loops, all_levels in zip(levels.loops, levels.all, strict=True):
        for x in all_levels:
            if x.loop < len(loops) and not loops[x.loop]:
                yield x.kind, x.loop, x.step, x.parts


@pytest.mark.parametrize("name", ["parts packed by tiles", "a taller tile", "f64"])
def test_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, _ = FOUND[name]
    found: set[bytes] = set()
    for threads in (1, 2, 3, 8):
        monkeypatch.setenv("STEPWELL_MACHINE", f"threads={threads}")
        found.add(np.asarray(sw.jit(function)(*arguments)).tobytes())
    assert len(found) == 1
