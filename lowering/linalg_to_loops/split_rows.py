"""Sums over rows, split into equal runs of rows, so that several threads can work on few columns.

Each run reads its rows sequentially, a few at a time along all columns, and accumulates in scratch.
The partial results are combined in order, then the ops after the sum read the totals. The number of
runs is an attribute of the kernel, so no result depends on the number of threads. With `prefetch`
each step prefetches the same columns of the next few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from stepwell.analysis.levels.writing import ASSUMED_ROWS
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.nest import NAMES, Nest
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.prefetch import prefetch_lines
from stepwell.lowering.linalg_to_loops.split_reduction import ELEMENTS_PER_RUN
from stepwell.lowering.linalg_to_loops.structured import Access, Structured, dims_of
from stepwell.lowering.linalg_to_loops.within import part
from stepwell.lowering.linalg_to_loops.writer import Index, Writer

Sweep = Callable[[Index, int, int], None]


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
        self.partials: list[SSAValue] = []

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
        writer, op, most = self.writer, self.sum, self.plan.schedule.split
        columns = self.extents[0][0].number
        self.memory.open([Point((None,))])
        starts = [self.start(op, k, Point((Index(), *self._inside(op)))) for k in op.carried]
        assert columns is not None
        self.columns = columns
        self.combiners = [self.combiner(op, k) for k in op.carried]
        self.kinds = [v.type for v in starts]
        self.partials = [
            writer.result(memref.AllocaOp.get(kind, 64, [most, max(columns, 1)]), "partial")
            for kind in self.kinds
        ]
        extents = self.extents[self.plan.ops.index(op)]
        self.cut = max(op.reduced, key=lambda k: extents[k].number or ASSUMED_ROWS)
        extent = extents[self.cut]
        runs = self._runs([extents[k] for k in op.reduced], most)
        per = runs * self.rows
        blocks = writer.divide(extent + per + -1, per.number or writer.value(per), arith.DivUIOp)
        length = blocks * self.rows

        def run(p: Index) -> None:
            lower = writer.minimum(self._product(p, length), extent)
            rows = part(writer, op, self.cut, (lower, writer.minimum(lower + length, extent)))
            self._begin(p)
            self._walk(p, list(op.reduced), {self.cut: rows})

        writer.parallel(runs, Index.of(1), run)
        self._combined(runs)

    def _inside(self, op: Structured) -> tuple[None, ...]:
        return (None,) * (len(op.reductions) - 1)

    def _runs(self, extents: Sequence[Index], most: int) -> Index:
        """Return the number of runs: fewer where the launch finds that there is little work."""
        if all(extent.number is not None for extent in extents):
            return Index.of(most)
        total = Index.of(self.columns)
        for extent in extents:
            total = self._product(total, extent)
        few = self.writer.divide(total, ELEMENTS_PER_RUN, arith.DivUIOp) + 1
        return self.writer.minimum(few, Index.of(most))

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
            for partial, combiner, kind in zip(
                self.partials, self.combiners, self.kinds, strict=True
            ):
                value = self.writer.splat(combiner.identity(kind), lanes)
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
                for partial in self.partials
            ]
            values = iter(self.run(self.sum, points, state))
            for at in places:
                for partial in self.partials:
                    self.writer.store(next(values), partial, [p, at])

        self._sweep(tile)

    def _combined(self, runs: Index) -> None:
        """Combine the runs in order, beginning with the sums' initial values; write the totals."""
        op = self.sum
        names = [op.name(k) for k in op.carried]

        def tile(c: Index, size: int, lanes: int) -> None:
            for n in range(0, size, lanes or 1):
                point = Point((c + n, *self._inside(op)), 0 if lanes else -1, lanes)
                starts = [self.start(op, k, point) for k in op.carried]

                def add(
                    r: Index, totals: Sequence[SSAValue], at: Index = c + n
                ) -> Sequence[SSAValue]:
                    return [
                        self.combine(j, total, self.writer.load(partial, [r, at], lanes))
                        for j, total, partial in zip(
                            self.combiners, totals, self.partials, strict=True
                        )
                    ]

                totals = self.writer.loop((Index(), runs), 1, starts, add, "r", names)
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
