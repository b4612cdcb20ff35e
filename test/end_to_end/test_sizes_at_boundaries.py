"""Programs of unknown sizes around every boundary of vectors, tiles, versions and blocks.

Two threads call each program at once. Small caches put the boundaries of blocks at small sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

N = "n"
SMALL = "l1=4096,l2=16384,threads=2"
MACHINES = (f"vector_bits=512,{SMALL}", f"vector_bits=256,{SMALL}")
BOUNDARIES = (1, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
SIZES = sorted({0, 101, 211, 263, *(n + k for n in BOUNDARIES for k in (-1, 0, 1))})
LARGEST_IMAGE = 66


def softmax(x: Any) -> Any:
    """Return the softmax of rows."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalized(x: Any) -> Any:
    """Return rows with mean 0 and variance 1."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def windows(x: Any, border: float, steps: int = 1) -> Any:
    """Return the nine shifted images of windows of 3x3 with a border of one."""
    n = (x.shape[-1] - 1) // steps * steps + 1
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=border)
    shifts = [(i, j) for i in range(3) for j in range(3)]
    return np.stack([wide[..., i : i + n : steps, j : j + n : steps] for i, j in shifts])


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return what queries attend to."""
    return sw.nn.softmax(q @ snp.matrix_transpose(k), axis=-1) @ v


def attended(q: Any, k: Any, v: Any) -> Any:
    """Return the same by NumPy."""
    return softmax(q @ k.transpose(0, 2, 1)) @ v


def convolved(x: Any, w: Any) -> Any:
    """Return a convolution by NumPy."""
    return np.einsum("knchw,ock->nohw", windows(x, 0.0), w.reshape(*w.shape[:2], 9))


def depthwise(x: Any, w: Any) -> Any:
    """Return a convolution of each feature by NumPy."""
    return np.einsum("knchw,ck->nchw", windows(x, 0.0), w.reshape(-1, 9))


Case = tuple[Callable[..., Any], tuple[tuple[Any, ...], ...], Callable[..., Any]]
CASES: dict[str, Case] = {
    "product": (lambda x, w: x @ w, ((N, N), (N, N)), lambda x, w: x @ w),
    "rows": (lambda x, w: x @ w, ((N, 70), (70, 130)), lambda x, w: x @ w),
    "columns": (lambda x, w: x @ w, ((50, 70), (70, N)), lambda x, w: x @ w),
    "depth": (lambda x, w: x @ w, ((50, N), (N, 70)), lambda x, w: x @ w),
    "transposed": (lambda x, w: x @ w.T, ((N, 70), (N, 70)), lambda x, w: x @ w.T),
    "attention": (attention, ((3, N, 16),) * 3, attended),
    "keys": (attention, ((3, 9, 16), (3, N, 16), (3, N, 16)), attended),
    "softmax": (lambda x: sw.nn.softmax(x, axis=-1), ((37, N),), softmax),
    "softmax of columns": (
        lambda x: sw.nn.softmax(x, axis=0), ((37, N),), lambda x: softmax(x.T).T
    ),
    "norm": (sw.nn.layer_norm, ((45, N),), normalized),
    "sums": (lambda x: snp.sum(x, axis=1), ((67, N),), lambda x: x.sum(1)),
    "sums of rows": (lambda x: snp.sum(x, axis=0), ((N, 67),), lambda x: x.sum(0)),
    "argmax": (lambda x: snp.argmax(x, axis=1), ((67, N),), lambda x: x.argmax(1)),
    "running": (lambda x: snp.cumulative_sum(x, axis=1), ((13, N),), lambda x: x.cumsum(1)),
    "map": (lambda x, y: snp.tanh(x * y), ((N, N), (N,)), lambda x, y: np.tanh(x * y)),
    "images": (
        lambda x, w: sw.nn.conv(x, w, padding=1), ((1, 5, N, N), (6, 5, 3, 3)), convolved
    ),
    "batch": (lambda x, w: sw.nn.conv(x, w, padding=1), ((N, 5, 9, 9), (6, 5, 3, 3)), convolved),
    "depthwise": (
        lambda x, w: sw.nn.conv(x, w, padding=1, groups=6), ((2, 6, N, N), (6, 1, 3, 3)), depthwise
    ),
    "pool": (
        lambda x: sw.nn.max_pool(x, 3, stride=2, padding=1),
        ((2, 6, N, N),),
        lambda x: windows(x, -np.inf, 2).max(0),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CASES)
def test_boundaries(name: str, machine: str) -> None:
    function, shapes, reference = CASES[name]
    size: Any = sw.Dim(N)
    named: list[Any] = [tuple(size if n == N else n for n in shape) for shape in shapes]
    signature = [sw.ShapeDtypeStruct(shape, "float32") for shape in named]
    program = sw.jit(function, machine=machine, input_signature=signature)
    image = any(shape.count(N) > 1 and len(shape) == 4 for shape in shapes)
    least = 0 if name in ("product", "rows", "columns", "depth", "sums", "map") else 1
    sizes = [n for n in SIZES if least <= n <= (LARGEST_IMAGE if image else max(SIZES))]

    def check(n: int) -> None:
        random = np.random.default_rng(n)
        given = [
            random.standard_normal([n if each == N else each for each in shape], np.float32)
            for shape in shapes
        ]
        want = reference(*(x.astype(np.float64) for x in given))
        np.testing.assert_allclose(program(*given), want, rtol=2e-3, atol=2e-3)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(check, sizes))
