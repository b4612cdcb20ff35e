"""Write the branches and loops of a host function: they carry scalars, tensors stay in buffers.

A loop carries a buffer only if it exchanges it with others between iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.lowering.bufferize.copies import Loop
from stepwell.lowering.bufferize.parallel_copies import write_copies
from stepwell.lowering.bufferize.writer import HostWriter, Rule


def _branch(writer: HostWriter, op: scf.IfOp) -> None:
    """Write a branch; each side writes its tensors into the results' buffers."""
    regions: list[Region] = []
    for region in op.regions:
        with writer.nested(region.block) as inside:
            writer.body(region.block)
            last = writer.source = _last(region.block)
            write_copies(writer, last, "branch")
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
        writer.put(scf.YieldOp(*_yielded(writer, loop)))
    writer.source = op
    lb, ub, step = (writer.values[v] for v in (op.lb, op.ub, op.step))
    new = scf.ForOp(lb, ub, step, inits, inside)
    _end(writer, op, new)
    _leave(writer, loop, new)


def _while(writer: HostWriter, op: scf.WhileOp) -> None:
    """Write a while loop; its condition passes on scalars and exchanged buffers."""
    loop = writer.analysis.loops[op]
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    inits = _begin(writer, loop, op.arguments)
    with writer.nested(before, _exchanged(loop, inits)) as first:
        _enter(writer, loop, first)
        writer.body(before)
        writer.source = condition
        write_copies(writer, condition, "hand")
        handed = [*writer.scalars(condition.args), *(writer.roots[s] for s in loop.carried)]
        writer.put(scf.ConditionOp(writer.values[condition.condition], *handed))
    with writer.nested(after, _exchanged(loop, inits)) as second:
        _enter(writer, loop, second)
        writer.body(after)
        writer.source = loop.yields
        writer.put(scf.YieldOp(*_yielded(writer, loop)))
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
    """Copy the inits into the slots' buffers; return the operands of the loop."""
    write_copies(writer, loop.op, "init")
    outside = [writer.memory(*writer.places.root(s)) for s in loop.outside]
    return [*writer.scalars(inits), *outside]


def _exchanged(loop: Loop, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """Return the buffers among the values that a loop carries; they follow the scalars."""
    return carried[len(carried) - len(loop.carried) :]


def _enter(writer: HostWriter, loop: Loop, block: Block) -> None:
    """Bind the buffers that the loop exchanges to the arguments of ``block``."""
    for storage, argument in zip(loop.carried, _exchanged(loop, block.args), strict=True):
        writer.roots[storage] = argument
        argument.name_hint = storage.name


def _yielded(writer: HostWriter, loop: Loop) -> list[SSAValue]:
    """Copy the next values into the slots' buffers; return the operands of the yield."""
    write_copies(writer, loop.yields, "next")
    carried = [writer.roots[loop.carried[n]] for n in loop.following]
    return [*writer.scalars(loop.yields.operands), *carried]


def _end(writer: HostWriter, op: Operation, new: Operation) -> None:
    """Append a written branch or loop, whose first results are the scalars of ``op``."""
    new.attributes = dict(op.attributes)
    writer.put(new)
    scalars = [r for r in op.results if not isinstance(r.type, TensorType)]
    for old, now in zip(scalars, new.results, strict=False):
        now.name_hint = old.name_hint
        writer.values[old] = now


def _leave(writer: HostWriter, loop: Loop, new: Operation) -> None:
    """Bind each exchanged buffer to the loop's result, and copy the loop's tensors out."""
    writer.roots.update(zip(loop.carried, _exchanged(loop, new.results), strict=True))
    for number, storage in loop.results.items():
        writer.roots[storage] = writer.roots[loop.carried[number]]
    write_copies(writer, loop.op, "exit")
