"""Translate branches on tensors to branches that yield numbers and update arrays in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf, tensor
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.analysis.structured import yielded
from stepwell.transforms.structured.scalar_loops.code import refuse, truth
from stepwell.transforms.structured.scalar_loops.elements import store, write_whole
from stepwell.transforms.structured.scalar_loops.flow import is_number, is_within
from stepwell.transforms.structured.scalar_loops.translate import Translation


def branch(t: Translation, op: scf.IfOp) -> None:
    """Write a branch, or the side that is known to be taken."""
    condition = t.value(op.cond)
    holds = truth(condition)
    if holds is not None:
        region = op.true_region if holds else op.false_region
        last = t.block(region.block)
        for result, value in zip(op.output, last.operands, strict=True):
            t.bind(result, t.value(value))
        return
    _store_given(t, op)
    sides = _sides(t, op, condition)
    given: dict[Pair, SSAValue] = {}
    changed = list(dict.fromkeys(pair for pair in sides.pairs if pair[0] is not pair[1]))
    stores = {pair: store for pair in changed if (store := _one_store(sides, pair)) is not None}
    kept = [stores[pair].numbers if pair in stores else pair for pair in changed]
    for pair in stores:
        _take_out(pair)
    for block, side in zip(sides.blocks, (0, 1), strict=True):
        with t.code.inside(block):
            t.code.put(scf.YieldOp(*(pair[side] for pair in kept)))
    types = [pair[0].type for pair in kept]
    new = scf.IfOp(condition, types, Region(sides.blocks[0]), Region(sides.blocks[1]))
    t.code.put(new, [op.output[sides.pairs.index(pair)].name_hint for pair in changed])
    given.update(zip(changed, new.output, strict=True))
    for pair, store in stores.items():
        given[pair] = t.code.put(tensor.InsertOp(given[pair], store.into, store.at)).results[0]
    for pair, created in given.items():
        if is_number(created):
            _note_either(t, created, pair)
        else:
            array = _one_array(t, op, pair)
            sides.changed.discard(array)
            t.code.arrays.of[created], t.code.arrays.newest[array] = array, created
    for result, pair in zip(op.output, sides.pairs, strict=True):
        t.bind(result, given.get(pair, pair[0]))
    if sides.changed:
        refuse(op, "a branch changes an array that it does not give")


def _store_given(t: Translation, op: scf.IfOp) -> None:
    """Store the arrays of before that a side gives, if they are only computed where read."""
    for region in op.regions:
        for value in yielded(region.block):
            if not is_number(value) and not is_within(value, op):
                store(t, op, value)


Pair = tuple[SSAValue, SSAValue]


@dataclass(frozen=True)
class _Store:
    """Both sides end with a store to the same element: one store is sunk behind the branch."""

    into: SSAValue
    at: Sequence[SSAValue]
    numbers: Pair


def _one_store(sides: _Sides, pair: Pair) -> _Store | None:
    first, second = (v.owner for v in pair)
    if not isinstance(first, tensor.InsertOp) or not isinstance(second, tensor.InsertOp):
        return None
    here = [first.parent, second.parent] == sides.blocks
    unread = all(v.first_use is None for v in pair)
    same = first.dest is second.dest and list(first.indices) == list(second.indices)
    if not here or not unread or not same:
        return None
    return _Store(first.dest, list(first.indices), (first.scalar, second.scalar))


def _take_out(pair: Pair) -> None:
    for value in pair:
        store = value.owner
        assert isinstance(store, Operation)
        store.detach()
        store.drop_all_references()


@dataclass
class _Sides:
    """Both sides of a translated branch."""

    blocks: list[Block]
    pairs: list[Pair]
    """For each result, the values of both sides."""
    changed: set[int]
    """The arrays that either side changes."""


def _sides(t: Translation, op: scf.IfOp, condition: SSAValue) -> _Sides:
    arrays, before = t.code.arrays, dict(t.code.arrays.newest)
    blocks, ends = list[Block](), list[list[SSAValue]]()
    changed: set[int] = set()
    for region, taken in zip(op.regions, (True, False), strict=True):
        blocks.append(Block())
        with t.code.inside(blocks[-1]), t.code.bounds.where(condition, taken):
            last = t.block(region.block)
            other = yielded(op.regions[1 - len(ends)].block)
            pairs = zip(last.operands, other, strict=True)
            ends.append([_stored(t, op, v, w) for v, w in pairs])
        if any(map(arrays.is_stale, ends[-1])):
            refuse(op, "a branch gives an array as it was before")
        changed |= arrays.changed_since(before)
        arrays.newest.update(before)
    return _Sides(blocks, list(zip(*ends, strict=True)), changed)


def _stored(t: Translation, op: Operation, value: SSAValue, other: SSAValue) -> SSAValue:
    """Return what a side gives; an array that is not stored yet goes where the other side's is."""
    arrays = t.code.arrays
    number = arrays.of.get(t.code.values.get(other, other))
    if value in t.code.values or value not in t.views or number is None:
        return t.value(value)
    return write_whole(t, op, value, arrays.newest[number])


def _one_array(t: Translation, op: Operation, pair: Pair) -> int:
    found = {t.code.arrays.of.get(v) for v in pair}
    number = found.pop()
    if found or number is None:
        refuse(op, "a branch chooses between two arrays")
    return number


def _note_either(t: Translation, created: SSAValue, pair: Pair) -> None:
    first, second = (t.code.bounds.of(v) for v in pair)
    if first is not None and second is not None:
        t.code.bounds.note(created, (min(first[0], second[0]), max(first[1], second[1])))
