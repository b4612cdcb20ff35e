"""Images read within borders that are never made: hand-written kernels in the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nestings import write_levels
from xdsl.context import Context
from xdsl.dialects import scf, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe

from stepwell.core.diagnostics import CompileError
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.lowering.linalg_to_loops import LinalgToLoops

assert upstream

RANDOM = np.random.default_rng(7)
KERNEL = """
kernel.func @k(%x: {x}, %w: memref<{r}x{s}xf32>, %v: f32, %y: {y}) attributes {{kernel.shared = 3, {schedule}}} {{
  %zero = arith.constant 0.0 : f32
  %i0 = arith.constant 0 : index
  %n = memref.dim %x, %i0 : {x}
  %p = memref.alloc({n}) : {p}
  linalg.fill ins(%v : f32) outs(%p : {p})
  linalg.generic {{kernel.border = array<i64: 1, 2>, indexing_maps = [
      affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1 + {top}, d2 + {left})>],
      iterator_types = ["parallel", "parallel", "parallel"]}} ins(%x : {x}) outs(%p : {p}) {{
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }}
  linalg.fill ins(%zero : f32) outs(%y : {y})
  linalg.generic {{indexing_maps = [
      affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * {down} + d3, d2 * {along} + d4 * {apart})>,
      affine_map<(d0, d1, d2, d3, d4) -> (d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}}
      ins(%p, %w : {p}, memref<{r}x{s}xf32>) outs(%y : {y})
      attrs = {{lanes = [2, {width}, 1]}} {{
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %acc, %m : f32
    linalg.yield %t : f32
  }}
  kernel.return
}}
"""


def _parse(text: str) -> tuple[Context, ModuleOp]:
    context = Context()
    for name, load in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, load)
    module = Parser(context, text).parse_module()
    write_levels(module)
    module.verify()
    return context, module


def _kernel(
    size: tuple[int, int, int],
    window: tuple[int, int],
    border: tuple[int, int, int, int],
    steps: tuple[int, int, int] = (1, 1, 1),
    schedule: str = "tile = [2, 1], unroll",
    known: bool = True,
    width: int = 4,
) -> tuple[str, list[Any]]:
    """Spell a kernel over ``size``, and make its operands."""
    (n, h, w), (r, s), (top, low, left, right) = size, window, border
    down, along, apart = steps
    whole = (n, h + top + low, w + left + right)
    out = (n, (whole[1] - r) // down + 1, (whole[2] - (s - 1) * apart - 1) // along + 1)

    def buffer(shape: tuple[int, int, int]) -> str:
        return f"memref<{'' if known else '?x'}{'x'.join(map(str, shape[not known :]))}xf32>"

    x, p, y = (buffer(shape) for shape in (size, whole, out))
    text = KERNEL.format(
        **{"x": x, "p": p, "y": y, "r": r, "s": s, "top": top, "left": left, "down": down},
        **{"along": along, "apart": apart, "width": width, "schedule": schedule},
        n="" if known else "%n",
    ).replace(" + 0", "")
    arrays: list[Any] = [
        RANDOM.integers(-9, 9, shape).astype(np.float32) for shape in (size, window)
    ]
    return text, [*arrays, np.float32(3), np.zeros(out, np.float32)]


def _check(text: str, arrays: list[Any]) -> str:
    context, module = _parse(text)
    want = [a.copy() for a in arrays]
    Interpreter(module).call("k", want)
    LinalgToLoops().apply(context, module)
    module.verify()
    assert "linalg." not in str(module) and "memref.alloc" not in str(module)
    Interpreter(module).call("k", arrays)
    np.testing.assert_array_equal(arrays[-1], want[-1])
    return str(module)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    "schedule",
    [
        "tile = [2, 1], unroll",
        "tile = [3, 2], parallel = 1",
        "tile = [4, 1], parallel = 3",
        "parallel = 2",
    ],
)
def test_borders_of_any_size(schedule: str, known: bool) -> None:
    for size, window, border in [
        ((2, 5, 13), (3, 3), (1, 1, 1, 1)),
        ((1, 5, 4), (2, 5), (1, 3, 2, 4)),
        ((1, 3, 14), (1, 2), (4, 0, 1, 6)),
        ((2, 2, 3), (3, 3), (1, 1, 1, 1)),
        ((0, 6, 9), (3, 1), (1, 1, 0, 0)),
    ]:
        _check(*_kernel(size, window, border, schedule=schedule, known=known))


def test_strides_and_dilations() -> None:
    for steps in [(2, 1, 1), (1, 2, 1), (2, 2, 3), (3, 1, 2)]:
        _check(*_kernel((1, 5, 11), (3, 3), (1, 1, 2, 2), steps))
    for columns, steps in [(40, (2, 2, 1)), (41, (1, 3, 1)), (37, (1, 4, 1))]:
        _check(*_kernel((1, 9, columns), (5, 5), (2, 2, 2, 2), steps))


def test_inside_there_are_no_tests() -> None:
    text, _ = _kernel((1, 20, 40), (3, 3), (1, 1, 1, 1))
    context, module = _parse(text)
    LinalgToLoops().apply(context, module)
    rows = [op for op in module.walk() if isinstance(op, scf.ForOp) and not op.iter_args]
    assert len(rows) == 4  # columns in the first, the middle and the last tile of rows, and these
    assert sum(any(isinstance(o, scf.IfOp) for o in op.walk()) for op in rows) == 2


@pytest.mark.parametrize("tile", [3, 4, 7])
def test_low_tiles_at_the_edges(tile: int) -> None:
    for size, window, border, steps in [
        ((1, 28, 9), (3, 3), (1, 1, 1, 1), (1, 1, 1)),
        ((2, 23, 10), (5, 5), (2, 2, 2, 2), (1, 1, 1)),
        ((1, 31, 13), (4, 2), (3, 0, 1, 0), (1, 1, 1)),
        ((1, 37, 11), (5, 3), (1, 3, 1, 1), (2, 1, 1)),
        ((1, 17, 12), (1, 3), (0, 0, 2, 0), (1, 1, 1)),
        ((1, 16, 12), (2, 5), (1, 5, 4, 4), (1, 1, 2)),
        ((1, 12, 12), (14, 3), (6, 7, 1, 1), (1, 1, 1)),
    ]:
        schedule = f"tile = [{tile}, 1], unroll"
        _check(*_kernel(size, window, border, steps, schedule))


def test_low_tiles_are_less_code() -> None:
    text, _ = _kernel((1, 28, 9), (3, 3), (1, 1, 1, 1), schedule="tile = [7, 1]")
    context, module = _parse(text)
    LinalgToLoops().apply(context, module)
    stores = [op for op in module.walk() if isinstance(op, vector.StoreOp)]
    assert len(stores) == 3 * (3 + 7 + 4)  # vectors of 3 columns, each in tiles of so many rows


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("linalg.yield %a", "linalg.yield %b", "kernel.border marks a copy"),
        ("array<i64: 1, 2>", "array<i64: 2>", "kernel.border names each axis"),
        ("(d0, d1 + 1, d2 + 1)>]", "(d0, d2 + 1, d1 + 1)>]", "kernel.border marks a copy"),
        ("  linalg.fill ins(%v : f32) outs(%p : memref<1x7x7xf32>)\n", "", "which one fill writes"),
        (
            "tile = [2, 1], unroll",
            "tile = [2, 1], blocks = [2, 4, 4]",
            "a sum in steps needs two operands",
        ),
    ],
)
def test_what_is_no_border(old: str, new: str, message: str) -> None:
    text, _ = _kernel((1, 5, 5), (3, 3), (1, 1, 1, 1))
    assert old in text
    context, module = _parse(text.replace(old, new, 1))
    with pytest.raises(CompileError, match=message):
        LinalgToLoops().apply(context, module)
