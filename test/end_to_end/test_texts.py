"""Text of every floor is a program: compiled again, it returns what the program above it does."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.driver.pipeline import STAGE_NAMES
from stepwell.testing.opencl import TARGETS
from stepwell.tools.main import main

SOFTMAX = """\
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>, %k: tensor<?xui8>, %l: tensor<?xui8>) -> (tensor<?x16xf32>, tensor<?xui8>, tensor<?xf32>) {
  %h = nd.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %y = nd.softmax %h {axis = 1} : tensor<?x16xf32>
  %s = nd.slice %x[1:, 0:1] : tensor<?x8xf32> -> tensor<?x1xf32>
  %r = nd.reduce_sum %s {axes = [1]} : tensor<?x1xf32> -> tensor<?xf32>
  %m = nd.max %k, %l : tensor<?xui8>
  func.return %y, %m, %r : tensor<?x16xf32>, tensor<?xui8>, tensor<?xf32>
}
"""
WEIGHTS = """\
func.func @main(%x: tensor<3x70xf32>) -> tensor<3x40xf32> {
  %w = nd.constant #nd.resource<"w", ""> : tensor<40x70xf32>
  %t = nd.transpose %w {permutation = [1, 0]} : tensor<40x70xf32> -> tensor<70x40xf32>
  %e = nd.exp %t : tensor<70x40xf32>
  %y = nd.matmul %x, %e : (tensor<3x70xf32>, tensor<70x40xf32>) -> tensor<3x40xf32>
  func.return %y : tensor<3x40xf32>
}
"""
LOOP = """\
func.func @main(%a: tensor<?x4xf16>, %i: tensor<5xi64>, %u: tensor<5x4xf16>) -> (tensor<4xf16>, tensor<?x4xf16>, tensor<5x4xf16>) {
  %z = nd.full 0.0 : tensor<4xf16>
  %s, %ys = nd.scan (%c = %z) over (%x = %a) : (tensor<4xf16>, tensor<?x4xf16>) -> (tensor<4xf16>, tensor<?x4xf16>) {
    %n = nd.add %c, %x : tensor<4xf16>
    %m = nd.tanh %n : tensor<4xf16>
    nd.yield %n, %m : tensor<4xf16>, tensor<4xf16>
  }
  %g = nd.reverse %u {axes = [0]} : tensor<5x4xf16> -> tensor<5x4xf16>
  func.return %s, %ys, %g : tensor<4xf16>, tensor<?x4xf16>, tensor<5x4xf16>
}
"""
RANDOM = np.random.default_rng(0)
W = RANDOM.standard_normal((40, 70)).astype(np.float32)
PROGRAMS: dict[str, tuple[str, Mapping[str, Any], list[Any]]] = {
    "softmax": (
        SOFTMAX,
        {},
        [
            RANDOM.standard_normal((7, 8)).astype(np.float32),
            RANDOM.standard_normal((8, 16)).astype(np.float32),
            np.arange(33, dtype=np.uint8) * 7,
            np.arange(33, dtype=np.uint8)[::-1].copy(),
        ],
    ),
    "weights": (WEIGHTS, {"w": W}, [RANDOM.standard_normal((3, 70)).astype(np.float32)]),
    "loop": (
        LOOP,
        {},
        [
            RANDOM.standard_normal((6, 4)).astype(np.float16),
            np.arange(5),
            RANDOM.standard_normal((5, 4)).astype(np.float16),
        ],
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_floor_is_a_program(name: str, target: str) -> None:
    text, resources, arguments = PROGRAMS[name]
    program = sw.compile(text, target=target, resources=resources)
    wanted = program(*arguments)
    texts = program.texts()
    for stage in STAGE_NAMES:
        again = sw.compile(texts[stage], target=target, resources=resources)
        assert str(again.signature) == str(program.signature)
        got = again(*arguments)
        for g, w in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, wanted)), strict=True):
            np.testing.assert_array_equal(g, w, err_msg=stage)


def test_sizes_are_checked_from_every_floor() -> None:
    texts = sw.compile(SOFTMAX).texts()
    x, w = np.ones((2, 8), np.float32), np.ones((8, 16), np.float32)
    for stage in STAGE_NAMES:
        program = sw.compile(texts[stage])
        with pytest.raises(ValueError, match="has size"):
            program(x, w, np.ones(3, np.uint8), np.ones(4, np.uint8))


def test_loops_are_printed_as_they_are() -> None:
    text = sw.compile(SOFTMAX).text("loops")
    again = sw.compile(text)
    assert again.text("loops") == text and again.text("nd") == text


@pytest.mark.parametrize("stage", ["nd", "buffers", "loops"])
def test_from_standard_input(
    stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = sw.compile(SOFTMAX).text(stage)

    def given(*command: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code = main([*command])
        out, errors = capsys.readouterr()
        return code, out, errors

    assert given("run", "-", "--random")[::2] == (0, "")
    code, out, errors = given("compile", "-")
    assert code == 0 and "stepwell_main(" in out and errors == ""
    assert given("compile", "-", "--stage", "loops")[::2] == (0, "")
    assert given("explain", "-")[::2] == (0, "")
    assert given("profile", "-", "--random", "--repeat", "2")[::2] == (0, "")
    text = text.replace("arith.constant", "arith.konstant").replace("nd.max", "nd.maxx")
    code, out, errors = given("run", "-", "--random")
    assert code == 1 and errors.startswith("<stdin>:") and "help: did you mean" in errors
    assert "^" in errors, "the line is shown"


def said(text: str) -> str:
    with pytest.raises(sw.CompileError) as caught:
        sw.compile(text, name="m")
    return str(caught.value)


LOOPS = """\
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<4xf32>
  memref.store %v, %y[%c0] : memref<4xf32>
  func.return
}
"""


def test_what_is_wrong_with_buffers_is_said() -> None:
    assert "%y is an input of @main, but may be written" in said(
        LOOPS.replace(' {kernel.role = "output"}', "")
    )
    mixed = (
        LOOPS
        + "func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> {\n func.return %t : tensor<4xf32>\n}\n"
    )
    assert "m:7:1: error: func.func has tensors, beside func.func of the floor of buffers" in said(
        mixed
    )
    unknown = LOOPS.replace(
        "memref.store %v", "%b = arith.bitcast %v : f32 to i32\n  memref.store %v"
    )
    assert sw.compile(unknown)(np.ones(4, np.float32))[0] == 1
    dynamic = LOOPS.replace("4xf32", "?xf32")
    assert "has a result of unknown size but no @main.shapes is beside it" in said(dynamic)


def test_tuning_begins_above_buffers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(LOOPS)
    assert main(["compile", str(file), "--tune"]) == 1
    assert "help: tune the module of tensors" in capsys.readouterr().err


def test_the_whole_tool_reads_standard_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stepwell.tools.main", "run", "-", "--random"],
        input=LOOPS,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("y: float32[4]")
