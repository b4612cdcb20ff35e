"""Replace every composite op by what it stands for.

Before:  %y = nd.relu %x : tensor<4xf32>
After:   %zero = nd.full 0.0 : tensor<4xf32>
         %y = nd.max %x, %zero : tensor<4xf32>

Afterwards no op is left that has a decomposition, save those marked `KeptWhole`: what a
decomposition is made of is decomposed too.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint

from stepwell.dialects.nd.base import KeptWhole
from stepwell.dialects.readings import decomposition
from stepwell.dialects.types import UNKNOWN
from stepwell.transforms.passes import Pass, fail


@dataclass(frozen=True)
class Decompose(Pass):
    """Expand composite ops into primitive ones.

    Before:
        %y = nd.relu %x : tensor<4xf32>
    After:
        %full = nd.full 0.0 : tensor<4xf32>
        %y = nd.max %x, %full : tensor<4xf32>
    Afterwards: no op is left that has a decomposition, save those marked KeptWhole.
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
            op = _expand(op)


def _expand(op: Operation) -> Operation | None:
    """Replace ``op``; return the first op that stands in for it, or the one that follows."""
    before = op.prev_op
    results = decomposition[type(op)](Builder(InsertPoint.before(op)), op)
    if [v.type for v in results] != list(op.result_types):
        got, want = ", ".join(str(v.type) for v in results), ", ".join(map(str, op.result_types))
        fail(op, f"the decomposition of {op.name} gives ({got}), not ({want})")
    block = op.parent
    assert block is not None
    first = block.first_op if before is None else before.next_op
    made: set[Operation] = set()
    new = first
    while new is not None and new is not op:
        made.add(new)
        if new.location == UNKNOWN:
            new.location = op.location
        new = new.next_op
    for old, now in zip(op.results, results, strict=True):
        if old.name_hint is not None and now.owner in made:
            now.name_hint = old.name_hint
        old.replace_all_uses_with(now)
    following = op.next_op if first is op else first
    op.detach()
    op.erase()
    return following
