"""Let windows that slide along rows read beyond the image, so that it need not be padded.

Before:  %p = tensor.insert_slice %x into %border[0, 0, 1, 1] ...
         %y = linalg.generic {n, c, row, column; window} ins(%p, %w)
After:   %f = linalg.fill ins(%zero) outs(%e)
         %p = linalg.generic {n, c, row, column} ins(%x) outs(%f) {copy, kernel.border = [2, 3]}
         %y = linalg.generic {n, c, row, column; window} ins(%p, %w)

The last three are in one kernel. It never makes the copy: `linalg-to-loops` reads through it.
"""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, Region

from stepwell.analysis.beyond_edges import beyond_edges
from stepwell.analysis.padded import Padded
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import (
    PARALLEL,
    array_of_maps,
    element,
    identity,
    shape,
)
from stepwell.transforms.structured.fuse.draft import located


def read_beyond_edges(block: Block, masks: bool) -> None:
    """Rewrite the padding of each image whose only user slides a window along its rows.

    masks : whether images of unknown size may be read so: vectors are loaded under a mask
    """
    known = Sizes(block.args)
    for op in list(block.ops):
        if isinstance(op, linalg.GenericOp) and (found := beyond_edges(op, known, masks)):
            _rewrite(op, *found)


def _rewrite(op: linalg.GenericOp, image: int, found: Padded) -> None:
    whole, (inside, offsets, fill, _) = op.inputs[image], found
    rank = len(offsets)
    made_by = fill.outputs[0].owner
    sizes = list(made_by.dynamic_sizes) if isinstance(made_by, tensor.EmptyOp) else []
    if shape(whole).count(DYNAMIC_INDEX) != len(sizes):
        return
    empty = tensor.EmptyOp(sizes, whole.type)
    filled = linalg.FillOp([fill.inputs[0]], [empty.tensor], [whole.type])
    body = Block(arg_types=[element(whole)] * 2)
    body.add_op(located(linalg.YieldOp(body.args[0]), op.location))
    shifted = tuple(d + n if n else d for d, n in zip(identity(rank), offsets, strict=True))
    copy = linalg.GenericOp(
        [inside],
        [filled.results[0]],
        Region(body),
        array_of_maps(rank, [identity(rank), shifted]),
        [PARALLEL] * rank,
        [whole.type],
    )
    sizes = zip(offsets, shape(inside), shape(whole), strict=True)
    axes = [d for d, (offset, m, n) in enumerate(sizes) if offset or m != n]
    copy.attributes["kernel.border"] = DenseArrayBase.from_list(i64, axes)
    copy.results[0].name_hint = whole.name_hint
    location = whole.owner.location if isinstance(whole.owner, Operation) else op.location
    assert op.parent is not None and isinstance(whole, OpResult)
    op.parent.insert_ops_before([located(each, location) for each in (empty, filled, copy)], op)
    op.operands[image] = copy.results[0]
