"""Expand derivatives and batches of regions into ordinary ops.

Before:  %y, %d_x = nd.vjp (%v = %x) cotangents(%g) { %s = nd.sin %v  nd.yield %s }
After:   %y = nd.sin %x
         %cos = nd.cos %x
         %d_x = nd.mul %g, %cos

Afterwards no nd.vjp, nd.jvp or nd.vmap is left, and no op that only customizes differentiation.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.custom import OPS as CUSTOM
from stepwell.dialects.nd.transformations import TRANSFORMATIONS
from stepwell.transforms.dce import DeadCode
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class ExpandTransformations(Pass):
    """Replace nd.vjp, nd.jvp and nd.vmap by ordinary ops, innermost first.

    Then also the ops that customize differentiation: nd.custom_vjp, nd.custom_jvp, nd.checkpoint
    and nd.stop_gradient.

    Before:
        %y, %d_x = nd.vjp (%v = %x) cotangents(%g : tensor<f32>) {wrt = [0], of = [0]}
            : (tensor<f32>) -> (tensor<f32>, tensor<f32>) {
          %s = nd.sin %v : tensor<f32>
          nd.yield %s : tensor<f32>
        }
    After:
        %y = nd.sin %x : tensor<f32>
        %cos = nd.cos %x : tensor<f32>
        %d_x = nd.mul %g, %cos : tensor<f32>
    Afterwards: none of these ops is left.
    """

    name = "expand-transformations"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand every transformation of the module."""
        found = False
        while some := [each for each in op.walk() if isinstance(each, TRANSFORMATIONS)]:
            found = True  # an inlined call may contain further ones
            for each in reversed(some):
                expand(each)
        rest = [each for each in op.walk() if isinstance(each, CUSTOM)]
        for each in reversed(rest):
            expand(each)
        if found or rest:
            DeadCode().apply(ctx, op)
