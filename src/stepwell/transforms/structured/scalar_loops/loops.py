"""Translate loops on tensors to loops that carry numbers; counted ones become scf.for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, TensorType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stepwell.analysis.structured import yielded
from stepwell.dialects.types import tensor_type
from stepwell.transforms.structured.scalar_loops.bounds import number_of, of_type
from stepwell.transforms.structured.scalar_loops.branches import branch
from stepwell.transforms.structured.scalar_loops.code import Code, refuse
from stepwell.transforms.structured.scalar_loops.elements import ELEMENTS, write_whole
from stepwell.transforms.structured.scalar_loops.flow import (
    Counter,
    counter_of,
    handed_on,
    is_kept,
    is_number,
    is_within,
    origin,
)
from stepwell.transforms.structured.scalar_loops.interchange import Interchanged, interchange
from stepwell.transforms.structured.scalar_loops.narrowing import narrowed
from stepwell.transforms.structured.scalar_loops.neighbours import are_apart
from stepwell.transforms.structured.scalar_loops.nests import SHORT
from stepwell.transforms.structured.scalar_loops.reuse import Kept, find_kept, hand_on
from stepwell.transforms.structured.scalar_loops.splitting import split
from stepwell.transforms.structured.scalar_loops.translate import Rule, Translation

INDEX = IndexType()


def while_loop(t: Translation, op: scf.WhileOp, inits: Sequence[SSAValue]) -> list[SSAValue]:
    """Write a while loop; return the replacement of each of its results."""
    before, after = op.before_region.block, op.after_region.block
    kept = {k for k in range(len(inits)) if is_kept(op, k)}
    for k in kept:
        for value in (before.args[k], after.args[k]):
            t.bind(value, inits[k])
    counter = counter_of(op)
    if counter is not None and (limits := _limits(t, counter, inits)) is not None:
        return _counted(t, op, inits, kept, counter, limits)
    if not handed_on(op) and any(not is_number(v) for v in (*op.results, *before.args)):
        refuse(op, "the test of a loop hands on other arrays than it was given")
    carried = [k for k in range(len(inits)) if k not in kept]
    _check_inits(t, op, [inits[k] for k in carried])
    code = t.code
    first = _new_body(t, before, carried, inits)
    newest = dict(code.arrays.newest)
    with code.inside(first):
        last = t.block(before)
        assert isinstance(last, scf.ConditionOp)
        go = t.value(last.condition)
        forwarded = [t.value(v) for v in last.args]
        if code.arrays.changed_since(newest):
            refuse(op, "the test of a loop changes an array")
        passed = [k for k in range(len(forwarded)) if not (handed_on(op) and k in kept)]
        t.counters.pop()
        t.nests.leave()
        code.put(scf.ConditionOp(go, *(forwarded[k] for k in passed)))
    second = _new_body(t, after, passed, forwarded)
    with code.inside(second), code.bounds.where(go, True):
        _terminate(t, op, second, t.block(after), carried, newest)
        t.nests.leave()
    types = [forwarded[k].type for k in passed]
    new = scf.WhileOp([inits[k] for k in carried], types, Region(first), Region(second))
    code.put(new, [op.results[k].name_hint for k in passed])
    created = dict(zip(passed, new.results, strict=True))
    results = [created.get(k, inits[k] if k in kept else v) for k, v in enumerate(forwarded)]
    _bind_results(t, op, results, inits)
    return results


def for_loop(t: Translation, op: scf.ForOp, inits: Sequence[SSAValue]) -> list[SSAValue]:
    """Write a loop that is an scf.for already."""
    code, body = t.code, op.body.block
    bounds = [t.value(v) for v in (op.lb, op.ub, op.step)]
    ends = yielded(body)
    kept = {k for k in range(len(inits)) if ends[k] is body.args[k + 1]}
    for k in kept:
        t.bind(body.args[k + 1], inits[k])
    carried = [k for k in range(len(inits)) if k not in kept]
    _check_inits(t, op, [inits[k] for k in carried])
    block = Block(arg_types=[INDEX])
    block.args[0].name_hint = body.args[0].name_hint
    t.bind(body.args[0], block.args[0])
    low, high, step = (code.bounds.of(v) for v in bounds)
    assert low is not None and high is not None and step is not None
    if step[0] >= 1:
        code.bounds.note(block.args[0], (low[0], max(high[1] - 1, low[0])))
    newest, starts = dict(code.arrays.newest), [inits[k] for k in carried]
    _enter(t, block, [body.args[k + 1] for k in carried], starts)
    with code.arrays.entered(starts) as read, code.inside(block):
        if step[0] >= 1:
            code.bounds.order(block.args[0], bounds[1], 1)
            code.bounds.order(bounds[0], block.args[0])
        _terminate(t, op, block, t.block(body), carried, newest)
        read_again = find_kept(code, block) if step == (1, 1) and not read else []
    if step == (1, 1) and not read_again:
        bounds[:2] = narrowed(code, block, (bounds[0], bounds[1]))
    t.nests.leave(bounds[0], bounds[1], t.value(op.ub))
    new = _counted_loop(code, block, (bounds, bounds[0]), starts, read_again, None)
    if read:
        split(code, op, new)
    code.put(new, [op.results[k].name_hint for k in carried])
    created = dict(zip(carried, new.results, strict=False))
    results = [created.get(k, inits[k]) for k in range(len(inits))]
    _bind_results(t, op, results, inits)
    return results


def _counted_loop(
    code: Code,
    block: Block,
    limits: tuple[Sequence[SSAValue], SSAValue],
    starts: Sequence[SSAValue],
    kept: Sequence[Kept],
    interchanged: Interchanged | None,
) -> scf.ForOp:
    """Return a counted loop, inside the loops that an interchange moved around it.

    limits : the bounds and the step, and the initial value of the counter
    kept : the elements that it also carries
    """

    bounds, first = limits

    def write(starts: Sequence[SSAValue]) -> scf.ForOp:
        begin = [*starts, *hand_on(code, block, kept, starts, (bounds[0], bounds[1]), first)]
        loop = scf.ForOp(bounds[0], bounds[1], bounds[2], begin, Region(block))
        if number_of(bounds[2]) == 1 and are_apart(code, block, bounds[0], bounds[1]):
            loop.attributes["kernel.columns"] = UnitAttr()
        return loop

    if interchanged is None:
        return write(starts)

    def put(starts: Sequence[SSAValue]) -> scf.ForOp:
        loop = write(starts)
        code.put(loop)
        return loop

    return interchanged.around(code, starts, put)


def _new_body(
    t: Translation, old: Block, slots: Sequence[int], starts: Sequence[SSAValue]
) -> Block:
    """Return a block whose arguments replace some of those of ``old``."""
    block = Block()
    _enter(t, block, [old.args[k] for k in slots], [starts[k] for k in slots])
    return block


def _enter(
    t: Translation, block: Block, old: Sequence[SSAValue], starts: Sequence[SSAValue]
) -> None:
    arrays = t.code.arrays
    t.counters.append(block.args[0] if block.args else None)
    t.nests.costly.append(None)
    for value, start in zip(old, starts, strict=True):
        argument = block.insert_arg(start.type, len(block.args))
        argument.name_hint = value.name_hint
        t.bind(value, argument)
        if start in arrays.of:
            arrays.change(start, argument)


def _check_inits(t: Translation, op: Operation, inits: Sequence[SSAValue]) -> None:
    arrays = t.code.arrays
    found = [v for v in inits if isinstance(v.type, TensorType)]
    if any(v not in arrays.of or arrays.is_stale(v) for v in found):
        refuse(op, "a loop begins with an array that others look at")
    if len({arrays.of[v] for v in found}) < len(found):
        refuse(op, "a loop begins with one array twice")


def _terminate(
    t: Translation,
    op: Operation,
    block: Block,
    last: Operation,
    carried: Sequence[int],
    before: dict[int, SSAValue],
) -> None:
    """Terminate the body of a loop, which must yield each array it changed in its own slot."""
    t.counters.pop()
    arrays = t.code.arrays
    given = block.args[len(block.args) - len(carried) :]
    ends = [
        _in_place(t, op, last.operands[k], argument)
        for k, argument in zip(carried, given, strict=True)
    ]
    for value, argument in zip(ends, given, strict=True):
        if not isinstance(value.type, TensorType):
            continue
        if arrays.of.get(value) != arrays.of.get(argument) or arrays.is_stale(value):
            refuse(op, "a loop exchanges arrays, or passes on an earlier version of one")
    returned = {arrays.of[v] for v in ends if v in arrays.of}
    if arrays.changed_since(before) - returned:
        refuse(op, "a loop changes an array that it does not hand on")
    t.code.put(scf.YieldOp(*ends))
    for number, value in before.items():
        arrays.newest[number] = value


def _in_place(t: Translation, op: Operation, value: SSAValue, argument: SSAValue) -> SSAValue:
    """Return a yielded value; an array that is not stored yet is stored into its own slot."""
    arrays, found = t.code.arrays, t.code.values.get(value)
    if found is not None and found in arrays.of and arrays.of[found] in arrays.scratch:
        kind = tensor_type(value).element_type
        t.views[value] = lambda at: t.code.put(tensor.ExtractOp(found, at, kind)).results[0]
    elif found is not None or value not in t.views or argument not in arrays.of:
        return t.value(value)
    created = write_whole(t, op, value, arrays.newest[arrays.of[argument]])
    if found is not None and t.nests.length > SHORT:
        refuse(op, "a loop exchanges arrays")
    return created


def _bind_results(
    t: Translation, op: Operation, results: Sequence[SSAValue], inits: Sequence[SSAValue]
) -> None:
    arrays = t.code.arrays
    for old, new, start in zip(op.results, results, inits, strict=False):
        if isinstance(new.type, TensorType) and new is not start:
            arrays.change(start, new)
        t.bind(old, new)


def _limits(
    t: Translation, counter: Counter, inits: Sequence[SSAValue]
) -> tuple[SSAValue, int] | None:
    """Return the bound, and the constant that makes it an exclusive one.

    None where the counter may wrap around.
    """
    code = t.code
    bound = _invariant(t, counter.bound)
    up, more = counter.step > 0, int(counter.predicate in (3, 5))
    held = code.bounds.of(bound)
    top = of_type(bound.type)
    assert held is not None and top is not None
    fits = held[1] - 1 + more + counter.step <= top[1]
    if not up:
        fits = held[0] + 1 - more + counter.step >= top[0]
    return (bound, more if up else -more) if fits else None


def _invariant(t: Translation, value: SSAValue) -> SSAValue:
    """Hoist a number that a loop's test computes to before the loop."""
    value = origin(value)
    if (known := t.code.values.get(value)) is not None:
        return known
    if not is_within(value, t.root) or not isinstance(value.owner, Operation):
        return t.value(value)
    op = value.owner
    if isinstance(op, tensor.ExtractSliceOp):  # of one element
        for offset in op.offsets:
            t.bind(offset, _invariant(t, offset))
        return t.element(op, op.source, t.places(op.static_offsets, op.offsets))
    new = op.clone({v: _invariant(t, v) for v in op.operands})
    return t.code.number(new, value.name_hint)


