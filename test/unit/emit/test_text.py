"""The text itself: exact for a small program, every statement with its line, errors that help."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent

import pytest
from xdsl.dialects.builtin import ModuleOp

from stepwell.core.diagnostics import CompileError
from stepwell.lowering.emit import emit_c
from stepwell.lowering.emit.opencl import emit_opencl

Parse = Callable[[str], ModuleOp]

SMALL = """\
func.func @add(%x: memref<?xf64> {kernel.role = "input"}, %int: memref<?xf64> {kernel.role = "input"}, %y: memref<?xf64> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %sin = memref.load %x[%i] : memref<?xf64>
    %b = memref.load %int[%i] : memref<?xf64>
    %s = arith.addf %sin, %b : f64
    %t = math.sin %s : f64
    memref.store %t, %y[%i] : memref<?xf64>
  }
  func.return
}
func.func @add.shapes(%n: index, %m: index) -> index {
  func.return %n : index
}
"""

ADD = """\
    /* function add, from test.mlir:1 */
    static inline void func_add(const double *x, int64_t x_d0, const double *int_1, double *y) {
      for (int64_t i = 0; i < x_d0; i++) {  // test.mlir:5
        const double sin_1 = x[i];  // test.mlir:6
        const double b = int_1[i];  // test.mlir:7
        const double s = sin_1 + b;  // test.mlir:8
        const double t = sin(s);  // test.mlir:9
        y[i] = t;  // test.mlir:10
      }
    }

    void stepwell_add_shapes(const int64_t *dims, int64_t *sizes) {
      sizes[0] = func_add_shapes(dims[0]);  // test.mlir:1
    }
"""


ROWS = """\
func.func @rows(%x: memref<6x5x8xi32> {kernel.role = "input"}, %y: memref<6x2x8xi32> {kernel.role = "output"}, %z: memref<6x5x4xi32> {kernel.role = "output"}) {
  %s = memref.subview %x[0, 3, 0] [6, 2, 8] [1, 1, 1] : memref<6x5x8xi32> to memref<6x2x8xi32, strided<[40, 8, 1], offset: 24>>
  memref.copy %s, %y : memref<6x2x8xi32, strided<[40, 8, 1], offset: 24>> to memref<6x2x8xi32>
  %t = memref.subview %x[0, 0, 0] [6, 5, 4] [1, 1, 2] : memref<6x5x8xi32> to memref<6x5x4xi32, strided<[40, 8, 2]>>
  memref.copy %t, %z : memref<6x5x4xi32, strided<[40, 8, 2]>> to memref<6x5x4xi32>
  func.return
}
"""

COPIED_ROWS = """\
  for (int64_t i = 0; i < 6; i++)  // test.mlir:3
    __builtin_memcpy((y + i * 16), (s + i * 40), 64);  // test.mlir:3
"""

COPIED_ELEMENTS = """\
  for (int64_t i_1 = 0; i_1 < 6; i_1++)  // test.mlir:5
    for (int64_t i_2 = 0; i_2 < 5; i_2++)  // test.mlir:5
      for (int64_t i_3 = 0; i_3 < 4; i_3++)  // test.mlir:5
        z[i_1 * 20 + i_2 * 4 + i_3] = x[i_1 * 40 + i_2 * 8 + i_3 * 2];  // test.mlir:5
