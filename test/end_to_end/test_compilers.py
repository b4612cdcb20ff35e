"""The same program by other C compilers, and without the builtins that the newest ones have."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.lowering.emit import c
from stepwell.runtime.toolchain import find_compiler

RANDOM = np.random.default_rng(8)
FLOATS = RANDOM.standard_normal((19, 37)).astype(np.float32)
BYTES = RANDOM.integers(-100, 100, (19, 37)).astype(np.int8)
PLAIN = "#define SW_HAS(builtin) 0"
"""The preamble of a compiler without `__has_builtin`: gcc before 10."""
NAMES = ("gcc-9", "gcc-10", "gcc-11", "gcc-13", "gcc-14", "clang", "clang-14", "clang-19")


def of_floats(xp: Any, x: Any) -> list[Any]:
    """Products, transposes, reversals, functions, reductions and masks of one dtype."""
    y, rows = abs(x) + 1, x[:, :16] * 2
    return [
        *(x @ y.T, x.T @ x, x.T + 1, x[:, ::-1] * y, x[:, ::2] - 1, x[::3].T),
        *(xp.sqrt(y), xp.floor(x), xp.exp(x), xp.tanh(x), xp.rint(x * 3), xp.log(y)),
        *(x.sum(1), y.max(0), x.argmax(1), xp.cumsum(rows, 1), xp.sort(rows, 1)),
        *(xp.where(x > 0, x, y), xp.maximum(x, 0.5), xp.concatenate([rows, x], 1)),
        *(x.astype(np.float16), x.astype(np.int8), (x * 3).astype(np.int16), x > y - 1),
    ]


def of_integers(xp: Any, x: Any) -> list[Any]:
    """The same of bytes, which become wider numbers and floats."""
    wide, places = x.astype(np.int32), abs(x.astype(np.int64)[:, 0]) % 19
    return [
        *(wide @ wide.T, x.T * 2, x[:, ::-1] + x, x[:, ::2] ^ 3, xp.minimum(x, x[::-1])),
        *(x.astype(np.float32) / 4, x.astype(np.int16) * 3, x.astype(np.uint8) >> 1, x[places]),
        *(x.sum(1), x.max(1), x.argmin(0), xp.where(x % 3 == 0, x, 7), wide.astype(np.float64)),
    ]


def check() -> None:
    """Compile, run and compare."""
    for arrays, work in (
        ((FLOATS,), of_floats),
        ((BYTES,), of_integers),
    ):
        got = sw.jit(lambda *xs, work=work: [work(snp, x) for x in xs])(*arrays)
        for found, array in zip(got, arrays, strict=True):
            for one, other in zip(found, work(np, array), strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def _others() -> list[Any]:
    found = [name for name in NAMES if shutil.which(name)]
    wheel = [shlex.join((sys.executable, "-m", "ziglang", "cc"))] if find_spec("ziglang") else []
    ids = [*found, *(["ziglang"] if wheel else [])]
    return [pytest.param(each, id=id) for each, id in zip([*found, *wheel], ids, strict=True)]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep programs and compilers of one test from the others."""
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path))
    find_compiler.cache_clear()
    yield
    find_compiler.cache_clear()


@pytest.mark.parametrize("compiler", _others())
def test_other_compilers(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_CC", compiler)
    find_compiler.cache_clear()
    check()


def test_a_compiler_without_the_builtins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c, "PREAMBLE", PLAIN)
    check()
