"""The tensors of one buffer, by when they are live and by where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stepwell.core.intervals import Intervals
from stepwell.lowering.bufferize.assignment import Member
from stepwell.lowering.bufferize.intervals import Variable
from stepwell.lowering.bufferize.views import Part, part

FEW = 16
"""Up to this number of members, comparing each of them takes less time than making an index."""


class MemberIndex:
    """The members of a buffer, to find those that a tensor may interfere with.

    A buffer that is put together of a thousand parts has thousands of members, most of which are
    apart from each other in time or in space.
    """

    def __init__(self, members: Sequence[Member] = ()) -> None:
        self.members = members
        self._count = 0
        self._whole, self._boxed = Intervals[int](), Intervals[int]()
        self._axes: list[Intervals[int]] = []
        self._reach: list[int] = []
        """The greatest index plus one along each axis."""

    def near(self, variable: Variable, place: Part) -> Iterator[Member]:
        """Yield the members live at some time with ``variable``, the latest first.

        Members that are apart from ``place`` along an axis may be left out.
        """
        numbers: Iterable[int] = range(len(self.members))
        if len(self.members) > FEW:
            self._add(range(self._count, len(self.members)))
            numbers = self._near(variable, place)
        start, stop = variable.start, variable.stop
        live = [
            (when.start, n)
            for n in numbers
            if (when := self.members[n].variable).start <= stop and when.stop >= start
        ]
        return (self.members[n] for _, n in sorted(live, reverse=True))

    def _near(self, variable: Variable, place: Part) -> Iterator[int]:
        yield from self._whole.overlapping(variable.start, variable.stop)
        ranges = _ranges(place)
        if ranges is None or not self._axes:
            yield from self._boxed.overlapping(variable.start, variable.stop)
            return
        lengths = [
            (end - begin) / (n or 1) for (begin, end), n in zip(ranges, self._reach, strict=True)
        ]
        axis = lengths.index(min(lengths))
        begin, end = ranges[axis]
        yield from self._axes[axis].overlapping(begin, end - 1)

    def _add(self, numbers: Iterable[int]) -> None:
        """Index the members of these numbers."""
        for n in numbers:
            variable, ranges = self.members[n].variable, _ranges(part(self.members[n].steps))
            into = self._whole if ranges is None else self._boxed
            into.add(variable.start, variable.stop, n)
            for axis, (begin, end) in enumerate(ranges or ()):
                if axis == len(self._axes):
                    self._axes.append(Intervals[int]())
                    self._reach.append(0)
                self._axes[axis].add(begin, end - 1, n)
                if end < float("inf"):
                    self._reach[axis] = max(self._reach[axis], int(end))
        self._count = len(self.members)


def _ranges(place: Part) -> list[tuple[float, float]] | None:
    """Return where the smallest box begins and ends along each axis; None without a static one."""
    if place.box is None or all(None in ends for ends in place.box.known):
        return None
    return [
        (float("-inf"), float("inf")) if begin is None or end is None else (begin, end)
        for begin, end in place.box.known
    ]
