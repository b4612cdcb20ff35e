"""Batches of control flow.

A condition that is uniform over the batch remains a branch. For a varying condition both branches
run and a select picks each example's result; a loop runs while any example's test holds, and
finished examples keep their values. Ops that may end a call look only at active examples.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.batching.blocks import end, inside_of, led, rebind, yields
from stepwell.dialects.nd.batching.walk import Batch
from stepwell.dialects.nd.bitwise import AndOp
from stepwell.dialects.nd.collectives import ReduceScatterOp
from stepwell.dialects.nd.compare import SelectOp
from stepwell.dialects.nd.control import ConditionOp, IfOp, ScanOp, WhileOp, YieldOp
from stepwell.dialects.nd.gradients.reverse import reads
from stepwell.dialects.nd.reduction import ReduceOrOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.readings import batching

batching.none(YieldOp, ConditionOp, reason="the op around it says what it hands on")


@batching(IfOp)
def _if(b: Batch, op: IfOp) -> Sequence[SSAValue]:
    if b.has(op.condition):
        return _both(b, op)
    regions = [op.detach_region(op.regions[0]) for _ in (0, 1)]
    batches = [inside_of(b, region.block) for region in regions]
    ends = [yields(region.block) for region in regions]
    flags = [any(b.has(v) for v in values) for values in zip(*ends, strict=True)]
    for each, region, values in zip(batches, regions, ends, strict=True):
        end(each, region.block, YieldOp(led(each, values, flags)))
    types = [b.type(y) if f else y.type for y, f in zip(op.results, flags, strict=True)]
    created = IfOp(op.condition, types, *regions)
    b.builder.insert(created)
    return list(created.outputs)


def _both(b: Batch, op: IfOp) -> Sequence[SSAValue]:
    """Run both branches and select each example's result."""
    condition = b.found[op.condition]
    ends = [
        b.under(condition, value).inlined(region.block, (), ())
        for region, value in ((op.then, True), (op.otherwise, False))
    ]
    return [_chosen(b, condition, *values) for values in zip(*ends, strict=True)]


def _chosen(b: Batch, condition: SSAValue, a: SSAValue, other: SSAValue) -> SSAValue:
    if a is other:
        return b.read(a)
    a, other = b.lead(a), b.lead(other)
    return b.of(SelectOp(b.along(condition, a, [0]), a, other))


@batching(WhileOp)
def _while(b: Batch, op: WhileOp) -> Sequence[SSAValue]:
    flags, differs = _while_flags(set(b.found), op)
    if differs:
        return _while_any(b, op, flags)
    if (active := b.active()) is None:
        return _while_all(b, op, flags)
    some = b.of(ReduceOrOp(active, [0]))  # a loop that no example runs might not terminate
    then, otherwise = Block(), Block()
    inside = b.within(then)
    inside.builder.insert(YieldOp(_while_all(inside, op, flags)))
    kept = b.within(otherwise)
    kept.builder.insert(YieldOp(led(kept, op.carried, flags)))
    types = [b.type(y) if f else y.type for y, f in zip(op.results, flags, strict=True)]
    created = IfOp(some, types, Region(then), Region(otherwise))
    b.builder.insert(created)
    return list(created.outputs)


def _while_all(b: Batch, op: WhileOp, flags: Sequence[bool]) -> Sequence[SSAValue]:
    """Write a loop whose condition is uniform: all examples run the same number of steps."""
    carried = led(b, op.carried, flags)
    test, body = (op.detach_region(op.regions[0]) for _ in (0, 1))
    for region in (test, body):
        rebind(b, region.block, flags)
        each = inside_of(b, region.block)
        values = yields(region.block)
        if region is body:
            end(each, region.block, YieldOp(led(each, values, flags)))
    created = WhileOp(carried, test, body)
    b.builder.insert(created)
    return list(created.outputs)


def _while_any(b: Batch, op: WhileOp, flags: Sequence[bool]) -> Sequence[SSAValue]:
    """Write a loop that runs while any example's test holds; carry each example's test along."""
    carried = led(b, op.carried, flags)
    (go,) = b.inlined(op.test.clone().block, carried, flags)
    go = b.lead(go)
    if (active := b.active()) is not None:
        go = b.of(AndOp(active, go))
    types = [go.type, *(v.type for v in carried)]
    test, body = Block(arg_types=types), Block(arg_types=types)
    some = b.within(test)
    some.builder.insert(ConditionOp(some.of(ReduceOrOp(test.args[0], [0]))))
    going, *values = body.args
    each = b.within(body).under(going, True)
    ends = each.inlined(op.body.clone().block, values, flags)
    after = [
        each.of(SelectOp(each.along(going, each.lead(new), [0]), each.lead(new), old))
        if flag
        else old
        for old, new, flag in zip(values, ends, flags, strict=True)
    ]
    (more,) = each.inlined(op.test.clone().block, after, flags)
    again = each.of(AndOp(going, each.lead(more)))
    each.builder.insert(YieldOp([again, *after]))
    for block in (test, body):
        _names(block.args[1:], op.body.block.args)
        block.args[0].name_hint = "going"
    created = WhileOp([go, *carried], Region(test), Region(body))
    b.builder.insert(created)
    return list(created.outputs)[1:]