def _counted(
    t: Translation,
    op: scf.WhileOp,
    inits: Sequence[SSAValue],
    same: set[int],
    counter: Counter,
    limits: tuple[SSAValue, int],
) -> list[SSAValue]:
    """Write a counted loop as an scf.for whose index gives the counter."""
    code, after = t.code, op.after_region.block
    low, high, span = _index_bounds(code, inits[counter.slot], limits, counter.step > 0)
    carried = [k for k in range(len(inits)) if k not in same and k != counter.slot]
    _check_inits(t, op, [inits[k] for k in carried])
    block = Block(arg_types=[INDEX])
    newest, starts = dict(code.arrays.newest), [inits[k] for k in carried]
    _enter(t, block, [after.args[k] for k in carried], starts)
    by = code.index(abs(counter.step))
    if counter.step > 0:
        bounds, times = (low, high, by), None
    else:
        times = _trip_count(code, span, abs(counter.step))
        bounds = code.index(0), times, code.index(1)
    with code.arrays.entered(starts) as read, code.inside(block):
        at = _bind_counter(t, block.args[0], inits[counter.slot].type, (low, high), counter, after)
        _terminate(t, op, block, t.block(after), carried, newest)
        interchanged = None if read else interchange(block)
        by_one = counter.step in (1, -1) and not read
        kept = find_kept(code, block, at, counter.step) if by_one else []
    t.nests.leave(low, high, high)
    new = _counted_loop(code, block, (bounds, low), starts, kept, interchanged)
    if read:
        split(code, op, new)
    code.put(new, [op.results[k].name_hint for k in carried])
    created = dict(zip(carried, new.results, strict=False))
    results = [created.get(k, inits[k]) for k in range(len(inits))]
    if op.results[counter.slot].first_use is not None:
        up = counter.step > 0
        times = times or _trip_count(code, span, abs(counter.step))
        way = code.number(arith.MuliOp(times, by))
        end = code.number(arith.AddiOp(low, way) if up else arith.SubiOp(low, way))
        results[counter.slot] = code.number(
            arith.IndexCastOp(end, inits[counter.slot].type), op.results[counter.slot].name_hint
        )
    _bind_results(t, op, results, inits)
    return results