"""


def test_what_lies_without_gaps_in_both_is_copied_at_once(parsed: Parse) -> None:
    source = emit_c(parsed(ROWS), "rows").source
    assert COPIED_ROWS in source
    assert COPIED_ELEMENTS in source


def test_a_small_program_word_by_word(parsed: Parse) -> None:
    text = emit_c(parsed(SMALL), "add")
    assert dedent(ADD) in text.source
    assert "double sin(double);" in text.source
    assert "#include" not in text.source
    assert str(text.signature) == "add(x: float64[?], int: float64[?]) -> float64[?]"
    assert " * dims[1]     int.shape[0]" in text.header


def test_the_same_module_gives_the_same_text(parsed: Parse) -> None:
    assert emit_c(parsed(SMALL)).source == emit_c(parsed(SMALL)).source


def test_every_statement_names_a_source_line(parsed: Parse) -> None:
    text = emit_c(parsed(SMALL), "add").source
    functions = text[text.index("/* function") :]
    for line in functions.splitlines():
        if re.search(r"[;{]$", line) and line.startswith("  ") and "char *arena" not in line:
            raise AssertionError(f"no source line: {line}")
    assert len(re.findall(r"// test\.mlir:\d+", functions)) >= 8


def _error(parsed: Parse, body: str, arguments: str = "%x: memref<4xf32>") -> str:
    module = parsed(f"func.func @f({arguments}) {{\n{body}\n  func.return\n}}")
    with pytest.raises(CompileError) as found:
        emit_c(module)
    return str(found.value)


def test_an_op_without_a_rule(parsed: Parse) -> None:
    body = "  %t = tensor.empty() : tensor<4xf32>"
    assert _error(parsed, body) == (
        "test.mlir:2:1: error: tensor.empty cannot be written as C: no rule for it\n"
        "   help: register one with @emit(EmptyOp) from stepwell.lowering.emit, "
        "or lower the op before emission"
    )


def test_values_without_a_place_in_c(parsed: Parse) -> None:
    body = "  %t = arith.constant dense<0.0> : vector<3xf32>"
    assert "a value of type vector<3xf32> has no place in C" in _error(parsed, body)
    message = _error(parsed, "", "%x: memref<4xindex>")
    assert "argument 0 of @f cannot have elements of type index" in message
    message = _error(parsed, "", "%x: f32")
    assert "argument 0 of @f must be a memref, got f32" in message


def test_opencl_has_no_long_vectors(parsed: Parse) -> None:
    text = """
kernel.func @k(%x: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<32xf32>, vector<32xf32>
  vector.store %v, %x[%c0] : memref<32xf32>, vector<32xf32>
  kernel.return
}
func.func @main(%x: memref<32xf32> {kernel.role = "output"}) {
  kernel.launch @k outs(%x : memref<32xf32>)
  func.return
}"""
    with pytest.raises(CompileError, match="OpenCL has no vectors of 32 lanes"):
        emit_opencl(parsed(text))


def test_a_vector_for_several_sums_is_held_in_a_register(parsed: Parse) -> None:
    text = """
func.func @f(%x: memref<64xf32> {kernel.role = "input"}, %y: memref<8xf32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant dense<0.0> : vector<4xf32>
  %r:2 = scf.for %i = %c0 to %c64 step %c8 iter_args(%a = %z, %b = %z)
      -> (vector<4xf32>, vector<4xf32>) {
    %v = vector.load %x[%i] : memref<64xf32>, vector<4xf32>
    %j = arith.addi %i, %c4 : index
    %w = vector.load %x[%j] : memref<64xf32>, vector<4xf32>
    %p = arith.mulf %v, %v : vector<4xf32>
    %q = arith.mulf %v, %w : vector<4xf32>
    %s = arith.addf %a, %p : vector<4xf32>
    %t = arith.addf %b, %q : vector<4xf32>
    scf.yield %s, %t : vector<4xf32>, vector<4xf32>
  }
  vector.store %r#0, %y[%c0] : memref<8xf32>, vector<4xf32>
  vector.store %r#1, %y[%c4] : memref<8xf32>, vector<4xf32>
  func.return
}"""
    source = emit_c(parsed(text), "f").source
    assert "v = sw_held_f32x4(*(const f32x4_u *)&x[i]);" in source
    assert "w = *(const f32x4_u *)&x[i + 4];" in source


def test_what_is_compared_and_looked_at_for_nan_is_read_once(parsed: Parse) -> None:
    text = """
