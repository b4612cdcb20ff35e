"""--check of derivatives: a wrong one is told, in words and at its function."""

from __future__ import annotations

import pytest

from stepwell.core.diagnostics import CompileError
from stepwell.testing.op_rows.run import parsed
from stepwell.tools.opt.derivatives import check_derivative
from stepwell.transforms.graph.derive import Jvp, Vjp

TEXT = """
func.func @f(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %y = nd.tanh %x : tensor<3xf32>
  func.return %y : tensor<3xf32>
}
func.func @f_DERIVED(%x: tensor<3xf32>, %n: tensor<i32>, %g: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %y = nd.tanh %x : tensor<3xf32>
  %yy = nd.mul %y, %y : tensor<3xf32>
  %p = nd.mul %g, %FACTOR : tensor<3xf32>
  %d = nd.sub %g, %p : tensor<3xf32>
  func.return %y, %d : tensor<3xf32>, tensor<3xf32>
}
"""


@pytest.mark.parametrize("kind", [Vjp, Jvp])
def test_derivatives_are_compared_with_differences(kind: type[Vjp | Jvp]) -> None:
    right, wrong = (
        parsed(TEXT.replace("DERIVED", kind.name).replace("FACTOR", factor))
        for factor in ("yy", "y")
    )
    assert check_derivative(right, kind(function="f")) == ""
    with pytest.raises(CompileError, match=f"pass '{kind.name}' gives @f_{kind.name} a wrong"):
        check_derivative(wrong, kind(function="f"))
