"""Let windows that slide along rows read beyond the image, so that it need not be padded.

Before:  %p = tensor.insert_slice %x into %border[0, 0, 1, 1] ...
         %y = linalg.generic {n, c, row, column; window} ins(%p, %w)
After:   %f = linalg.fill ins(%zero) outs(%e)
         %p = linalg.generic {n, c, row, column} ins(%x) outs(%f) {copy, kernel.border = [2, 3]}
         %y = linalg.generic {n, c, row, column; window} ins(%p, %w)

The last three are in one kernel. It never makes the copy: `linalg-to-loops` reads through it.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, i1, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.padded import padded
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import (
    PARALLEL,
    array_of_maps,
    contracts,
    element,
    identity,
    indices,
    is_parallel,
    linear,
    plain,
    shape,
)
from stepwell.transforms.structured.fuse.draft import located

ROW = 8
"""The number of elements below which a row fills no vector."""
AROUND = 4
"""The most padded columns in a row: each needs code of its own for a window that sticks out."""
STEPS = 1, 2
"""Steps of a window along a row whose elements are read as vectors."""
PLANES = 64
"""The number of images that keeps the threads busy, so that none is split by rows."""


def read_beyond_edges(block: Block, masks: bool) -> None:
    """Rewrite the padding of each image whose only user slides a window along its rows.

    masks : whether images of unknown size may be read so: vectors are loaded under a mask
    """
    known = Sizes(block.args)
    for op in list(block.ops):
        if not isinstance(op, linalg.GenericOp) or (image := _image(op)) is None:
            continue
        if (found := _interior(op.inputs[image], known, masks)) is not None:
            _rewrite(op, image, *found)


def _image(op: linalg.GenericOp) -> int | None:
    """Return the operand along whose rows ``op`` slides a window."""
    parallel = is_parallel(op)
    if all(parallel) or contracts(op):
        return None
    loops = [d for d, runs in enumerate(parallel) if runs]
    written = [plain(e) for e in indices(op)[-1]]
    if written != loops or len(loops) < 3:
        return None
    for k, index in enumerate(indices(op)[: len(op.inputs)]):
        last = linear(index[-1]) if len(index) == len(loops) else None
        if (
            last is None
            or last[0].get(loops[-1]) not in STEPS
            or isinstance(index[-1], AffineDimExpr)
        ):
            continue
        own = [[d for d in expr.used_dims() if parallel[d]] for expr in index]
        sizes = [PLANES if n == DYNAMIC_INDEX else n for n in shape(op.inputs[k])[:-2]]
        if own == [[d] for d in loops] and prod(sizes) >= PLANES:
            return k
    return None


def _interior(
    value: SSAValue, known: Sizes, masks: bool
) -> tuple[SSAValue, list[int], linalg.FillOp] | None:
    """Return the interior of a padded tensor, its offsets, and the fill of the padding."""
    found = padded(value)
    if found is None:
        return None
    pairs = zip(found.offsets, known.shape(found.inner), known.shape(value), strict=True)
    if any(not offset and m != n for offset, m, n in pairs):
        return None  # a loop would be shorter than the axis that it alone indexes
    columns = shape(found.inner)[-1]
    if columns == DYNAMIC_INDEX:
        masked = masks and element(value) != i1
        return (found.image, found.offsets, found.fill) if masked else None
    if columns < ROW or DYNAMIC_INDEX in shape(value)[-2:]:
        return None
    if shape(value)[-1] - columns > AROUND:
        return None
    return found.image, found.offsets, found.fill


def _rewrite(
    op: linalg.GenericOp, image: int, inside: SSAValue, offsets: list[int], fill: linalg.FillOp
) -> None:
    whole = op.inputs[image]
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
