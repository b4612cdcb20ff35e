"""Walk through a loop in steps, and end it as its level states.

A loop of known extent is a list of parts, each in steps of one size. Vectors along a loop whose
extent is known at launch only end in narrower steps, in one that overlaps the step before, or in
one under a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from xdsl.ir import SSAValue

from stepwell.dialects.kernel.levels import MASK, OVERLAP, PEEL
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.frame import Bounds
from stepwell.lowering.linalg_to_loops.writer import NAMES, ZERO, Index, Writer
from stepwell.transforms.kernels.schedule.vectors import MIN_LANES


@dataclass(frozen=True)
class Taken:
    """The iterations of a loop that one step takes."""

    start: Index
    size: int
    width: int = 1
    """The lanes of a vector; fewer iterations are taken one by one."""
    overlaps: bool = False
    """Whether the last vector ends with the step, and so may overlap the one before."""
    last: Index | None = None
    """The last iteration of the loop, which replaces those after it."""
    first: SSAValue | None = None
    """How many lanes are enabled, from the first; None for all."""
    end: Index | None = None
    """The first iteration that has no effect, where the step may extend past it."""

    def points(self, writer: Writer, point: Point, k: int) -> list[Point]:
        """Return ``point`` at each vector, or each iteration, of loop ``k``."""
        if self.first is not None:
            point = point._replace(first=self.first)
        if self.end is not None:
            point = point._replace(end=(k, self.end))
        if self.last is not None:
            rows = [further(writer, self.start, n, self.last) for n in range(self.size)]
            return [point.bind(k, row) for row in rows]
        width = self.width if self.overlaps or 1 < self.width <= self.size else 0
        return [point.bind(k, self.start + c, width) for c in self._starts()]

    @property
    def count(self) -> int:
        """The number of these points."""
        return self.size if self.last is not None else len(self._starts())

    def _starts(self) -> Sequence[int]:
        """Return where vectors, or single iterations, begin."""
        if self.overlaps:
            return [min(c, self.size - self.width) for c in range(0, self.size, self.width)]
        if 1 < self.width <= self.size:
            return range(0, self.size - self.width + 1, self.width)
        return range(self.size)


Inside: TypeAlias = Callable[[Taken], None]


@dataclass(frozen=True)
class Loop:
    """A loop, or the part of it inside of other levels, and how a level walks through it."""

    k: int
    bounds: Bounds
    parts: Sequence[tuple[Bounds, Sequence[int]]] = ()
    """Parts of the loop, each in steps of the first size while they fit, then of the next."""
    width: int = 1
    count: int = 1
    """The vectors of a step."""
    ends: str = PEEL
    """How vectors end, if not in parts that are known."""
    extent: Index = ZERO
    least: int = 0
    """The least extent."""
    most: int = 0
    """The greatest extent; 0 where not known."""
    overlaps: bool = False
    shifts: bool = False
    """Whether the last step is moved to end with the loop."""
    last: Index | None = None
    begin: Index = ZERO
    one_text: bool = False
    """Whether all vectors that may end under a mask are under one."""

    def taken(self, writer: Writer, start: Index, size: int) -> Taken:
        """Return a step; one that is narrower than a vector has a vector of its own."""
        if self.shifts:
            start = writer.minimum(start, self.extent - Index.of(size))
        narrow = 1 < size < self.width and not self.overlaps
        width = size if narrow else self.width
        return Taken(self.begin + start, size, width, self.overlaps, self.last)


def walk_through(writer: Writer, loop: Loop, inside: Inside) -> None:
    """Write a loop; ``inside`` writes the contents of each step."""
    if loop.ends == OVERLAP:
        _overlapping(writer, loop, inside)
    elif loop.ends == MASK:
        _masked(writer, loop, inside)
    else:
        for bounds, sizes in loop.parts:
            _steps(writer, loop, bounds, sizes, inside)


def further(writer: Writer, start: Index, by: Index | int, last: Index | None) -> Index:
    """Return the iteration ``by`` after ``start``, at most ``last``."""
    return start + by if by == 0 or last is None else writer.minimum(start + by, last)


def _steps(
    writer: Writer, loop: Loop, bounds: Bounds, sizes: Sequence[int], inside: Inside
) -> None:
    def body(start: Index, size: int) -> None:
        inside(loop.taken(writer, start, size))

    writer.cover(bounds, sizes, body, NAMES[loop.k % len(NAMES)])


def _overlapping(writer: Writer, loop: Loop, inside: Inside) -> None:
    """Write a loop several vectors at a time, then vector by vector; the last ends with the loop.

    A loop shorter than a vector uses vectors of half or a quarter of the lanes; the shortest runs
    single iterations.
    """
    (lower, upper), step = loop.bounds, loop.width * loop.count

    def vectors(lower: Index, lanes: int) -> None:
        _steps(writer, replace(loop, shifts=True), (lower, upper), [lanes], inside)

    def wide() -> None:
        middle = writer.last_whole(lower, upper, step) if loop.count > 1 else lower
        _steps(writer, loop, (lower, middle), [step], inside)
        vectors(middle, loop.width)

    def of_lanes(lanes: int) -> None:
        whole = lanes == loop.width
        if not whole and lanes < MIN_LANES:
            _steps(writer, loop, loop.bounds, [1], inside)
        elif 0 < loop.most < lanes:
            of_lanes(lanes // 2)
        elif loop.least >= lanes:
            wide() if whole else vectors(lower, lanes)
        else:
            enough = writer.compare("sge", loop.extent, Index.of(lanes))
            some = wide if whole else partial(vectors, lower, lanes)
            writer.branch(enough, some, lambda: of_lanes(lanes // 2))

    of_lanes(loop.width)


def _masked(writer: Writer, loop: Loop, inside: Inside) -> None:
    """Write a loop several vectors at a time, then vector by vector; the last is masked."""
    lower, upper = loop.bounds

    def masked(start: Index) -> None:
        left = writer.value(upper - start)
        inside(replace(loop.taken(writer, start, loop.width), first=left))

    whole = lower == Index() and upper == loop.extent
    if whole and loop.least > 0 and loop.count == 1:
        end = before_mask(writer, loop.width, upper, (loop.least, loop.most))
        _steps(writer, loop, (lower, end), [loop.width], inside)
        masked(end)
        return
    if loop.one_text:
        writer.each(loop.bounds, loop.width, masked, NAMES[loop.k % len(NAMES)])
        return
    for size in dict.fromkeys((loop.width * loop.count, loop.width)):
        end = writer.last_whole(lower, upper, size)
        _steps(writer, loop, (lower, end), [size], inside)
        lower = end
    known = (upper - lower).number is not None  # a mask of no lanes has no effect: it is refused
    some = None if known else writer.compare("sgt", upper - lower, Index())
    writer.branch(some, lambda: masked(lower))


def before_mask(writer: Writer, width: int, upper: Index, lengths: tuple[int, int]) -> Index:
    """Return where the last vector of a loop begins, which has 1 to ``width`` lanes.

    lengths : the least and the greatest extent
    """
    least, most = lengths
    known = (most - 1) // width * width
    return Index.of(known) if known < least else writer.last_whole(ZERO, upper + -1, width)


def steps(width: int, count: int, known: bool = False) -> list[int]:
    """Return the steps of a vectorised loop: ``count`` vectors, one vector, one iteration.

    known : whether the extent is known; narrower vectors then cost no tests
    """
    narrower = [width >> n for n in range(1, width.bit_length()) if width >> n >= MIN_LANES]
    return list(dict.fromkeys([width * count, width, *(narrower if known else []), 1]))
