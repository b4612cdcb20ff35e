"""Fill only the border of a padded image, and copy the interior in a parallel kernel."""

from __future__ import annotations

from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType, UnitAttr, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from stepwell.analysis.structured import PARALLEL, array_of_maps, element, identity, shape
from stepwell.transforms.structured.fuse.draft import located

MIN_ELEMENTS = 1 << 12
"""The number of elements below which an image is filled whole."""
MAX_GROWTH = 2
"""The ratio of the padded to the unpadded size from which the whole image is filled."""
SCATTERED = 8
"""The number of separate pieces from which a slab is filled by the threads of the interior."""


def fill_borders(block: Block) -> bool:
    """Rewrite each insertion into a filled tensor that is a padding; return whether any is.

    A tensor of dynamic size is filled whole, but an argument is still copied by a kernel.
    """
    inserts = [op for op in block.ops if isinstance(op, tensor.InsertSliceOp)]
    found = [op for op in inserts if _pads(op)]
    unknown = [op for op in inserts if _pads_unknown(op)]
    for op in unknown:
        _copy_source(op)
    for op in found:
        _fill_border(op)
        if isinstance(op.source, BlockArgument):
            _copy_source(op)
    return bool(found or unknown)


def _pads(op: tensor.InsertSliceOp) -> bool:
    """Whether ``op`` pads a tensor, all sizes known, in a destination filled for it alone."""
    fill, whole, inside = op.dest.owner, shape(op.dest), shape(op.source)
    return (
        isinstance(fill, linalg.FillOp)
        and isinstance(fill.outputs[0].owner, tensor.EmptyOp)
        and len(whole) == len(inside)
        and DYNAMIC_INDEX not in (*whole, *inside)
        and not (op.offsets or op.sizes or op.strides)
        and set(_static_values(op, "strides")) <= {1}
        and MIN_ELEMENTS <= prod(whole) < MAX_GROWTH * prod(inside)
    )


def _pads_unknown(op: tensor.InsertSliceOp) -> bool:
    """Whether ``op`` inserts an argument of dynamic size into a filled tensor."""
    return (
        isinstance(op.source, BlockArgument)
        and isinstance(op.dest.owner, linalg.FillOp)
        and DYNAMIC_INDEX in shape(op.source)
        and len(op.sizes) == shape(op.source).count(DYNAMIC_INDEX)
        and not (op.offsets or op.strides)
        and set(_static_values(op, "strides")) <= {1}
    )


def _static_values(op: tensor.InsertSliceOp, name: str) -> list[int]:
    static = op.properties[f"static_{name}"]
    assert isinstance(static, DenseArrayBase)
    return [int(n) for n in static.get_values()]


def _fill_border(op: tensor.InsertSliceOp) -> None:
    """Fill slabs before and behind along each axis, within the interior of the axes before it.

    A slab in many separate pieces is marked: one thread that fills all of it would take cache
    lines throughout the image from the threads that write and read the rest.
    """
    fill = op.dest.owner
    assert isinstance(fill, linalg.FillOp)
    whole, inside, offsets = (
        list(shape(op.dest)),
        list(shape(op.source)),
        _static_values(op, "offsets"),
    )
    empty = tensor.EmptyOp((), op.dest.type)
    new: list[Operation] = [empty]
    at, sizes = [0] * len(whole), list(whole)
    into: SSAValue = empty.tensor
    for axis, (low, size) in enumerate(zip(offsets, inside, strict=True)):
        for start, end in ((0, low), (low + size, whole[axis])):
            if start == end:
                continue
            at[axis], sizes[axis] = start, end - start
            slab = tensor.EmptyOp((), TensorType(element(op.dest), sizes))
            filled = linalg.FillOp([fill.inputs[0]], [slab.tensor], [slab.tensor.type])
            if prod(sizes[:axis]) >= SCATTERED:
                filled.attributes["kernel.no_fuse"] = UnitAttr()
            put = _insert(filled.results[0], into, at, sizes)
            new += [slab, filled, put]
            into = put.result
        at[axis], sizes[axis] = low, size
    assert op.parent is not None
    op.parent.insert_ops_before([located(each, fill.location) for each in new], op)
    into.name_hint = op.dest.name_hint
    op.operands[1] = into


def _insert(
    source: SSAValue, into: SSAValue, offsets: list[int], sizes: list[int]
) -> tensor.InsertSliceOp:
    numbers = {"offsets": offsets, "sizes": sizes, "strides": [1] * len(sizes)}
    return tensor.InsertSliceOp.build(
        operands=[source, into, [], [], []],
        properties={f"static_{k}": DenseArrayBase.from_list(i64, v) for k, v in numbers.items()},
        result_types=[into.type],
    )


def _copy_source(op: tensor.InsertSliceOp) -> None:
    """Copy an argument in a kernel, which can write directly into the destination."""
    value, rank = op.source, len(shape(op.source))
    empty = tensor.EmptyOp(tuple(op.sizes), value.type)
    block = Block(arg_types=[element(value)] * 2)
    block.add_op(located(linalg.YieldOp(block.args[0]), op.location))
    copy = linalg.GenericOp(
        [value],
        [empty.tensor],
        Region(block),
        array_of_maps(rank, [identity(rank)] * 2),
        [PARALLEL] * rank,
        [value.type],
    )
    copy.attributes["kernel.no_fuse"] = UnitAttr()
    copy.results[0].name_hint = value.name_hint
    assert op.parent is not None
    op.parent.insert_ops_before([located(each, op.location) for each in (empty, copy)], op)
    op.operands[0] = copy.results[0]
