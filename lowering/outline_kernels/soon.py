"""Run the launches whose results are only returned as early as their operands allow.

Before:  %d = kernel.launch @gradient ...       After:  %d = kernel.launch @gradient ...
         ... the rest of the way back ...               %w1 = kernel.launch @update ins(%d, %w)
         %w1 = kernel.launch @update ins(%d, %w)        ... the rest of the way back ...
         func.return %w1                                func.return %w1

The user's function updates its parameters at the end. An update that runs right after the launch
of its gradient reads operands that are still in the caches and that need not live to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from stepwell.analysis.effects import is_pure
from stepwell.dialects import kernel
from stepwell.dialects.calling import INTO

_RESHAPES = tensor.ExpandShapeOp | tensor.CollapseShapeOp | tensor.CastOp
_FREE = tensor.EmptyOp | tensor.DimOp
FEW = 1 << 10
"""The most elements of a result that may stay alive until its use: scalars, statistics."""


def soon(block: Block, function: func.FuncOp) -> list[Operation]:
    """Return the ops of a function's block, with the launches that only the caller needs moved up.

    An operand that costs nothing to define (a constant, a size) may still follow its user.
    """
    ops = list(block.ops)
    last = block.last_op
    if not isinstance(last, func.ReturnOp):
        return ops
    order = {op: float(number) for number, op in enumerate(ops)}
    early = _movable_launches(ops, last)
    if not early:
        return ops
    moving = _Moving(block, order, _readers(function, last, order))
    for op in ops:
        if op in early:
            moving.place(op)
        elif not is_pure(op, moving.known):
            moving.barrier = order[op]
    return sorted(ops, key=lambda op: moving.order[op])


def _movable_launches(ops: list[Operation], last: func.ReturnOp) -> dict[Operation, None]:
    """Return the launches whose results are only returned or used by other such launches.

    A result that is not returned lives longer: it is small, or no larger than operands that die.
    """
    found: dict[Operation, None] = {}
    for op in reversed(ops):
        if not isinstance(op, kernel.LaunchOp) or not is_pure(op):
            continue
        users = [(result, user) for result in op.results for user in _users(result)]
        returned = {result for result, user in users if user is last}
        waiting = [result for result in op.results if result not in returned]
        if all(user is last or user in found or _is_number(result) for result, user in users) and (
            all(_is_few(result) for result in waiting) or _fits_in_dying_operands(op, waiting)
        ):
            found[op] = None
    return found


class _Moving:
    """The new position of each op in a block; a moved op gets a position between two integers."""

    def __init__(
        self,
        block: Block,
        order: dict[Operation, float],
        readers: dict[SSAValue, list[Operation]],
    ) -> None:
        self.block, self.order, self.readers = block, order, readers
        self.known: dict[Operation, bool] = {}
        self.barrier = -1.0
        """The position of the last op so far that has side effects."""

    def place(self, op: Operation) -> None:
        """Move a launch directly behind the last op that it depends on."""
        where = [self.barrier, *(self._ready(value) for value in op.operands)]
        for result in op.results:
            where += [self.order[r] for r in self.readers.get(result, ()) if r is not op]
        after = max(where)
        if after < self.order[op]:
            self.order[op] = int(after) + 0.5

    def _ready(self, value: SSAValue) -> float:
        """Return the position of the op behind which ``value`` is, or can be, defined."""
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.block:
            return -1.0
        if isinstance(op, _FREE | _RESHAPES | arith.ConstantOp) or op.name.startswith("arith."):
            return max((self._ready(v) for v in op.operands), default=-1.0)
        return self.order[op]


def _readers(
    function: func.FuncOp, last: func.ReturnOp, order: dict[Operation, float]
) -> dict[SSAValue, list[Operation]]:
    """Map each result that is returned into an argument's buffer to the argument's users."""
    found: dict[SSAValue, list[Operation]] = {}
    for number, given in enumerate(function.res_attrs.data if function.res_attrs else ()):
        into = given.data.get(INTO)
        if isinstance(into, IntegerAttr) and 0 <= into.value.data < len(function.args):
            value = last.operands[number]
            while isinstance(value, OpResult) and isinstance(value.op, _RESHAPES):
                value = value.op.operands[0]
            users = _users(function.args[into.value.data])
            found.setdefault(value, []).extend(op for op in users if op in order)
    return found


def _users(value: SSAValue) -> Iterator[Operation]:
    """Yield the users of ``value`` in its block, through reshapes; a nested user as its parent."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    for use in value.uses:
        op: Operation | None = use.operation
        if isinstance(op, _RESHAPES) and op.parent is block:
            yield from _users(op.results[0])
            continue
        while op is not None and op.parent is not block:
            op = op.parent_op()
        if op is not None:
            yield op


def _fits_in_dying_operands(op: kernel.LaunchOp, results: list[OpResult]) -> bool:
    """Whether ``results`` are no larger than the operands that only ``op`` uses."""
    created = {v: _element_count(v) for v in op.inputs if _is_only_used_by(v, op)}
    wanted = [_element_count(result) for result in results]
    return min((*wanted, *created.values()), default=0) >= 0 and sum(wanted) <= sum(
        created.values()
    )


def _is_only_used_by(value: SSAValue, op: Operation) -> bool:
    """Whether ``value`` is the result of a launch and ``op`` is its only user."""
    at = value
    while isinstance(at, OpResult) and isinstance(at.op, _RESHAPES):
        at = at.op.operands[0]
    return (
        isinstance(at, OpResult)
        and isinstance(at.op, kernel.LaunchOp)
        and all(user is op for user in _users(at))
    )


def _element_count(value: SSAValue) -> int:
    """Return the number of elements of a tensor; -1 where it is dynamic."""
    sizes = value.type.get_shape() if isinstance(value.type, TensorType) else ()
    return prod(sizes) if all(n >= 0 for n in sizes) else -1


def _is_few(value: SSAValue) -> bool:
    return 0 <= _element_count(value) <= FEW


def _is_number(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and not value.type.get_shape()
