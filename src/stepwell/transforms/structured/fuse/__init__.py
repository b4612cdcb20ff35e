"""Merge structured ops so that intermediate tensors disappear.

Before:  %s = linalg.generic {4 x 8, parallel} ins(%a, %b) { addf }
         %p = linalg.generic {4 x 8, parallel} ins(%s, %c) { mulf }
         %r = linalg.generic {4 x 8, reduction over 1} ins(%p) outs(%zero) { addf }
After:   %r = linalg.generic {4 x 8, reduction over 1} ins(%a, %b, %c) outs(%zero)
                { addf, mulf, addf }

Afterwards an elementwise op is part of its readers, through composed maps. It stays separate if
fusion would recompute elements at the cost of more than a few additions or put the op inside a
contraction, or if another op needs the whole tensor. Copies through a map (transpose, slice,
broadcast) are part of their readers; a scan writes its result directly where such a copy would.
Splat operands are constants of bodies, and ops with the same iteration space over a shared tensor
are one op with several results. No arithmetic changes.
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
    """Merge producers into their readers, and ops with a shared iteration space into one."""

    name = "fuse-elementwise"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fuse inside each function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    if _fuse(block):  # a value with several readers may have one now
                        _fuse(block)
                    place_results(block)  # for copies that were not merged into a reader


def _fuse(block: Block) -> bool:
    """Fuse in one block and its nested blocks; return whether any siblings were merged."""
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
    """Merge siblings block by block; return the ids of drafts that became part of others."""
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
    """Erase those of ``ops``, and of their operands' ops, that have no use left."""
    while ops:
        op = ops.pop()
        if op.parent is None or not isinstance(op, _SOURCES) or op.results[0].first_use is not None:
            continue
        ops.extend(v.owner for v in op.operands if isinstance(v, OpResult))
        op.detach()
        op.erase()
