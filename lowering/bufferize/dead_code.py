"""Dead code elimination of index arithmetic and views."""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.ir import Block


def erase_dead_code(block: Block) -> None:
    """Erase unused index arithmetic and views, nested blocks included."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                erase_dead_code(inner)
        if op.results and isinstance(op, _FREE) and not any(r.uses for r in op.results):
            op.detach()
            op.erase()


_FREE = (
    arith.ConstantOp,
    memref.DimOp,
    memref.SubviewOp,
    memref.CastOp,
    memref.ExpandShapeOp,
    memref.CollapseShapeOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
)
