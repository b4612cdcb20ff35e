"""Every schedule of a kernel computes what the kernel without loops computes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from reading import all_dialects
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.parser import Parser

from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.types import places
from stepwell.lowering.linalg_to_loops import LinalgToLoops

assert upstream

AWKWARD = (0, 1, 3, 4, 5, 8, 11)
RANDOM = np.random.default_rng(7)


def both(text: str, arrays: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Run kernel @k before and after the pass; yield each argument as it is left."""
    context = all_dialects()
    module = Parser(context, text).parse_module()
    module.verify()
    before = [np.array(a) for a in arrays]
    Interpreter(module).call("k", before)
    LinalgToLoops().apply(context, module)
    module.verify()
    assert "linalg." not in str(module)
    after = [np.array(a) for a in arrays]
    Interpreter(module).call("k", after)
    return zip(before, after, strict=True)


def check(text: str, arrays: Sequence[Any], rtol: float = 1e-5) -> None:
    for want, got in both(text, arrays):
        assert want.dtype == got.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-6)


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def generic(maps: str, iterators: str, ins: str, outs: str, body: str, loops: str = "") -> str:
    """Spell a linalg.generic; ``maps`` are separated by semicolons, p and r are iterators."""
    names = {"p": '"parallel"', "r": '"reduction"'}
    dims = ", ".join(f"d{i}" for i in range(len(iterators)))
    each = ", ".join(f"affine_map<({dims}) -> ({m.strip()})>" for m in maps.split(";"))
    kinds = ", ".join(names[c] for c in iterators)
    ins = f" ins({ins})" if ins else ""
    extra = f" attrs = {{lanes = [{loops}]}}" if loops else ""
    return (
        f"linalg.generic {{indexing_maps = [{each}], iterator_types = [{kinds}]}}{ins} "
        f"outs({outs}){extra} {{\n{body}\n}}\n"
    )


def loops(axis: int, width: int, interleave: int = 1) -> str:
    return f"{axis}, {width}, {interleave}"


ADD = "^bb0(%aa: f32, %cc: f32):\n %rr = arith.addf %cc, %aa : f32\n linalg.yield %rr : f32"


@pytest.mark.parametrize(
    "attributes, choice",
    [
        ("", ""),
        ("kernel.shared = 1", ""),
        ("kernel.shared = 2, parallel = 2, grain = 8", ""),
        ("", loops(0, 4)),
        ("", loops(1, 4, 2)),
        ("kernel.shared = 2", loops(1, 4, 2)),
        ("kernel.shared = 2", loops(0, 4)),
        ("kernel.shared = 2, parallel = 1", loops(1, 4, 3)),
        ("kernel.shared = 2, parallel = 2", loops(1, 4, 2)),
        ("kernel.shared = 2, parallel = 2, tile = [3, 2]", loops(1, 4)),
        ("kernel.shared = 2, parallel = 1, tile = [2, 1]", loops(1, 4)),
        ("kernel.shared = 2, tile = [2, 2]", loops(1, 4)),
    ],
)
def test_elementwise_with_views(attributes: str, choice: str) -> None:
    """Broadcast, transposed, strided and reversed operands, two ops, one scratch buffer."""
    for m, n in [(0, 3), (1, 1), (3, 4), (5, 11), (8, 0), (7, 5)]:
        text = (
            f"""
        kernel.func @k(%x: memref<?x?xf32>, %b: memref<?xf32>, %t: memref<?x?xf32>,
                       %v: memref<{n}xf32>, %y: memref<?x?xf32>) attributes {{{attributes}}} {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %m = memref.dim %x, %c0 : memref<?x?xf32>
          %n = memref.dim %x, %c1 : memref<?x?xf32>
          %h = memref.alloc(%m, %n) : memref<?x?xf32>
        """
            + generic(
                f"d0, d1; d1; d1, d0; -d1 + {n - 1}; d0, d1",
                "pp",
                "%x, %b, %t, %v : memref<?x?xf32>, memref<?xf32>, memref<?x?xf32>, "
                f"memref<{n}xf32>",
                "%h : memref<?x?xf32>",
                """^bb0(%a: f32, %c: f32, %d: f32, %e: f32, %o: f32):
              %i = linalg.index 1 : index
              %j = arith.index_cast %i : index to i32
              %k = arith.sitofp %j : i32 to f32
              %p = arith.mulf %a, %c : f32
              %q = arith.addf %p, %d : f32
              %r = arith.maximumf %q, %e : f32
              %w = arith.cmpf olt, %r, %c : f32
              %z = arith.select %w, %k, %r : f32
              linalg.yield %z : f32""",
                choice,
            )
            + generic(
                "d0, d1; d0, d1", "pp", "%h : memref<?x?xf32>", "%y : memref<?x?xf32>", ADD, choice
            )
            + "kernel.return }"
        )
        check(text, [floats(m, n), floats(n), floats(n, m), floats(n), floats(m, n)])


