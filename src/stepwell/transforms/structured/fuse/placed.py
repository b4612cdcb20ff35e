"""Write the results of sequential loops in the layout of their copy.

A scan is merged into none of its readers, so a copy of its result that only transposes or reverses
axes would remain. The scan can write the elements in that order itself.
"""

from __future__ import annotations

from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import (
    Index,
    array_of_maps,
    at,
    indices,
    is_elementwise,
    is_not_fused,
    is_parallel,
    linear,
    plain,
)
from stepwell.transforms.structured.fuse.cost import is_view


def place_results(block: Block) -> None:
    """Let ops of ``block`` write their results in the layout of their only reader, a copy."""
    for copy in list(block.ops):
        if isinstance(copy, linalg.GenericOp) and is_copy(copy):
            _place(copy)


def is_copy(op: linalg.GenericOp) -> bool:
    """Whether an op only copies its input, in another order maybe, and may be fused."""
    if len(op.inputs) != 1 or len(op.outputs) != 1 or is_not_fused(op):
        return False
    return is_view(op) and is_elementwise(op) and op.body.block.args[0].first_use is not None


def _place(copy: linalg.GenericOp) -> None:
    value, into = copy.inputs[0], copy.outputs[0]
    maker = value.owner
    if not isinstance(maker, linalg.GenericOp) or maker.parent is not copy.parent:
        return
    number, reads, loops = maker.results.index(value), indices(maker), len(maker.iterator_types)
    which = len(maker.inputs) + number
    if not value.has_one_use() or not _runs_along(maker, reads[which]) or is_not_fused(maker):
        return
    if not isinstance(maker.operands[which].owner, tensor.EmptyOp) or not _is_new(into, maker):
        return
    if maker.body.block.args[which].first_use is not None:
        return
    given, written = indices(copy)
    if not _reads_all(copy, given, written):
        return
    places = _solved(given, reads[which], len(copy.iterator_types))
    if places is None:
        return
    reads[which] = at(written, places)
    if not _determine_all_extents(reads, loops):
        return
    operands = list(maker.operands)
    operands[which] = into
    types = list(maker.result_types)
    types[number] = copy.results[0].type
    new = linalg.GenericOp(
        operands[: len(maker.inputs)],
        operands[len(maker.inputs) :],
        maker.detach_region(maker.body),
        array_of_maps(loops, reads),
        maker.iterator_types,
        types,
    )
    new.attributes.update(maker.attributes)
    new.location = maker.location
    block = maker.parent
    assert block is not None
    block.insert_op_before(new, maker)
    for old, result in zip(maker.results, new.results, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    result = new.results[number]
    result.name_hint = copy.results[0].name_hint or result.name_hint
    copy.results[0].replace_all_uses_with(result)
    for op in (copy, maker):
        op.detach()
        op.erase()


def _reads_all(copy: linalg.GenericOp, given: Index, written: Index) -> bool:
    """Whether each loop of a copy is as long as the axis that it reads: it is no slice."""
    block = copy.parent_block()
    assert block is not None
    sizes = Sizes(block.args)
    extents = dict(zip(map(plain, written), sizes.shape(copy.results[0]), strict=True))
    rows = zip(given, sizes.shape(copy.inputs[0]), strict=True)
    return all({extents.get(k) for k in expr.used_dims()} == {n} for expr, n in rows)


def _runs_along(op: linalg.GenericOp, index: Index) -> bool:
    """Whether a result is indexed by loops that are not parallel."""
    parallel = is_parallel(op)
    return any(not parallel[k] for expr in index for k in expr.used_dims())


def _is_new(into: SSAValue, maker: Operation) -> bool:
    """Whether ``into`` is a tensor.empty that can move before ``maker``; if so, move it."""
    empty, block = into.owner, maker.parent
    if not isinstance(empty, tensor.EmptyOp) or empty.parent is not block or block is None:
        return False
    moving: list[Operation] = [empty]
    for op in moving:
        for value in op.operands:
            owner = value.owner
            if not isinstance(owner, Operation) or owner.parent is not block:
                continue
            if owner is maker or maker.is_before_in_block(owner):
                if not isinstance(owner, arith.ConstantOp | tensor.DimOp):
                    return False
                moving.append(owner)
    for op in dict.fromkeys(reversed(moving)):  # operands first
        if maker.is_before_in_block(op):
            op.detach()
            block.insert_op_before(op, maker)
    return True


def _solved(given: Index, created: Index, loops: int) -> list[AffineExpr] | None:
    """Return the loops of a copy in terms of those of its producer; None where they mix."""
    found: dict[int, AffineExpr] = {}
    for expr, place in zip(given, created, strict=True):
        form = linear(expr)
        if form is None or len(form[0]) != 1:
            return None
        ((loop, factor),) = form[0].items()
        if loop in found or factor not in (1, -1):
            return None
        found[loop] = place * factor + form[1] * -factor
    return [found[k] for k in range(loops)] if len(found) == loops else None


def _determine_all_extents(index_list: list[Index], loops: int) -> bool:
    """Whether the extent of every loop is that of an axis of some operand."""
    return {plain(e) for index in index_list for e in index} >= set(range(loops))
