"""Interference: two buffers can be coalesced if no write to one overwrites live data of the other.

The test takes the current assignment: a copy whose two ends are the same place is no write, and
every other copy is one. So each coalescing step keeps a correct program correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from stepwell.dialects import kernel
from stepwell.lowering.bufferize.assignment import Member, Storage
from stepwell.lowering.bufferize.copies import Copies, Copy, Loop
from stepwell.lowering.bufferize.intervals import Reads, Variable
from stepwell.lowering.bufferize.member_index import MemberIndex
from stepwell.lowering.bufferize.views import (
    Steps,
    covers,
    disjoint,
    inverse,
    join,
    part,
    relative_view,
    run_time_values,
    same_place,
    view_type,
)


class Interference:
    """Interference between the buffers of one host function, and coalescing where there is none."""

    def __init__(self, copies: Copies) -> None:
        self.copies, self.sizes, self.assigned = copies, copies.sizes, copies.assigned
        self.results: list[Storage] = []
        """The results of loops that may be one of several buffers, later ones last."""
        self._indices: dict[Storage, MemberIndex] = {}
        """The members of each buffer that others have been compared with."""

    # -- copies

    def ends(self, copy: Copy) -> tuple[tuple[Storage, Steps], tuple[Storage, Steps]]:
        """Return the source and the target of a copy, each as a view of a buffer."""
        storage, steps = self.assigned.of(copy.value)
        target = self.assigned.of(copy.into)
        if copy.kind == "init":
            loop = self.copies.loops[copy.at]
            if (number := loop.number.get(copy.into)) is not None:
                target = self.assigned.root(loop.outside[number])
        elif copy.kind == "exit" and storage in self.copies.loops[copy.at].carried:
            storage, path = self._end(self.copies.loops[copy.at], storage)
            steps = join(path, steps)
        return (storage, join(steps, copy.seen)), (target[0], join(target[1], copy.steps))

    def _end(self, loop: Loop, storage: Storage) -> tuple[Storage, Steps]:
        """Return the place, after the loop, of a buffer that it exchanges."""
        number = loop.carried.index(storage)
        ends = loop.ends[number]
        last = ends[0] if len(ends) == 1 else loop.results.get(number, storage)
        return self.assigned.root(last)

    def is_removed(self, copy: Copy) -> bool:
        """Whether a copy writes nothing: of one place, of no element, or removed by a loop."""
        if copy.removed:
            return True
        undefined = self.copies.undefined
        if copy.into in undefined or self.copies.seen(copy.value)[0] in undefined:
            return True
        (source, path), (target, steps) = self.ends(copy)
        return source is target and same_place(path, steps)

    # -- buffers

    def coalesce(self, copy: Copy) -> str:
        """Remove a copy by coalescing its ends; return why that fails, "" after success."""
        (source, path), (target, steps) = self.ends(copy)
        if source is target:
            return "" if same_place(path, steps) else "it would overlap with itself"
        tries = [(source, target, steps, path), (target, source, path, steps)]
        if copy.kind in ("update", "slice", "exit"):
            tries.reverse()
        why = ""
        for inner, outer, to, way in tries:
            back = inverse(way)
            fixed = inner.kind != "local" or outer.kind in ("input", "constant", "carried")
            if fixed or back is None:
                why = why or why_not(inner, outer)
                continue
            view = join(to, back)
            if not self.assigned.fits(inner, outer, view) or not self._view_dominates_writes(
                inner, outer, view
            ):
                why = "its place is not known early enough, or is not contiguous"
                continue
            return self.unite(inner, outer, view)
        return why

    def unite(self, inner: Storage, outer: Storage, view: Steps) -> str:
        """Make one buffer a view of another; return why they interfere, "" after success."""
        if any(self._exchanges(loop, inner, outer) for loop in self.copies.loops.values()):
            return "a loop exchanges them"
        if not self._keeps_exchanged_types(inner, outer, view):
            return "a loop exchanges it with buffers that lie otherwise"
        aliases, others = self._aliases(inner), self._aliases(outer)
        if aliases is None or others is None:
            return why_not(inner, outer)
        group, members = [*inner.members, *aliases], self._indexed(outer, others)
        undo = self.assigned.coalesce(inner, outer, view)
        if why := self._interfere(group, members, view):
            undo()
        else:
            self._indices.pop(inner, None)
        return why

    def _indexed(self, storage: Storage, aliases: Sequence[Member]) -> MemberIndex:
        """Return the members of a buffer, and of those that may alias it, by time and place."""
        if aliases:
            return MemberIndex([*storage.members, *aliases])
        index = self._indices.setdefault(storage, MemberIndex())
        index.members = storage.members  # which only grow
        return index

    def lengthen(self, variable: Variable, spans: list[tuple[int, int]], steps: Steps) -> None:
        """Record further live intervals of a part of a tensor."""
        variable.live(spans, steps, ())
        self._indices.clear()

    def _view_dominates_writes(self, inner: Storage, outer: Storage, view: Steps) -> bool:
        """Whether the sizes and offsets of ``view`` dominate every write to ``inner``."""
        late = run_time_values(self.sizes, view)
        if outer.kind == "result":
            late.append(outer.members[0].variable.value)
        if not late:
            return True
        writers = [op for m in inner.members for op in self._writers(m.variable)]
        return all(self.copies.positions.dominates(v, op) for v in late for op in writers)

    def _writers(self, variable: Variable) -> Iterator[Operation]:
        for _, _, by in variable.writes:
            owner = by.at if isinstance(by, Copy) else variable.value.owner
            if isinstance(owner, Operation):
                yield owner

    def shared(
        self, a: tuple[Storage, Steps], b: tuple[Storage, Steps]
    ) -> Iterator[tuple[Steps, Steps]]:
        """Yield two places as views of one buffer, for each buffer that both may be in."""
        if a[0] is b[0]:
            yield a[1], b[1]
        elif a[0].loop is None or a[0].loop is not b[0].loop:
            number = {result: n for n, result in enumerate(self.results)}
            early, late = sorted((a, b), key=lambda place: number.get(place[0], -1))
            for end in late[0].ends:
                for one, other in self.shared(self.assigned.root(end, late[1]), early):
                    yield (one, other) if late is a else (other, one)

    def alias_to_end(self, loop: Loop, number: int, storage: Storage) -> bool:
        """Alias a loop's result to whichever buffer the loop ends in, if none interferes."""
        ends = loop.ends[number]
        if storage.kind != "local" or any(self.assigned.root(each)[1] for each in ends):
            return False
        storage.kind, storage.ends, storage.loop = "result", ends, loop.op
        loop.results[number] = storage
        self.results.append(storage)
        others = self._aliases(storage)
        if others is None or self._interfere(storage.members, MemberIndex(others), ()):
            storage.kind, storage.ends, storage.loop = "local", [], None
            del loop.results[number]
            self.results.remove(storage)
            return False
        return True

    def _exchanges(self, loop: Loop, a: Storage, b: Storage) -> bool:
        """Whether two buffers both are, or contain, buffers that a loop exchanges."""
        roots = [self.assigned.root(storage)[0] for storage in loop.outside]
        return a in roots and b in roots

    def _keeps_exchanged_types(self, inner: Storage, outer: Storage, view: Steps) -> bool:
        """Whether buffers that loops exchange have the same types once one is a view of another."""
        places = [
            self.assigned.root(s) for loop in self.copies.loops.values() for s in loop.outside
        ]
        return not view or all(
            view_type(outer.type, join(view, path)) == view_type(inner.type, path)
            for root, path in places
            if root is inner
        )

    def _aliases(self, storage: Storage) -> list[Member] | None:
        """Return the members of other buffers that may alias one; None if one is larger."""
        ends = [self.assigned.root(end)[0] for result in self.results for end in result.ends]
        if storage not in (*ends, *self.results):
            return []
        found: list[Member] = []
        for other in dict.fromkeys((*ends, *self.results)):
            if other is storage:
                continue
            for mine, path in self.shared((storage, ()), (other, ())):
                steps = relative_view(mine, path)
                if steps is None:
                    return None
                found += [m._replace(steps=join(steps, m.steps)) for m in other.members]
        return found

    # -- the predicate

    def _interfere(self, inner: Sequence[Member], outer: MemberIndex, view: Steps) -> str:
        """Return how a member of ``inner``, seen through ``view``, interferes with ``outer``.

        The result is a message for the remark, or "" if there is no interference.
        """
        for member in sorted(inner, key=lambda m: m.variable.start):
            a = member._replace(steps=join(view, member.steps))
            box = part(a.steps)
            for b in outer.near(a.variable, box):
                ways = [w for w in ((a, b), (b, a)) if w[0].variable.may_overwrite(w[1].variable)]
                if not ways or disjoint(self.sizes, box, part(b.steps)):
                    continue
                for x, y in ways:
                    if self._overwrites(x, y):
                        return f"{_name(y)} is still read after {_name(x)} is written"
        return ""

    def _overwrites(self, x: Member, y: Member) -> bool:
        """Whether a write to ``x`` overwrites live elements of ``y``."""
        for position, steps, by in x.variable.writes:
            if not y.variable.start <= position <= y.variable.stop:
                continue
            loop = by.at if isinstance(by, Copy) and by.kind == "init" else by
            if x.without and loop in x.without:
                continue
            live = [
                (seen, reads)
                for seen, reads in y.variable.reads.items()
                if any(start <= position <= stop for start, stop in reads.spans)
            ]
            if not live or (isinstance(by, Copy) and self._is_no_op(by, y, position)):
                continue
            over = part(join(x.steps, steps))
            for (seen, but), reads in live:
                if (
                    not disjoint(self.sizes, over, part(join(y.steps, seen)))
                    and not any(covers(self.sizes, part(join(y.steps, b)), over) for b in but)
                    and not self._in_place(position, x, by, y, seen, reads)
                ):
                    return True
        return False

    def _is_no_op(self, copy: Copy, y: Member, position: int) -> bool:
        """Whether a copy writes nothing, or the same as a copy into ``y`` at that position."""
        if self.is_removed(copy):
            return True
        for other, _, by in y.variable.writes:
            if other == position and isinstance(by, Copy) and by.value is copy.value:
                return self.ends(by)[1] == self.ends(copy)[1]
        return False

    def _in_place(
        self, position: int, x: Member, by: object, y: Member, seen: Steps, reads: Reads
    ) -> bool:
        """Whether a launch may update ``y`` in place: it reads each element before its write."""
        owner = x.variable.value.owner
        if not isinstance(owner, kernel.LaunchOp) or not isinstance(by, int):
            return False
        if any(start <= position < stop for start, stop in reads.spans):
            return False
        pairs = self.copies.summary(owner).in_place
        return same_place(x.steps, join(y.steps, seen)) and all(
            (number, by) in pairs for number in reads.operands.get(position, (-1,))
        )


def why_not(inner: Storage, outer: Storage) -> str:
    """Return why the kinds of two buffers alone forbid that one is a view of the other."""
    for storage in (outer, inner):
        if storage.kind in _FIXED:
            return _FIXED[storage.kind]
    return "it is part of another buffer"


ENDS = "which buffer a loop ends in depends on its number of iterations"
_FIXED = {
    "input": "an argument is never written",
    "updated": "it is in the memory of an argument that is updated",
    "constant": "a constant is never written",
    "carried": "a loop exchanges its buffer",
    "result": ENDS,
}


def _name(member: Member) -> str:
    hint = member.variable.value.name_hint
    return f"%{hint}" if hint else "a value"
