"""What bufferize has made is checked launch by launch: every read finds the tensor it is of."""

from __future__ import annotations

import pytest
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, StridedLayoutAttr, f32

from stepwell.analysis.sizes import Size
from stepwell.core.diagnostics import CompileError
from stepwell.dialects import kernel
from stepwell.dialects.parsing import parse_module
from stepwell.driver.registry import registry
from stepwell.lowering.bufferize import Bufferize
from stepwell.lowering.bufferize.comparing import compare_runs
from stepwell.lowering.bufferize.kernel_summary import KernelSummary, summarize
from stepwell.lowering.bufferize.views import Reshape

CHAIN = """
kernel.func @neg(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.shared = 1 : i64} {
  %n = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = arith.negf %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  kernel.return %n : tensor<8xf32>
}
kernel.func @add(%x: tensor<8xf32>, %z: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.shared = 1 : i64} {
  %n = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %z : tensor<8xf32>, tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %c: f32, %b: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  kernel.return %n : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = kernel.launch @neg ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = kernel.launch @neg ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %c = kernel.launch @add ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  func.return %c : tensor<8xf32>
}
"""


def bufferized(
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[ModuleOp, ModuleOp, dict[str, KernelSummary]]:
    """Return the module before and after, and what is known of its kernels."""
    monkeypatch.setenv("STEPWELL_VERIFY", "0")
    context = registry().context()
    before, after = (parse_module(context, CHAIN, "<test>") for _ in range(2))
    Bufferize().apply(context, after)
    kernels = [op for op in before.ops if isinstance(op, kernel.FuncOp)]
    return before, after, {op.sym_name.data: summarize(op) for op in kernels}


def test_what_bufferize_makes_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, summary = bufferized(monkeypatch)
    compare_runs(before, after, summary.__getitem__)


def test_a_read_of_what_was_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, summary = bufferized(monkeypatch)
    allocs = [op for op in after.walk() if isinstance(op, memref.AllocOp)]
    launches = [op for op in after.walk() if isinstance(op, kernel.LaunchOp)]
    assert allocs
    launches[1].operands[1] = launches[0].operands[1]  # the second result over the first
    with pytest.raises(CompileError, match=r"writes operand 1 over operand 0|was overwritten"):
        compare_runs(before, after, summary.__getitem__)


def test_launches_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, summary = bufferized(monkeypatch)
    launches = [op for op in after.walk() if isinstance(op, kernel.LaunchOp)]
    launches[1].operands[0] = launches[2].operands[2]  # an output that is not written yet
    with pytest.raises(CompileError, match="was overwritten"):
        compare_runs(before, after, summary.__getitem__)


def test_an_element_seen_with_more_axes() -> None:
    one = Size.of(1)
    element = MemRefType(f32, [], StridedLayoutAttr([], None))
    seen = Reshape((), (), (one, one)).result(element)
    assert seen == MemRefType(f32, [1, 1], StridedLayoutAttr([1, 1], None))


def test_unit_axes_seen_as_one() -> None:
    one, many = Size.of(1), Size.of(4)
    rows = MemRefType(f32, [1, 1, 4], StridedLayoutAttr([440, 110, 11], None))
    seen = Reshape(((0, 1), (2,)), (one, one, many), (one, many)).result(rows)
    assert seen == MemRefType(f32, [1, 4], StridedLayoutAttr([440, 11], None))
