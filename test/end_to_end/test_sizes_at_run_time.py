"""Sizes that only a call tells: right where they fit, an error with names, values and line elsewhere."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.diagnostics import CompileError
from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Interpreter
from stepwell.testing.op_rows.run import parsed

X = np.arange(6, dtype=np.float32)


def floats(*shape: int) -> Any:
    """Return 0, 1, 2, ... of a shape."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def both(text: str, *arguments: Any) -> tuple[Any, ...]:
    """Return what the compiled program gives, which must be what the reference gives."""
    want = call(Interpreter(parsed(text)), "main", arguments)
    got = sw.compile(text)(*arguments)
    got = got if isinstance(got, tuple) else (got,)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    return got


def refused(text: str, *arguments: Any) -> str:
    """Return what both the program and the reference say, which is the same save for the name."""
    with pytest.raises(ValueError) as said:
        call(Interpreter(parsed(text)), "main", arguments)
    with pytest.raises(ValueError) as got:
        sw.compile(text, name="m.mlir")(*arguments)
    message = str(got.value).splitlines()[-1]
    where, _, words = message.partition(": ")
    assert where.startswith("m.mlir:")
    assert words in str(said.value)
    return message


# -- (a) a `?` that is a constant


def test_a_result_size_that_is_a_constant_does_not_move_the_others() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?x?xf32> {
      %c = arith.constant 4 : index
      %b = nd.broadcast %x, sizes(%c) {dims = [1]} : tensor<?xf32> -> tensor<?x?xf32>
      func.return %b : tensor<?x?xf32>
    }"""
    assert both(text, X)[0].shape == (4, 6)


MADE = {
    "reshape": "nd.reshape %e, sizes(%c) : tensor<300xf32> -> tensor<?xf32>",
    "full": "nd.full 1.5, sizes(%c) : tensor<?xf32>",
    "iota": "nd.iota sizes(%c) {axis = 0} : tensor<?xf32>",
    "bits": "nd.random_bits %key, %start, sizes(%c) : tensor<?xui32>",
    "scan": """nd.scan () length(%c) : () -> tensor<?xf32> {
        %one = nd.full 1.0 : tensor<f32>
        nd.yield %one : tensor<f32>
      }""",
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_in_a_constant_size_stands_beside_what_is_not(name: str) -> None:
    kind = "ui32" if name == "bits" else "f32"
    text = f"""func.func @main(%x: tensor<?xf32>, %e: tensor<300xf32>,
        %key: tensor<2xui32>, %start: tensor<ui64>) -> (tensor<?x{kind}>, tensor<?xf32>) {{
      %c = arith.constant 300 : index
      %r = {MADE[name]}
      %n = nd.neg %x : tensor<?xf32>
      func.return %r, %n : tensor<?x{kind}>, tensor<?xf32>
    }}"""
    arguments = X, floats(300), np.array([1, 2], np.uint32), np.array(7, np.uint64)
    assert [r.shape for r in both(text, *arguments)] == [(300,), (6,)]


def test_what_types_tell_of_a_reshape_is_told_of_the_buffers_too() -> None:
    """A `?` that becomes axes of known sizes is known in the call's buffers, others need not be."""
    text = """func.func @main(%x: tensor<?xf32>) -> (tensor<2x?xf32>, tensor<?xf32>) {
      %c = arith.constant 3 : index
      %y = nd.reshape %x, sizes(%c) : tensor<?xf32> -> tensor<2x?xf32>
      %f = nd.full 3.0, sizes(%c, %c) : tensor<?x?xf32>
      %p = nd.matmul %f, %f : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      %n = arith.muli %c, %c : index
      %z = nd.reshape %p, sizes(%n) : tensor<?x?xf32> -> tensor<?xf32>
      func.return %y, %z : tensor<2x?xf32>, tensor<?xf32>
    }"""
    assert [y.shape for y in both(text, X)] == [(2, 3), (9,)]


