"""Inlining keeps what a program means, and where its parts come from."""

from __future__ import annotations

import numpy as np

from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.types import places
from stepwell.testing.op_rows.run import context
from stepwell.transforms.graph.inline_calls import InlineCalls

TEXT = """\
func.func private @step(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %z = nd.sub %x, %y : tensor<?xf32>
  func.return %z, %x : tensor<?xf32>, tensor<?xf32>
}
func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c, %d = nd.call @step(%a, %b) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %e, %f = func.call @step(%c, %d) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  func.return %e, %f : tensor<?xf32>, tensor<?xf32>
}
"""


def test_inlined_means_the_same() -> None:
    ctx = context()
    module = parse_module(ctx, TEXT, "calls.mlir")
    arguments = [np.array([1.0, 2.0], np.float32), np.array([5.0, 7.0], np.float32)]
    want = Interpreter(module).call("main", arguments)
    np.testing.assert_array_equal(want, [[-5.0, -7.0], [-4.0, -5.0]])
    InlineCalls().apply(ctx, module)
    module.verify()
    np.testing.assert_array_equal(Interpreter(module).call("main", arguments), want)


def test_inlined_has_the_lines_of_op_and_call() -> None:
    ctx = context()
    module = parse_module(ctx, TEXT, "calls.mlir")
    InlineCalls().apply(ctx, module)
    lines = [[p.line for p in places(op.location)] for op in module.walk() if op.name == "nd.sub"]
    assert lines == [[2, 6], [2, 7]]
