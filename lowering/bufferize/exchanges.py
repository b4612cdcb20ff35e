"""Buffer swaps: a cycle of copies at a loop's yield becomes a permutation of carried buffers.

An iteration that reads one buffer and writes another does not copy the result back: the next
iteration reads the second buffer and writes the first. After the loop, the trip count decides which
of the buffers holds a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from stepwell.analysis.sizes import Sizes
from stepwell.lowering.bufferize.assignment import Storage
from stepwell.lowering.bufferize.copies import Copies, Copy, Loop
from stepwell.lowering.bufferize.interference import Interference
from stepwell.lowering.bufferize.intervals import WRITTEN
from stepwell.lowering.bufferize.views import disjoint, join, part, same_place


@dataclass
class Exchanges:
    """Decides which buffers the loops of one host function exchange."""

    copies: Copies
    interference: Interference

    def close(self, loop: Loop) -> None:
        """Exchange the buffers of slots whose next values cannot be written in place."""
        failing = [c for c in loop.nexts if c.why]
        while bad := [c for c in failing if not self._rotates(loop, c, failing)]:
            failing = [c for c in failing if c not in bad]
        if failing:
            self._exchange(loop, failing)

    def _rotates(self, loop: Loop, copy: Copy, failing: Sequence[Copy]) -> bool:
        """Whether a slot may take the buffer of its next value and give up its own."""
        of, positions = self.copies.assigned.of, self.copies.positions
        slot, steps = of(copy.into)
        new, path = of(copy.value)
        slots = [of(c.into)[0] for c in failing]
        start, end = positions.start(loop.op), positions.end(loop.op)
        tensors = [s for s in loop.slots if isinstance(s.type, TensorType)]
        return (
            slot.kind == new.kind == "local"
            and steps == path == ()
            and slot.type == new.type
            and [of(c.value)[0] for c in loop.nexts].count(new) == 1
            and slots.count(slot) == 1
            and all(start <= m.variable.start < end for m in (*slot.members, *new.members))
            and (new in slots or all(of(s)[0] is not new for s in tensors))
        )

    def _exchange(self, loop: Loop, copies: Sequence[Copy]) -> None:
        """Exchange the buffers of slots and of their next values, and spare ones among these."""
        of = self.copies.assigned.of
        slots = [of(c.into)[0] for c in copies]
        targets = [of(c.value)[0] for c in copies]
        spares = [c.value for c in copies if of(c.value)[0] not in slots]
        loop.carried = [*slots, *(of(v)[0] for v in spares)]
        loop.number = {v: n for n, v in enumerate([*(c.into for c in copies), *spares])}
        loop.following = [loop.carried.index(t) for t in targets]
        left = [n for n in range(len(loop.carried)) if n not in loop.following]
        for spare in loop.carried[len(slots) :]:
            fitting = next(n for n in left if loop.carried[n].type == spare.type)
            left.remove(fitting)
            loop.following.append(fitting)
        for copy in copies:
            copy.why, copy.removed = "", True
        for number, copy in enumerate(copies):
            if loop.following[loop.following[number]] == number and copy.value in spares:
                self._hoist(loop, copy)
        turns = trip_count(self.copies.sizes, loop.op)
        for value, number in loop.number.items():
            loop.outside.append(self._outside(loop, number, value.name_hint))
        for number, storage in enumerate(loop.carried):
            storage.kind = "carried"
            ends = [loop.outside[n] for n in cycle(loop.following, number)]
            loop.ends.append(ends if turns is None else [ends[turns % len(ends)]])

    def _outside(self, loop: Loop, number: int, name: str | None) -> Storage:
        """Return the buffer that an exchanged one is in the first iteration."""
        inside = loop.carried[number]
        outside = Storage("local", inside.type, inside.sizes, name=name, beside=loop.op)
        for other in cycle(loop.following, number):  # every slot that gets this buffer
            without = () if other == number else (loop.op,)
            members = loop.carried[other].members
            outside.members += [m._replace(without=m.without + without) for m in members]
            outside.views = outside.views | loop.carried[other].views
        return outside

    # -- copies that are the same in all iterations

    def _hoist(self, loop: Loop, following: Copy) -> None:
        """Copy before a loop what every iteration would copy from a slot to the spare buffer.

        following : the copy of the next value to the slot, which the exchange of both replaces

        If only such copies write to a box, both buffers hold the init's elements there in all
        iterations, once these are in the spare buffer.
        """
        copies, slot, value = self.copies, following.into, following.value
        buffers = [copies.assigned.of(each)[0] for each in (slot, value)]
        init = next(c for c in copies.of[loop.op] if c.kind == "init" and c.into is slot)
        start, end = copies.positions.start(loop.op) + WRITTEN, copies.positions.end(loop.op)
        writes = [
            part(join(member.steps, steps))
            for storage in buffers
            for member in storage.members
            for _, steps, by in member.variable.writes
            if not isinstance(by, Copy)
            or not (self._is_before(loop, by) or self._keeps(by, buffers))
        ]
        assert loop.yields.parent is not None
        for copy in [c for op in loop.yields.parent.ops for c in copies.of.get(op, ())]:
            box = part(self.interference.ends(copy)[1][1]).box
            if (
                box is not None
                and self._keeps(copy, buffers)
                and copies.is_invariant((box,), loop.op)
                and all(disjoint(copies.sizes, over, part((box,))) for over in writes)
            ):
                copy.removed = True
                hoisted = copies.copy("init", loop.op, init.value, value, start, (box,), (box,))
                hoisted.why = "a loop keeps this part in two buffers"
                self.interference.lengthen(copies.variables[value], [(start, end)], (box,))

    def _keeps(self, copy: Copy, buffers: Sequence[Storage]) -> bool:
        """Whether a copy moves elements from one of two buffers to the same place in the other."""
        (source, path), (target, steps) = self.interference.ends(copy)
        return [source, target] == buffers and same_place(path, steps)

    def _is_before(self, loop: Loop, copy: Copy) -> bool:
        """Whether a copy is made before a loop, or not at all."""
        first = copy.kind == "init" and copy.at is loop.op
        return first or self.interference.is_removed(copy)


def trip_count(sizes: Sizes, op: Operation) -> int | None:
    """Return the number of iterations of a loop, None if it is not static."""
    if not isinstance(op, scf.ForOp):
        return None
    start, stop, step = (sizes.of(v).number for v in op.operands[:3])
    if start is None or stop is None or not step:
        return None
    return max(0, -(-(stop - start) // step))


def cycle(following: Sequence[int], number: int) -> list[int]:
    """Return the cycle of the permutation ``following`` that begins with ``number``.

    >>> cycle([1, 0, 3, 4, 2], 3)
    [3, 4, 2]
    """
    found = [number]
    while (number := following[number]) != found[0]:
        found.append(number)
    return found
