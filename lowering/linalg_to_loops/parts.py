"""Sums that are split into equal parts, so that several threads can work on few results.

Partial results are combined in order, then the ops after the sum read the totals. The number of
parts is in the schedule, so no result depends on the number of threads.

A full reduction has one result for each part. Of a sum over rows, each part reads its rows in
order, a few at a time along all columns, and accumulates in scratch; with `prefetch` each step
prefetches the same columns of the next few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from stepwell.analysis.levels.building import (
    ASSUMED_LOOP_EXTENT,
    ASSUMED_ROWS,
    rows_of_parts,
)
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.combining import combine, combiner_of
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.nest import own_points, write_op, write_ops
from stepwell.lowering.linalg_to_loops.points import finish, start
from stepwell.lowering.linalg_to_loops.prefetch import lies_in_rows, prefetch_row
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.sum_loops import Sum
from stepwell.lowering.linalg_to_loops.within import part
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index

ELEMENTS_PER_PART = 1 << 14
"""Elements that make a part of their own worthwhile."""


def write_parts(frame: Frame) -> None:
    """Write every op of a kernel whose sums are split into parts; others run once, after them."""
    if frame.plan.levels.shared:
        op = next((op for op in frame.plan.ops if op.reduced), frame.plan.first)
        SumOfRows(frame, op).write()
        return
    frame.memory.open([Point(())])
    for op in frame.plan.ops:
        frame.writer.location = op.op.location
        if op.reduced:
            _write_total(frame, op)
        else:
            write_op(frame, op, [Point(())])
    frame.locate()


class Parts:
    """The parts of one sum and their results, in scratch.

    starts : the values that the sum begins with
    columns : results of one part; 0 for a single one
    """

    def __init__(
        self, frame: Frame, op: Structured, starts: Sequence[SSAValue], columns: int
    ) -> None:
        self.frame, self.op, self.writer, self.starts = frame, op, frame.writer, starts
        parts = frame.plan.levels.parts
        self.most = parts.parts if parts else 1
        self.combiners = [combiner_of(op, k) for k in op.carried]
        shape = [self.most, columns] if columns else [self.most]
        self.partials = [
            self.writer.result(memref.AllocaOp.get(start.type, 64, shape), "partial")
            for start in starts
        ]
        self.count = self._count(max(columns, 1))

    def _count(self, columns: int) -> Index:
        """Return the number of parts: fewer where the launch finds that there is little work."""
        extents = [self.frame.extents[self.op][k] for k in self.op.reduced]
        if all(extent.number is not None for extent in extents):
            return Index.of(self.most)
        total = reduce(self.writer.product, extents, Index.of(columns))
        few = self.writer.divide(total, ELEMENTS_PER_PART) + 1
        return self.writer.minimum(few, Index.of(self.most))

    def write(self, cut: int, unit: int, inside: Callable[[Index], None]) -> None:
        """Write the parts in parallel: each takes a range of loop ``cut``, in whole ``unit``s."""
        writer, extent = self.writer, self.frame.extents[self.op][cut]
        length = writer.divide_up(extent, self.count * unit) * unit

        def body(p: Index) -> None:
            lower = writer.minimum(writer.product(p, length), extent)
            here = lower, writer.minimum(lower + length, extent)
            with self.frame.opened(self.op, cut, part(writer, self.op, cut, here)):
                inside(p)

        writer.parallel(self.count, Index.of(1), body)

    def neutral(self, lanes: int) -> list[SSAValue]:
        """Return the values that a part begins with."""
        pairs = zip(self.combiners, self.starts, strict=True)
        return [self.writer.splat(c.identity(start.type), lanes) for c, start in pairs]

    def combined(
        self, starts: Sequence[SSAValue], place: Sequence[Index] = (), lanes: int = 0
    ) -> Sequence[SSAValue]:
        """Combine the results of the parts at one place, beginning with ``starts``, in order."""

        def add(r: Index, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [
                combine(self.writer, c, total, self.writer.load(some, [r, *place], lanes))
                for c, total, some in zip(self.combiners, totals, self.partials, strict=True)
            ]

        names = [self.op.name(k) for k in self.op.carried]
        return self.writer.loop((Index(), self.count), 1, starts, add, "r", names)


def _write_total(frame: Frame, op: Structured) -> None:
    """Write one full reduction: the parts in parallel, then their results in order."""
    point = Point((None,) * len(op.reductions))
    starts = [start(frame, op, k, point) for k in op.carried]
    parts = Parts(frame, op, starts, 0)
    units = [op.width * op.interleave if op.axis == k else 1 for k in range(len(op.reductions))]
    numbers = [extent.number for extent in frame.extents[op]]
    sizes = [ASSUMED_LOOP_EXTENT if number is None else number for number in numbers]
    counts = [size // unit for size, unit in zip(sizes, units, strict=True)]
    cut = counts.index(max(counts))

    def inside(p: Index) -> None:
        values = Sum(frame, op).run([point], parts.neutral(0))
        for value, sums in zip(values, parts.partials, strict=True):
            frame.writer.store(value, sums, [p])

    parts.write(cut, units[cut], inside)
    finish(frame, op, [point], parts.combined(starts))


class SumOfRows:
    """Writes the loops of a plan whose sum over rows is split into parts."""

    def __init__(self, frame: Frame, op: Structured) -> None:
        self.frame, self.op, self.writer = frame, op, frame.writer
        self.rows = rows_of_parts(frame.plan.levels)
        """Rows that one step reads side by side."""
        columns = frame.ends[0].number
        assert columns is not None
        self.columns = columns
        frame.memory.open([Point((None,))])
        starts = [start(frame, op, k, self._point(Index())) for k in op.carried]
        self.parts = Parts(frame, op, starts, max(columns, 1))
        extents = frame.extents[op]
        self.cut = max(op.reduced, key=lambda k: extents[k].number or ASSUMED_ROWS)
        if frame.plan.levels.prefetch:
            frame.loads = self._prefetch

    def write(self) -> None:
        """Write the parallel parts, then the loop that combines them and the ops after the sum."""

        def inside(p: Index) -> None:
            self._tiles(partial(self._begin, p))
            self._walk(p, self.op.reduced)

        self.parts.write(self.cut, self.rows, inside)
        self._tiles(self._combined)

    def _point(self, column: Index, lanes: int = 0) -> Point:
        (point,) = own_points(self.frame, self.op, [Point((column,), 0 if lanes else -1, lanes)])
        return point

    def _prefetch(self, op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        """Prefetch the same columns of the next rows, at the end of a part those of the next."""
        if op is self.op and points[0].width > 1 and self.cut == op.reduced[-1]:
            below = (points[0].indices[self.cut] or Index()) + self.rows
            for access in op.inputs:
                if lies_in_rows(access, self.cut, 0, op.width):
                    prefetch_row(self.writer, access, points, 0, {self.cut: below})
        return {}

    def _steps(self) -> list[int]:
        """Return the widths of column tiles: several vectors, one, shorter ones, one column."""
        width = self.op.width
        halves = [width >> n for n in range(width.bit_length())]
        return list(dict.fromkeys([width * self.op.interleave, *halves]))

    def _tiles(self, write: Callable[[list[Point]], None]) -> None:
        """Call ``write`` with the vectors of each tile; the tiles cover all columns."""

        def tile(c: Index, size: int) -> None:
            lanes = min(size, self.op.width) if self.op.width > 1 < size else 0
            write([self._point(c + n, lanes) for n in range(0, size, lanes or 1)])

        self.writer.cover((Index(), Index.of(self.columns)), self._steps(), tile, "j")

    def _begin(self, p: Index, points: list[Point]) -> None:
        """Initialise the partial sums of a part with the identity."""
        neutral = self.parts.neutral(points[0].width)
        for value, sums in zip(neutral, self.parts.partials, strict=True):
            for point in points:
                self.writer.store(value, sums, [p, _column(point)])

    def _walk(self, p: Index, loops: Sequence[int]) -> None:
        """Open the loops of the sum; the last in steps of a few rows."""
        k, *rest = loops
        bounds = self.frame.bounds(self.op, k)

        def inside(at: Index, end: Index) -> None:
            with self.frame.opened(self.op, k, (at, end)):
                self._walk(p, rest) if rest else self._tiles(partial(self._add, p))

        if not rest and self.columns in self._steps():  # one tile: its sums stay in registers
            inside(*bounds)
            return
        steps, name = [1 if rest else self.rows, 1], NAMES[k % len(NAMES)]
        self.writer.cover(bounds, steps, lambda at, size: inside(at, at + size), name)

    def _add(self, p: Index, points: list[Point]) -> None:
        """Add the current rows to the sums of part ``p``."""
        places = [(sums, [p, _column(q)]) for q in points for sums in self.parts.partials]
        state = [self.writer.load(*place, points[0].width, "sum") for place in places]
        values = Sum(self.frame, self.op).run(points, state)
        for value, place in zip(values, places, strict=True):
            self.writer.store(value, *place)

    def _combined(self, points: list[Point]) -> None:
        """Combine the parts in order, beginning with the sums' initial values; write all ops."""
        for point in points:
            starts = [start(self.frame, self.op, k, point) for k in self.op.carried]
            totals = self.parts.combined(starts, [_column(point)], point.width)
            here = point._replace(indices=point.indices[:1])
            write_ops(self.frame, [here], {self.op: totals})


def _column(point: Point) -> Index:
    return point.indices[0] or Index()
