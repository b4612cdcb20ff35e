"""scf: loops and branches; carried values are variables that the terminator assigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.lowering.emit.guards import check_loop, check_same_sizes
from stepwell.lowering.emit.kinds import Kind, kind_of
from stepwell.lowering.emit.names import WORD
from stepwell.lowering.emit.writer import Writer, emit
from stepwell.transforms.passes import fail


def carry(w: Writer, value: SSAValue, start: SSAValue, hint: str | None) -> None:
    """Declare a variable for ``value`` with the initial value ``start``."""
    if isinstance(value.type, MemRefType):
        buffer = w.buffer(start)
        type = w.pointer(buffer)
        name = w.fresh(hint, type)
        w.line(f"{type}{name} = {buffer.pointer};")
        w.buffers[value] = replace(buffer, pointer=name)
        return
    declaration = w.declare(value, _carried(w, start), hint)
    w.line(f"{declaration} = {_as(w, value, start)};")


def expect(w: Writer, op: Operation, value: SSAValue, hint: str | None) -> None:
    """Declare a variable for ``value``, to be assigned later."""
    if isinstance(value.type, MemRefType):
        fail(op, f"{op.name} cannot result in a buffer here", "copy into one buffer instead")
    w.line(f"{w.declare(value, _carried(w, value), hint)};")


def _carried(w: Writer, value: SSAValue) -> Kind:
    """Return the kind of the variable that carries ``value``: masks are carried as one width."""
    kind = w.kind(value)
    return (kind_of(value.type) or kind) if kind.is_mask else kind


def _as(w: Writer, value: SSAValue, source: SSAValue) -> str:
    """Return ``source`` converted to the representation of ``value``; only masks differ."""
    return w.spelling.convert(w.kind(value), w[source], w.kind(source))


def assign(
    w: Writer, op: Operation, targets: Sequence[SSAValue], sources: Sequence[SSAValue]
) -> None:
    """Assign in parallel: through temporaries where one source is another's target."""
    for target, source in zip(targets, sources, strict=True):
        if w.guards is not None and isinstance(target.type, MemRefType):
            check_same_sizes(w, op, w.buffer(source), w.buffer(target), strides=True)
    pairs = [(_text(w, t, t), _text(w, t, s)) for t, s in zip(targets, sources, strict=True)]
    spoiled: set[str] = set()
    rows: list[str] = []
    for target, source in pairs:
        if target == source:
            continue
        if not spoiled.isdisjoint(WORD.findall(source)):
            type = w.declared[target]
            kept = w.fresh(f"next_{target}", type)
            w.line(
                f"const {type} {kept} = {source};"
                if type[-1] != "*"
                else f"{type}{kept} = {source};"
            )
            source = kept
        spoiled.add(target)
        rows.append(f"{target} = {source};")
    for row in rows:
        w.line(row)


def _text(w: Writer, target: SSAValue, source: SSAValue) -> str:
    if isinstance(target.type, MemRefType):
        return w.buffer(source).pointer
    return w[source] if target is source else _as(w, target, source)


def alias(w: Writer, value: SSAValue, other: SSAValue) -> None:
    """Make ``value`` another name of ``other``."""
    if isinstance(value.type, MemRefType):
        w.buffers[value] = w.buffers[other]
    else:
        w.bind(value, w[other], w.kind(other))


@emit(scf.ForOp)
def _for(w: Writer, op: scf.ForOp) -> None:
    """Declare variables for carried values, which hold the loop's results at its end."""
    index, *carried = op.body.block.args
    check_loop(w, op, w[op.lb], w[op.ub], w[op.step])
    for result, argument, start in zip(op.res, carried, op.iter_args, strict=True):
        carry(w, result, start, result.name_hint or argument.name_hint)
        alias(w, argument, result)
    if request := _request(w, op):
        w.line(request)
    # OpenMP accepts no loop that a guard may leave
    if "kernel.simd" in op.attributes and w.guards is None and (sums := _sums(w, op)) is not None:
        for request in w.spelling.side_by_side(sums):
            w.line(request)
    if w.spelling.float_steps and any(isinstance(a.type, AnyFloat) for a in carried):
        w.line(w.spelling.float_steps)
    with w.block(w.loop_head(index, w[op.lb], w[op.ub], w[op.step])):
        _region(w, op.body.block, op.res)


_SUMS: dict[type[Operation], str] = {
    arith.AddfOp: "+",
    arith.AddiOp: "+",
    arith.MulfOp: "*",
    arith.MuliOp: "*",
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.XOrIOp: "^",
}


