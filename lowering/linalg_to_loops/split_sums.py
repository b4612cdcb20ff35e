"""Sums that are split into equal parts, so that several threads can work on few results.

Partial results are combined in order, then the ops after the sum read the totals. The number of
parts is in the schedule, so no result depends on the number of threads.

A full reduction has one result for each part. Of a sum over rows, each part reads its rows in
order, a few at a time along all columns, and accumulates in scratch; with `prefetch` each step
prefetches the same columns of the next few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from stepwell.analysis.levels.writing import ASSUMED_LOOP_EXTENT, ASSUMED_ROWS
from stepwell.dialects.types import fuse_locations
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.combining import combine, combiner_of
from stepwell.lowering.linalg_to_loops.nest import NAMES, Nest
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.prefetch import prefetch_lines
from stepwell.lowering.linalg_to_loops.structured import Access, Structured, dims_of
from stepwell.lowering.linalg_to_loops.within import part
from stepwell.lowering.linalg_to_loops.writer import Index, Writer

ELEMENTS_PER_RUN = 1 << 14
"""Elements that make a run of their own worthwhile."""
Sweep = Callable[[Index, int, int], None]


class Runs:
    """The runs of one sum and their partial results, in scratch.

    starts : the values that the sum begins with
    columns : results of one run; 0 for a single one
    """

    def __init__(
        self, nest: Nest, op: Structured, starts: Sequence[SSAValue], columns: int
    ) -> None:
        self.writer, self.op, self.starts = nest.writer, op, starts
        self.most, self.columns = nest.plan.schedule.split, columns
        self.combiners = [combiner_of(op, k) for k in op.carried]
        self.extents = nest.extents[nest.plan.ops.index(op)]
        shape = [self.most, columns] if columns else [self.most]
        self.partials = [
            self.writer.result(memref.AllocaOp.get(start.type, 64, shape), "partial")
            for start in starts
        ]
        self.count = self._count()

    def _count(self) -> Index:
        """Return the number of runs: fewer where the launch finds that there is little work."""
        extents = [self.extents[k] for k in self.op.reduced]
        if all(extent.number is not None for extent in extents):
            return Index.of(self.most)
        total = reduce(self.writer.product, extents, Index.of(max(self.columns, 1)))
        few = self.writer.divide(total, ELEMENTS_PER_RUN, arith.DivUIOp) + 1
        return self.writer.minimum(few, Index.of(self.most))

    def write(self, cut: int, unit: int, run: Callable[[Index, tuple[Index, Index]], None]) -> None:
        """Write the runs in parallel: each takes a part of loop ``cut``, in whole ``unit``s."""
        writer, extent = self.writer, self.extents[cut]
        per = self.count * unit
        blocks = writer.divide(extent + per + -1, per.number or writer.value(per), arith.DivUIOp)
        length = blocks * unit

        def body(p: Index) -> None:
            lower = writer.minimum(writer.product(p, length), extent)
            run(p, (lower, writer.minimum(lower + length, extent)))

        writer.parallel(self.count, Index.of(1), body)

    def neutral(self, lanes: int) -> list[SSAValue]:
        """Return the values that a run begins with."""
        pairs = zip(self.combiners, self.starts, strict=True)
        return [self.writer.splat(c.identity(start.type), lanes) for c, start in pairs]

    def combined(
        self, starts: Sequence[SSAValue], place: Sequence[Index] = (), lanes: int = 0
    ) -> Sequence[SSAValue]:
        """Combine the results of the runs at one place, beginning with ``starts``, in order."""

        def add(r: Index, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [
                combine(self.writer, c, total, self.writer.load(partial, [r, *place], lanes))
                for c, total, partial in zip(self.combiners, totals, self.partials, strict=True)
            ]

        names = [self.op.name(k) for k in self.op.carried]
        return self.writer.loop((Index(), self.count), 1, starts, add, "r", names)


def write_split(writer: Writer, plan: Plan) -> None:
    """Write every op of a kernel whose sums are split into runs; ops without loops run once."""
    nest = Nest(writer, plan)
    nest.prepare()
    nest.memory.open([Point(())])
    for op in plan.ops:
        writer.location = op.op.location
        if op.reduced:
            _write_runs(nest, op)
        else:
            nest.write_op(op, [Point(())])
    writer.location = fuse_locations(o.op.location for o in plan.ops)


def _write_runs(nest: Nest, op: Structured) -> None:
    """Write one full reduction: the runs in parallel, then their results in order."""
    point = Point((None,) * len(op.reductions))
    starts = [nest.start(op, k, point) for k in op.carried]
    runs = Runs(nest, op, starts, 0)
    units = [op.width * op.interleave if op.axis == k else 1 for k in range(len(op.reductions))]
    numbers = [extent.number for extent in runs.extents]
    sizes = [ASSUMED_LOOP_EXTENT if number is None else number for number in numbers]
    parts = [size // unit for size, unit in zip(sizes, units, strict=True)]
    cut = parts.index(max(parts))

    def run(p: Index, part: tuple[Index, Index]) -> None:
        nest.narrowed[cut] = part
        values = nest.run(op, [point], runs.neutral(0))
        for value, partial in zip(values, runs.partials, strict=True):
            nest.writer.store(value, partial, [p])
        del nest.narrowed[cut]

    runs.write(cut, units[cut], run)
    nest.finish(op, [point], runs.combined(starts))


class SplitRows(Nest):
    """Writes the loops of a plan whose sum over rows is split into runs."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        super().__init__(writer, plan)
        sums = [op for op in plan.ops if op.reduced]
        self.sum = sums[0] if sums else plan.first
        self.rows = plan.schedule.split_rows
        """Rows that one step reads side by side."""
        self.here: dict[int, tuple[Index, Index]] = {}
        """The current range of each loop of the sum."""

    def bounds(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of a loop; within the sum, its current part."""
        return self.here[k] if op is self.sum and k in self.here else super().bounds(op, k)

    def cached_loads(self, op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        """Prefetch the same columns of the next rows, at the end of a run those of the next run."""
        if op is self.sum and self.plan.schedule.prefetch and points[0].width > 1:
            for access in op.inputs:
                if self._lies_in_rows(access):
                    self._prefetch(access, points)
        return super().cached_loads(op, points)

    def _lies_in_rows(self, access: Access) -> bool:
        """Whether the split loop walks down rows and the vectors are contiguous along them."""
        across, along = dims_of(access.exprs[:-1]), dims_of(access.exprs[-1:])
        apart = self.cut in across and self.cut == self.sum.reduced[-1] and along == {0}
        return apart and lanes_at(access, 0, self.sum.width) == self.sum.width

    def _prefetch(self, access: Access, points: Sequence[Point]) -> None:
        indices = [index or Index() for index in points[0].indices]
        indices[self.cut] = indices[self.cut] + self.rows
        last = points[-1].indices[0] or Index()
        count = ((last - indices[0]).number or 0) + points[0].width
        prefetch_lines(self.writer, access, indices, 0, count)

    def write(self) -> None:
        """Write the parallel runs, then the loop that combines them and the ops after the sum."""
        self.prepare()
        op, columns = self.sum, self.extents[0][0].number
        assert columns is not None
        self.columns = columns
        self.memory.open([Point((None,))])
        starts = [self.start(op, k, Point((Index(), *self._inside(op)))) for k in op.carried]
        self.runs = Runs(self, op, starts, max(columns, 1))
        self.cut = max(op.reduced, key=lambda k: self.runs.extents[k].number or ASSUMED_ROWS)

        def run(p: Index, rows: tuple[Index, Index]) -> None:
            rows = part(self.writer, op, self.cut, rows)
            self._begin(p)
            self._walk(p, list(op.reduced), {self.cut: rows})

        self.runs.write(self.cut, self.rows, run)
        self._combined()

    def _inside(self, op: Structured) -> tuple[None, ...]:
        return (None,) * (len(op.reductions) - 1)

    def _steps(self) -> list[int]:
        """Return the widths of column tiles: several vectors, one, shorter ones, one column."""
        width = self.sum.width
        halves = [width >> n for n in range(width.bit_length())]
        return list(dict.fromkeys([width * self.sum.interleave, *halves]))

    def _sweep(self, body: Sweep) -> None:
        """Write ``body(first column, columns, lanes)`` for tiles that cover all columns."""

        def tile(c: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            lanes = min(size, self.sum.width)
            body(c, size, lanes if lanes > 1 else 0)
            return ()

        self.writer.sweep((Index(), Index.of(self.columns)), self._steps(), (), tile, "j")

    def _begin(self, p: Index) -> None:
        """Initialise the partial sums of a run with the identity."""

        def tile(c: Index, size: int, lanes: int) -> None:
            for partial, value in zip(self.runs.partials, self.runs.neutral(lanes), strict=True):
                for n in range(0, size, lanes or 1):
                    self.writer.store(value, partial, [p, c + n])

        self._sweep(tile)

    def _walk(self, p: Index, loops: list[int], ranges: dict[int, tuple[Index, Index]]) -> None:
        """Open all loops of the sum but the last; step the last by a few rows."""
        k, *rest = loops
        lower, upper = ranges.get(k) or super().bounds(self.sum, k)
        step = 1 if rest else self.rows

        def part(at: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self.here[k] = at, at + size
            if rest:
                self._walk(p, rest, ranges)
            else:
                self._add(p)
            return ()

        if not rest and self.columns in self._steps():  # one tile: its sums stay in registers
            self.here[k] = lower, upper
            self._add(p)
            return
        self.writer.sweep((lower, upper), [step, 1], (), part, NAMES[k % len(NAMES)])

    def _add(self, p: Index) -> None:
        """Add the current rows to the sums of run ``p``."""

        def tile(c: Index, size: int, lanes: int) -> None:
            places = [c + n for n in range(0, size, lanes or 1)]
            points = [
                Point((at, *self._inside(self.sum)), 0 if lanes else -1, lanes) for at in places
            ]
            state = [
                self.writer.load(partial, [p, at], lanes, "sum")
                for at in places
                for partial in self.runs.partials
            ]
            values = iter(self.run(self.sum, points, state))
            for at in places:
                for partial in self.runs.partials:
                    self.writer.store(next(values), partial, [p, at])

        self._sweep(tile)

    def _combined(self) -> None:
        """Combine the runs in order, beginning with the sums' initial values; write the totals."""
        op = self.sum

        def tile(c: Index, size: int, lanes: int) -> None:
            for n in range(0, size, lanes or 1):
                point = Point((c + n, *self._inside(op)), 0 if lanes else -1, lanes)
                starts = [self.start(op, k, point) for k in op.carried]
                totals = self.runs.combined(starts, [c + n], lanes)
                self._epilogue(replace(point, indices=point.indices[:1]), totals)

        self._sweep(tile)

    def _epilogue(self, point: Point, totals: Sequence[SSAValue]) -> None:
        """Write every op at ``point``, with ``totals`` as the results of the sum."""
        self.memory.open([point])
        outer = self.writer.location
        for op in self.plan.ops:
            if op is self.sum:
                self.writer.location = op.op.location
                here = replace(point, indices=(*point.indices, *self._inside(op)))
                self.finish(op, [here], totals)
            else:
                self.write_op(op, [point])
        self.writer.location = outer