def _index_bounds(
    code: Code, start: SSAValue, limits: tuple[SSAValue, int], up: bool
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return as indices the lower and upper bound of a loop, and their distance."""
    low = code.number(arith.IndexCastOp(start, INDEX))
    high = code.number(arith.IndexCastOp(limits[0], INDEX))
    if limits[1]:
        high = code.number(arith.AddiOp(high, code.index(limits[1])))
    first, last = (low, high) if up else (high, low)
    runs = code.number(arith.CmpiOp(first, last, "slt"))
    away = code.number(arith.SubiOp(last, first))
    return low, high, code.number(arith.SelectOp(runs, away, code.index(0)))


def _trip_count(code: Code, span: SSAValue, step: int) -> SSAValue:
    """Return the trip count of a loop: its span divided by its step, rounded up."""
    if step == 1:
        return span
    more = code.number(arith.AddiOp(span, code.index(step - 1)))
    return code.number(arith.DivUIOp(more, code.index(step)))


def _bind_counter(
    t: Translation,
    index: SSAValue,
    type: Attribute,
    limits: tuple[SSAValue, SSAValue],
    counter: Counter,
    body: Block,
) -> SSAValue:
    """Compute the counter of a loop from the index of the scf.for; return it as an index."""
    code, counted, (low, high) = t.code, body.args[counter.slot], limits
    first, last = code.bounds.of(low), code.bounds.of(high)
    assert first is not None and last is not None
    if counter.step > 0:
        range, at = (first[0], max(last[1] - 1, first[0])), index
        code.bounds.note(index, range)
        code.bounds.order(index, high, 1)
        code.bounds.order(low, index)
    else:
        range = min(last[0] + 1, first[1]), first[1]
        way = arith.MuliOp(index, code.index(-counter.step))
        at = code.number(arith.SubiOp(low, code.number(way)))
        code.bounds.note(at, range)
        code.bounds.order(at, low)
        code.bounds.order(high, at, 1)
    index.name_hint = counted.name_hint
    number = code.number(arith.IndexCastOp(at, type), counted.name_hint)
    code.bounds.note(number, range)
    t.bind(counted, number)
    return at


def _while(t: Translation, op: scf.WhileOp) -> None:
    while_loop(t, op, [t.value(v) for v in op.arguments])


def _for(t: Translation, op: scf.ForOp) -> None:
    for_loop(t, op, [t.value(v) for v in op.iter_args])


RULES: Mapping[type[Operation], Rule] = {
    **ELEMENTS,
    scf.IfOp: branch,
    scf.WhileOp: _while,
    scf.ForOp: _for,
}
"""The translation of each op that scalar code supports."""
