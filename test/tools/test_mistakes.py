"""Values that cannot be meant: each is one clear error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stepwell as sw
from stepwell.core.machine import Machine
from stepwell.tools.main import main

TEXT = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
"""
BYTES = """\
func.func @main(%a: tensor<512x512xi8>, %b: tensor<512x512xi8>) -> tensor<512x512xi32> {
  %0 = nd.matmul %a, %b {dtype = i32} : (tensor<512x512xi8>, tensor<512x512xi8>) -> tensor<512x512xi32>
  func.return %0 : tensor<512x512xi32>
}
"""


@pytest.mark.parametrize(
    "asked", ["vector_bits=100", "vector_bits=0", "vector_lanes=3", "vector_registers=0"]
)
def test_machines_that_are_none(asked: str) -> None:
    with pytest.raises(sw.CompileError, match="cannot be compiled for"):
        Machine().override(asked)


@pytest.mark.parametrize("threads", [0, 257])
def test_threads_that_are_too_few_or_too_many(threads: int) -> None:
    with pytest.raises(sw.CompileError, match=f"threads={threads} cannot"):
        Machine().override(f"threads={threads}")


@pytest.mark.parametrize("option", [["--threads", "0"], ["--repeat", "0"], ["--repeat", "x"]])
def test_counts_of_nothing(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["profile", "m.mlir", *option])
    assert f"must be a number of 1 or more, got '{option[1]}'" in capsys.readouterr().err


def test_a_budget_without_tuning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(TEXT)
    assert main(["compile", str(file), "--budget", "3"]) == 1
    assert "--budget is for --tune alone" in capsys.readouterr().err


def test_tune_is_a_number() -> None:
    yes: Any = "yes"
    with pytest.raises(TypeError, match="tune must be True, False or a number of seconds"):
        sw.compile(TEXT, tune=yes)


def test_marks_are_explained_by_their_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(BYTES)
    assert main(["explain", str(file), "--machine", "vector_bits=512"]) == 0
    said = capsys.readouterr().out
    assert "in_floats" in said
    assert "unit" not in said
