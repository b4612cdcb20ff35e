"""Analyse loops on tensors: where numbers come from, and which of them are loop counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from stepwell.analysis.structured import extents, yielded
from stepwell.dialects.upstream.effects import touches_nothing


def is_number(value: SSAValue) -> bool:
    """Whether ``value`` is a number, or a tensor of one element."""
    return not isinstance(value.type, TensorType) or prod(value.type.get_shape()) == 1


def is_single(op: Operation) -> bool:
    """Whether ``op`` is a structured op of a single iteration, all of whose results are numbers."""
    return (
        isinstance(op, linalg.GenericOp)
        and all(map(is_number, op.results))
        and all(n == 1 for n in extents(op))
    )


def origin(value: SSAValue) -> SSAValue:
    """Return the scalar that ``value``, a scalar or a one-element tensor, is known to equal."""
    while True:
        made_by = value.owner
        match made_by:
            case tensor.ExtractOp() if is_number(made_by.tensor):
                value = made_by.tensor
            case tensor.CollapseShapeOp() | tensor.ExpandShapeOp() if is_number(value):
                value = made_by.operands[0]
            case linalg.GenericOp() if is_single(made_by):
                assert isinstance(value, OpResult)
                value = yielded(made_by.body.block)[value.index]
            case linalg.FillOp() if is_number(value):
                value = made_by.inputs[0]
            case Block() if isinstance(above := made_by.parent_op(), linalg.GenericOp):
                assert isinstance(value, BlockArgument)
                operand = above.operands[value.index]
                if not is_single(above) or not is_number(operand):
                    return value
                value = operand
            case _:
                return value


def is_within(value: SSAValue, op: Operation) -> bool:
    """Whether ``value`` is defined in a region of ``op``."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent_block()
    while block is not None:
        above = block.parent_op()
        if above is op:
            return True
        block = above.parent_block() if above is not None else None
    return False


def is_outside(value: SSAValue, block: Block) -> bool:
    """Whether ``value`` is defined neither in ``block`` nor in a block inside it."""
    owner = value.owner
    at = owner if isinstance(owner, Block) else owner.parent_block()
    while at is not None:
        if at is block:
            return False
        above = at.parent_op()
        at = above.parent_block() if above is not None else None
    return True


def constant(value: SSAValue) -> int | None:
    """Return the integer that ``value`` is known to equal."""
    match origin(value).owner:
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return number.data
        case _:
            return None


_TURNED = {2: 4, 3: 5, 4: 2, 5: 3}
"""Signed predicates (slt, sle, sgt, sge), each mapped to that of the swapped operands."""


@dataclass(frozen=True)
class Counter:
    """A carried number that a loop steps by a constant up or down to a loop-invariant bound."""

    slot: int
    """Its position among the carried values."""
    bound: SSAValue
    """The tensor-level value that it is compared with."""
    predicate: int
    step: int


def handed_on(op: scf.WhileOp) -> bool:
    """Whether the condition of a loop forwards all its arguments, in order, to the body."""
    last = op.before_region.block.last_op
    assert isinstance(last, scf.ConditionOp)
    given: Sequence[SSAValue] = op.before_region.block.args
    return len(last.args) == len(given) and all(
        a is b for a, b in zip(last.args, given, strict=True)
    )


def counter_of(op: scf.WhileOp) -> Counter | None:
    """Return the counter of a loop, if its test alone decides the trip count."""
    before, after = op.before_region.block, op.after_region.block
    last = before.last_op
    assert isinstance(last, scf.ConditionOp)
    test = origin(last.condition).owner
    if not handed_on(op) or not isinstance(test, arith.CmpiOp):
        return None
    sides, predicate = [origin(test.lhs), origin(test.rhs)], test.predicate.value.data
    if sides[0] not in before.args:
        sides, predicate = sides[::-1], _TURNED.get(predicate, -1)
    counted, bound = sides
    if predicate not in _TURNED or not isinstance(counted, BlockArgument):
        return None
    if counted.owner is not before or not _is_fixed(bound, op):
        return None
    step = _step(after, counted.index)
    if step is None or (step > 0) != (predicate in (2, 3)):
        return None
    return Counter(counted.index, bound, predicate, step)


def is_kept(op: scf.WhileOp, slot: int) -> bool:
    """Whether the ``slot``-th carried value of a loop is loop-invariant."""
    return (
        handed_on(op) and yielded(op.after_region.block)[slot] is op.after_region.block.args[slot]
    )


def _is_fixed(value: SSAValue, op: scf.WhileOp) -> bool:
    """Whether a number that the test of a loop uses is loop-invariant."""
    value = origin(value)
    if not is_within(value, op):
        return True
    if isinstance(value, BlockArgument):
        return value.owner is op.before_region.block and is_kept(op, value.index)
    made_by = value.owner
    assert isinstance(made_by, Operation)
    pure = touches_nothing(made_by) and not made_by.regions
    return pure and _is_read_or_scalar(made_by) and all(_is_fixed(v, op) for v in made_by.operands)


def _is_read_or_scalar(op: Operation) -> bool:
    """Whether ``op`` reads one element of an array, or computes a scalar."""
    reads = isinstance(op, tensor.ExtractSliceOp) and is_number(op.result)
    return reads or not any(isinstance(v.type, TensorType) for v in op.results)


def _step(body: Block, slot: int) -> int | None:
    """Return the constant by which an iteration changes a carried number; None if unknown or 0."""
    change = origin(yielded(body)[slot]).owner
    if not isinstance(change, arith.AddiOp | arith.SubiOp):
        return None
    sides = [change.lhs, change.rhs]
    if origin(sides[0]) is not body.args[slot] and isinstance(change, arith.AddiOp):
        sides.reverse()
    if origin(sides[0]) is not body.args[slot] or not (by := constant(sides[1])):
        return None
    return by if isinstance(change, arith.AddiOp) else -by


def kept_axes(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """Return which axes of a slice of these sizes remain in its type, which has this shape."""
    if len(sizes) == len(shape):
        return list(range(len(sizes)))
    kept = [axis for axis, n in enumerate(sizes) if n != 1]
    return kept if [sizes[a] for a in kept] == list(shape) else None
