"""Carry elements that the previous iterations stored as numbers (scalar replacement).

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

A load of a value that was just stored takes several cycles, on the critical path of a recurrence.
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
"""The largest distance, in iterations, between a store and the load that it replaces."""

Place = tuple[tuple[SSAValue, int], ...]
"""The indices of an element: for each axis a value and a constant added to it."""


@dataclass(frozen=True)
class Kept:
    """An array of which each iteration stores one element, and loads those stored recently."""

    argument: SSAValue
    store: tensor.InsertOp
    place: Place
    axis: int
    loads: Mapping[int, Sequence[tensor.ExtractOp]]
    """The loads, keyed by the number of iterations since the store."""
    step: int = 1
    """The step of the index: 1 or -1."""

    @property
    def distance(self) -> int:
        """The number of iterations for which an element is carried."""
        return max(self.loads)


def find_kept(
    code: Code, block: Block, counter: SSAValue | None = None, step: int = 1
) -> list[Kept]:
    """Find the loads in the body of a unit-step loop of elements that earlier iterations stored.

    counter : the counter, if not the loop's index; step : 1 or -1
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
    """Return the number of iterations between the store of an element and its load, else None."""
    for k, (ours, theirs) in enumerate(zip(written, read, strict=True)):
        if ours[0] is not theirs[0] or (k != axis and ours[1] != theirs[1]):
            return None
    distance = (written[axis][1] - read[axis][1]) * step
    return distance if 1 <= distance <= FARTHEST else None


Limits = tuple[SSAValue, SSAValue]
"""The lower and upper bound of a loop."""


def hand_on(
    code: Code,
    block: Block,
    kept: Sequence[Kept],
    starts: Sequence[SSAValue],
    limits: Limits,
    first: SSAValue,
) -> list[SSAValue]:
    """Replace the loads of ``kept`` by carried numbers; return their initial values.

    starts : the loop's initial values for the body's arguments after the index
    first : the initial value of the counter
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
            begin.append(_initial_value(code, each, start, distance, limits, first))
            values.append(block.insert_arg(element, len(block.args)))
            for load in each.loads.get(distance, ()):
                values[-1].name_hint = load.result.name_hint
                load.result.replace_all_uses_with(values[-1])
                load.detach()
                load.erase()
        ends += [each.store.scalar, *values[:-1]]
    last.operands = [*last.operands, *ends]
    return begin


def _initial_value(
    code: Code, kept: Kept, start: SSAValue, distance: int, limits: Limits, first: SSAValue
) -> SSAValue:
    """Return the initial value of an element; it is only loaded if the loop runs at all."""
    low, high = limits
    element = tensor_type(start).element_type
    runs = code.number(arith.CmpiOp(low, high, "slt"))
    if (known := truth(runs)) is not None:
        return _load_initial(code, kept, start, distance, first) if known else code.zero(element)
    sides: list[Block] = [Block(), Block()]
    with code.inside(sides[0]):
        code.put(scf.YieldOp(_load_initial(code, kept, start, distance, first)))
    with code.inside(sides[1]):
        code.put(scf.YieldOp(code.zero(element)))
    choice = scf.IfOp(runs, [element], Region(sides[0]), Region(sides[1]))
    return code.put(choice).results[0]


def _load_initial(
    code: Code, kept: Kept, start: SSAValue, distance: int, first: SSAValue
) -> SSAValue:
    """Load the element that the first iteration would read, its index clamped to the array."""
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
