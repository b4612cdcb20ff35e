"""What damaged texts have found: each of these once ended otherwise than in a result or one message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from any_text.modes import answer, tried
from stepwell.dialects import readings
from stepwell.dialects.nd.arithmetic import NegOp

LLVM = 'sym_name = "f", function_type = !llvm.func<void ()>, CConv = #llvm.cconv<ccc>, linkage = #llvm.linkage<external>, visibility_ = 0 : i64'


@pytest.mark.parametrize(
    ("mode", "text", "said"),
    [
        (
            "check through(loops)",
            "func.func @impl(%x: i32) -> (i32, i32) {}",
            "1:1: error: 'func.func': an empty block has no terminator: there must be func.return at least",
        ),
        (
            "check through(loops)",
            "func.func @f() {\n  %0 = arith.constant 1 : i32\n}",
            "1:1: error: 'func.func': its body ends in arith.constant, which is no terminator",
        ),
        (
            "read",
            f'"llvm.func"() <{{{LLVM}, unnamed_addr = 7 : i64}}> ({{}}) : () -> ()',
            "1:1: error: 'llvm.func' cannot be printed: there is no unnamed_addr 7",
        ),
        (
            "read",
            'func.func private @f()\n"riscv_func.func"() ({\n  "riscv_func.return"() : () -> ()\n}) {sym_name = "g", function_type = () -> (), sym_visibility = "x"} : () -> ()',
            "2:1: error: 'riscv_func.func': sym_visibility is one of public, private, nested, not \"x\"",
        ),
        (
            "passes canonicalize,cse,dce",
            '"my.op"() {a = [0.0 : f128, -1.5e10 : f80]} : () -> ()',
            "",
        ),
        (
            "read",
            '"my.op"() {a = 0.3 : f80} : () -> ()',
            "1:16: error: only numbers that f64 has too can be read as f80",
        ),
        ("read", 'scf.if %c {\n  "my.op"() : () -> ()\n}\n%c = "my.c"() : () -> i1', ""),
        (
            "passes bufferize",
            "func.func @f(%x: tensor<5xi32>, %i: i32) -> (tensor<5xi32>, i32) {\n  func.return %x, %i : tensor<5xi32>, i32\n}",
            "1:1: error: a buffer holds a tensor, not a value of type i32",
        ),
        (
            "passes schedule",
            "kernel.func @k(%c: f32, %y: memref<8xf32>) attributes {kernel.shared = 1} {\n  linalg.fill ins(%c : f32) outs(%y : memref<8xf32>)\n  kernel.return\n}",
            "2:3: error: schedules are chosen for kernels of tensors",
        ),
        ("generic", 'func.func private @"\\C3\\BC"()', ""),
        (
            "read",
            '%a, %b, %c = "my.op"() : () -> (index, memref<4xi32>, memref<4xi32>)\n'
            '%0 = "air.herd"(%a, %a, %b, %c) <{operandSegmentSizes = array<i32: 0, 2, 2>}> ({\n'
            '  "air.herd_terminator"() : () -> ()\n}) {sym_name = "h"} : (index, index, memref<4xi32>, memref<4xi32>) -> !air.async.token',
            "",
        ),
    ],
)
def test_found(mode: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "text.mlir"
    wrong, found = tried(mode, text, path)
    assert wrong == "", found.said + found.out
    assert found.said.split("\n")[0] == (f"{path}:{said}" if said else "")
    assert found.said.count("error: ") == bool(said)


def test_check_stops_at_a_measure_of_work(tmp_path: Path) -> None:
    """Once 2048^3 products were formed for each of 13 inputs after each pass: minutes."""
    text = "%0 = nd.matmul %x, %x : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>"
    body = f"func.func @f(%x: tensor<2048x2048xf32>) {{\n  {text}\n  func.return\n}}\n"
    path = tmp_path / "text.mlir"
    found = answer("opt", (path, "-p", "cse", "--check"), body, path)
    assert "@f is not checked: it runs too long" in found.said and found.code == 0


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("tensor<9000000x900000xf32>", "it needs more memory than there is"),
        (f"tensor<{'1x' * 70}f32>", "maximum supported dimension for an ndarray"),
    ],
    ids=["memory", "axes"],
)
def test_check_says_which_inputs_there_cannot_be(
    argument: str, reason: str, tmp_path: Path
) -> None:
    """Once it said: compiler bug: MemoryError."""
    body = f"func.func @f(%x: {argument}) -> {argument} {{\n  func.return %x : {argument}\n}}\n"
    weight = '  %w = nd.constant #nd.resource<"w", ""> : '
    body += (
        f"func.func @g() -> {argument} {{\n{weight}{argument}\n  func.return %w : {argument}\n}}\n"
    )
    path = tmp_path / "text.mlir"
    found = answer("opt", (path, "-p", "cse", "--check"), body, path)
    assert (
        f"@f is not checked: {reason}" in found.said
        and "@g is not checked: there is no 'w'" in found.said
    )
    assert found.code == 0


def test_check_says_what_the_interpreter_fails_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it said that the function takes no arrays, and left out all further inputs."""

    def stumbles(op: Any, operands: Any) -> Any:
        assert np.all(operands[0] == operands[0]), "no NaN"
        return -operands[0]

    monkeypatch.setitem(readings.reference._rules, NegOp, stumbles)  # pyright: ignore
    path = tmp_path / "text.mlir"
    body = "%y = nd.neg %x : tensor<4xf32>\n  func.return %y : tensor<4xf32>"
    text = f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {body}\n}}\n"
    said = answer("opt", (path, "-p", "cse", "--check"), text, path).said
    assert "@f is checked with other inputs only: the interpreter fails with" in said
    assert "AssertionError: no NaN" in said


def test_pooling_compares_with_what_was_found(tmp_path: Path) -> None:
    """What xDSL makes of the custom form compares with the window, whose values mean nothing."""
    text = (
        "func.func @f(%x: memref<1x1x4x4xf32>, %w: memref<2x2xf32>, %y: memref<1x1x3x3xf32>) {\n"
        "  linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}"
        " ins(%x, %w : memref<1x1x4x4xf32>, memref<2x2xf32>) outs(%y : memref<1x1x3x3xf32>)\n"
        "  func.return\n}\n"
    )
    path = tmp_path / "text.mlir"
    found = answer("opt", (path, "--print-op-generic"), text, path)
    block = found.out.split("^bb0(")[2]
    first, _, last = (each.split(":")[0] for each in block.split(")")[0].split(", "))
    assert f'"arith.maximumf"({first}, {last})' in block
