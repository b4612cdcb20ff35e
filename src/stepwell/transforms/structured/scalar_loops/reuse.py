"""Elements that an iteration reads just after the one before wrote them are handed on as numbers.

Before:  scf.for %i = %a to %b step %c1 iter_args(%x = %x0) {
           %v = tensor.extract %x[%i - 1]
           ...
           %y = tensor.insert %w into %x[%i]
           scf.yield %y }
After:   %f = scf.if %a < %b { tensor.extract %x0[%a - 1] } else { 0 }
         scf.for %i = %a to %b step %c1 iter_args(%x = %x0, %v = %f) {
           ...
           %y = tensor.insert %w into %x[%i]
           scf.yield %y, %w }

Reading what was just stored takes a processor several cycles, which recurrences wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.dialects.types import tensor_type
from stepwell.transforms.structured.scalar_loops.code import Code, truth
from stepwell.transforms.structured.scalar_loops.flow import is_outside

FARTHEST = 2
"""How many iterations an element is kept."""

Place = tuple[tuple[SSAValue, int], ...]
"""Where an element is: for each axis a number and what is added to it."""


@dataclass(frozen=True)
class Kept:
    """An array of which a loop writes one element an iteration, and reads those written last."""

    argument: SSAValue
    store: tensor.InsertOp
    place: Place
    axis: int
    loads: Mapping[int, Sequence[tensor.ExtractOp]]
    """By how many iterations ago they were written."""
    step: int = 1
    """Whether the place goes up or down, by one."""

    @property
    def distance(self) -> int:
        """For how many iterations an element is kept."""
        return max(self.loads)


def find_kept(
    code: Code, block: Block, counter: SSAValue | None = None, step: int = 1
) -> list[Kept]:
    """Find what the body of a loop that counts by one reads of what it wrote before.

    counter : what it counts, if not the index of the loop; step : by 1 or -1
    """
    last = block.last_op
    assert isinstance(last, scf.YieldOp)
    given = block.args[1:]
    found = [
        _kept(code, block, argument, value, block.args[0] if counter is None else counter, step)
        for argument, value in zip(given, last.operands, strict=True)
    ]
    return [kept for kept in found if kept is not None]


def _kept(
    code: Code, block: Block, argument: SSAValue, value: SSAValue, counter: SSAValue, step: int
) -> Kept | None:
    store = value.owner
    if not isinstance(store, tensor.InsertOp) or store.parent is not block:
        return None
    if store.dest is not argument:
        return None
    users = [use.operation for use in argument.uses if use.operation is not store]
    place = _place(code, store.indices)
    moving = [axis for axis, (number, _) in enumerate(place) if number is counter]
    others = [number for number, _ in place if number is not counter]
    if len(moving) != 1 or not all(is_outside(n, block) for n in others):
        return None
    if step < 0 and tensor_type(argument).get_shape()[moving[0]] == DYNAMIC_INDEX:
        return None
    loads: dict[int, list[tensor.ExtractOp]] = {}
    for user in users:
        if not isinstance(user, tensor.ExtractOp):
            return None
        if (distance := _distance(place, _place(code, user.indices), moving[0], step)) is not None:
            loads.setdefault(distance, []).append(user)
    return Kept(argument, store, place, moving[0], loads, step) if loads else None


def _place(code: Code, indices: Sequence[SSAValue]) -> Place:
    return tuple(code.bounds.sum_of(i) for i in indices)


def _distance(written: Place, read: Place, axis: int, step: int) -> int | None:
    """Return how many iterations before an element was written that is read."""
    for k, (ours, theirs) in enumerate(zip(written, read, strict=True)):
        if ours[0] is not theirs[0] or (k != axis and ours[1] != theirs[1]):
            return None
    distance = (written[axis][1] - read[axis][1]) * step
    return distance if 1 <= distance <= FARTHEST else None


Limits = tuple[SSAValue, SSAValue]
"""From where to where a loop counts."""


def hand_on(
    code: Code,
    block: Block,
    kept: Sequence[Kept],
    starts: Sequence[SSAValue],
    limits: Limits,
    first: SSAValue,
) -> list[SSAValue]:
    """Make the body hand on what ``kept`` says; return what the loop begins with for it.

    starts : what the loop begins with for each argument of the body after the counter
    first : what it counts, at first
    """
    last = block.last_op
    assert isinstance(last, scf.YieldOp)
    begin: list[SSAValue] = []
    ends: list[SSAValue] = []
    for each in kept:
        start = next(v for a, v in zip(block.args[1:], starts, strict=False) if a is each.argument)
        element = tensor_type(start).element_type
        values: list[SSAValue] = []
        for distance in range(1, each.distance + 1):
            begin.append(_first(code, each, start, distance, limits, first))
            values.append(block.insert_arg(element, len(block.args)))
            for load in each.loads.get(distance, ()):
                values[-1].name_hint = load.result.name_hint
                load.result.replace_all_uses_with(values[-1])
                load.detach()
                load.erase()
        ends += [each.store.scalar, *values[:-1]]
    last.operands = [*last.operands, *ends]
    return begin


def _first(
    code: Code, kept: Kept, start: SSAValue, distance: int, limits: Limits, first: SSAValue
) -> SSAValue:
    """Return an element as it is before the loop, if that runs at all."""
    low, high = limits
    element = tensor_type(start).element_type
    runs = code.number(arith.CmpiOp(low, high, "slt"))
    if (known := truth(runs)) is not None:
        return _read(code, kept, start, distance, first) if known else code.zero(element)
    sides: list[Block] = [Block(), Block()]
    with code.inside(sides[0]):
        code.put(scf.YieldOp(_read(code, kept, start, distance, first)))
    with code.inside(sides[1]):
        code.put(scf.YieldOp(code.zero(element)))
    choice = scf.IfOp(runs, [element], Region(sides[0]), Region(sides[1]))
    return code.put(choice).results[0]


def _read(code: Code, kept: Kept, start: SSAValue, distance: int, first: SSAValue) -> SSAValue:
    """Read what the first iteration would have found; it looked before if that is not there."""
    at: list[SSAValue] = []
    for axis, (number, more) in enumerate(kept.place):
        if axis == kept.axis:
            place = code.add(first, code.index(more - kept.step * distance))
            if kept.step > 0:
                at.append(code.number(arith.MaxSIOp(place, code.index(0))))
            else:
                most = code.index(tensor_type(start).get_shape()[axis] - 1)
                at.append(code.number(arith.MinSIOp(place, most)))
        else:
            index = number
            if not isinstance(number.type, IndexType):
                index = code.number(arith.IndexCastOp(number, IndexType()))
            at.append(code.add(index, code.index(more)))
    read: Operation = code.put(tensor.ExtractOp(start, at, tensor_type(start).element_type))
    return read.results[0]
