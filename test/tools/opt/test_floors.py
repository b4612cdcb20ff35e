"""A pipeline through a stage begins on the floor that the text is on."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepwell.driver.pipeline import STAGE_NAMES
from stepwell.tools.opt import main

PROGRAM = """func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %h = nd.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %a = nd.softmax %h {axis = 1} : tensor<4x16xf32>
  func.return %a : tensor<4x16xf32>
}
"""


def through(text: str, stage: str, tmp_path: Path) -> str:
    given, made = tmp_path / "given.mlir", tmp_path / "made.mlir"
    given.write_text(text)
    assert main([str(given), "-p", f"through({stage})", "-o", str(made)]) == 0
    return made.read_text()


@pytest.mark.parametrize("floor", STAGE_NAMES)
def test_what_was_printed_goes_on(floor: str, tmp_path: Path) -> None:
    want = through(PROGRAM, "loops", tmp_path)
    printed = through(PROGRAM, floor, tmp_path)
    assert through(printed, "loops", tmp_path) == want


def test_a_lower_floor_is_left_as_it_is(tmp_path: Path) -> None:
    want = through(PROGRAM, "loops", tmp_path)
    assert through(want, "structured", tmp_path) == want


def test_blocks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "blocks.mlir"
    path.write_text("func.func @main() {\n  cf.br ^bb1\n^bb1:\n  func.return\n}\n")
    for name in ("through(loops)", "schedule", "run-together", "bufferize"):
        assert main([str(path), "-p", name]) == 1
        assert "1:1: error: func.func has several blocks" in capsys.readouterr().err
