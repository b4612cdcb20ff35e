"""Attention in bands of rows: any sizes, any bands give what three kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nestings import has
from reading import same_in_loops

import stepwell as sw
import stepwell.numpy as snp
from stepwell.dialects import upstream
from stepwell.testing.machines import kernels_for

assert upstream

RANDOM = np.random.default_rng(17)

KERNEL = """
#q = affine_map<(r, s, d) -> (r, d)>
#k = affine_map<(r, s, d) -> ({k})>
#s = affine_map<(r, s, d) -> (r, s)>
#p = affine_map<(r, d, s) -> (r, s)>
#v = affine_map<(r, d, s) -> (s, d)>
#y = affine_map<(r, d, s) -> (r, d)>
kernel.func @k(%q: memref<{r}x{d}xf32>, %k: memref<{kd}xf32>, %v: memref<{s}x{e}xf32>,
               %y: memref<{r}x{e}xf32>) attributes {{kernel.shared = 1, {attributes}}} {{
  %t = memref.alloc() : memref<{r0}x{s}xf32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%t : memref<{r0}x{s}xf32>)
  linalg.generic {{indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%q, %k : memref<{r}x{d}xf32>, memref<{kd}xf32>) outs(%t : memref<{r0}x{s}xf32>)
      attrs = {{lanes = [1, {w}, 2]}} {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  }}
  linalg.fill ins(%zero : f32) outs(%y : memref<{r}x{e}xf32>)
  linalg.generic {{indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%t, %v : memref<{r0}x{s}xf32>, memref<{s}x{e}xf32>) outs(%y : memref<{r}x{e}xf32>)
      attrs = {{lanes = [1, {w}, 2]}} {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  }}
  kernel.return
}}
"""


@pytest.mark.parametrize("attributes", ["band = 3", "band = 5, parallel = 1"])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("slivers", [False, True])
def test_bands_in_the_interpreter(attributes: str, static: bool, slivers: bool) -> None:
    for r, s, d, e in [(1, 1, 1, 1), (4, 7, 3, 9), (5, 8, 2, 4), (17, 11, 5, 6)]:
        at, size = "d, s", (d, s)
        if slivers:
            at, size = "s floordiv 8, d, s mod 8", (-(-s // 8), d, 8)
        text = KERNEL.format(
            k=at,
            kd="x".join(map(str, size)),
            attributes=attributes,
            w=4,
            r=r if static else "?",
            r0=r,
            s=s,
            d=d,
            e=e,
        )
        shapes = [(r, d), size, (s, e), (r, e)]
        arrays = [RANDOM.integers(-9, 9, shape).astype(np.float32) for shape in shapes]
        same_in_loops(text, arrays)


PROGRAM = """
func.func @main(%q: tensor<{q}>, %k: tensor<{k}>, %v: tensor<{v}>) -> tensor<{y}> {{
  %s = nd.dot_general %q, %k batch [0] x [0] contract [2] x [2]
      : (tensor<{q}>, tensor<{k}>) -> tensor<{s}>
  %p = nd.softmax %s {{axis = 2}} : tensor<{s}>
  %y = nd.dot_general %p, %v batch [0] x [0] contract [2] x [1]
      : (tensor<{s}>, tensor<{v}>) -> tensor<{y}>
  func.return %y : tensor<{y}>
}}
"""


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = q.astype(float) @ k.astype(float).swapaxes(1, 2)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return weights / weights.sum(-1, keepdims=True) @ v.astype(float)


@pytest.mark.parametrize(
    "b, r, s, d, e, kind",
    [
        (3, 300, 197, 17, 33, "f32"),
        (1, 1031, 130, 5, 1, "f32"),
        (2, 9, 8000, 3, 70, "f32"),
        (1, 401, 257, 33, 16, "f64"),
        (2, 301, 500, 16, 16, "f16"),
    ],
)
def test_scores_stay_in_the_kernel(b: int, r: int, s: int, d: int, e: int, kind: str) -> None:
    shapes = {"q": (b, r, d), "k": (b, s, d), "v": (b, s, e), "y": (b, r, e), "s": (b, r, s)}
    types = {n: "x".join([*map(str, shape), kind]) for n, shape in shapes.items()}
    program = sw.compile(PROGRAM.format(**types))
    text = kernels_for(PROGRAM.format(**types))
    assert has(text, "band") and text.count("kernel.launch") == 2
    size = int(kind[1:]) // 8
    operands = [(RANDOM.standard_normal(shapes[n]) * 0.5).astype(f"f{size}") for n in "qkv"]
    close = {"f64": 1e-13, "f32": 1e-5, "f16": 1e-2}[kind]
    np.testing.assert_allclose(program(*operands), _attention(*operands), atol=close)


def test_sizes_known_only_when_it_runs() -> None:
    types = {"q": "?x?x8xf32", "k": "?x100x8xf32", "v": "?x100x4xf32"}
    types |= {"y": "?x?x4xf32", "s": "?x?x100xf32"}
    program = sw.compile(PROGRAM.format(**types))
    assert has(kernels_for(PROGRAM.format(**types)), "band")
    for b, r in [(0, 3), (2, 0), (1, 1), (3, 7), (2, 40)]:
        operands = [
            RANDOM.standard_normal(shape).astype("f4")
            for shape in ((b, r, 8), (b, 100, 8), (b, 100, 4))
        ]
        np.testing.assert_allclose(program(*operands), _attention(*operands), atol=1e-5)


@pytest.mark.parametrize("rows, banded", [(48, False), (64, True)])
def test_few_rows_are_no_band(rows: int, banded: bool) -> None:
    """Scores that are smaller than the keys may go to memory: copying the keys costs more."""
    q, k = (np.zeros((24, n, 64), np.float32) for n in (rows, 512))

    def attention(q: Any, k: Any, v: Any) -> Any:
        return sw.nn.softmax(q @ snp.swapaxes(k, -1, -2)) @ v

    text = kernels_for(sw.jit(attention).trace(q, k, k))
    assert (has(text, "band")) == banded


MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "causal": {"is_causal": True},
    "window": {"is_causal": True, "local_window_size": 16},
    "lengths": {"is_causal": True, "key_value_seq_lengths": np.array([9, 128], np.int32)},
    "mask": {"mask": np.ones((2, 1, 1, 128), bool)},
}


@pytest.mark.parametrize("name", MASKS)
def test_scores_of_masked_attention_are_never_stored(name: str) -> None:
    """Masks are made of numbers of rows and columns where scores are, for grouped heads too."""
    q, k = (np.zeros((2, 128, heads, 32), np.float32) for heads in (4, 2))

    def attention(q: Any, k: Any, v: Any) -> Any:
        return sw.nn.dot_product_attention(q, k, v, **MASKS[name])

    text = kernels_for(sw.jit(attention).trace(q, k, k))
    assert has(text, "band") and text.count("kernel.launch") == 2
