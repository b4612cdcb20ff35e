"""Whether two buffers can be one: nothing in either is wanted when the other is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from stepwell.analysis.sizes import Sizes
from stepwell.lowering.bufferize.liveness import Liveness, Query
from stepwell.lowering.bufferize.places import Places, Storage
from stepwell.lowering.bufferize.views import Part, Slice, Steps, disjoint, inverse, join, part


class _Member(NamedTuple):
    """A tensor of a buffer under examination: where in it, and what writes it there."""

    value: SSAValue
    steps: Steps
    part: Part
    writes: list[Query]


class Unions:
    """Unites buffers of one host function where that destroys nothing."""

    def __init__(
        self,
        sizes: Sizes,
        places: Places,
        liveness: Liveness,
        exchanged: Callable[[Storage, Storage], bool],
        begins: Callable[[SSAValue, Operation], Storage | None],
    ) -> None:
        self.sizes, self.places, self.liveness = sizes, places, liveness
        self.exchanged = exchanged
        """Whether a loop exchanges two buffers."""
        self.begins = begins
        """The buffer in which a tensor begins, where an op exchanges buffers: it is written there
        alone, though it comes to lie in others as well."""
        self.view: Operation | None = None
        """The view that kept the last two from being one, where a copy of it would not."""

    def unite(self, tries: Sequence[tuple[Storage, Storage, Steps, Steps]]) -> str:
        """Unite two buffers in the first way that can be; return why none can, "" after success.

        tries : what becomes part, of what, the view of that, and the view of the part that is equal
        """
        why, self.view = "", None
        for inner, outer, to, way in tries:
            back = inverse(way)
            fixed = inner.kind != "local" or outer.kind in ("input", "constant", "carried")
            if fixed or back is None:
                why = why or why_not(inner, outer)
                continue
            view = join(to, back)
            if not self.places.fits(inner, outer, view) or not self._in_time(inner, outer, view):
                why = "its place is not known early enough, or is not contiguous"
                continue
            if clash := self.clash(inner, outer, view):
                return clash
            self.places.unite(inner, outer, view)
            return ""
        return why

    def _in_time(self, inner: Storage, outer: Storage, view: Steps) -> bool:
        """Whether where ``view`` lies is known when ``inner`` is first written."""
        sizes = chain.from_iterable(
            (*s.offsets, *s.sizes, *s.strides) for s in view if isinstance(s, Slice)
        )
        late = [v for n in sizes for v in self.sizes.unknowns(n)]
        writers = [op for v, _ in inner.members for op, _ in self.places.writes.get(v, ())]
        if outer.kind == "result":
            late.append(outer.members[0][0])
        return all(self.liveness.dominates(v, op) for v in late for op in writers)

    def clash(self, inner: Storage, outer: Storage, view: Steps) -> str:
        """Return why the two cannot be one, "" where they can."""
        self.view = None
        if self.exchanged(inner, outer):
            return "a loop exchanges them"
        self.places.pending = (inner, outer, view)
        try:
            theirs = [(b, path, part(path)) for b, path in outer.members]
            known: dict[int, _Member] = {}
            for a, path in inner.members:
                steps = join(view, path)
                where = part(steps)
                mine: _Member | None = None
                for n, (b, there, box) in enumerate(theirs):
                    if disjoint(self.sizes, where, box):
                        continue
                    mine = mine or self._member(a, steps, inner)
                    if (other := known.get(n)) is None:
                        other = known[n] = self._member(b, there, outer)
                    for x, y in ((mine, other), (other, mine)):
                        if self._overwrites(x, y):
                            self.view = self.liveness.seen_through
                            return (
                                f"{_name(y.value)} is still read after {_name(x.value)} is written"
                            )
        finally:
            self.places.pending = None
        return ""

    def _member(self, value: SSAValue, steps: Steps, storage: Storage) -> _Member:
        writes = self.places.parts_written(value, steps)
        queries = [
            Query(self.places, op, over, value)
            for op, over in writes
            if self.begins(value, op) in (None, storage)
        ]
        return _Member(value, steps, part(steps), queries)

    def _overwrites(self, x: _Member, y: _Member) -> bool:
        """Whether writing ``x`` destroys what is still wanted of ``y``."""
        for query in x.writes:
            if not disjoint(self.sizes, query.over, y.part) and self.liveness.wanted(
                query, y.value, y.steps
            ):
                return True
        return False


def why_not(inner: Storage, outer: Storage) -> str:
    """Return why one buffer cannot be part of another, by what they are alone."""
    for storage in (outer, inner):
        if storage.kind == "input":
            return "an argument is never written"
        if storage.kind == "updated":
            return "it is in the memory of an argument that is updated"
        if storage.kind == "constant":
            return "a constant is never written"
        if storage.kind == "carried":
            return "a loop exchanges its buffer"
        if storage.kind == "result":
            return "which buffer a loop ends in depends on its number of iterations"
    return "it is part of another buffer"


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"
