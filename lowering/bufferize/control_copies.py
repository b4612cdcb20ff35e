"""Copy insertion for the branches and loops of a host function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from stepwell.lowering.bufferize.copies import Copies, Loop
from stepwell.lowering.bufferize.intervals import BEFORE, RUN, WRITTEN
from stepwell.transforms.passes import fail


def _branch(copies: Copies, op: scf.IfOp) -> None:
    """Copy the tensors that each side yields to the results."""
    positions = copies.positions
    for result in op.output:
        if isinstance(result.type, TensorType):
            copies.new(result, positions.end(op))
    for region in op.regions:
        copies.visit(region.block)
        last = region.block.last_op
        assert last is not None
        end = positions.start(last)
        for value, result in zip(last.operands, op.output, strict=True):
            if isinstance(result.type, TensorType) and result.first_use is not None:
                copies.read(value, last, BEFORE)
                copies.copy("branch", last, value, result, end + WRITTEN)
                # live to the end of its side; from the join it is live to its last read
                stop = positions.end(op) if region is op.regions[-1] else end + RUN
                copies.variables[result].live([(end + WRITTEN, stop)], (), ())


def _for(copies: Copies, op: scf.ForOp) -> None:
    """Copy inits to slots, values of iterations to slots, and slots to results."""
    block = op.body.block
    last = block.last_op
    assert isinstance(last, scf.YieldOp)
    loop = copies.loops[op] = Loop(op, block.args[1:], last)
    _inits(copies, loop, op.iter_args)
    copies.visit(block)
    _nexts(copies, loop)
    for slot, result in zip(loop.slots, op.res, strict=True):
        _exit(copies, loop, slot, result)


def _while(copies: Copies, op: scf.WhileOp) -> None:
    """Copy as for a for loop, and what the test passes to the body."""
    before, after = op.before_region.block, op.after_region.block
    condition, last = before.last_op, after.last_op
    assert isinstance(condition, scf.ConditionOp) and isinstance(last, scf.YieldOp)
    loop = copies.loops[op] = Loop(op, before.args, last)
    _inits(copies, loop, op.arguments)
    copies.visit(before)
    for value, argument in zip(condition.args, after.args, strict=True):
        if not isinstance(value.type, TensorType):
            continue
        if value in loop.slots:
            copies.alias(argument, value, ())
        else:
            at = copies.positions.start(condition) + WRITTEN
            copies.new(argument, at)
            copies.read(value, condition, BEFORE)
            copies.copy("hand", condition, value, argument, at)
    copies.visit(after)
    _nexts(copies, loop)
    for value, argument, result in zip(condition.args, after.args, op.res, strict=True):
        _exit(copies, loop, value if value in loop.slots else argument, result, condition)


LOOPS = (scf.ForOp, scf.WhileOp)
CONTROL: Mapping[type[Operation], Callable[[Copies, Any], None]] = {
    scf.IfOp: _branch,
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.YieldOp: lambda copies, op: None,
    scf.ConditionOp: lambda copies, op: None,
}


def _inits(copies: Copies, loop: Loop, inits: Sequence[SSAValue]) -> None:
    at = copies.positions.start(loop.op) + WRITTEN
    for init, slot in zip(inits, loop.slots, strict=True):
        if isinstance(slot.type, TensorType):
            copies.new(slot, at)
            copies.read(init, loop.op, BEFORE)
            copies.copy("init", loop.op, init, slot, at)


def _nexts(copies: Copies, loop: Loop) -> None:
    at, end = copies.positions.start(loop.yields) + WRITTEN, copies.positions.end(loop.op)
    copies.undefined |= _unread(copies, loop)
    for value, slot in zip(loop.yields.operands, loop.slots, strict=True):
        if isinstance(slot.type, TensorType):
            if copies.sizes.shape(value) != copies.sizes.shape(slot):
                help = "give it its largest size before the loop, and carry how much of it is used"
                fail(loop.op, "a tensor changes its size from one iteration to the next", help)
            if slot not in copies.undefined:
                copies.read(value, loop.yields, BEFORE)
                loop.nexts.append(copies.copy("next", loop.yields, value, slot, at))
                copies.variables[slot].live([(at, end)], (), ())


def _unread(copies: Copies, loop: Loop) -> set[SSAValue]:
    """Return the dead slots: no op in or after the loop reads their tensors."""
    handed: Sequence[SSAValue] = loop.slots
    if isinstance(loop.op, scf.WhileOp):
        test = loop.op.before_region.block.last_op
        assert isinstance(test, scf.ConditionOp)
        handed = test.args
    kept = {v for v, r in zip(handed, loop.op.results, strict=True) if r.first_use is not None}
    known = copies.variables
    found: set[SSAValue] = {s for s in loop.slots if s in known and not known[s].reads}
    rows = list(zip(loop.yields.operands, loop.slots, strict=True))
    while read := {copies.seen(v)[0] for v, slot in rows if slot not in found} | kept:
        if not found & read:
            break
        found -= read
    return found


def _exit(
    copies: Copies, loop: Loop, value: SSAValue, result: SSAValue, test: Operation | None = None
) -> None:
    """Copy the final value of a slot to the loop's result.

    test : the condition of a while loop, at which it exits
    """
    if not isinstance(result.type, TensorType):
        return
    end = copies.positions.end(loop.op)
    copies.new(result, end + WRITTEN)
    if result.first_use is None:
        return
    root, steps = copies.seen(value)
    variable = copies.variables[root]
    # a for loop may run zero times
    left = variable.start if test is None else copies.positions.start(test) + WRITTEN
    variable.live([(end, end), (variable.start, left)], steps, ())
    copies.copy("exit", loop.op, value, result, end + WRITTEN)
