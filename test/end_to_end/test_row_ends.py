"""Rows of known length that end under a mask, alone and where the kernel updates them in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

WIDE = "vector_bits=512,vector_registers=32,fma=1,threads=1"
NAMES = ("f32", "f64", "f16")


def layer_norm(x: Any) -> Any:
    """Return the reference in float64."""
    centered = x - x.mean(1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)


def softmax(x: Any) -> Any:
    """Return the reference in float64."""
    parts = np.exp(x - x.max(1, keepdims=True))
    return parts / parts.sum(1, keepdims=True)


@pytest.mark.parametrize("name", NAMES)
def test_rows_end_under_masks(name: str) -> None:
    """A row shorter than a vector, and longer ones; the second op updates the first one's rows."""
    rows = {columns: f"tensor<40x{columns}x{name}>" for columns in (13, 31, 63)}
    arguments = ", ".join(f"%x{n}: {kind}" for n, kind in rows.items())
    results = ", ".join(rows.values())
    lines = [
        line
        for n, kind in rows.items()
        for line in (
            f"  %n{n} = nd.layer_norm %x{n} {{axis = 1, eps = 1.0e-05 : f64}} : {kind}",
            f"  %s{n} = nd.softmax %n{n} {{axis = 1}} : {kind}",
        )
    ]
    yielded = ", ".join(f"%s{n}" for n in rows)
    text = "\n".join(
        [
            f"func.func @main({arguments}) -> ({results}) {{",
            *lines,
            f"  func.return {yielded} : {results}",
            "}",
        ]
    )
    program = sw.compile(text, machine=WIDE)
    assert "sw_load_first" in program.source
    rng = np.random.default_rng(1)
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[name]
    given = [rng.normal(0, 3, (40, n)).astype(dtype) for n in rows]
    error = {"f32": 2e-6, "f64": 1e-13, "f16": 2e-3}[name]
    for found, x in zip(program(*given), given, strict=True):
        want = softmax(layer_norm(x.astype(np.float64)))
        np.testing.assert_allclose(found.astype(np.float64), want, atol=error)
