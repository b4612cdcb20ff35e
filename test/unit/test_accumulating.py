"""Reductions of linalg.generic: many points at a time are as one at a time, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.upstream import accumulating
from stepwell.dialects.upstream import linalg as evaluation
from stepwell.driver.registry import registry

FLOATS = ("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf")
INTEGERS = ("addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori")
KINDS = [
    *((combine, kind) for combine in FLOATS for kind in ("f16", "f32", "f64", "bf16")),
    *((combine, kind) for combine in INTEGERS for kind in ("i1", "i8", "i32", "i64")),
]
NUMPY = {"f16": "f2", "f32": "f4", "f64": "f8", "bf16": "f4", "i1": "?"}


def module(text: str) -> Any:
    return parse_module(registry().context(), text, "<test>")


def run_both(text: str, *arrays: Any) -> tuple[Any, Any, int]:
    """Return the result one point at a time, the result now, and how many ops fewer that took."""
    parsed = module(text)
    found: list[Any] = []
    left: list[int] = []
    now = evaluation.accumulation_of
    for how in (lambda *_: None, now):
        evaluation.accumulation_of = how  # type: ignore[assignment]
        interpreter = Interpreter(parsed, fuel=1 << 40)
        try:
            found.append(interpreter.call("main", arrays)[0])
        finally:
            evaluation.accumulation_of = now
        assert interpreter.fuel is not None
        left.append(interpreter.fuel)
    return found[0], found[1], left[1] - left[0]


def filled(kind: str, *shape: int) -> Any:
    random = np.random.default_rng(len(shape))
    name = NUMPY.get(kind, f"i{int(kind[1:] or 8) // 8}" if kind[0] == "i" else "f4")
    if kind[0] == "i":
        return random.integers(-100, 100, shape).astype(name)
    x = random.standard_normal(shape).astype(name)
    x.reshape(-1)[:4] = np.nan, -0.0, 0.0, np.inf
    return (x.view("u4") & np.uint32(0xFFFF0000)).view("f4") if kind == "bf16" else x


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("combine", "kind"), KINDS)
def test_rows_are_combined_in_order(combine: str, kind: str, first: bool) -> None:
    operands = "%o, %a" if first else "%a, %o"
    text = f"""
    func.func @main(%x: tensor<5x7x11x{kind}>, %y: tensor<7x{kind}>) -> tensor<7x{kind}> {{
      %z = linalg.generic {{
        indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d0, d2)>, affine_map<(d0, d1, d2) -> (d0)>],
        iterator_types = ["parallel", "reduction", "reduction"]
      }} ins(%x : tensor<5x7x11x{kind}>) outs(%y : tensor<7x{kind}>) {{
      ^bb0(%a: {kind}, %o: {kind}):
        %r = arith.{combine} {operands} : {kind}
        linalg.yield %r : {kind}
      }} -> tensor<7x{kind}>
      func.return %z : tensor<7x{kind}>
    }}
    """
    before, now, fewer = run_both(text, filled(kind, 5, 7, 11), filled(kind, 7))
    assert before.dtype == now.dtype
    assert_array_equal(before, now)
    if kind not in ("bf16", "i1") and combine not in ("maxui", "minui"):
        assert fewer > 50


@pytest.mark.parametrize(
    "sizes", [(3, 9, 4), (70, 5, 3), (0, 4, 4), (3, 0, 4), (9, 9, 1), (1, 1, 1)]
)
@pytest.mark.parametrize("points", [1, 40, 1 << 20])
def test_products_are_added_in_order(
    sizes: tuple[int, int, int], points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulating, "POINTS", points)
    m, k, n = sizes
    text = f"""
    func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{k}x{n}xf32>, %y: tensor<{m}x{n}xf32>)
        -> tensor<{m}x{n}xf32> {{
      %z = linalg.generic {{
        indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>,
                         affine_map<(d0, d1, d2) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel", "reduction"]
      }} ins(%x, %w : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) outs(%y : tensor<{m}x{n}xf32>) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        %i = linalg.index 2 : index
        %j = arith.index_cast %i : index to i32
        %f = arith.sitofp %j : i32 to f32
        %p = arith.mulf %a, %b : f32
        %q = arith.addf %p, %f : f32
        %r = arith.addf %o, %q : f32
        linalg.yield %r : f32
      }} -> tensor<{m}x{n}xf32>
      func.return %z : tensor<{m}x{n}xf32>
    }}
    """
    random = np.random.default_rng(0)
    shapes = ((m, k), (k, n), (m, n))
    before, now, _ = run_both(text, *(random.standard_normal(s, np.float32) for s in shapes))
    assert_array_equal(before, now)


def test_what_needs_the_last_result_runs_point_by_point() -> None:
    text = """
    func.func @main(%x: tensor<9xf32>, %y: tensor<f32>) -> tensor<f32> {
      %z = linalg.generic {
        indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
        iterator_types = ["reduction"]
      } ins(%x : tensor<9xf32>) outs(%y : tensor<f32>) {
      ^bb0(%a: f32, %o: f32):
        %p = arith.mulf %a, %o : f32
        %r = arith.addf %o, %p : f32
        linalg.yield %r : f32
      } -> tensor<f32>
      func.return %z : tensor<f32>
    }
    """
    before, now, fewer = run_both(
        text, np.arange(9, dtype=np.float32), np.float32(1) + np.zeros(())
    )
    assert_array_equal(before, now)
    assert fewer == 0


def test_a_running_result_is_written_at_every_point() -> None:
    text = """
    func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>, %s: tensor<f32>) -> tensor<9xf32> {
      %z, %t = linalg.generic {
        indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
        iterator_types = ["reduction"]
      } ins(%x : tensor<9xf32>) outs(%y, %s : tensor<9xf32>, tensor<f32>) {
      ^bb0(%a: f32, %o: f32, %c: f32):
        %r = arith.addf %c, %a : f32
        linalg.yield %r, %r : f32, f32
      } -> (tensor<9xf32>, tensor<f32>)
      func.return %z : tensor<9xf32>
    }
    """
    x = np.arange(9, dtype=np.float32)
    before, now, _ = run_both(text, x, x, np.zeros((), np.float32))
    assert_array_equal(before, now)
    assert_array_equal(now, np.cumsum(x))
