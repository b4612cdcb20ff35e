"""Choose the order of tensors' axes in memory, so that features of convolutions are contiguous.

Before:  %p = tensor.insert_slice %x into %zeros[0, 0, 1, 1] ... into tensor<1x64x58x58xf32>
         %y = linalg.generic {n, feature, row, column; features, window} ins(%p, %w)
         %z = linalg.generic {n, feature, row, column} ins(%y, %bias) { addf }
         func.return %z : tensor<1x64x56x56xf32>
After:   %t = linalg.generic {copy, kernel.no_fuse} ins(%x)  // 1x56x56x64
         %p = tensor.insert_slice %t into %zeros[0, 1, 1, 0] ... into tensor<1x58x58x64xf32>
         %y = linalg.generic {n, row, column, feature; window, features} ins(%p, %w)
         %z = linalg.generic {n, row, column, feature} ins(%y, %bias) { addf }
         %u = linalg.generic {copy, kernel.no_fuse} ins(%z)  // 1x64x56x56
         func.return %u : tensor<1x64x56x56xf32>

Afterwards the images that windows slide over have their features last, and so have the tensors
computed from them or into them, as far as structured ops and slices connect them; elsewhere
(arguments, results, reshapes) they are transposed, once. A function where that takes more seconds
than it saves, by the cost model, or that has no windows, is unchanged. Padding of known size fills
only the border.

In all functions, products with fewer columns than a vector has lanes may read their second operand
transposed, with vectors along the sum. If the rows of the first operand are contiguous in memory,
they may compute the transposed result instead, with vectors along the rows. Floating-point sums are
reassociated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block

from stepwell.analysis.structured import erase_dead
from stepwell.transforms.kernels.schedule.searching import machine_of
from stepwell.transforms.passes import Numerics, Pass
from stepwell.transforms.structured.layouts.borders import fill_borders
from stepwell.transforms.structured.layouts.moving import Moving
from stepwell.transforms.structured.layouts.narrow_products import narrow_products
from stepwell.transforms.structured.layouts.propagation import Plan
from stepwell.transforms.structured.seconds import Seconds


@dataclass(frozen=True)
class PropagateLayouts(Pass):
    """Change images to the layout that convolutions and pooling prefer, with the ops around them.

    always : change them also where that costs more than it saves
    machine : the machine as NAME=VALUE with commas, or its name before them; without l2, the pass
        changes nothing, because only kernels that run in blocks gain
    """

    name = "propagate-layouts"
    one_block = True
    numerics: ClassVar[Numerics] = "reassociating"
    expects_work = False

    always: bool = False
    machine: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose layouts inside each function."""
        machine = machine_of(self.machine)
        for function in op.ops if machine.l2 else ():
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    _propagate(block, Seconds(machine), self.always)


def _propagate(block: Block, seconds: Seconds, always: bool) -> None:
    for op in block.ops:
        if op.regions and not isinstance(op, linalg.GenericOp):
            for region in op.regions:
                for inner in region.blocks:
                    _propagate(inner, seconds, always)
    plan = Plan(block, seconds)
    plan.make()
    if plan.windows and (always or plan.pays()):
        Moving(plan).move()
    if (narrow := narrow_products(block, seconds)).reads:
        Moving(narrow).move()
    if fill_borders(block) or plan.windows:
        erase_dead(block)
