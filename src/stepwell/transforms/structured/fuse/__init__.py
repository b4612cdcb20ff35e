"""Merge structured ops so that intermediate tensors disappear.

Before:  %s = linalg.generic {4 x 8, parallel} ins(%a, %b) { addf }
         %p = linalg.generic {4 x 8, parallel} ins(%s, %c) { mulf }
         %r = linalg.generic {4 x 8, reduction over 1} ins(%p) outs(%zero) { addf }
After:   %r = linalg.generic {4 x 8, reduction over 1} ins(%a, %b, %c) outs(%zero)
                { addf, mulf, addf }

Afterwards an elementwise op is part of what reads it, by composed maps, unless that would compute
an element twice at more than a few additions' cost, put it inside a contraction, or it is needed
as a whole elsewhere. Copies through a map (transpose, slice, broadcast) are part of their readers;
what runs in order writes its results where such a copy would put them. Splat operands are constants
of bodies, and ops over the same elements of one tensor are one op with several results. No
arithmetic changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult

from stepwell.analysis.structured import erase_dead
from stepwell.transforms.passes import Pass
from stepwell.transforms.structured.fuse.draft import Draft
from stepwell.transforms.structured.fuse.placed import place_results
from stepwell.transforms.structured.fuse.reshapes import ReshapingFusion
from stepwell.transforms.structured.fuse.siblings import Siblings
from stepwell.transforms.structured.fuse.sizes import resolve_sizes


@dataclass(frozen=True)
class FuseElementwise(Pass):
    """Merge producers into their readers, and ops over the same elements into one."""

    name = "fuse-elementwise"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse inside each function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    if _fuse(block):  # what several ops read may have one reader now
                        _fuse(block)
                    place_results(block)  # where no reader took the copy


def _fuse(block: Block) -> bool:
    """Fuse in one block, and in those inside; return whether ops over the same elements met."""
    resolve_sizes(block)
    erase_dead(block)
    fusion = ReshapingFusion()
    fusion.walk(block)
    away = _merge_siblings(fusion)
    for draft in fusion.drafts:
        if id(draft) not in away:
            draft.finish()
    gone = [*fusion.gone, *(draft.op for draft in fusion.drafts)]
    values = [v for op in gone for v in op.operands]
    for op in gone:
        op.detach()
        op.drop_all_references()
    for op in gone:
        op.erase(safe_erase=False)
    _erase_unused([v.owner for v in values if isinstance(v, OpResult)])
    return bool(away)


def _merge_siblings(fusion: ReshapingFusion) -> set[int]:
    """Merge siblings block by block; return the ids of drafts that are part of others now."""
    blocks: dict[Block, list[Draft]] = {}
    for draft in reversed(fusion.drafts):
        assert draft.op.parent is not None
        blocks.setdefault(draft.op.parent, []).append(draft)
    away: set[int] = set()
    for block, drafts in blocks.items():
        if len(drafts) > 1:
            away |= Siblings(block, fusion.readers).merge(drafts)
    return away


_SOURCES = (
    tensor.EmptyOp,
    tensor.DimOp,
    tensor.ExpandShapeOp,
    tensor.CollapseShapeOp,
    tensor.SplatOp,
    linalg.FillOp,
    arith.ConstantOp,
)


def _erase_unused(ops: list[Operation]) -> None:
    """Erase those of ``ops``, and of what they were made from, that nothing uses any more."""
    while ops:
        op = ops.pop()
        if op.parent is None or not isinstance(op, _SOURCES) or op.results[0].first_use is not None:
            continue
        ops.extend(v.owner for v in op.operands if isinstance(v, OpResult))
        op.detach()
        op.erase()