SOFTMAX = """
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %top = memref.alloc(%m) : memref<?xf32>
  %sum = memref.alloc(%m) : memref<?xf32>
"""


def _softmax(attributes: str, n: int, inner: str, shared: str) -> str:
    """Maximum, exponentials with their sum, quotient; scratch of one row."""
    x, row = "memref<?x?xf32>", f"memref<?x{n}xf32>"
    return (
        f"kernel.func @k(%x: {x}, %y: {x}) attributes {{{attributes}}} {{"
        + SOFTMAX
        + f"%e = memref.alloc(%m) : {row}\n"
        + "linalg.fill ins(%low : f32) outs(%top : memref<?xf32>)\n"
        + generic(
            "d0, d1; d0",
            "pr",
            f"%x : {x}",
            "%top : memref<?xf32>",
            ADD.replace("addf", "maximumf"),
            shared or inner,
        )
        + "linalg.fill ins(%zero : f32) outs(%sum : memref<?xf32>)\n"
        + generic(
            "d0, d1; d0; d0, d1; d0",
            "pr",
            f"%x, %top : {x}, memref<?xf32>",
            f"%e, %sum : {row}, memref<?xf32>",
            """^bb0(%a: f32, %t: f32, %o: f32, %s: f32):
              %d = arith.subf %a, %t : f32
              %v = math.exp %d : f32
              %r = arith.addf %s, %v : f32
              linalg.yield %v, %r : f32, f32""",
            shared or inner,
        )
        + generic(
            "d0, d1; d0; d0, d1",
            "pp",
            f"%e, %sum : {row}, memref<?xf32>",
            f"%y : {x}",
            "^bb0(%a: f32, %s: f32, %o: f32):\n %r = arith.divf %a, %s : f32\n"
            " linalg.yield %r : f32",
            shared or inner,
        )
        + "kernel.return }"
    )


@pytest.mark.parametrize(
    "attributes, inner, shared",
    [
        ("kernel.shared = 1", "", ""),
        ("kernel.shared = 1, parallel = 1", loops(1, 4, 2), ""),
        ("kernel.shared = 1, parallel = 1", loops(1, 1, 4), ""),
        ("kernel.shared = 1, parallel = 1", "", loops(0, 4, 2)),
        ("kernel.shared = 1", "", loops(0, 2, 1)),
    ],
)
def test_softmax_passes_rows_in_registers(attributes: str, inner: str, shared: str) -> None:
    for m, n in [(0, 4), (1, 1), (3, 11), (9, 4), (5, 3)]:
        check(_softmax(attributes, n, inner, shared), [floats(m, n), floats(m, n)])


MATMUL = (
    "kernel.func @k(%x: memref<?x?xf32>, %w: memref<?x?xf32>, %b: memref<?xf32>, "
    "%y: memref<?x?xf32>) attributes {ATTRIBUTES} {\n%zero = arith.constant 0.0 : f32\n"
    "linalg.fill ins(%zero : f32) outs(%y : memref<?x?xf32>)\n"
    + generic(
        "d0, d2; d2, d1; d0, d1",
        "ppr",
        "%x, %w : memref<?x?xf32>, memref<?x?xf32>",
        "%y : memref<?x?xf32>",
        "^bb0(%a: f32, %c: f32, %s: f32):\n %p = arith.mulf %a, %c : f32\n"
        " %r = arith.addf %s, %p : f32\n linalg.yield %r : f32",
        "LOOPS",
    )
    + generic("d1; d0, d1", "pp", "%b : memref<?xf32>", "%y : memref<?x?xf32>", ADD, "AFTER")
    + "kernel.return }"
)


