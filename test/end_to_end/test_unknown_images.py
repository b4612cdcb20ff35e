"""Windows over images of unknown size: right at each boundary of vectors and tiles, for all types."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

MASKS = "vector_bits=512,threads=2"
MACHINES = (MASKS, "vector_bits=256,threads=2")
KINDS = ("float32", "float64", "float16", "int8", "int32")
SIZES = ((1, 1), (2, 3), (3, 17), (7, 5), (8, 8), (9, 16), (10, 15), (11, 31), (24, 33), (5, 64))
WINDOWS = ((3, 1, 1), (3, 2, 1), (2, 2, 0), (5, 1, 2), (3, 3, 1))
"""Windows: width, step, and padding on each side."""


def images(*shape: int | str, kind: str = "float32") -> sw.ShapeDtypeStruct:
    """Return the type of images, in which a size that is a letter is unknown."""
    sizes: Any = [sw.Dim(size) if isinstance(size, str) else size for size in shape]
    return sw.ShapeDtypeStruct(tuple(sizes), kind)


def windows(x: Any, width: int, step: int, around: Any, fill: float) -> Any:
    """Return the shifted images that a window reads, stacked."""
    wide = np.pad(x, ((0, 0), (0, 0), *around), constant_values=fill)
    high, long = ((n - width) // step * step + 1 for n in wide.shape[2:])
    shifts = [(i, j) for i in range(width) for j in range(width)]
    return np.stack([wide[..., i : i + high : step, j : j + long : step] for i, j in shifts])


@pytest.mark.sampled(12)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", WINDOWS)
def test_pooling(window: tuple[int, int, int], kind: str, machine: str) -> None:
    width, step, around = window
    program = sw.jit(
        lambda x: sw.nn.max_pool(x, width, stride=step, padding=around),
        machine=machine,
        input_signature=[images(2, 33, "n", "m", kind=kind)],
    )
    least = -np.inf if kind[0] == "f" else np.iinfo(kind).min
    for rows, columns in SIZES:
        if min(rows, columns) + 2 * around < width:
            continue
        random = np.random.default_rng(rows * columns)
        x = (random.standard_normal((2, 33, rows, columns)) * 20).astype(kind)
        if kind[0] == "f":
            x.reshape(-1)[random.integers(0, x.size, 3)] = np.nan, np.inf, -np.inf
        want = windows(x, width, step, [(around, around)] * 2, least).max(0)
        np.testing.assert_array_equal(program(x), want)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("around", (((1, 1), (1, 1)), ((1, 0), (0, 1)), ((0, 2), (2, 0))))
def test_depthwise(around: Any, kind: str, machine: str) -> None:
    program = sw.jit(
        lambda x, w: sw.nn.relu(sw.nn.conv(x, w, padding=around, groups=66)),
        machine=machine,
        input_signature=[images(1, 66, "n", "m", kind=kind), images(66, 1, 3, 3, kind=kind)],
    )
    for rows, columns in SIZES:
        if rows + sum(around[0]) < 3 or columns + sum(around[1]) < 3:
            continue
        random = np.random.default_rng(rows * columns)
        x = random.standard_normal((1, 66, rows, columns)).astype(kind)
        w = random.standard_normal((66, 1, 3, 3)).astype(kind)
        seen = windows(x.astype(np.float64), 3, 1, around, 0.0)
        want = np.maximum(np.einsum("knchw,ck->nchw", seen, w.reshape(66, 9)), 0)
        close = 5e-2 if kind == "float16" else 1e-4
        np.testing.assert_allclose(program(x, w), want, rtol=close, atol=close)


def test_padded_batches_of_unknown_number() -> None:
    """Images that padding adds are padding too, of an unknown number of images."""

    def program(x: Any) -> Any:
        wide = snp.pad(x, ((0, 1), (0, 0), (1, 1), (1, 1)), constant_values=-3.0)
        return sw.nn.max_pool(wide, 3, stride=1)

    for machine, size in product(MACHINES, ("n", 17)):
        shape = "k", 64, size, size
        compiled = sw.jit(program, machine=machine, input_signature=[images(*shape)])
        for k, n in ((1, 9), (3, 17), (2, 33)) if size == "n" else ((1, 17), (3, 17)):
            x = np.random.default_rng(n).standard_normal((k, 64, n, n), np.float32)
            wide = np.pad(x, ((0, 1), (0, 0), (1, 1), (1, 1)), constant_values=-3.0)
            want = windows(wide, 3, 1, [(0, 0)] * 2, 0.0).max(0)
            np.testing.assert_array_equal(compiled(x), want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("step", (1, 2))
def test_tiles_of_more_rows_than_an_image(machine: str, step: int) -> None:
    """Rows beyond the end are computed, but read nothing and change nothing."""

    def program(x: Any, w: Any, y: Any, z: Any) -> Any:
        seen = sw.nn.conv(x, w, padding=1, stride=step, groups=33)
        return sw.nn.relu(seen + y) * z

    compiled = sw.jit(
        program,
        machine=machine,
        input_signature=[
            *(images(2, 33, "n", "m"), images(33, 1, 3, 3)),
            *(images(2, 33, "k", "l"), images("k", 1)),
        ],
    )
    for rows, columns in (*product(range(1, 10), (1, 16, 17)), (17, 33), (3, 64), (31, 7), (1, 1)):
        random = np.random.default_rng(rows * columns)
        x = random.standard_normal((2, 33, rows, columns), np.float32)
        w = random.standard_normal((33, 1, 3, 3), np.float32)
        high, wide = (-(-n // step) for n in (rows, columns))
        y = random.standard_normal((2, 33, high, wide), np.float32)
        z = random.standard_normal((high, 1), np.float32)
        seen = windows(x, 3, step, [(1, 1)] * 2, 0.0)
        want = np.maximum(np.einsum("knchw,ck->nchw", seen, w.reshape(33, 9)) + y, 0) * z
        np.testing.assert_allclose(compiled(x, w, y, z), want, rtol=1e-4, atol=1e-4)
