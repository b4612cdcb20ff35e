"""Replace every composite op by its decomposition.

Before:  %y = nd.relu %x : tensor<4xf32>
After:   %zero = nd.full 0.0 : tensor<4xf32>
         %y = nd.max %x, %zero : tensor<4xf32>

Afterwards no op with a decomposition is left, except those marked `KeptWhole`: decompositions are
expanded recursively.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.base import KeptWhole
from stepwell.dialects.readings import decomposition
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class Decompose(Pass):
    """Expand composite ops into primitive ones.

    Before:
        %y = nd.relu %x : tensor<4xf32>
    After:
        %full = nd.full 0.0 : tensor<4xf32>
        %y = nd.max %x, %full : tensor<4xf32>
    Afterwards: no op with a decomposition is left, except those marked KeptWhole.
    """

    name = "decompose"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand every composite op of the module."""
        _in_regions(op)


def _in_regions(op: Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            _in_block(block)


def _in_block(block: Block) -> None:
    op = block.first_op
    while op is not None:
        if decomposition.get(type(op)) is None or op.has_trait(KeptWhole):
            _in_regions(op)
            op = op.next_op
        else:
            op = expand(op)