@pytest.mark.parametrize(
    "attributes, choice",
    [
        ("kernel.shared = 2", loops(1, 4, 2)),
        ("kernel.shared = 2", loops(2, 4, 2)),
        ("kernel.shared = 2, parallel = 2, tile = [3, 2]", loops(1, 4)),
        ("kernel.shared = 2, parallel = 1, tile = [2, 2]", loops(1, 4)),
        ("kernel.shared = 1, parallel = 1", loops(1, 4)),
        ("", loops(1, 4, 2)),
        ("", loops(0, 4, 1)),
    ],
)
@pytest.mark.parametrize("static", [False, True])
def test_matmul_with_bias(attributes: str, choice: str, static: bool) -> None:
    for m, n, k in [(1, 1, 1), (3, 8, 4), (7, 11, 5), (4, 13, 0), (0, 4, 2), (2, 3, 9)]:
        text = MATMUL.replace("ATTRIBUTES", attributes).replace("LOOPS", choice)
        own = choice == loops(2, 4, 2)
        after = loops(0, 1) if own else choice
        text = text.replace("AFTER", after)
        if own:
            text = text.replace(f"attrs = {{lanes = [{after}]}}", "")
        if static:
            for name, shape in (("x", (m, k)), ("w", (k, n)), ("y", (m, n))):
                text = text.replace(f"%{name}: memref<?x?xf32>", f"%{name}: memref<{shape}xf32>")
            text = _static(text, m, n, k)
        check(text, [floats(m, k), floats(k, n), floats(n), floats(m, n)])


def _static(text: str, m: int, n: int, k: int) -> str:
    shapes = {"x": f"{m}x{k}", "w": f"{k}x{n}", "y": f"{m}x{n}"}
    for name, shape in {"x": (m, k), "w": (k, n), "y": (m, n)}.items():
        text = text.replace(f"%{name}: memref<{shape}xf32>", f"%{name}: memref<{shapes[name]}xf32>")
    text = text.replace(
        "%x, %w : memref<?x?xf32>, memref<?x?xf32>",
        f"%x, %w : memref<{shapes['x']}xf32>, memref<{shapes['w']}xf32>",
    )
    return text.replace("(%y : memref<?x?xf32>", f"(%y : memref<{shapes['y']}xf32>").replace(
        "outs(%y : memref<?x?xf32>", f"outs(%y : memref<{shapes['y']}xf32>"
    )


