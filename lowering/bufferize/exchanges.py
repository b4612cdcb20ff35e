"""Loops that exchange buffers: what is read of one and written into the other, in turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.sizes import Sizes
from stepwell.lowering.bufferize.liveness import Liveness
from stepwell.lowering.bufferize.places import Places, Storage
from stepwell.lowering.bufferize.ties import Edges, Loop, Tie
from stepwell.lowering.bufferize.views import Steps, covers, part


@dataclass
class Exchanges:
    """Decides which loops of one host function exchange buffers."""

    sizes: Sizes
    places: Places
    liveness: Liveness
    broken: dict[tuple[Operation, SSAValue, SSAValue], str]
    """Why ties could not be kept; those of a slot that exchanges its buffer are taken out."""

    def close(self, loop: Loop) -> None:
        """Let the slots whose next value could not be written in place exchange buffers."""
        failing = {t.into: t for t in loop.ties if t.broken}
        while True:
            bad = [slot for slot, tie in failing.items() if not self._rotates(loop, tie, failing)]
            if not bad:
                break
            for slot in bad:
                del failing[slot]
        if failing:
            self._rotate(loop, list(failing.values()))

    def _rotates(self, loop: Loop, tie: Tie, failing: dict[SSAValue, Tie]) -> bool:
        """Whether a slot may take over the buffer of its next value, and give its own away."""
        slot, steps = self.places.of(tie.into)
        new, path = self.places.of(tie.value)
        same = [t for t in loop.ties if self.places.of(t.value)[0] is new]
        slots = [self.places.of(s)[0] for s in failing]
        start = self.liveness.start(loop.op)
        end = self.liveness.end(loop.op)
        inside = all(start <= self.liveness.defined(v) < end for v, _ in new.members)
        return (
            slot.kind == new.kind == "local"
            and steps == path == ()
            and slot.type == new.type
            and len(same) == 1
            and slots.count(slot) == 1
            and (new in slots or (inside and not self._is_slot(loop, new)))
        )

    def _is_slot(self, loop: Loop, storage: Storage) -> bool:
        tensors = [s for s in loop.slots if isinstance(s.type, TensorType)]
        return any(self.places.of(s)[0] is storage for s in tensors)

    def _rotate(self, loop: Loop, ties: Sequence[Tie]) -> None:
        slots = [self.places.of(t.into)[0] for t in ties]
        targets = [self.places.of(t.value)[0] for t in ties]
        spares = [s for s in targets if s not in slots]
        values = [t.into for t in ties]
        values += [t.value for t, s in zip(ties, targets, strict=True) if s not in slots]
        loop.carried = [*slots, *spares]
        loop.number = {t.into: n for n, t in enumerate(ties)}
        loop.begins = dict(loop.number)
        loop.following = [loop.carried.index(t) for t in targets]
        left = [n for n in range(len(loop.carried)) if n not in loop.following]
        for spare in spares:
            fitting = next(n for n in left if loop.carried[n].type == spare.type)
            left.remove(fitting)
            loop.following.append(fitting)
        for number, (storage, value) in enumerate(zip(loop.carried, values, strict=True)):
            outside = Storage("local", storage.type, storage.sizes)
            for other in cycle(loop.following, number):  # all that comes to lie there
                outside.members += loop.carried[other].members
            outside.name, outside.beside = value.name_hint, loop.op
            loop.outside.append(outside)
            storage.kind = "carried"
        for tie in ties:
            tie.broken = ""
            del self.broken[tie.at, tie.value, tie.into]

    def keeps_edges(self, tie: Tie, edges: Edges) -> bool:
        """Whether what lies around new parts is in place: there is one buffer, or two alike."""
        loop = edges.loop
        slot, value = self.places.of(edges.slot), self.places.of(edges.value)
        if any(self.places.of(each) != value for each in edges.between):
            return False
        if slot == value:
            return True
        number = loop.number.get(edges.slot)
        if number is None or (spare := loop.following[number]) < len(loop.number):
            return False
        storage = loop.carried[spare]
        parts = [part((box,)) for box in edges.boxes]
        inside = all(
            any(covers(self.sizes, box, over) for box in parts)
            for member, path in storage.members
            for _, over in self.places.parts_written(member, path)
        )
        if loop.following[spare] != number or value != (storage, ()) or not inside:
            return False
        loop.edges.append((spare, edges.slot, edges.boxes))
        loop.begins[edges.value] = spare
        self.places.writes.setdefault(edges.value, []).append((loop.op, None))
        return True

    def ends(self, loop: Loop, number: int) -> list[tuple[Storage, Steps]]:
        """Return the buffers in which a slot's last value may be: one, where the turns are known.

        number : of the slot's first buffer
        """
        turns = self._turns(loop)
        found = [loop.outside[n] for n in cycle(loop.following, number)]
        ends = found if turns is None else [found[turns % len(found)]]
        return [self.places.root(s, ()) for s in ends]

    def _turns(self, loop: Loop) -> int | None:
        """Return how often a loop runs, where that is known."""
        if not isinstance(loop.op, scf.ForOp):
            return None
        start, stop, step = (self.sizes.of(v).number for v in loop.op.operands[:3])
        if start is None or stop is None or not step:
            return None
        return max(0, -(-(stop - start) // step))


def cycle(following: Sequence[int], number: int) -> list[int]:
    """Return which buffers one is, in one iteration after the other, until it is itself again.

    >>> cycle([1, 0, 3, 4, 2], 3)
    [3, 4, 2]
    """
    found = [number]
    while (number := following[number]) != found[0]:
        found.append(number)
    return found
