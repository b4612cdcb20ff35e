"""Drop what nobody uses.

Before:  %a = nd.exp %x : tensor<4xf32>
         %b = nd.neg %a : tensor<4xf32>
         func.return %x : tensor<4xf32>
After:   func.return %x : tensor<4xf32>

Afterwards every op has an effect, or a result that something with an effect depends on.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from stepwell.analysis.effects import is_dead
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class DeadCode(Pass):
    """Remove ops without effect whose results are not used, from the last to the first."""

    name = "dce"
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Clean the whole module."""
        _clean(op, {})


def _clean(op: Operation, busy: dict[Operation, bool]) -> None:
    """Clean all that ``op`` contains; ``busy`` are ops in which something is done."""
    for region in op.regions:
        for block in region.blocks:
            for each in reversed(list(block.ops)):
                if is_dead(each, busy):
                    each.detach()
                    each.erase()
                    continue
                if each.regions:
                    _clean(each, busy)
                    if is_dead(each, busy):
                        each.detach()
                        each.erase()
