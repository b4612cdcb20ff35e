"""`--check` over the whole pipeline: no pass changes what a program computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepwell.driver.pipeline import through
from stepwell.tools.opt import main

HERE = Path(__file__).parent

SOFTMAX_OF_PRODUCT = """
func.func @main(%x: tensor<?x3xf32>, %w: tensor<3x5xf32>) -> (tensor<?x5xf32>, tensor<?xi64>) {
  %h = nd.matmul %x, %w : (tensor<?x3xf32>, tensor<3x5xf32>) -> tensor<?x5xf32>
  %y = nd.softmax %h {axis = 1} : tensor<?x5xf32>
  %a = nd.argmax %x {axis = 1} : tensor<?x3xf32> -> tensor<?xi64>
  func.return %y, %a : tensor<?x5xf32>, tensor<?xi64>
}
"""
LOOP_AND_CHOICE = """
func.func @main(%c: tensor<i1>, %x: tensor<?x2xf64>, %s: tensor<2xf64>) -> (tensor<?x2xf64>, tensor<2xf64>) {
  %last, %all = nd.scan (%t = %s) over (%r = %x) : (tensor<2xf64>, tensor<?x2xf64>) -> (tensor<2xf64>, tensor<?x2xf64>) {
    %u = nd.add %t, %r : tensor<2xf64>
    nd.yield %u, %u : tensor<2xf64>, tensor<2xf64>
  }
  %y = nd.if %c -> tensor<?x2xf64> {
    nd.yield %all : tensor<?x2xf64>
  } else {
    nd.yield %x : tensor<?x2xf64>
  }
  func.return %y, %last : tensor<?x2xf64>, tensor<2xf64>
}
"""
MOVES = """
func.func @main(%x: tensor<?x7xbf16>, %i: tensor<3xui8>, %k: tensor<4xi32>) -> (tensor<?x3xbf16>, tensor<7x?xbf16>, tensor<4xi32>) {
  %g = nd.gather %x, indices(%i) {axes = [1]} : (tensor<?x7xbf16>, tensor<3xui8>) -> tensor<?x3xbf16>
  %t = nd.transpose %x {permutation = [1, 0]} : tensor<?x7xbf16> -> tensor<7x?xbf16>
  %r = nd.reverse %t {axes = [0]} : tensor<7x?xbf16> -> tensor<7x?xbf16>
  %p = nd.cumulative_sum %k {axis = 0} : tensor<4xi32> -> tensor<4xi32>
  func.return %g, %r, %p : tensor<?x3xbf16>, tensor<7x?xbf16>, tensor<4xi32>
}
"""
WEIGHTS = """
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {
  %w = nd.constant #nd.resource<"w", ""> : tensor<3x2xf32>
  %y = nd.matmul %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
  %t = nd.tanh %y : tensor<?x2xf32>
  func.return %t : tensor<?x2xf32>
}
"""


@pytest.mark.parametrize("text", [SOFTMAX_OF_PRODUCT, LOOP_AND_CHOICE, MOVES, WEIGHTS])
def test_no_pass_changes_the_results(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.mlir"
    file.write_text(text)
    assert main([str(file), "-p", through("loops"), "--check"]) == 0
    printed = capsys.readouterr()
    assert "not checked" not in printed.err
    assert "nd." not in printed.out.replace("nd.dtype", "").replace("nd.resource", "")


def test_what_runs_too_long_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stepwell.tools.opt.check.FUEL", 100)
    file = tmp_path / "long.mlir"
    file.write_text(
        "func.func @main(%x: tensor<999xf32>) -> tensor<999xf32> {\n"
        "  %y = nd.exp %x : tensor<999xf32>\n"
        "  func.return %y : tensor<999xf32>\n"
        "}\n"
    )
    assert main([str(file), "-p", through("loops"), "--check"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "too long" in line]
    assert len(said) == 1
    assert "inputs after 'linalg-to-loops' and later" in said[0]