@pytest.mark.parametrize(
    "choice, split",
    list(itertools.product(["", loops(0, 4, 2), loops(0, 4), loops(0, 1, 3)], [0, 1, 3])),
)
def test_full_reductions_in_runs(choice: str, split: int) -> None:
    attributes = f"split = {split}" if split else ""
    for n, size in [*((n, str(n)) for n in AWKWARD), (0, "?"), (7, "?")]:
        x = f"%x : memref<{size}xf32>"
        text = (
            f"kernel.func @k({x.replace(' ', '')}, %s: memref<f32>, %t: memref<f32>, %u: memref<f32>)"
            f" attributes {{{attributes}}} {{ %one = arith.constant 1.0 : f32\n"
            "linalg.fill ins(%one : f32) outs(%s : memref<f32>)\n"
            + generic(
                "d0; ; ",
                "r",
                x,
                "%s, %t : memref<f32>, memref<f32>",
                """^bb0(%a: f32, %p: f32, %q: f32):
                  %r = arith.addf %p, %a : f32
                  %m = arith.maximumf %a, %q : f32
                  linalg.yield %r, %m : f32, f32""",
                choice,
            )
            + generic(" ; ", "", "%s : memref<f32>", "%u : memref<f32>", ADD)
            + "kernel.return }"
        )
        given = floats(n)
        check(text, [given, floats(), floats(), floats()])
        if n > 1:
            given[n // 2] = np.nan
            check(text, [given, floats(), floats(), floats()])


def test_the_longest_loop_is_cut() -> None:
    for shape in ((3, 40), (40, 3), (2, 0)):
        x = "x".join(map(str, shape))
        text = (
            f"kernel.func @k(%x: memref<{x}xf32>, %s: memref<f32>) attributes {{split = 4}} {{"
            + generic(
                "d0,d1; ", "rr", f"%x : memref<{x}xf32>", "%s : memref<f32>", ADD, loops(1, 4)
            )
            + "kernel.return }"
        )
        check(text, [floats(*shape), floats()])


INTEGERS = {"addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"}


@pytest.mark.parametrize("op", sorted(INTEGERS))
def test_integer_combiners(op: str) -> None:
    for bits, axis in itertools.product((8, 32, 64), (0, 1)):
        body = ADD.replace("arith.addf", f"arith.{op}").replace("f32", f"i{bits}")
        text = (
            f"kernel.func @k(%x: memref<?x?xi{bits}>, %y: memref<?xi{bits}>) {{"
            + generic(
                "d0, d1; d0",
                "pr",
                f"%x : memref<?x?xi{bits}>",
                f"%y : memref<?xi{bits}>",
                body,
                loops(axis, 4, 2),
            )
            + "kernel.return }"
        )
        x = RANDOM.integers(-100, 100, (6, 13)).astype(f"i{bits // 8}")
        check(text, [x, x[:, 0].copy()], rtol=0)


def test_booleans() -> None:
    for axis in (0, 1):
        text = (
            "kernel.func @k(%x: memref<?x?xi1>, %y: memref<?xi1>) {"
            + generic(
                "d0, d1; d0",
                "pr",
                "%x : memref<?x?xi1>",
                "%y : memref<?xi1>",
                ADD.replace("addf", "andi").replace("f32", "i1"),
                loops(axis, 4),
            )
            + "kernel.return }"
        )
        check(text, [RANDOM.random((6, 9)) < 0.8, np.ones(6, np.bool_)], rtol=0)


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_halves(half: str) -> None:
    text = (
        f"kernel.func @k(%x: memref<?x?x{half}>, %y: memref<?xf32>, %z: memref<?x?x{half}>) "
        "attributes {kernel.shared = 1} {"
        + generic(
            "d0, d1; d0",
            "pr",
            f"%x : memref<?x?x{half}>",
            "%y : memref<?xf32>",
            f"""^bb0(%a: {half}, %c: f32):
              %w = arith.extf %a : {half} to f32
              %s = arith.addf %c, %w : f32
              linalg.yield %s : f32""",
            loops(1, 4, 2),
        )
        + generic(
            "d0, d1; d0; d0, d1",
            "pp",
            f"%x, %y : memref<?x?x{half}>, memref<?xf32>",
            f"%z : memref<?x?x{half}>",
            f"""^bb0(%a: {half}, %c: f32, %o: {half}):
              %w = arith.extf %a : {half} to f32
              %s = arith.mulf %c, %w : f32
              %t = arith.truncf %s : f32 to {half}
              linalg.yield %t : {half}""",
            loops(1, 4),
        )
        + "kernel.return }"
    )
    x = floats(3, 11)
    x = x.astype(np.float16) if half == "f16" else (x.view(np.uint32) >> 16).astype(np.uint16)
    check(text, [x, floats(3), x.copy()], rtol=1e-2)


@pytest.mark.parametrize("attributes, choice", [("", ""), ("kernel.shared = 1", loops(0, 4, 2))])
def test_argmax_by_columns(attributes: str, choice: str) -> None:
    text = (
        "kernel.func @k(%x: memref<?x?xf32>, %v: memref<?xf32>, %p: memref<?xi32>) "
        f"attributes {{{attributes}}} {{ %low = arith.constant 0xFF800000 : f32\n"
        "%none = arith.constant 0 : i32\n"
        "linalg.fill ins(%low : f32) outs(%v : memref<?xf32>)\n"
        "linalg.fill ins(%none : i32) outs(%p : memref<?xi32>)\n"
        + generic(
            "d1, d0; d0; d0",
            "pr",
            "%x : memref<?x?xf32>",
            "%v, %p : memref<?xf32>, memref<?xi32>",
            """^bb0(%a: f32, %b: f32, %q: i32):
              %i = linalg.index 1 : index
              %j = arith.index_cast %i : index to i32
              %c = arith.cmpf ogt, %a, %b : f32
              %m = arith.select %c, %a, %b : f32
              %n = arith.select %c, %j, %q : i32
              linalg.yield %m, %n : f32, i32""",
            choice,
        )
        + "kernel.return }"
    )
    for m, n in [(4, 1), (3, 11), (5, 8)]:
        check(text, [floats(m, n), floats(n), np.zeros(n, np.int32)], rtol=0)


@pytest.mark.parametrize("choice", ["", loops(0, 4)])
def test_cumulative_sum_runs_in_order(choice: str) -> None:
    text = (
        "kernel.func @k(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %s: memref<?xf32>) {"
        "%zero = arith.constant 0.0 : f32\n"
        "linalg.fill ins(%zero : f32) outs(%s : memref<?xf32>)\n"
        + generic(
            "d0, d1; d0, d1; d0",
            "pr",
            "%x : memref<?x?xf32>",
            "%y, %s : memref<?x?xf32>, memref<?xf32>",
            """^bb0(%a: f32, %o: f32, %c: f32):
              %r = arith.addf %c, %a : f32
              linalg.yield %r, %r : f32, f32""",
            choice,
        )
        + "kernel.return }"
    )
    for m, n in [(3, 5), (9, 4), (2, 0)]:
        check(text, [floats(m, n), floats(m, n), floats(m)], rtol=1e-6)


@pytest.mark.parametrize(
    "choice, shared", [("", 0), (loops(0, 4, 2), 1), (loops(1, 2), 0), (loops(1, 2, 2), 1)]
)
def test_strided_windows(choice: str, shared: int) -> None:
    """A window sum with stride 2; the window's size is told by a buffer nobody fills."""
    text = (
        f"kernel.func @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes "
        f"{{kernel.shared = {shared}}} {{ %zero = arith.constant 0.0 : f32\n"
        "%w = memref.alloc() : memref<3xf32>\n"
        "linalg.fill ins(%zero : f32) outs(%y : memref<?xf32>)\n"
        + generic(
            "d0 * 2 + d1; d1; d0",
            "pr",
            "%x, %w : memref<?xf32>, memref<3xf32>",
            "%y : memref<?xf32>",
            "^bb0(%a: f32, %u: f32, %c: f32):\n %s = arith.addf %c, %a : f32\n"
            " linalg.yield %s : f32",
            choice,
        )
        + "kernel.return }"
    )
    for n in (1, 4, 11):
        check(text, [floats(2 * n + 1), floats(n)])


@pytest.mark.parametrize("choice", ["", loops(0, 4), loops(1, 4, 2)])
def test_gather_in_the_body(choice: str) -> None:
    text = (
        "kernel.func @k(%t: memref<?x?xf32>, %p: memref<?xi64>, %y: memref<?x?xf32>) "
        "attributes {kernel.shared = 2} {"
        + generic(
            "d0; d0, d1",
            "pp",
            "%p : memref<?xi64>",
            "%y : memref<?x?xf32>",
            """^bb0(%a: i64, %o: f32):
              %i = arith.index_cast %a : i64 to index
              %j = linalg.index 1 : index
              %v = memref.load %t[%i, %j] : memref<?x?xf32>
              linalg.yield %v : f32""",
            choice,
        )
        + "kernel.return }"
    )
    check(text, [floats(6, 9), RANDOM.integers(0, 6, 5), floats(5, 9)], rtol=0)


def test_loops_written_by_hand_keep_their_place() -> None:
    text = (
        """kernel.func @k(%x: memref<?xf32>, %y: memref<?xf32>) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %n = memref.dim %x, %c0 : memref<?xf32>
          %t = memref.alloc(%n) : memref<?xf32>
          linalg.fill ins(%two : f32) outs(%t : memref<?xf32>)
          scf.for %i = %c0 to %n step %c1 {
            %a = memref.load %x[%i] : memref<?xf32>
            memref.store %a, %t[%i] : memref<?xf32>
          }
          """.replace("%c1 =", "%two = arith.constant 2.0 : f32\n %c1 =")
        + generic("d0; d0", "p", "%t : memref<?xf32>", "%y : memref<?xf32>", ADD, loops(0, 4))
        + "kernel.return }"
    )
    check(text, [floats(7), floats(7)])


def test_every_op_has_a_location() -> None:
    context = all_dialects()
    text = _softmax("kernel.shared = 1, parallel = 1", 11, loops(1, 4, 2), "")
    module = Parser(context, text).parse_module()
    for line, op in enumerate(module.walk(), 1):
        op.location = FileLineColLoc(StringAttr("k.mlir"), IntAttr(line), IntAttr(1))
    LinalgToLoops().apply(context, module)
    assert [op.name for op in module.walk() if not places(op.location)] == []
