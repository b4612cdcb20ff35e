"""Vectors along a loop whose extent is known at launch only: the last overlaps the one before."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.lowering.linalg_to_loops.writer import Index, Writer

MIN_LANES = 4
"""Lanes of the narrowest vector; fewer iterations do not repay a loop of vectors."""

Write = Callable[[Index, int], None]
"""Writes ``size`` iterations from an index: whole vectors, one narrower vector, or a single one."""


def cover(
    writer: Writer,
    bounds: tuple[Index, Index],
    extent: Index,
    width: int,
    count: int,
    write: Write,
    hint: str,
    low: int = 0,
) -> None:
    """Write a part of a loop ``count`` vectors at a time, then vector by vector.

    The last vector ends at ``extent``, where the loop does. A loop shorter than a vector uses
    vectors of half or a quarter of the lanes; the shortest runs single iterations.

    low : the least extent of the loop
    """

    def body(start: Index, size: int) -> tuple[()]:
        write(start, size)
        return ()

    def vectors(lower: Index, lanes: int) -> None:
        last = extent + -lanes
        writer.loop(
            (lower, bounds[1]),
            lanes,
            (),
            lambda start, _: body(writer.minimum(start, last), lanes),
            hint,
        )

    def wide() -> None:
        lower, step = bounds[0], width * count
        if count > 1:
            end = writer.last_whole(lower, bounds[1], step)
            writer.loop((lower, end), step, (), lambda start, _: body(start, step), hint)
            lower = end
        vectors(lower, width)

    def single() -> None:
        writer.loop(bounds, 1, (), lambda start, _: body(start, 1), hint)

    def narrow(lanes: int) -> None:
        if lanes < MIN_LANES:
            single()
            return
        enough = writer.compare("sge", extent, Index.of(lanes))
        writer.branch(enough, lambda: vectors(bounds[0], lanes), lambda: narrow(lanes // 2))

    if low >= width:
        wide()
        return
    enough = writer.compare("sge", extent, Index.of(width))
    writer.branch(enough, wide, lambda: narrow(width // 2))


def ragged_steps(extent: int, width: int, count: int) -> list[tuple[int, int]]:
    """Return pairs of a step and how often it is taken; each step is at most ``count`` vectors.

    The last step has two vectors or more, of which one may overlap another, and ends with the loop.

    >>> ragged_steps(72, 16, 4), ragged_steps(20, 16, 1), ragged_steps(515, 16, 4)
    ([(48, 1), (24, 1)], [(20, 1)], [(64, 7), (48, 1), (19, 1)])
    """
    vectors = -(-extent // width)
    last = vectors % count
    if last < 2:
        last = max(count, 2) if last == 0 else 2
    last = min(last, vectors)
    whole, rest = divmod(vectors - last, count)
    steps = [(count * width, whole), (rest * width, 1), (extent - (vectors - last) * width, 1)]
    return [(size, often) for size, often in steps if size and often]
