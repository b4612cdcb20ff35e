"""Let windows that slide along rows read beyond the image, so that it need not be padded.

Before:  %p = tensor.insert_slice %x into %border[0, 0, 1, 1] ...
         %y = linalg.generic {n, c, row, column; window} ins(%p, %w)
After:   %f = linalg.fill ins(%zero) outs(%e)
         %p = linalg.generic {n, c, row, column} ins(%x) outs(%f) {copy, kernel.border = [2, 3]}
         %y = linalg.generic {n, c, row, column; window} ins(%p, %w)

The last three are in one kernel. It never makes the copy: `linalg-to-loops` reads through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import (
    PARALLEL,
    array_of_maps,
    contracts,
    element,
    identity,
    indices,
    is_not_fused,
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


def read_beyond_edges(block: Block) -> None:
    """Rewrite the padding of each image whose only user slides a window along its rows."""
    for op in list(block.ops):
        if isinstance(op, linalg.GenericOp) and (image := _image(op)) is not None:
            padded = op.inputs[image]
            if (found := _interior(padded)) is not None:
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


def _interior(padded: SSAValue) -> tuple[SSAValue, list[int], linalg.FillOp] | None:
    """Return the interior of ``padded``, its offsets, and the fill of the border."""
    chain: list[tensor.InsertSliceOp] = []
    at = padded
    while isinstance(op := at.owner, tensor.InsertSliceOp) and at.has_one_use():
        if op.offsets or op.strides or set(_static_values(op, "strides")) != {1}:
            return None
        chain.insert(0, op)
        at = op.dest
    if not chain or len(shape(chain[-1].source)) != len(shape(padded)):
        return None
    *sides, last = chain
    fills = [side.source.owner for side in sides]
    if isinstance(base := at.owner, linalg.FillOp):
        fills.append(base)
    elif not isinstance(base, tensor.EmptyOp) or not _cover(chain, shape(padded)):
        return None
    found = [f for f in fills if isinstance(f, linalg.FillOp)]
    if not found or len(found) < len(fills) or not _all_equal([f.inputs[0] for f in found]):
        return None
    offsets, sizes = _static_values(last, "offsets"), shape(last.source)
    if any(not at and m != n for at, m, n in zip(offsets, sizes, shape(padded), strict=True)):
        return None  # a loop would be shorter than the axis that it alone indexes
    columns = sizes[-1]
    if columns == DYNAMIC_INDEX or columns < ROW or DYNAMIC_INDEX in shape(padded)[-2:]:
        return None
    if shape(padded)[-1] - columns > AROUND:
        return None
    return _copy_source(last.source), offsets, found[0]


def _static_values(op: tensor.InsertSliceOp, name: str) -> list[int]:
    static = op.properties[f"static_{name}"]
    assert isinstance(static, DenseArrayBase)
    return [int(n) for n in static.get_values()]


def _cover(chain: Sequence[tensor.InsertSliceOp], whole: Sequence[int]) -> bool:
    """Whether the inserted tensors cover the whole without overlap."""
    boxes = [
        list(zip(_static_values(op, "offsets"), shape(op.source), strict=True)) for op in chain
    ]
    if any(size == DYNAMIC_INDEX for box in boxes for _, size in box) or DYNAMIC_INDEX in whole:
        return False
    apart = all(
        any(a + m <= b or b + n <= a for (a, m), (b, n) in zip(one, other, strict=True))
        for one, other in combinations(boxes, 2)
    )
    return apart and sum(prod(n for _, n in box) for box in boxes) == prod(whole)


def _all_equal(values: Sequence[SSAValue]) -> bool:
    """Whether all scalars are equal."""
    made_by = [v.owner for v in values]
    constants = [op.value for op in made_by if isinstance(op, arith.ConstantOp)]
    same = len(constants) == len(values) and len(set(constants)) == 1
    return same or len(set(values)) == 1


def _copy_source(value: SSAValue) -> SSAValue:
    """Return the source of ``value`` where it is a copy made for an insertion, else itself."""
    op = value.owner
    if isinstance(op, linalg.GenericOp) and is_not_fused(op) and value.has_one_use():
        plain_copy = all(index == identity(len(op.iterator_types)) for index in indices(op))
        if plain_copy and len(op.inputs) == 1 and len(op.outputs) == 1:
            return op.inputs[0]
    return value


def _rewrite(
    op: linalg.GenericOp, image: int, inside: SSAValue, offsets: list[int], fill: linalg.FillOp
) -> None:
    padded = op.inputs[image]
    rank = len(offsets)
    made_by = fill.outputs[0].owner
    sizes = list(made_by.dynamic_sizes) if isinstance(made_by, tensor.EmptyOp) else []
    if shape(padded).count(DYNAMIC_INDEX) != len(sizes):
        return
    empty = tensor.EmptyOp(sizes, padded.type)
    filled = linalg.FillOp([fill.inputs[0]], [empty.tensor], [padded.type])
    body = Block(arg_types=[element(padded)] * 2)
    body.add_op(located(linalg.YieldOp(body.args[0]), op.location))
    shifted = tuple(d + n if n else d for d, n in zip(identity(rank), offsets, strict=True))
    copy = linalg.GenericOp(
        [inside],
        [filled.results[0]],
        Region(body),
        array_of_maps(rank, [identity(rank), shifted]),
        [PARALLEL] * rank,
        [padded.type],
    )
    sizes = zip(offsets, shape(inside), shape(padded), strict=True)
    axes = [d for d, (offset, m, n) in enumerate(sizes) if offset or m != n]
    copy.attributes["kernel.border"] = DenseArrayBase.from_list(i64, axes)
    copy.results[0].name_hint = padded.name_hint
    location = padded.owner.location if isinstance(padded.owner, Operation) else op.location
    assert op.parent is not None and isinstance(padded, OpResult)
    op.parent.insert_ops_before([located(each, location) for each in (empty, filled, copy)], op)
    op.operands[image] = copy.results[0]
