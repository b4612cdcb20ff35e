"""Do not rewrite the halo of a carried tensor in every iteration of a loop.

Before:  %u carried;  %0 = tensor.empty()
         %1 = tensor.insert_slice (row 0 of %u) into %0[0, 0]       the halo, unchanged
         %2 = tensor.insert_slice %inner into %1[1, 0]              the new interior
         %3 = tensor.insert_slice (last row of %u) into %2[9, 0]    the halo, unchanged
         scf.yield %3
After:   %1 = tensor.insert_slice %inner into %u[1, 0]
         scf.yield %1

A loop that swaps two buffers then writes the interior into the buffer that it does not read. The
halo is the same in both buffers in every iteration, so it is copied once, before the loop.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, ModuleOp, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from stepwell.analysis.sizes import Shape, Size, Sizes, SizeWriter
from stepwell.dialects import kernel
from stepwell.dialects.types import tensor_type
from stepwell.lowering.bufferize.assignment import slice_of
from stepwell.lowering.bufferize.views import Part, Slice, disjoint


@dataclass(frozen=True)
class Piece:
    """A tensor inserted into a box of another, with unit strides."""

    value: SSAValue
    offsets: Shape
    sizes: Shape
    source: Operation
    """The insertion op."""

    @property
    def part(self) -> Part:
        """The box that the piece overwrites."""
        return Part(box_of(self.offsets, self.sizes), True)


def box_of(offsets: Shape, sizes: Shape) -> Slice:
    """Return the slice with unit strides that keeps all axes."""
    rank = len(sizes)
    return Slice(offsets, sizes, (Size.of(1),) * rank, tuple(range(rank)))


def keep_halos(module: ModuleOp, block: Block) -> None:
    """Rewrite each loop of a host function that copies a halo of a carried tensor back into it."""
    loops = [op for op in block.walk() if isinstance(op, scf.ForOp | scf.WhileOp)]
    if not loops:
        return
    sizes = Sizes(block.args)
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, kernel.FuncOp)}
    dropped: dict[str, None] = {}
    for loop in loops:
        for value, slot in _carried(loop):
            if isinstance(slot.type, TensorType):
                gone = _keep_halo(sizes, kernels, block, value, slot)
                dropped.update(dict.fromkeys(gone))
    if dropped:
        launches = [op for op in module.walk() if isinstance(op, kernel.LaunchOp)]
        used = {op.callee.root_reference.data for op in launches}
        for name in dropped:
            if name not in used:
                kernels[name].detach()
                kernels[name].erase()


def _carried(loop: scf.ForOp | scf.WhileOp) -> list[tuple[SSAValue, SSAValue]]:
    """Return each value that a loop yields, with the block argument that it becomes."""
    block = loop.body.block if isinstance(loop, scf.ForOp) else loop.after_region.block
    last = block.last_op
    assert last is not None
    if isinstance(loop, scf.ForOp):
        return list(zip(last.operands, block.args[1:], strict=True))
    test = loop.before_region.block
    condition = test.last_op
    assert isinstance(condition, scf.ConditionOp)
    if tuple(condition.args) != tuple(test.args):
        return []
    return list(zip(last.operands, block.args, strict=True))


def _keep_halo(
    sizes: Sizes,
    kernels: dict[str, kernel.FuncOp],
    entry: Block,
    value: SSAValue,
    slot: SSAValue,
) -> Iterator[str]:
    """Replace the yielded ``value`` by insertions of its changed pieces into ``slot``.

    Yield the names of the kernels whose launches were erased.
    """
    zero = (Size(),) * tensor_type(slot).get_num_dims()
    pieces: list[Piece] = []
    root = value.owner
    if not isinstance(root, tensor.InsertSliceOp) or not _gather(sizes, value, zero, pieces):
        return
    kept = [_is_unchanged(kernels, sizes, piece, slot) for piece in pieces]
    others = [piece for piece, k in zip(pieces, kept, strict=True) if not k]
    if len(others) == len(pieces) or not others or sizes.shape(value) != sizes.shape(slot):
        return
    for n, piece in enumerate(pieces):
        before = (p for p, k in zip(pieces[:n], kept, strict=False) if not k)
        if kept[n] and not all(disjoint(sizes, piece.part, p.part) for p in before):
            return
    block = root.parent_block()
    assert block is not None
    new: list[Operation] = []

    def dim(number: int) -> SSAValue:
        argument, axis = sizes.dims[number]
        op = tensor.DimOp(entry.args[argument], write(Size.of(axis)))
        new.append(op)
        return op.result

    write = SizeWriter(sizes, dim, new.append)
    current = slot
    for piece in others:
        insert = _insertion(piece, current, write)
        insert.result.name_hint = value.name_hint
        new.append(insert)
        current = insert.result
    for op in new:
        op.location = root.location
    block.insert_ops_before(new, root)
    value.replace_all_uses_with(current)
    yield from _erase_unused(root)


def _gather(sizes: Sizes, value: SSAValue, at: Shape, pieces: list[Piece]) -> bool:
    """Collect the pieces inserted into an empty tensor to make ``value``, at offsets ``at``."""
    op = value.owner
    if isinstance(op, tensor.EmptyOp):
        return True
    if not isinstance(op, tensor.InsertSliceOp) or not is_box(op):
        return False
    if not op.dest.has_one_use() or not _gather(sizes, op.dest, at, pieces):
        return False
    where = slice_of(sizes, op)
    offsets = tuple(a + b for a, b in zip(at, where.offsets, strict=True))
    inner: list[Piece] = []
    if op.source.has_one_use() and _gather(sizes, op.source, offsets, inner) and inner:
        pieces += inner
    else:
        pieces.append(Piece(op.source, offsets, where.sizes, op))
    return True


def is_box(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> bool:
    """Whether a slice keeps all axes of the whole tensor and has unit strides."""
    small = op.result if isinstance(op, tensor.ExtractSliceOp) else op.source
    rank = len(op.static_sizes.get_values())
    return tensor_type(small).get_num_dims() == rank and all(
        n == 1 for n in op.static_strides.get_values()
    )


def _is_unchanged(
    kernels: dict[str, kernel.FuncOp], sizes: Sizes, piece: Piece, slot: SSAValue
) -> bool:
    """Whether ``piece`` equals the elements of ``slot`` that it overwrites."""
    op = piece.value.owner
    if isinstance(op, tensor.ExtractSliceOp):
        return op.source is slot and is_box(op) and slice_of(sizes, op).offsets == piece.offsets
    if not isinstance(op, kernel.LaunchOp) or len(op.results) != 1:
        return False
    function = kernels.get(op.callee.root_reference.data)
    read = _copied_from(function) if function is not None else None
    if read is None:
        return False
    argument, offsets = read
    return op.operands[argument] is slot and piece.offsets == tuple(map(Size.of, offsets))


def _copied_from(function: kernel.FuncOp) -> tuple[int, list[int]] | None:
    """Return the argument of which a kernel only copies a box, and the box's offsets."""
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    others = linalg.GenericOp | kernel.ReturnOp | tensor.EmptyOp
    if len(ops) != 1 or not all(isinstance(op, others) for op in function.body.block.ops):
        return None
    (op,) = ops
    block = op.body.block
    last = block.last_op
    assert last is not None
    if len(op.inputs) != 1 or len(op.outputs) != 1 or tuple(last.operands) != (block.args[0],):
        return None
    arguments = list(function.body.block.args)
    read, written = (m.data for m in op.indexing_maps.data)
    plain = tuple(AffineDimExpr(k) for k in range(written.num_dims))
    if op.inputs[0] not in arguments or tuple(written.results) != plain:
        return None
    offsets = [_offset(expr, k) for k, expr in enumerate(read.results)]
    known = [n for n in offsets if n is not None]
    if len(known) != len(plain) or len(offsets) != len(plain):
        return None
    return next(n for n, a in enumerate(arguments) if a is op.inputs[0]), known


