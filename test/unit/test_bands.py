"""Chains of ops in bands of rows give what they give one after the other, for any band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from reading import taken_down

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.diagnostics import CompileError
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.printing import text_of
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(17)
PARALLEL = (
    "outline-kernels,split-groups,collapse-loops,schedule,pack-operands,compute-once,"
    'bufferize,run-together{machine="threads=3"},plan-memory'
)


def _close(got: Any, want: Any) -> None:
    eps = float(np.finfo(want.dtype).eps)
    np.testing.assert_allclose(got, want, rtol=400 * eps, atol=100 * eps * np.abs(want).max())


def _random(*shape: int, kind: str = "f4") -> Any:
    return (RANDOM.standard_normal(shape) * 0.5).astype(kind)


def _same(function: Callable[..., Any], arrays: Sequence[Any], *rows: int) -> int:
    """Compare a function in bands of so many rows with its graph, in the interpreter.

    Return how many of them had bands.
    """
    trace = sw.jit(function).trace(*arrays)
    graph, tensors = taken_down(trace.module.text, "canonicalize", "through(structured)")
    (want,) = Interpreter(graph).call(trace.entry, arrays)
    banded = 0
    for count in rows:
        (module,) = taken_down(text_of(tensors), f"fuse-bands{{rows={count}}}")
        text = text_of(module)
        banded += "scf.for" in text and "kernel.schedule<[parallel d0" in text
        (got,) = Interpreter(module).call(trace.entry, arrays)
        _close(got, want)
    return banded


def _chain(x: Any, weights: Sequence[Any], steps: Sequence[tuple[int, int, int]]) -> Any:
    """Convolve, with a stride, padding and groups in each step."""
    for w, (stride, padding, groups) in zip(weights, steps, strict=True):
        x = sw.nn.relu(sw.nn.conv(x, w, stride=stride, padding=padding, groups=groups))
    return x


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
def test_random_convolutions(seed: int) -> None:
    """Windows, strides and padding of one to three convolutions; bands up to the whole image."""
    random = np.random.default_rng(seed)
    images, features = int(random.integers(1, 3)), int(random.integers(1, 4))
    x = _random(images, features, *map(int, random.integers(9, 14, 2)))
    steps: list[tuple[int, int, int]] = []
    weights: list[Any] = []
    for _ in range(int(random.integers(2, 4))):
        taps, deep = int(random.choice([1, 3])), bool(random.integers(2))
        out = features if deep else int(random.integers(1, 5))
        steps.append(
            (int(random.integers(1, 3)), int(random.integers(0, 2)), features if deep else 1)
        )
        weights.append(_random(out, 1 if deep else features, taps, taps))
        features = out
    kind = str(random.choice(["f4", "f8", "f2"]))
    arrays = [each.astype(kind) for each in (x, *weights)]
    _same(lambda x, *w: _chain(x, w, steps), arrays, 1, 2, 3, 40)


def test_pooling_ends_a_chain() -> None:
    def function(x: Any, w: Any, v: Any) -> Any:
        h = sw.nn.relu(sw.nn.conv(x, w, padding=1))
        return sw.nn.max_pool(sw.nn.relu(sw.nn.conv(h, v, padding=1)), 3, stride=2, padding=1)

    assert (
        _same(function, [_random(2, 3, 11, 9), _random(4, 3, 3, 3), _random(5, 4, 3, 3)], 1, 2, 4)
        == 3
    )


def test_a_residual_is_read_where_the_band_is() -> None:
    def function(x: Any, a: Any, b: Any, c: Any) -> Any:
        h = sw.nn.relu6(sw.nn.conv(x, a))
        h = sw.nn.relu6(sw.nn.conv(h, b, padding=1, groups=12))
        return sw.nn.conv(h, c) + x

    arrays = [
        _random(2, 3, 9, 10),
        _random(12, 3, 1, 1),
        _random(12, 1, 3, 3),
        _random(3, 12, 1, 1),
    ]
    assert _same(function, arrays, 1, 2, 4, 9) == 4


@pytest.mark.parametrize("kind", ["f4", "f8", "f2"])
def test_products_with_norms_between(kind: str) -> None:
    def function(x: Any, v: Any, w: Any) -> Any:
        h = sw.nn.gelu(x @ v)
        h = (h - snp.mean(h, axis=-1, keepdims=True)) / (1 + snp.var(h, axis=-1, keepdims=True))
        return sw.nn.softmax(h @ w)

    _same(
        function,
        [_random(23, 5, kind=kind), _random(5, 9, kind=kind), _random(9, 7, kind=kind)],
        1,
        4,
        23,
    )


MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "causal": {"is_causal": True},
    "window": {"is_causal": True, "local_window_size": 6},
    "lengths": {"is_causal": True, "key_value_seq_lengths": np.array([5, 24], np.int32)},
    "mask": {"mask": RANDOM.integers(0, 2, (2, 1, 24, 24)).astype(bool) | np.eye(24, dtype=bool)},
}


@pytest.mark.parametrize("name", MASKS)
def test_attention_of_grouped_heads_with_masks(name: str) -> None:
    """Masks that count rows count them from the beginning of the whole."""
    q, k, v = (_random(2, 24, heads, 8) for heads in (4, 2, 2))

    arrays = {n: v for n, v in MASKS[name].items() if isinstance(v, np.ndarray)}
    flags = {n: v for n, v in MASKS[name].items() if n not in arrays}

    def attention(q: Any, k: Any, v: Any, *given: Any) -> Any:
        return sw.nn.dot_product_attention(
            q, k, v, **flags, **dict(zip(arrays, given, strict=True))
        )

    assert _same(attention, [q, k, v, *arrays.values()], 5, 8) == 2


def _forced(rows: int) -> list[str]:
    return [f"fuse-bands{{rows={rows}}}@before:outline-kernels"]


def test_compiled_in_parallel() -> None:
    """A chain with halos and one without, whose last band overlaps the one before."""

    def function(x: Any, a: Any, b: Any, q: Any, v: Any, w: Any) -> Any:
        h = sw.nn.relu(sw.nn.conv(x, a, padding=1, stride=2))
        return sw.nn.conv(h, b, padding=1), sw.nn.gelu(q @ v) @ w

    arrays = [_random(3, 4, 21, 17), _random(6, 4, 3, 3), _random(5, 6, 3, 3)]
    arrays += [_random(50, 8), _random(8, 40), _random(40, 3)]
    trace = sw.jit(function).trace(*arrays)
    (graph,) = taken_down(trace.module.text, "canonicalize")
    for got, want in zip(
        trace.compile(passes=_forced(4))(*arrays),
        Interpreter(graph).call(trace.entry, arrays),
        strict=True,
    ):
        _close(got, want)


ATTENTION = """
func.func @main(%q: tensor<?x?x8xf32>, %k: tensor<?x100x8xf32>, %v: tensor<?x100x4xf32>) -> tensor<?x?x4xf32> {
  %s = nd.dot_general %q, %k batch [0] x [0] contract [2] x [2]
      : (tensor<?x?x8xf32>, tensor<?x100x8xf32>) -> tensor<?x?x100xf32>
  %p = nd.softmax %s {axis = 2} : tensor<?x?x100xf32>
  %y = nd.dot_general %p, %v batch [0] x [0] contract [2] x [1]
      : (tensor<?x?x100xf32>, tensor<?x100x4xf32>) -> tensor<?x?x4xf32>
  func.return %y : tensor<?x?x4xf32>
}
"""


def test_rows_known_only_when_it_runs() -> None:
    """Fewer rows than a band's run one by one; the scores of more are never as large as all."""
    program = sw.compile(ATTENTION, passes=_forced(16))
    for b, r in [(0, 3), (2, 0), (1, 1), (3, 7), (2, 16), (2, 41)]:
        q, k, v = _random(b, r, 8), _random(b, 100, 8), _random(b, 100, 4)
        scores = np.exp(q.astype(float) @ k.swapaxes(1, 2))
        want = scores / scores.sum(-1, keepdims=True) @ v
        np.testing.assert_allclose(program(q, k, v), want, atol=1e-5)