def test_a_copy_between_buffers_whose_types_tell_different_sizes() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
      %c = arith.constant 3 : index
      %f = nd.full 3.0, sizes(%c, %c) : tensor<?x?xf32>
      %s = nd.slice %f[-2:-1:2, -2:-1] : tensor<?x?xf32> -> tensor<?x?xf32>
      %d = nd.concat %f, %f {axis = 1} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      func.return %s, %d : tensor<?x?xf32>, tensor<?x?xf32>
    }"""
    assert [y.shape for y in both(text, X)] == [(1, 1), (3, 6)]


# -- (b) sizes that must agree

GROWN = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %one = nd.full 1.0 : tensor<1xf32>
  %c = nd.concat %x, %one {axis = 0} : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
  %z = nd.add %c, %y : tensor<?xf32>
  func.return %z : tensor<?xf32>
}"""


def test_sizes_that_are_derived_must_agree() -> None:
    assert both(GROWN, X, floats(7))[0].shape == (7,)
    assert refused(GROWN, X, floats(6)) == (
        "m.mlir:4:3: nd.add: axis 0 of %c has size 7 (x.shape[0] + 1), "
        "but axis 0 of %y has size 6 (y.shape[0])"
    )
    refused(GROWN, floats(0), floats(0))


def test_a_product_with_a_grown_cache_wants_as_many_rows() -> None:
    text = """func.func @main(%p: tensor<1x?xf32>, %v: tensor<?x4xf32>, %n: tensor<1x4xf32>)
        -> tensor<1x4xf32> {
      %all = nd.concat %v, %n {axis = 0} : (tensor<?x4xf32>, tensor<1x4xf32>) -> tensor<?x4xf32>
      %y = nd.matmul %p, %all : (tensor<1x?xf32>, tensor<?x4xf32>) -> tensor<1x4xf32>
      func.return %y : tensor<1x4xf32>
    }"""
    both(text, floats(1, 6), floats(5, 4), floats(1, 4))
    assert "nd.matmul" in refused(text, floats(1, 6), floats(6, 4), floats(1, 4))


def test_a_broadcast_must_be_told_the_size_that_is_used() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %n = nd.dim %x {axis = 0} : tensor<?xf32>
      %b = nd.broadcast %x, sizes(%n) {dims = [1]} : tensor<?xf32> -> tensor<?x?xf32>
      %z = nd.add %b, %y : tensor<?x?xf32>
      func.return %z : tensor<?x?xf32>
    }"""
    both(text, X, floats(6, 6))
    assert "axis 0 of %y has size 5" in refused(text, X, floats(5, 6))


def test_a_reshape_keeps_the_number_of_elements() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?x2xf32> {
      %n = nd.dim %y {axis = 0} : tensor<?xf32>
      %r = nd.reshape %x, sizes(%n) : tensor<?x?xf32> -> tensor<?x2xf32>
      func.return %r : tensor<?x2xf32>
    }"""
    both(text, floats(3, 4), floats(6))
    assert refused(text, floats(3, 4), floats(5)) == (
        "m.mlir:3:7: nd.reshape: %x has 12 (x.shape[0] * x.shape[1]) elements, "
        "but %r would have 10 (2 * y.shape[0])"
    )


# -- (c) slices


def test_a_dynamic_slice_fits_into_what_it_is_taken_from() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %i: tensor<i32>) -> tensor<4xf32> {
      %y = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [4]}
        : (tensor<?xf32>, tensor<i32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }"""
    both(text, floats(4), np.array(2, np.int32))
    said = refused(text, floats(3), np.array(2, np.int32))
    assert said.endswith("cannot take 4 elements along axis 0 of %x, which has 3 (x.shape[0])")


def test_a_slice_of_a_size_that_the_call_tells() -> None:
    text = """func.func @main(%x: tensor<?x2xf32>, %i: tensor<i64>, %v: tensor<?xf32>)
        -> tensor<?x2xf32> {
      %n = nd.dim %v {axis = 0} : tensor<?xf32>
      %y = nd.dynamic_slice %x, starts(%i), sizes(%n) {axes = [0]}
        : (tensor<?x2xf32>, tensor<i64>) -> tensor<?x2xf32>
      func.return %y : tensor<?x2xf32>
    }"""
    for start in (-1, 0, 3, 9):
        for n in (0, 1, 5):
            both(text, floats(5, 2), np.array(start), floats(n))
    assert "cannot take 6 (v.shape[0]) elements along axis 0 of %x, which has 5" in refused(
        text, floats(5, 2), np.array(0), floats(6)
    )


def test_a_dynamic_update_fits_into_its_operand() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %u: tensor<?xf32>, %i: tensor<i32>) -> tensor<?xf32> {
      %y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0]}
        : (tensor<?xf32>, tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }"""
    both(text, floats(4), floats(4), np.array(2, np.int32))
    refused(text, floats(4), floats(5), np.array(2, np.int32))