def _offset(expr: AffineExpr, loop: int) -> int | None:
    """Return c if ``expr`` is loop + c, else None."""
    if isinstance(expr, AffineDimExpr):
        return 0 if expr.position == loop else None
    if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.Add:
        constant = expr.rhs
        if isinstance(constant, AffineConstantExpr) and _offset(expr.lhs, loop) == 0:
            return constant.value
    return None


def _insertion(piece: Piece, into: SSAValue, write: SizeWriter) -> tensor.InsertSliceOp:
    def split(sizes: Sequence[Size]) -> tuple[list[int], list[SSAValue]]:
        static = [DYNAMIC_INDEX if n.number is None else n.number for n in sizes]
        return static, [write(n) for n in sizes if n.number is None]

    (offsets, at), (extents, by) = split(piece.offsets), split(piece.sizes)
    properties = {
        "static_offsets": DenseArrayBase.from_list(i64, offsets),
        "static_sizes": DenseArrayBase.from_list(i64, extents),
        "static_strides": DenseArrayBase.from_list(i64, [1] * len(extents)),
    }
    return tensor.InsertSliceOp.build(
        operands=[piece.value, into, at, by, []], properties=properties, result_types=[into.type]
    )


def _erase_unused(op: Operation) -> Iterator[str]:
    """Erase ``op`` if it is dead, then its dead operands; yield the kernels of erased launches."""
    known = tensor.InsertSliceOp | tensor.ExtractSliceOp | tensor.EmptyOp | kernel.LaunchOp
    if any(r.uses for r in op.results):
        return
    owners = [v.owner for v in op.operands]
    if isinstance(op, kernel.LaunchOp):
        yield op.callee.root_reference.data
    op.detach()
    op.erase()
    for owner in dict.fromkeys(o for o in owners if isinstance(o, Operation)):
        if isinstance(owner, known) and owner.parent is not None:
            yield from _erase_unused(owner)