@batching(ScanOp)
def _scan(b: Batch, op: ScanOp) -> Sequence[SSAValue]:
    """Batch the scan; inside, the batch axis of slices comes after the scan's axis."""
    flags, _ = _scan_flags(set(b.found), op)
    xs = [b.moved(b.found[x], 0, 1) if b.has(x) else x for x in op.xs]
    carried = led(b, op.carried, flags[: len(op.carried)])
    body = op.detach_region(op.body)
    taken = [*flags[: len(op.carried)], *(b.has(x) for x in op.xs)]
    rebind(b, body.block, taken)
    each = inside_of(b, body.block)
    end(each, body.block, YieldOp(led(each, yields(body.block), flags)))
    dynamic = iter(op.sizes)
    sizes: list[SSAValue] = []
    for y, flag in zip(op.stacked, flags[len(op.carried) :], strict=True):
        sizes += [b.lanes] if flag and b.lanes is not None else []
        sizes += [next(dynamic) for n in shape_of(y)[1:] if n == DYNAMIC]
    length = op.steps if op.steps is not None else None
    known = op.length.value.data if op.length is not None else length
    created = ScanOp(carried, xs, body, length=known, sizes=sizes, reverse=op.reverse is not None)
    b.builder.insert(created)
    stacked = zip(created.outputs[len(carried) :], flags[len(carried) :], strict=True)
    return [*created.outputs[: len(carried)], *(b.moved(y, 1, 0) if f else y for y, f in stacked)]


def _names(values: Sequence[SSAValue], like: Sequence[SSAValue]) -> None:
    for value, old in zip(values, like, strict=True):
        value.name_hint = old.name_hint


def _while_flags(found: set[SSAValue], op: WhileOp) -> tuple[list[bool], bool]:
    """Return which carried values vary over the batch, and whether the condition does.

    found : the values known to vary; the varying values of the loop are added
    """
    flags = [v in found for v in op.carried]
    while True:
        for block in (op.test.block, op.body.block):
            found.update(a for a, flag in zip(block.args, flags, strict=True) if flag)
            _add_varying(found, block)
        ends = yields(op.body.block)
        differs = any(v in found for v in yields(op.test.block))
        after = [
            flag or v in found or (differs and v is not a)
            for flag, v, a in zip(flags, ends, op.body.block.args, strict=True)
        ]
        if after == flags:
            return flags, differs
        flags = after


def _scan_flags(found: set[SSAValue], op: ScanOp) -> tuple[list[bool], None]:
    """Return which results vary over the batch; ``found`` as in `_while_flags`."""
    count = len(op.carried)
    flags = [v in found for v in op.carried]
    block = op.body.block
    while True:
        taken = [*flags, *(x in found for x in op.xs)]
        found.update(a for a, flag in zip(block.args, taken, strict=True) if flag)
        _add_varying(found, block)
        ends = [v in found for v in yields(block)]
        after = [a or b for a, b in zip(flags, ends[:count], strict=True)]
        if after == flags:
            return [*flags, *ends[count:]], None
        flags = after


def _add_varying(found: set[SSAValue], block: Block) -> None:
    """Add to ``found`` the values of ``block`` that depend on values in it."""
    for op in block.ops:
        if any(v in found for v in reads(op)) or _varies_by_itself(op):
            found.update(r for r, flag in zip(op.results, _flags(found, op), strict=True) if flag)


def _varies_by_itself(op: Operation) -> bool:
    """Whether ``op`` may vary over the batch although its operands do not."""
    return any(isinstance(each, ReduceScatterOp) for each in op.walk())


def _flags(found: set[SSAValue], op: Operation) -> Sequence[bool]:
    """Return which results of ``op`` vary over the batch."""
    if isinstance(op, WhileOp):
        return _while_flags(found, op)[0]
    if isinstance(op, ScanOp):
        return _scan_flags(found, op)[0]
    if isinstance(op, IfOp) and op.condition not in found:
        for region in op.regions:
            _add_varying(found, region.block)
        ends = (yields(region.block) for region in op.regions)
        return [a in found or b in found for a, b in zip(*ends, strict=True)]
    return [isinstance(y.type, TensorType) for y in op.results]