# -- (d), (e) sizes below 0, and beyond memory

SIZED = """func.func @main(%x: tensor<?xf32>) -> tensor<f32> {{
  %n = nd.dim %x {{axis = 0}} : tensor<?xf32>
  %c = arith.constant {number} : index
  %m = arith.{op} %n, %c : index
  %i = nd.iota sizes(%m) {{axis = 0}} : tensor<?xf32>
  %y = nd.reduce_sum %i {{axes = [0]}} : tensor<?xf32> -> tensor<f32>
  func.return %y : tensor<f32>
}}"""


def test_a_size_is_not_negative() -> None:
    text = SIZED.format(number=4, op="subi")
    both(text, X)
    both(text, floats(4))
    assert "nd.iota: axis 0 of %i would have size -1 (x.shape[0] - 4)" in refused(text, floats(3))


@pytest.mark.parametrize("shift", [62, 63, 60, 46])
def test_a_size_is_one_that_memory_can_have(shift: int) -> None:
    text = SIZED.format(number=(1 << shift) - (shift == 63), op="muli")
    both(text, floats(0))
    for n in (1, 2, 4, 8):
        assert "elements, which no memory holds" in refused(text, floats(n))


def test_an_overflow_on_the_way_is_none_of_the_size() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %n = nd.dim %x {axis = 0} : tensor<?xf32>
      %big = arith.constant 4611686018427387904 : index
      %a = arith.muli %n, %big : index
      %b = arith.addi %a, %n : index
      %m = arith.subi %b, %a : index
      %y = nd.full 2.0, sizes(%m) : tensor<?xf32>
      func.return %y : tensor<?xf32>
    }"""
    assert both(text, X)[0].shape == (6,)


def test_sizes_that_can_never_agree_are_an_error_of_the_compiler() -> None:
    text = GROWN.replace("%c, %y", "%c, %x")
    with pytest.raises(CompileError, match=r"axis 0 of %c has size x.shape\[0\] \+ 1"):
        sw.compile(text)


# -- control flow


def test_branches_yield_one_size() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: tensor<i1>) -> tensor<?xf32> {
      %r = nd.if %c -> tensor<?xf32> {
        nd.yield %x : tensor<?xf32>
      } else {
        nd.yield %y : tensor<?xf32>
      }
      func.return %r : tensor<?xf32>
    }"""
    both(text, X, X + 1, np.array(False))
    assert "6 (x.shape[0]) in the first, 5" in refused(text, X, floats(5), np.array(True))


def test_what_a_loop_carries_keeps_its_size() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
      %zero = nd.full 0 : tensor<i32>
      %one = nd.full 1 : tensor<i32>
      %i, %r = nd.while (%k = %zero, %v = %x) : tensor<i32>, tensor<?xf32> {
        %go = nd.lt %k, %n : tensor<i32> -> tensor<i1>
        nd.condition %go
      } do (%j, %w) {
        %next = nd.add %j, %one : tensor<i32>
        %s = nd.slice %w[:4] : tensor<?xf32> -> tensor<?xf32>
        nd.yield %next, %s : tensor<i32>, tensor<?xf32>
      }
      func.return %r : tensor<?xf32>
    }"""
    both(text, floats(3), np.array(2, np.int32))
    assert "before the first step, 4" in refused(text, X, np.array(2, np.int32))


def test_a_scan_stacks_what_it_is_told() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?x?xf32> {
      %n = nd.dim %y {axis = 0} : tensor<?xf32>
      %r = nd.scan () over (%row = %x) sizes(%n) : (tensor<?x?xf32>) -> tensor<?x?xf32> {
        %s = nd.neg %row : tensor<?xf32>
        nd.yield %s : tensor<?xf32>
      }
      func.return %r : tensor<?x?xf32>
    }"""
    both(text, floats(3, 4), floats(4))
    assert "stacked value for %r has size 4" in refused(text, floats(3, 4), floats(5))


