"""Mark the loops of scalar code whose adjacent iterations can be vectorized: `kernel.columns`.

Such an iteration writes one element of each array, at its own index along the last axis. Any
element that it reads of these arrays is the same one, or one that no iteration writes: its index
precedes or follows all of theirs, or it is in another row.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.transforms.structured.scalar_loops.bounds import number_of
from stepwell.transforms.structured.scalar_loops.code import Code
from stepwell.transforms.structured.scalar_loops.flow import is_outside


def are_apart(code: Code, block: Block, low: SSAValue, high: SSAValue) -> bool:
    """Whether a unit-step loop has independent iterations, and reductions inside of them.

    block : the finished body; low, high : the bounds of the loop
    """
    *ops, last = block.ops
    if not any(isinstance(op, scf.ForOp) for op in ops) or not block.args[1:]:
        return False
    if any(not isinstance(a.type, TensorType) for a in block.args[1:]):
        return False
    places: dict[SSAValue, list[SSAValue]] = {}
    for argument, value in zip(block.args[1:], last.operands, strict=True):
        store = value.owner
        if not isinstance(store, tensor.InsertOp) or store.dest is not argument:
            return False
        if not isinstance(store.scalar.type, AnyFloat):
            return False
        *rest, index = store.indices
        if index is not block.args[0] or not all(is_outside(v, block) for v in rest):
            return False
        places[argument] = list(store.indices)
    with code.bounds.inside():
        return all(_is_free(code, op, block, places, low, high) for op in _nested_ops(code, ops))


def _nested_ops(code: Code, ops: list[Operation]) -> Iterator[Operation]:
    """Yield ops and those nested in their loops, with the loop bounds recorded as facts."""
    for op in ops:
        yield op
        if isinstance(op, scf.ForOp):
            body = op.body.block
            code.bounds.order(body.args[0], op.ub, 1)
            code.bounds.order(op.lb, body.args[0])
            yield from _nested_ops(code, list(body.ops))


def _is_free(
    code: Code,
    op: Operation,
    block: Block,
    places: dict[SSAValue, list[SSAValue]],
    low: SSAValue,
    high: SSAValue,
) -> bool:
    if isinstance(op, scf.ForOp):
        return all(isinstance(v.type, AnyFloat) for v in op.iter_args)
    if isinstance(op, tensor.InsertOp):
        return op.dest in places
    if not isinstance(op, tensor.ExtractOp):
        return isinstance(op, scf.YieldOp) or (touches_nothing(op) and not op.regions)
    if op.tensor not in places:
        return not isinstance(op.tensor.owner, tensor.InsertOp)
    written, read = places[op.tensor], list(op.indices)
    if written == read:
        return True
    bounds, at = code.bounds, read[-1]
    if bounds.is_ordered(at, low, 1) or bounds.is_ordered(high, at):
        return True
    for a, b in zip(written[:-1], read[:-1], strict=True):
        (x, more), (y, less) = bounds.sum_of(a), bounds.sum_of(b)
        numbers = number_of(a), number_of(b)
        if None not in numbers and numbers[0] != numbers[1]:
            return True
        if (x is y and more != less) or bounds.is_ordered(a, b, 1) or bounds.is_ordered(b, a, 1):
            return True
    return False
