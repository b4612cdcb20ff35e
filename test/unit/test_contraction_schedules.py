"""Contractions of random shapes: every layout, dtype and vector width, the same for any threads."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from nestings import has

import stepwell as sw
from stepwell.testing.machines import kernels_for

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
CASES = 400 if DEEP else 26
SIZES = (1, 2, 3, 5, 7, 10, 13, 16, 17, 29, 31, 33, 64, 67, 100, 101, 131)
THIN = (257, 521, 1031)
LAYOUTS = ("mk,kn", "km,kn", "mk,nk", "km,nk")
NAMES = {"f64": "float64", "f32": "float32", "f16": "float16"}
KINDS = {
    "f32": "f32",
    "f64": "f64",
    "f16": "f16",
    "bf16": "bf16",
    "i8": "i32",
    "ui8": "ui32",
    "i32": "i32",
    "i64": "i64",
}


class Case(NamedTuple):
    """One product of two matrices, or of as many as ``batch`` says, with what comes after."""

    m: int
    n: int
    k: int
    batch: int
    layout: str
    dtype: str
    bits: int
    relu: bool


def cases(count: int) -> list[Case]:
    random = np.random.default_rng(2029)

    def one(i: int) -> Case:
        m, n, k = (int(random.choice(SIZES)) for _ in range(3))
        if i % 5 == 0:
            m, n, k = random.permutation([int(random.choice(THIN)), n, k]).tolist()
        if i % 13 == 12:
            m, n, k = random.permutation([0, n, k]).tolist()
        batch = int(random.choice([0, 0, 1, 3]))
        layout = str(random.choice(LAYOUTS))
        dtype = list(KINDS)[i % 16 // 2] if i % 2 else "f32"
        bits = int(random.choice([512, 512, 256, 128, 32]))
        return Case(m, n, k, batch, layout, dtype, bits, bool(random.integers(2)))

    return [one(i) for i in range(count)]


FEW_ROWS = [
    Case(7, 1031, 521, 0, "mk,kn", "f32", 512, True),
    Case(5, 1030, 301, 0, "km,kn", "f64", 256, False),
    Case(11, 2053, 300, 0, "mk,kn", "f16", 512, True),
    Case(6, 1100, 257, 2, "mk,kn", "f32", 128, False),
    Case(2, 1040, 300, 0, "mk,kn", "f32", 512, False),
    Case(9, 1031, 2048, 0, "mk,kn", "f32", 512, True),
    Case(1, 5003, 1300, 0, "mk,kn", "f32", 512, True),
    Case(6, 2500, 1307, 0, "mk,kn", "f64", 256, False),
]
"""Few rows that read an operand beyond the second cache."""


def program(case: Case) -> str:
    """Spell x . w + b on matrices, and relu where asked."""
    size = {"m": case.m, "n": case.n, "k": case.k}
    head, shift = (f"{case.batch}x", 1) if case.batch else ("", 0)
    first, second = case.layout.split(",")
    x, w = (head + "".join(f"{size[c]}x" for c in each) + case.dtype for each in (first, second))
    result = KINDS[case.dtype]
    y, b = f"{head}{case.m}x{case.n}x{result}", f"{case.n}x{result}"
    how = "batch [0] x [0] " if case.batch else ""
    how += f"contract [{first.index('k') + shift}] x [{second.index('k') + shift}]"
    how += "" if result == case.dtype else f" {{dtype = {result}}}"
    relu = f"%r = nd.relu %a : tensor<{y}>" if case.relu else ""
    return f"""
    func.func @main(%x: tensor<{x}>, %w: tensor<{w}>, %b: tensor<{b}>) -> tensor<{y}> {{
      %h = nd.dot_general %x, %w {how} : (tensor<{x}>, tensor<{w}>) -> tensor<{y}>
      %bb = nd.broadcast %b {{dims = [{1 + shift}]}} : tensor<{b}> -> tensor<{y}>
      %a = nd.add %h, %bb : tensor<{y}>
      {relu}
      func.return %{"r" if case.relu else "a"} : tensor<{y}>
    }}"""


def operands(case: Case, random: np.random.Generator) -> list[Any]:
    """Return x, w and b."""
    size = {"m": case.m, "n": case.n, "k": case.k}
    head = (case.batch,) if case.batch else ()
    shapes = [(*head, *(size[c] for c in each)) for each in case.layout.split(",")]
    made = [numbers(shape, case.dtype, random) for shape in shapes]
    return [*made, numbers((case.n,), KINDS[case.dtype], random)]


def numbers(shape: tuple[int, ...], dtype: str, random: np.random.Generator) -> Any:
    if dtype in NAMES:
        return random.standard_normal(shape).astype(NAMES[dtype])
    if dtype == "bf16":
        return random.standard_normal(shape).astype(ml_dtypes.bfloat16)
    low, high, kind = {
        "i8": (-128, 128, "int8"),
        "ui8": (0, 256, "uint8"),
        "i32": (-(2**31), 2**31, "int32"),
        "ui32": (0, 2**32, "uint32"),
        "i64": (-(2**62), 2**62, "int64"),
    }[dtype]
    return random.integers(low, high, shape).astype(kind)


def wide(array: Any, dtype: str) -> Any:
    return array.astype(np.float64 if "f" in dtype else np.int64)


def reference(case: Case, x: Any, w: Any, b: Any) -> Any:
    """Return the result in float64 or int64, and how large its terms are."""
    x, w = wide(x, case.dtype), wide(w, case.dtype)
    x = x if case.layout[0] == "m" else x.swapaxes(-1, -2)
    w = w if case.layout[3] == "k" else w.swapaxes(-1, -2)
    b = wide(b, KINDS[case.dtype])
    with np.errstate(over="ignore"):
        y, terms = x @ w + b, abs(x) @ abs(w) + abs(b)
    if "f" not in case.dtype:
        y = y.astype({"i32": "int32", "ui32": "uint32", "i64": "int64"}[KINDS[case.dtype]])
    return np.maximum(y, 0) if case.relu else y, terms


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", [*cases(CASES), *FEW_ROWS], ids=lambda c: "-".join(map(str, c)))
def test_any_shape(case: Case) -> None:
    inputs = operands(case, np.random.default_rng(case.m * 31 + case.n))
    want, terms = reference(case, *inputs)
    results = [
        sw.compile(program(case), machine=f"vector_bits={case.bits},threads={threads}")(*inputs)
        for threads in (1, 2)
    ]
    assert results[0].tobytes() == results[1].tobytes()
    got = wide(results[0], KINDS[case.dtype])
    if "f" not in case.dtype:
        np.testing.assert_array_equal(got, want)
        return
    close = {"f64": 1e-14, "f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}[case.dtype]
    assert got.shape == want.shape
    assert (abs(got - want) <= close * terms + close * abs(want)).all()


@pytest.mark.parametrize("k, n, dtype", [(2053, 301, "f32"), (4099, 130, "f64"), (7001, 77, "f32")])
def test_vector_by_matrix_from_memory(k: int, n: int, dtype: str) -> None:
    """Runs of rows that are asked for give the same for any number of threads."""
    random = np.random.default_rng(k)
    x, w = numbers((k,), dtype, random), numbers((k, n), dtype, random)
    text = f"""
    func.func @main(%x: tensor<{k}x{dtype}>, %w: tensor<{k}x{n}x{dtype}>) -> tensor<{n}x{dtype}> {{
      %y = nd.dot_general %x, %w contract [0] x [0]
          : (tensor<{k}x{dtype}>, tensor<{k}x{n}x{dtype}>) -> tensor<{n}x{dtype}>
      func.return %y : tensor<{n}x{dtype}>
    }}"""
    made = [sw.compile(text, machine=f"l2=16K,l3=512K,threads={threads}") for threads in (1, 2)]
    assert has(kernels_for(text, "l2=16K,l3=512K,threads=1"), "prefetch")
    results = [program(x, w) for program in made]
    assert results[0].tobytes() == results[1].tobytes()
    close = 1e-6 if dtype == "f32" else 1e-14
    np.testing.assert_allclose(
        results[0], x.astype(np.float64) @ w.astype(np.float64), atol=close * k**0.5 * 10
    )