@pytest.mark.parametrize(
    "row", ["%f = nd.full 7, sizes(%n) : tensor<?xi32>", "%f = nd.add %a, %a : tensor<?xi32>"]
)
def test_a_scan_stacks_rows_of_another_size_than_it_reads(row: str) -> None:
    compiled = sw.compile(f"""
    func.func @main(%x: tensor<?x?xi32>, %a: tensor<?xi32>) -> tensor<?x?xi32> {{
      %n = nd.dim %a {{axis = 0}} : tensor<?xi32>
      %y = nd.scan () over (%r = %x) sizes(%n) : (tensor<?x?xi32>) -> tensor<?x?xi32> {{
        {row}
        nd.yield %f : tensor<?xi32>
      }}
      func.return %y : tensor<?x?xi32>
    }}""")
    found = compiled(np.ones((3, 7), np.int32), np.array([3, 4], np.int32))
    np.testing.assert_array_equal(found, [[7, 7] if "full" in row else [6, 8]] * 3)


def test_a_scan_carries_rows_of_another_size_than_it_reads() -> None:
    compiled = sw.compile("""
    func.func @main(%x: tensor<?x?xi32>, %a: tensor<?xi32>) -> (tensor<?xi32>, tensor<?x?xi32>) {
      %n = nd.dim %x {axis = 1} : tensor<?x?xi32>
      %s, %y = nd.scan (%c = %a) over (%r = %x) sizes(%n) : (tensor<?xi32>, tensor<?x?xi32>) -> (tensor<?xi32>, tensor<?x?xi32>) {
        %d = nd.add %c, %c : tensor<?xi32>
        %t = nd.add %r, %r : tensor<?xi32>
        nd.yield %d, %t : tensor<?xi32>, tensor<?xi32>
      }
      func.return %s, %y : tensor<?xi32>, tensor<?x?xi32>
    }""")
    last, rows = compiled(np.ones((3, 7), np.int32), np.array([3, 4], np.int32))
    np.testing.assert_array_equal(last, [24, 32])
    np.testing.assert_array_equal(rows, np.full((3, 7), 2))