def _sums(w: Writer, op: scf.ForOp) -> list[tuple[str, str]] | None:
    """Return operator and variable of each reduction; None where the loop carries anything else."""
    body = op.body.block
    last = body.last_op
    assert last is not None
    found: list[tuple[str, str]] = []
    for argument, value in zip(body.args[1:], last.operands, strict=True):
        made_by = value.owner
        if not isinstance(made_by, Operation) or argument not in made_by.operands:
            return None
        if (operator := _SUMS.get(type(made_by))) is None or not argument.has_one_use():
            return None
        found.append((operator, w[argument]))
    return found


def _request(w: Writer, op: scf.ForOp) -> str:
    """Return the pragma for a loop, "" if there is none.

    The attribute for independent iterations is ignored in modules that begin on this floor.
    """
    if times := _unrolled_trips(op):
        return w.spelling.unroll(times)
    if INDEPENDENT in op.attributes and w.guards is None:
        return w.spelling.independent()
    return ""


def _unrolled_trips(op: scf.ForOp) -> int:
    """Return the trip count of a loop that is to be unrolled, else 0."""
    limits = [v.owner for v in (op.lb, op.ub, op.step)]
    if "kernel.unroll" not in op.attributes:
        return 0
    low, high, step = (
        o.value.value.data
        if isinstance(o, arith.ConstantOp) and isinstance(o.value, IntegerAttr)
        else 0
        for o in limits
    )
    return -(-(high - low) // step) if step else 0


def _region(w: Writer, block: Block, results: Sequence[SSAValue]) -> None:
    """Write a block, whose scf.yield assigns ``results``."""
    outer, w.yields = w.yields, results
    w.ops(block)
    w.yields = outer


@emit(scf.YieldOp)
def _yield(w: Writer, op: scf.YieldOp) -> None:
    assign(w, op, w.yields, op.operands)


@emit(scf.ReduceOp)
def _reduce(w: Writer, op: scf.ReduceOp) -> None:
    """Write nothing: a parallel loop ends here."""
    if op.args:
        fail(op, "a parallel loop cannot reduce here", help="split the reduction, as schedule does")


@emit(scf.ParallelOp)
def _parallel(w: Writer, op: scf.ParallelOp) -> None:
    if op.initVals:
        fail(op, "a parallel loop cannot reduce here", help="split the reduction, as schedule does")
    for low, high, step in zip(op.lowerBound, op.upperBound, op.step, strict=True):
        check_loop(w, op, w[low], w[high], w[step])
    w.parallel(op)


@emit(kernel.GrainOp)
def _grain(w: Writer, op: kernel.GrainOp) -> None:
    """Write nothing: the following parallel loop reads the number."""


@emit(kernel.ConcurrentOp)
def _concurrent(w: Writer, op: kernel.ConcurrentOp) -> None:
    w.concurrent(op)


@emit(scf.IfOp)
def _if(w: Writer, op: scf.IfOp) -> None:
    for result in op.output:
        expect(w, op, result, result.name_hint)
    otherwise = op.false_region.blocks.first
    if otherwise is not None and isinstance(otherwise.first_op, scf.YieldOp) and not op.output:
        otherwise = None
    with w.block(f"if ({w[op.cond]})", "} else {" if otherwise else "}"):
        _region(w, op.true_region.block, op.output)
    if otherwise is not None:
        w.depth += 1
        _region(w, otherwise, op.output)
        w.depth -= 1
        w.end()


@emit(scf.WhileOp)
def _while(w: Writer, op: scf.WhileOp) -> None:
    """Test in the middle: the first region runs once more than the second."""
    before, after = op.before_region.block, op.after_region.block
    last = before.last_op
    assert isinstance(last, scf.ConditionOp)
    for argument, start in zip(before.args, op.arguments, strict=True):
        carry(w, argument, start, argument.name_hint or start.name_hint)
    for result, argument, value in zip(op.res, after.args, last.args, strict=True):
        if value in w.buffers or value in before.args:  # forwarded unchanged
            alias(w, result, value)
        else:
            expect(w, op, result, result.name_hint or argument.name_hint)
        alias(w, argument, result)
    with w.block("while (1)"):
        w.ops(before)
        _region(w, after, before.args)


@emit(scf.ConditionOp)
def _condition(w: Writer, op: scf.ConditionOp) -> None:
    loop = op.parent_op()
    assert isinstance(loop, scf.WhileOp)
    assign(w, op, loop.res, op.args)
    w.line(f"if (!{w[op.condition]}) break;")
