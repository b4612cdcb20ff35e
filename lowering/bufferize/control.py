"""Write branches and loops of a host function: scalars are carried, tensors stay in their places.

A loop carries buffers only where it exchanges them from one iteration to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.lowering.bufferize.copies import Loop
from stepwell.lowering.bufferize.edges import around
from stepwell.lowering.bufferize.views import join
from stepwell.lowering.bufferize.writer import HostWriter, Rule


def _branch(writer: HostWriter, op: scf.IfOp) -> None:
    """Write a branch; each side leaves its tensors in the results' places."""
    regions: list[Region] = []
    for region in op.regions:
        with writer.nested(region.block) as inside:
            writer.body(region.block)
            last = writer.source = _last(region.block)
            writer.copies(last, "branch")
            writer.put(scf.YieldOp(*writer.scalars(last.operands)))
        regions.append(Region(inside))
    writer.source = op
    types = [r.type for r in op.output if not isinstance(r.type, TensorType)]
    _end(writer, op, scf.IfOp(writer.values[op.cond], types, regions[0], regions[1]))


def _for(writer: HostWriter, op: scf.ForOp) -> None:
    loop = writer.analysis.loops[op]
    inits = _begin(writer, loop, op.iter_args)
    with writer.nested(op.body.block, _exchanged(loop, inits)) as inside:
        _enter(writer, loop, inside)
        writer.body(op.body.block)
        writer.source = loop.yields
        writer.put(scf.YieldOp(*_turn(writer, loop)))
    writer.source = op
    lb, ub, step = (writer.values[v] for v in (op.lb, op.ub, op.step))
    new = scf.ForOp(lb, ub, step, inits, inside)
    _end(writer, op, new)
    _leave(writer, loop, new)


def _while(writer: HostWriter, op: scf.WhileOp) -> None:
    """Write a while; its condition hands on scalars and exchanged buffers."""
    loop = writer.analysis.loops[op]
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    inits = _begin(writer, loop, op.arguments)
    with writer.nested(before, _exchanged(loop, inits)) as first:
        _enter(writer, loop, first)
        writer.body(before)
        writer.source = condition
        writer.copies(condition, "hand")
        handed = [*writer.scalars(condition.args), *(writer.roots[s] for s in loop.carried)]
        writer.put(scf.ConditionOp(writer.values[condition.condition], *handed))
    with writer.nested(after, _exchanged(loop, inits)) as second:
        _enter(writer, loop, second)
        writer.body(after)
        writer.source = loop.yields
        writer.put(scf.YieldOp(*_turn(writer, loop)))
    writer.source = op
    new = scf.WhileOp(inits, [v.type for v in handed], Region(first), Region(second))
    _end(writer, op, new)
    _leave(writer, loop, new)


CONTROL: Mapping[type[Operation], Rule] = {
    scf.IfOp: _branch,
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.YieldOp: lambda writer, op: None,
    scf.ConditionOp: lambda writer, op: None,
}


def _last(block: Block) -> Operation:
    last = block.last_op
    assert last is not None
    return last


def _begin(writer: HostWriter, loop: Loop, inits: Sequence[SSAValue]) -> list[SSAValue]:
    """Put the first values where the loop expects them; return what it carries."""
    writer.copies(loop.op, "init")
    outside = [writer.memory(*writer.places.root(s)) for s in loop.outside]
    _begin_edges(writer, loop, inits)
    return [*writer.scalars(inits), *outside]


def _begin_edges(writer: HostWriter, loop: Loop, inits: Sequence[SSAValue]) -> None:
    """Put what the loop leaves as it is into the second of two buffers that it exchanges."""
    for number, slot, boxes in loop.edges:
        init = inits[loop.slots.index(slot)]
        if init in writer.analysis.undefined:
            continue
        old, path = writer.places.of(init)
        new, steps = writer.places.root(loop.outside[number])
        for box in around(boxes, writer.sizes.shape(slot)):
            source = writer.memory(old, join(path, (box,)))
            writer.put_copy(source, writer.memory(new, join(steps, (box,))))


def _exchanged(loop: Loop, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Return the buffers among what a loop carries, which come after the scalars."""
    return carried[len(carried) - len(loop.carried) :]


def _enter(writer: HostWriter, loop: Loop, block: Block) -> None:
    """Let the buffers that the loop exchanges be the arguments of ``block``."""
    for storage, argument in zip(loop.carried, _exchanged(loop, block.args), strict=True):
        writer.roots[storage] = argument
        argument.name_hint = storage.name


def _turn(writer: HostWriter, loop: Loop) -> list[SSAValue]:
    """Put the next values where the loop expects them; return what it carries."""
    writer.copies(loop.yields, "next")
    carried = [writer.roots[loop.carried[n]] for n in loop.following]
    return [*writer.scalars(loop.yields.operands), *carried]


def _end(writer: HostWriter, op: Operation, new: Operation) -> None:
    """Put a branch or loop that is written, whose first results are the scalars of ``op``."""
    new.attributes = dict(op.attributes)
    writer.put(new)
    scalars = [r for r in op.results if not isinstance(r.type, TensorType)]
    for old, now in zip(scalars, new.results, strict=False):
        now.name_hint = old.name_hint
        writer.values[old] = now


def _leave(writer: HostWriter, loop: Loop, new: Operation) -> None:
    """Note which buffer each exchanged tensor ended in, and put the loop's results in place."""
    writer.roots.update(zip(loop.carried, _exchanged(loop, new.results), strict=True))
    for number, storage in loop.results.items():
        writer.roots[storage] = writer.roots[loop.carried[number]]
    writer.copies(loop.op, "exit")