def insertions_into(
    sizes: Sizes, value: SSAValue, slot: SSAValue, stops: Container[SSAValue]
) -> list[tensor.InsertSliceOp]:
    """Return the insertions, in order, by which the yielded ``value`` is made from ``slot``.

    Empty if ``value`` is not made by insertions, if the offset of one is not static, or if they
    overwrite less than half of the tensor, where an update in place is cheaper.

    stops : the aliases of the slot in the body
    """
    found: list[tensor.InsertSliceOp] = []
    while value not in stops:
        op = value.owner
        if not isinstance(op, tensor.InsertSliceOp) or not is_box(op):
            return []
        if len(found) and not value.has_one_use():
            return []
        found.insert(0, op)
        value = op.dest
    numbers = [n for op in found for s in (slice_of(sizes, op),) for n in (*s.offsets, *s.sizes)]
    if any(sizes.unknowns(n) for n in numbers):
        return []
    whole = _count(sizes.shape(slot))
    new = sum(_count(slice_of(sizes, op).sizes) for op in found)
    return found if 2 * new >= whole else []


def _count(sizes: Shape) -> int:
    """Return the number of elements of a shape, with one for each dynamic size."""
    total = 1
    for n in sizes:
        total *= 1 if n.number is None else n.number
    return total


def complement(boxes: Sequence[Slice], whole: Shape) -> list[Slice]:
    """Return boxes that cover the complement of one box, or the whole shape if there are more."""
    rank = len(whole)
    zero = Size()
    if len(boxes) != 1:
        return [box_of((zero,) * rank, whole)]
    (box,) = boxes
    found: list[Slice] = []
    for axis in range(rank):
        inside = slice(0, axis)
        behind = box.offsets[axis] + box.sizes[axis]
        for start, extent in ((zero, box.offsets[axis]), (behind, whole[axis] - behind)):
            if extent.number != 0:
                offsets = (*box.offsets[inside], start, *(zero,) * (rank - axis - 1))
                sizes = (*box.sizes[inside], extent, *whole[axis + 1 :])
                found.append(box_of(offsets, sizes))
    return found
