"""Rewrite every `nd` op as structured ops on tensors: linalg.generic, tensor, scf.

Before:  %y = nd.neg %x : tensor<4xf32>
After:   %e = tensor.empty() : tensor<4xf32>
         %y = linalg.generic {one parallel loop} ins(%x) outs(%e) { arith.negf }

Afterwards no `nd` op is left and every integer is signless; an argument or result that was
unsigned has its dtype in the attribute `nd.dtype`. The pass fails if it cannot lower an op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from stepwell.lowering.nd_to_linalg import (
    contraction,
    control,
    convert,
    creation,
    elementwise,
    indexing,
    reduction,
    reshape,
    scatter,
    shape,
    sizes,
    sorting,
)
from stepwell.lowering.nd_to_linalg.signature import finish, pass_resources
from stepwell.lowering.nd_to_linalg.table import Lowering, lower_block, signless
from stepwell.transforms.passes import Numerics, Pass, fail

FAMILIES = (
    creation,
    elementwise,
    convert,
    sizes,
    shape,
    reshape,
    indexing,
    scatter,
    reduction,
    sorting,
    contraction,
    control,
)
"""The counterparts of the families of `nd`; importing them fills the table."""


@dataclass(frozen=True)
class NdToLinalg(Pass):
    """Lower nd to linalg, tensor and scf on tensors."""

    name = "nd-to-linalg"
    one_block = True
    numerics: ClassVar[Numerics] = "reassociating"  # a reduction may sum in another order

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function of the module."""
        lowered = {
            function.sym_name.data: (function, _lower_function(function))
            for function in op.ops
            if isinstance(function, func.FuncOp) and function.body.blocks
        }
        pass_resources(lowered)
        for function, lowering in lowered.values():
            finish(function, lowering)
        for left in op.walk():
            if left.name.startswith("nd."):
                fail(left, f"nd-to-linalg has no rule for {left.name}")


def _lower_function(function: func.FuncOp) -> Lowering:
    """Replace the body by the lowered one; the function's type is not changed yet."""
    old = function.body.block
    block = Block(arg_types=[signless(t) for t in old.arg_types])
    lowering = Lowering(block)
    for was, now in zip(old.args, block.args, strict=True):
        now.name_hint, now.location = was.name_hint, was.location
        lowering.values[was] = now
    lowering.insert(func.ReturnOp(*lower_block(lowering, old)))
    function.detach_region(function.body)
    function.add_region(Region(block))
    return lowering