def test_a_gather_reads_from_what_has_elements() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %i: tensor<?xi32>) -> tensor<?xf32> {
      %y = nd.gather %x, indices(%i) {axes = [0]} : (tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
      func.return %y : tensor<?xf32>
    }"""
    both(text, floats(0), np.zeros(0, np.int32))
    both(text, floats(2), np.array([5, -3, 1], np.int32))
    assert "nothing to read, but 3" in refused(text, floats(0), np.zeros(3, np.int32))


# -- where else programs run


def test_a_saved_program_checks(tmp_path: Any) -> None:
    sw.compile(GROWN, name="m.mlir").save(tmp_path)
    program = sw.load(tmp_path)
    assert program(X, floats(7)).shape == (7,)
    with pytest.raises(ValueError, match=r"m.mlir:4:3: nd.add: axis 0 of %c has size 7"):
        program(X, floats(6))


def test_who_links_a_program_is_told_too(tmp_path: Any) -> None:
    sw.compile(GROWN).save(tmp_path)
    library = ctypes.CDLL(str(tmp_path / "program.so"))
    assert library.stepwell_main_checks((ctypes.c_int64 * 2)(6, 7)) == 0
    wrong = (ctypes.c_int64 * 2)(6, 6)
    assert library.stepwell_main_checks(wrong) == 1
    assert library.stepwell_main(None, None, wrong, None) == 1, "before any array is touched"
    assert (
        "int32_t stepwell_main_checks(const int64_t *dims);" in (tmp_path / "program.h").read_text()
    )


def test_a_tool_points_at_the_line(tmp_path: Any) -> None:
    program, x = tmp_path / "m.mlir", tmp_path / "x.npy"
    program.write_text(GROWN)
    np.save(x, X)
    command = [
        sys.executable,
        "-m",
        "stepwell.tools.main",
        "run",
        program,
        "--input",
        x,
        "--input",
        x,
    ]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    place, source, caret = done.stderr.splitlines()
    assert place.startswith(
        f"{program}:4:3: error: nd.add: axis 0 of %c has size 7 (x.shape[0] + 1)"
    )
    assert source.endswith("%z = nd.add %c, %y : tensor<?xf32>") and caret.endswith("^")


def test_only_what_has_sizes_to_check_checks() -> None:
    assert "stepwell_main_checks" in sw.compile(GROWN).source
    static = GROWN.replace("%x: tensor<?", "%x: tensor<6").replace("(tensor<?", "(tensor<6")
    assert "stepwell_main_checks" not in sw.compile(static.replace("?", "7")).source


def test_a_scan_that_scatters_what_it_carries_onto_itself() -> None:
    text = """func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {
      %y = nd.scan (%c = %x) over (%r = %x) : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32> {
        %s = nd.scatter %c, %c, indices(%c) {axes = [0]}
          : (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
        nd.yield %s : tensor<?xi32>
      }
      func.return %y : tensor<?xi32>
    }"""
    both(text, np.array([3, 1, 0, 4, 2], np.int32))


# -- a sum whose length decides whether an operand is packed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32", "i8"])
@pytest.mark.parametrize("rows", ["150", "?"])
def test_a_product_over_a_sum_of_unknown_length(dtype: str, rows: str) -> None:
    x, w, y = f"tensor<{rows}x?x{dtype}>", f"tensor<?x97x{dtype}>", f"tensor<{rows}x97x{dtype}>"
    program = sw.compile(f"""func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %y = nd.matmul %x, %w : ({x}, {w}) -> {y}
      func.return %y : {y}
    }}""")
    kinds = {"f": "float", "i": "int"}
    kind, random = np.dtype(f"{kinds[dtype[0]]}{dtype[1:]}"), np.random.default_rng(0)
    for high in [150] if rows == "150" else [1, 7, 41, 150]:
        for deep in (0, 1, 7, 256, 1400, 3001):
            a, b = (random.integers(-1, 2, s).astype(kind) for s in ((high, deep), (deep, 97)))
            want = a.astype(np.int64) @ b.astype(np.int64)  # small integers, exact in any order
            np.testing.assert_array_equal(program(a, b), want.astype(kind))


# -- few rows of a product whose operand is packed before a loop


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_scan_over_few_rows_of_unknown_number(dtype: Any) -> None:
    def run(xs: Any, w: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = snp.tanh(h @ w + x)
            return h, h

        return sw.lax.scan(step, snp.zeros_like(xs[0]), xs)[1]

    size = sw.Dim("n")
    shapes = [sw.ShapeDtypeStruct(s, dtype) for s in ((20, size, 128), (128, 128))]
    program, random = sw.jit(run, input_signature=shapes), np.random.default_rng(0)
    w = (random.standard_normal((128, 128)) / 16).astype(dtype)
    for rows in (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 64, 67):
        xs = random.standard_normal((20, rows, 128)).astype(dtype)
        h, want = np.zeros((rows, 128)), list[Any]()
        for x in xs.astype(float):
            h = np.tanh(h @ w.astype(float) + x)
            want.append(h)
        close = 0.02 if dtype is np.float16 else 1e-4
        np.testing.assert_allclose(program(xs, w), want, rtol=close, atol=close)
    assert program.cache_info().programs <= 2  # one row and no rows may have their own


# -- an arena that grew


def test_an_arena_that_grew_for_a_large_call_shrinks_after_small_ones() -> None:
    text = """func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
      %a = nd.matmul %x, %w : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
      %b = nd.softmax %a {axis = 0} : tensor<?x64xf32>
      %c = nd.matmul %b, %w : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
      func.return %c : tensor<?x64xf32>
    }"""
    compiled, w = sw.compile(text), np.ones((64, 64), np.float32)
    program: Any = compiled.program
    small, large = np.ones((100, 64), np.float32), np.ones((20000, 64), np.float32)
    compiled(small, w)
    before = program.arena
    compiled(large, w)
    most = program.arena
    assert most >= 20000 * 64 * 4 > 2 * before
    for _ in range(40):  # now and then a large call: it stays
        compiled(small, w)
    compiled(large, w)
    for _ in range(63):
        compiled(small, w)
    assert program.arena == most
    np.testing.assert_allclose(compiled(small, w), 0.64, rtol=1e-5)
    assert program.arena == before
    np.testing.assert_allclose(compiled(large, w), 0.0032, rtol=1e-4)
    assert program.arena == most
