"""Eliminate dead code.

Before:  %a = nd.exp %x : tensor<4xf32>
         %b = nd.neg %a : tensor<4xf32>
         func.return %x : tensor<4xf32>
After:   func.return %x : tensor<4xf32>

Afterwards every op has a side effect, or a result on which an op with a side effect depends.
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
    """Erase ops without side effects whose results are unused, from the last to the first."""

    name = "dce"
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Clean the whole module."""
        _clean(op, {})


def _clean(op: Operation, busy: dict[Operation, bool]) -> None:
    """Clean the regions of ``op``; ``busy`` caches which ops contain side effects."""
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
