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
from stepwell.lowering.bufferize.assignment import Member, Storage
from stepwell.lowering.bufferize.copies import Copy, Halo, Loop
from stepwell.lowering.bufferize.copy_insertion import Copies
from stepwell.lowering.bufferize.interference import Interference
from stepwell.lowering.bufferize.intervals import WRITTEN, Variable
from stepwell.lowering.bufferize.views import Steps, covers, join, part


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
            self._rotate(loop, failing)

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

    def _rotate(self, loop: Loop, copies: Sequence[Copy]) -> None:
        of = self.copies.assigned.of
        slots = [of(c.into)[0] for c in copies]
        targets = [of(c.value)[0] for c in copies]
        spares = [s for s in targets if s not in slots]
        names = [c.into.name_hint for c in copies]
        names += [c.value.name_hint for c in copies if of(c.value)[0] not in slots]
        loop.carried = [*slots, *spares]
        loop.number = {c.into: n for n, c in enumerate(copies)}
        loop.following = [loop.carried.index(t) for t in targets]
        left = [n for n in range(len(loop.carried)) if n not in loop.following]
        for spare in spares:
            fitting = next(n for n in left if loop.carried[n].type == spare.type)
            left.remove(fitting)
            loop.following.append(fitting)
        for number, (storage, name) in enumerate(zip(loop.carried, names, strict=True)):
            outside = Storage("local", storage.type, storage.sizes, views={()})
            for other in cycle(loop.following, number):  # every slot that gets this buffer
                inside = loop.carried[other]
                without = () if other == number else (loop.op,)
                members = [m._replace(without=m.without + without) for m in inside.members]
                outside.members = sorted([*outside.members, *members], key=_start)
                outside.views = outside.views | inside.views
            outside.name, outside.beside = name, loop.op
            loop.outside.append(outside)
        turns = trip_count(self.copies.sizes, loop.op)
        for number, storage in enumerate(loop.carried):
            storage.kind = "carried"
            ends = [loop.outside[n] for n in cycle(loop.following, number)]
            loop.ends.append(ends if turns is None else [ends[turns % len(ends)]])
        for copy in copies:
            copy.why, copy.exchanged = "", True

    def undo(self, loop: Loop) -> None:
        """Undo the exchange of buffers in a loop."""
        for storage in loop.carried:
            storage.kind = "local"
        for copy in loop.nexts:
            copy.exchanged = False
        loop.carried, loop.outside, loop.following, loop.ends = [], [], [], []
        loop.spare_halos, loop.number = [], {}

    # -- halos

    def preserves(self, loop: Loop, halo: Halo) -> bool:
        """Whether the halo is preserved: slot and next value share a buffer or swap two."""
        of = self.copies.assigned.of
        slot, value = of(halo.slot), of(halo.value)
        if any(of(each) != value for each in halo.between):
            return False
        if slot == value:
            return True
        number = loop.number.get(halo.slot)
        if number is None or (spare := loop.following[number]) < len(loop.number):
            return False
        if loop.following[spare] != number or value != (loop.carried[spare], ()):
            return False
        if not all(self._inside(loop, loop.carried[n], halo) for n in (number, spare)):
            return False
        loop.spare_halos.append((spare, halo.slot, halo.boxes))
        self._live(loop, spare, halo)
        return True

    def _inside(self, loop: Loop, storage: Storage, halo: Halo) -> bool:
        """Whether every write of the loop to a buffer lies inside the new boxes."""
        parts = [part((box,)) for box in halo.boxes]
        return all(
            any(covers(self.copies.sizes, box, part(join(m.steps, steps))) for box in parts)
            for m in storage.members
            for _, steps, by in m.variable.writes
            if not (
                isinstance(by, Copy) and (by.kind == "init" or self.interference.is_removed(by))
            )
        )

    def _live(self, loop: Loop, spare: int, halo: Halo) -> None:
        """Add the live range of a halo: it is written before the loop and live throughout it."""
        start = self.copies.positions.start(loop.op)
        end = self.copies.positions.end(loop.op)
        variable = Variable(halo.value, start + WRITTEN, end)
        variable.write(start + WRITTEN, (), loop.op)
        holes = tuple[Steps, ...]((box,) for box in halo.boxes)
        variable.live([(start + WRITTEN, end)], (), holes)
        for number in cycle(loop.following, spare):
            outside = loop.outside[number]
            member = Member(variable, (), () if number == spare else (loop.op,))
            outside.members = sorted([*outside.members, member], key=_start)


def trip_count(sizes: Sizes, op: Operation) -> int | None:
    """Return the number of iterations of a loop, None if it is not static."""
    if not isinstance(op, scf.ForOp):
        return None
    start, stop, step = (sizes.of(v).number for v in op.operands[:3])
    if start is None or stop is None or not step:
        return None
    return max(0, -(-(stop - start) // step))


def _start(member: Member) -> int:
    return member.variable.start


def cycle(following: Sequence[int], number: int) -> list[int]:
    """Return the cycle of the permutation ``following`` that begins with ``number``.

    >>> cycle([1, 0, 3, 4, 2], 3)
    [3, 4, 2]
    """
    found = [number]
    while (number := following[number]) != found[0]:
        found.append(number)
    return found
