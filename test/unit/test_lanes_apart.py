"""Lanes that lie near each other or run backwards, and casts to integers: against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(3)
DTYPES = ("bool", "int8", "float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [2, 3, 4, -1])
def test_slices(dtype: str, step: int) -> None:
    for columns in (2, 127, int(RANDOM.integers(128, 400))):
        x = (RANDOM.standard_normal((7, columns)) * 30).astype(dtype)
        start = int(RANDOM.integers(0, min(columns, abs(step))))
        at = slice(start, None, step) if step > 0 else slice(None, None, step)
        got, chosen = sw.jit(slicing(at))(x)
        np.testing.assert_array_equal(got, x[:, at])
        np.testing.assert_array_equal(chosen, np.where(x[:, at] > 0, x[:, at], 1))


@pytest.mark.parametrize("shape", [(9001, 3), (3, 9001), (70003, 2), (5, 3, 7001), (7001, 5, 3)])
def test_thin_ones_turned(shape: tuple[int, ...]) -> None:
    x = RANDOM.standard_normal(shape).astype("float32")
    axes = tuple(reversed(range(len(shape))))
    turn = (lambda axes: lambda x: snp.permute_dims(x, axes))(axes)
    np.testing.assert_array_equal(sw.jit(turn)(x), np.transpose(x, axes))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", INTEGERS)
def test_casts_move_into_the_range(source: str, target: str) -> None:
    info = np.iinfo(target)
    ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, -1.0, 1e30, -1e30]
    ends += [float(n) for n in (info.min, info.max, info.min - 1, info.max + 1)]
    with np.errstate(all="ignore"):
        x = np.array(ends, source)
        near = [np.nextafter(x, np.array(to, source)) for to in (np.inf, -np.inf)]
        spread = RANDOM.uniform(2.0 * info.min - 9, 2.0 * info.max, 200).astype(source)
        x = np.concatenate([x, *near, spread])
    got = sw.jit(casting(target))(x)
    exact = [0 if np.isnan(v) else np.clip(np.trunc(v), -1e40, 1e40) for v in x.astype(np.float64)]
    want = np.array([min(max(int(v), info.min), info.max) for v in exact], target)
    np.testing.assert_array_equal(got, want)


def slicing(at: slice) -> Any:
    return lambda x: (x[:, at], snp.where(x[:, at] > 0, x[:, at], 1))


def casting(target: str) -> Any:
    return lambda x: snp.astype(x, getattr(snp, target))