func.func @f(%x: memref<64xf32> {kernel.role = "input"}, %y: memref<4xf32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant dense<0.0> : vector<4xf32>
  %m = arith.constant dense<false> : vector<4xi1>
  %r, %n = scf.for %i = %c0 to %c64 step %c4 iter_args(%a = %z, %b = %m)
      -> (vector<4xf32>, vector<4xi1>) {
    %v = vector.load %x[%i] : memref<64xf32>, vector<4xf32>
    %s = arith.maxnumf %a, %v : vector<4xf32>
    %p = arith.cmpf une, %v, %v : vector<4xf32>
    %t = arith.ori %b, %p : vector<4xi1>
    scf.yield %s, %t : vector<4xf32>, vector<4xi1>
  }
  %e = arith.select %n, %z, %r : vector<4xi1>, vector<4xf32>
  vector.store %e, %y[%c0] : memref<4xf32>, vector<4xf32>
  func.return
}"""
    assert "v = sw_held_f32x4(*(const f32x4_u *)&x[i]);" in emit_c(parsed(text), "f").source


def test_elements_a_known_way_apart_are_written_so(parsed: Parse) -> None:
    text = """
    func.func @f(%x: memref<?x8xf32>, %y: memref<4xf32> {kernel.role = "output"}) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      scf.for %i = %c0 to %c4 step %c1 {
        %j = arith.addi %i, %c2 : index
        %k = arith.addi %j, %c1 : index
        %a = memref.load %x[%k, %i] : memref<?x8xf32>
        memref.store %a, %y[%i] : memref<4xf32>
      }
      func.return
    }"""
    source = emit_c(parsed(text), "f").source
    assert "a = x[i * 8 + i + 24];" in source
    assert "int64_t k" not in source


def test_elements_near_each_other_share_a_pointer(parsed: Parse) -> None:
    text = """
func.func @near(%x: memref<9x8xf32> {kernel.role = "input"}, %y: memref<9x8xf32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %j = arith.addi %i, %c1 : index
    %a = memref.load %x[%i, %c0] : memref<9x8xf32>
    %b = memref.load %x[%j, %c1] : memref<9x8xf32>
    %s = arith.addf %a, %b : f32
    memref.store %s, %y[%j, %c0] : memref<9x8xf32>
  } UNROLL
  func.return
}"""
    lines = emit_c(parsed(text.replace("UNROLL", ""))).source
    assert "const float *const x_at = &x[i * 8];" in lines
    assert "a = x_at[0];" in lines and "b = x_at[9];" in lines
    assert "y[i * 8 + 8] = s;" in lines, "one element alone has no pointer"
    unrolled = emit_c(parsed(text.replace("UNROLL", "{kernel.unroll}"))).source
    assert "b = x[i * 8 + 9];" in unrolled


def test_what_was_written_past_the_caches_is_waited_for_once(parsed: Parse) -> None:
    text = """
