"""What is written past the caches is what else were written, whatever the size, dtype and threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

random = np.random.default_rng(11)
SIZES = [(1, 1), (3, 5), (64, 64), (7, 1000), (128, 321), (1, 4099), (513, 16), (37, 130)]


def programs(x: Any, y: Any) -> tuple[Any, ...]:
    """Elementwise, moved, reduced beside, joined, narrowed, compared, contracted."""
    best = snp.max(x * y, axis=1, keepdims=True)
    return (
        x + y * 2,
        x.T + 1,
        x - best,
        snp.concat([x + 1, y + x], axis=1),
        (x + y).astype("int8"),
        x > y,
        x @ y.T + 1,
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int8"])
@pytest.mark.parametrize("bits", [512, 256, 128])
def test_results_are_the_same(kind: str, bits: int) -> None:
    size = SIZES[random.integers(len(SIZES))]
    x, y = (random.integers(-9, 9, size).astype(kind) for _ in range(2))
    traced = sw.jit(programs).trace(x, y)
    ordinary = traced.compile(machine=f"vector_bits={bits},l3={1 << 40}")
    streamed = traced.compile(machine=f"vector_bits={bits},l3=1")
    for a, b in zip(ordinary(x, y), streamed(x, y), strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_no_line_is_left_behind_by_another_thread() -> None:
    x = random.standard_normal((1 << 20) + 5).astype(np.float32)
    program = sw.jit(lambda x: x * 3).trace(x).compile(machine="l3=1")
    for _ in range(20):
        assert np.array_equal(program(x), x * np.float32(3))