def test_memory_is_of_each_run() -> None:
    """Bands that threads run at a time compute into memory of their own."""
    (module,) = taken_down(
        ATTENTION.replace("?x?", "1x40").replace("?x100", "1x100"), "through(structured)"
    )
    (bands,) = taken_down(text_of(module), "fuse-bands{rows=8}")
    (planned,) = taken_down(text_of(bands), PARALLEL)
    text = text_of(planned)
    assert "scf.parallel" in text and "x40x100xf32>" not in text


def test_chosen_where_what_is_passed_on_leaves_the_caches() -> None:
    def block(x: Any, a: Any, b: Any, c: Any) -> Any:
        h = sw.nn.relu6(sw.nn.conv(x, a))
        return sw.nn.conv(sw.nn.relu6(sw.nn.conv(h, b, padding=1, stride=2, groups=96)), c)

    weights = [np.zeros(s, np.float32) for s in ((96, 16, 1, 1), (96, 1, 3, 3), (24, 96, 1, 1))]
    for images, banded in ((1, False), (8, True)):
        x = np.zeros((images, 16, 112, 112), np.float32)
        text = kernels_for(sw.jit(block).trace(x, *weights))
        assert ("scf.for" in text) == banded
    assert "x112x112x96xf32>" not in text  # the expanded image


HAND = """
func.func @main(%x: tensor<12x3xf32>, %v: tensor<3x5xf32>, %w: tensor<5x2xf32>) -> tensor<12x2xf32> {{
  %zero = arith.constant 0.0 : f32
  %a = tensor.empty() : tensor<12x5xf32>
  %b = linalg.fill ins(%zero : f32) outs(%a : tensor<12x5xf32>) -> tensor<12x5xf32>
  %h = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %v : tensor<12x3xf32>, tensor<3x5xf32>) outs(%b : tensor<12x5xf32>) {{
  ^bb0(%p: f32, %q: f32, %r: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %r, %m : f32
    linalg.yield %n : f32
  }} -> tensor<12x5xf32>
  %c = tensor.empty() : tensor<12x2xf32>
  %d = linalg.fill ins(%zero : f32) outs(%c : tensor<12x2xf32>) -> tensor<12x2xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%h, %w : tensor<12x5xf32>, tensor<5x2xf32>) outs(%d : tensor<12x2xf32>)
      attrs = {{kernel.schedule = #kernel.schedule<{levels}>}} {{
  ^bb0(%p: f32, %q: f32, %r: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %r, %m : f32
    linalg.yield %n : f32
  }} -> tensor<12x2xf32>
  func.return %y : tensor<12x2xf32>
}}
"""


def test_written_by_hand() -> None:
    (module,) = taken_down(HAND.format(levels="[parallel d0 by 5]"), "fuse-bands")
    x, v, w = _random(12, 3), _random(3, 5), _random(5, 2)
    assert "kernel.schedule<[parallel d0 by 5]>" in text_of(module)
    _close(Interpreter(module).call("main", [x, v, w])[0], x @ v @ w)


@pytest.mark.parametrize(
    "levels, said",
    [
        ("[for d0 by 5]", "a band is a list of levels"),
        ("[parallel d2 by 5]", "a band is a list of levels"),
        ("[parallel d1]", "no op before this one"),
    ],
)
def test_refused_by_hand(levels: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        taken_down(HAND.format(levels=levels), "fuse-bands")