kernel.func @k(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%p) = (%c0) to (%c16) step (%c1) {
    %i = arith.muli %p, %c4 : index
    %v = vector.load %x[%i] : memref<64xf32>, vector<4xf32>
    vector.store %v, %y[%i] {nontemporal = true} : memref<64xf32>, vector<4xf32>
    scf.reduce
  }
  %w = vector.load %x[%c0] : memref<64xf32>, vector<4xf32>
  vector.store %w, %y[%c4] {nontemporal = true} : memref<64xf32>, vector<4xf32>
  kernel.return
}
func.func @f(%x: memref<64xf32> {kernel.role = "input"}, %y: memref<64xf32> {kernel.role = "output"}) {
  kernel.launch @k ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  func.return
}"""
    source = emit_c(parsed(text), "f").source
    body, _, rest = source.partition("static void kernel_k_body(")[2].partition("\n}\n")
    assert "sw_stream_f32x4(&y[i], v);" in body
    assert body.splitlines()[-1].startswith("  sw_fence();") and body.count("sw_fence") == 1
    assert rest.count("sw_stream_f32x4(") == rest.count("sw_fence();") == 1
    assert rest.index("sw_stream_f32x4(") < rest.index("sw_fence();")


def test_memory_is_asked_for(parsed: Parse) -> None:
    text = """
    func.func @f(%x: memref<4x8xf32>, %y: memref<4xf32> {kernel.role = "output"}) {
      %c1 = arith.constant 1 : index
      kernel.prefetch %x[%c1, %c1] : memref<4x8xf32>
      func.return
    }"""
    source = emit_c(parsed(text), "f").source
    assert "__builtin_prefetch(&x[9], 0, 2);" in source
    assert "const float *x" in source


def test_whole_vectors_of_small_integers_become_floats_and_come_from_them(parsed: Parse) -> None:
    """By way of i32, for which there are instructions."""
    text = """kernel.func @k(%x: memref<32xi8>, %y: memref<32xf32>) {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %v = vector.load %x[%c0] : memref<32xi8>, vector<16xi8>
      %w = arith.sitofp %v : vector<16xi8> to vector<16xf32>
      %a = arith.fptosi %w : vector<16xf32> to vector<16xi8>
      %b = arith.sitofp %a : vector<16xi8> to vector<16xf32>
      vector.store %b, %y[%c16] : memref<32xf32>, vector<16xf32>
      kernel.return
    }
    func.func @f(%x: memref<32xi8> {kernel.role = "input"}, %y: memref<32xf32> {kernel.role = "output"}) {
      kernel.launch @k ins(%x : memref<32xi8>) outs(%y : memref<32xf32>)
      func.return
    }"""
    source = emit_c(parsed(text), "f").source
    into = "__builtin_convertvector(__builtin_convertvector(sw_held_i8x16(v), i32x16), f32x16)"
    assert f"w = {into};" in source
    assert "__builtin_convertvector(__builtin_convertvector(safe, i32x16), i8x16)" in source


@pytest.mark.parametrize(("lanes", "kind"), [(64, "i8x64"), (32, "i16x32"), (8, "i32x8")])
def test_many_truth_values_that_a_loop_carries_are_narrow(
    parsed: Parse, lanes: int, kind: str
) -> None:
    truth = f"vector<{lanes}xi1>"
    text = f"""kernel.func @k(%x: memref<640xi1>, %y: memref<{lanes}xi1>) {{
      %c0 = arith.constant 0 : index
      %n = arith.constant 640 : index
      %step = arith.constant {lanes} : index
      %none = arith.constant dense<false> : {truth}
      %any = scf.for %i = %c0 to %n step %step iter_args(%a = %none) -> ({truth}) {{
        %v = vector.load %x[%i] : memref<640xi1>, {truth}
        %b = arith.ori %a, %v : {truth}
        scf.yield %b : {truth}
      }}
      vector.store %any, %y[%c0] : memref<{lanes}xi1>, {truth}
      kernel.return
    }}
    func.func @f(%x: memref<640xi1> {{kernel.role = "input"}}, %y: memref<{lanes}xi1> {{kernel.role = "output"}}) {{
      kernel.launch @k ins(%x : memref<640xi1>) outs(%y : memref<{lanes}xi1>)
      func.return
    }}"""
    assert f"  {kind} any = " in emit_c(parsed(text), "f").source


SUMS = """
func.func @main(%x: memref<?xf32> {kernel.role = "input"}, %y: memref<1xf32> {kernel.role = "output"}, %k: memref<1xi64> {kernel.role = "output"}) {
  kernel.launch @sums ins(%x : memref<?xf32>) outs(%y, %k : memref<1xf32>, memref<1xi64>)
  func.return
}
kernel.func @sums(%x: memref<?xf32>, %y: memref<1xf32>, %k: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.load %x[%c0] : memref<?xf32>
  %one = arith.constant 1 : i64
  %t, %m = scf.for %i = %c0 to %n step %c1 iter_args(%b = %a, %j = %one) -> (f32, i64) {
    %c = arith.addf %b, %a : f32
    %l = arith.addi %j, %one : i64
    scf.yield %c, %l : f32, i64
  }
  %p = scf.for %i = %c0 to %n step %c1 iter_args(%j = %m) -> (i64) {
    %l = arith.addi %j, %one : i64
    scf.yield %l : i64
  }
  memref.store %t, %y[%c0] : memref<1xf32>
  memref.store %p, %k[%c0] : memref<1xi64>
  kernel.return
}
"""


def test_sums_in_a_loop_keep_their_order(parsed: Parse) -> None:
    """Intel's compiler would multiply instead, where a loop adds one float again and again."""
    text = emit_opencl(parsed(SUMS), "main").source
    assert text.count("vectorize(disable)") == 1
    assert re.search(r"#pragma clang loop vectorize\(disable\).*\n  for \(long i ", text)
