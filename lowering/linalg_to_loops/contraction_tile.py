"""The register tiles of a contraction in steps.

A tile loads its sums, or starts them, adds one part and either stores them or, if the part is the
last, passes the registers to the epilogue. Rows beyond the last one repeat it; columns beyond the
last one are padding of packed panels: their results are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.contraction_levels import (
    Range,
    Ranges,
    contraction_levels,
)
from stepwell.lowering.linalg_to_loops.contraction_operands import Operands
from stepwell.lowering.linalg_to_loops.dots import without_bias
from stepwell.lowering.linalg_to_loops.double_buffering import DoubleBuffering
from stepwell.lowering.linalg_to_loops.epilogue import is_long
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.matrix_unit import MatrixUnit
from stepwell.lowering.linalg_to_loops.nest import write_ops
from stepwell.lowering.linalg_to_loops.packing import Packing
from stepwell.lowering.linalg_to_loops.partial_sums import PartialSums, row_number
from stepwell.lowering.linalg_to_loops.points import start
from stepwell.lowering.linalg_to_loops.prefetch import prefetch_of
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.sum_loops import Sum
from stepwell.lowering.linalg_to_loops.tails import steps
from stepwell.lowering.linalg_to_loops.writer import Index


class Tiles:
    """Writes the tiles of a plan whose sum is taken in steps."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.writer, self.plan = frame, frame.writer, frame.plan
        self.of = of = contraction_levels(frame.plan)
        self.sums = PartialSums(self.writer, of)
        levels = of.levels
        self.extent = frame.extents[of.sum][levels.depth]
        """The terms of the sum along the loop that is split."""
        steps = {n: levels.levels[n].step for n in levels.splits}
        whole = self.extent.number
        self.cut = next((n for n in steps if whole is None or steps[n] < whole), None)
        """The outermost level that splits the sum in several parts."""
        self.around: Ranges = {}
        """The ranges of the current part."""
        self.count = Index()
        """The terms of the sum in that part."""
        self.copying: Packing | None = None
        """The packing of the operand of the columns, while the innermost loop packs it."""
        self.operands = Operands(frame, of)
        others = [op for op in self.plan.ops if op is not of.sum]
        rows, columns = of.tile
        many = rows * columns // of.width
        self.unit: MatrixUnit | None = None
        if self.operands.for_matrix_unit:
            into = not others and self.cut is None and self._is_whole(of.column)
            self.unit = MatrixUnit(frame, self.operands, self.sums, into)
        self.long = self.unit is not None or is_long(others, many)
        """Whether the sums of a tile wait in scratch for a loop over the epilogue."""
        self.prefetch = prefetch_of(self.operands)
        columns_operand = self.operands.columns if self.operands.double_buffered else None
        self.buffers = (
            DoubleBuffering(frame.writer, of, columns_operand) if columns_operand else None
        )
        frame.loads = self._loads

    def _loads(self, op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        """Return the operands that a step of the innermost loop packs."""
        if self.copying is None or op is not self.operands.micro:
            return {}
        return self.copying.copied(points)

    def begin_block(self, at: Ranges) -> None:
        """Allocate the scratch of a block, and pack the operands that all of it shares."""
        self.operands.allocate()
        self.frame.extents[self.operands.micro] = self.frame.extents[self.of.sum]
        self.operands.pack(-1, at)
        if self.buffers is not None:
            self.buffers.begin_block(at)
        known = self._is_whole(self.of.row) and self._is_whole(self.of.column)
        if self.cut is not None:
            self.sums.allocate(self.of.sizes(self.cut, self.frame.ends))
        elif (self.long or not known) and not (self.unit and self.unit.into_result):
            self.sums.allocate([self.of.tile[0], self.of.tile[1]])

    def begin_part(self, at: Ranges, start: Index, count: Index) -> None:
        """Begin a part of the sum that no further level splits."""
        columns = self.operands.columns
        steps = count if columns is None else columns.packing.units(count)
        self.frame.ranges[self.operands.micro, self.of.levels.depth] = Index(), steps
        self.steps, self.count, self.around = steps, count, at
        self.operands.since = start
        if self.buffers is not None:
            self.buffers.begin_part(start)
        if self.prefetch is not None:
            self.prefetch.begin_part(at, start)

    # one tile

    def tile(self, at: Ranges) -> None:
        """Write the tile at ``at``."""
        if self.unit is not None:
            self.unit.tile(at, self.operands.since, self.steps, self.cut is not None)
            if not self.unit.into_result:
                self._if_last(lambda: self.finish_tile(at))
            return
        sums = (None,) * len(self.of.sum.reduced)
        if self.buffers is not None:
            self.buffers.begin_tile(at)
        self.operands.begin_tile(at[self.of.row].start, at[self.of.column].start)
        points = self._grid(at, self._rows_of(at[self.of.row]), sums)
        if self.cut is None:
            state = [start(self.frame, self.of.sum, 0, point) for point in points]
        else:
            state = self.sums.load(at)
        if self.prefetch is not None:
            self.prefetch.begin_tile(at, lambda: self._row_number(at))
        done = self._run_packing(at, points, state)
        if self.operands.in_place and self.cut is not None:
            self.sums.store(at, done)
        else:
            self._if_last(lambda: self._epilogue(at, done), lambda: self.sums.store(at, done))

    def _grid(
        self, at: Ranges, rows: Sequence[Index], further: Sequence[Index | None] = ()
    ) -> list[Point]:
        """Return the vectors of a tile in these rows, row by row; ``further`` are more indices."""
        column, lanes = at[self.of.column], self.of.lanes_in(at)
        batch = [at[k].start for k in range(self.of.row)]
        axis = self.of.column if lanes else -1
        return [
            Point((*batch, row, column.start + c, *further), axis, lanes, slot)
            for slot, (row, c) in enumerate(product(rows, range(0, column.size, lanes or 1)))
        ]

    def _rows_of(self, rows: Range) -> list[Index]:
        """Return the rows of a tile; those that are read in place are clamped to the last one."""
        found = [rows.start + r for r in range(rows.size)]
        if self._is_whole(self.of.row) or self.operands.copies_rows:
            return found
        last = self.frame.ends[self.of.row] + -1
        return [found[0], *(self.writer.minimum(row, last) for row in found[1:])]

    def _is_whole(self, k: int) -> bool:
        """Whether every tile is known to be inside, along rows or columns."""
        extent = self.frame.ends[k].number
        padded = k == self.of.column and not self.operands.in_place
        return extent is not None and not (padded and extent % self.of.tile[1])

    def _row_number(self, at: Ranges) -> Index:
        """Return the number of a tile's first row within the current part."""
        sizes = self.of.sizes(self.of.levels.splits[-1], self.frame.ends)
        return row_number(at, self.around, sizes[:-1])

    def _run_packing(
        self, at: Ranges, points: list[Point], state: list[SSAValue]
    ) -> list[SSAValue]:
        """Run the innermost loop; in the first tile of a block it may pack the operand."""
        rows, extent = self.of.tile[0], self.frame.ends[self.of.row].number
        block = self.of.sizes(self.of.levels.splits[-1], self.frame.ends)[self.of.row]
        whole = extent is None or not 0 < extent % block < rows
        first = self.operands.packed_by_tile
        if first is None or (at[self.of.row].size < rows and whole):
            return self._run(points, state)

        def packing() -> Sequence[SSAValue]:
            self.copying = first
            done = self._run(points, state)
            self.copying = None
            return done

        begins = self.writer.compare("eq", self._row_number(at), Index())
        return self.writer.either(begins, packing, lambda: self._run(points, state))

    def _run(self, points: list[Point], state: list[SSAValue]) -> list[SSAValue]:
        """Run the innermost loop from ``state``."""
        operands, ahead = self.operands, self.prefetch
        op = operands.micro
        if operands.offsets is not None:
            begin = operands.columns.begin[0] if operands.columns is not None else Index()
            at = self.of.column, begin
            state = without_bias(self.writer, operands.offsets, points, at, state)
        if self.buffers is None:
            several = (ahead.every, ahead.step) if ahead is not None else None
            return Sum(self.frame, op, several).run(points, state)

        def run(some: tuple[Index, Index], sums: list[SSAValue]) -> list[SSAValue]:
            with self.frame.opened(op, self.of.levels.depth, some):
                return Sum(self.frame, op).run(points, sums)

        return self.buffers.run(self.steps, state, run)

    # epilogues

    def _if_last(self, then: Callable[[], None], no: Callable[[], None] = lambda: None) -> None:
        """Write ``then`` for the last part of the sum, ``no`` for the others."""
        end = self.operands.since + self.count
        last = None if self.cut is None else self.writer.compare("sge", end, self.extent)
        self.writer.branch(last, then, no)

    def _epilogue(self, at: Ranges, done: list[SSAValue]) -> None:
        """Write the epilogue, on registers where the tile is inside."""
        rows, columns = at[self.of.row], at[self.of.column]

        def inside() -> None:
            points = self._grid(at, [rows.start + r for r in range(rows.size)])
            write_ops(self.frame, points, {self.of.sum: done})

        def partial() -> None:
            self.sums.store(at, done)
            self.finish_tile(at)

        if self.long:
            partial()
            return
        tests: list[SSAValue] = []
        if not self._is_whole(self.of.row):
            tests.append(self.writer.compare("sle", rows.start + rows.size, rows.end))
        if not self._is_whole(self.of.column):
            last = columns.start + columns.size
            tests.append(self.writer.compare("sle", last, self.frame.ends[self.of.column]))
        self.writer.branch(self.writer.every(tests), inside, partial)

    def finish_tile(self, at: Ranges) -> None:
        """Write the epilogue of a tile vector by vector from the sums in scratch."""
        rows, columns, width = at[self.of.row], at[self.of.column], self.of.width
        last, end = rows.start + rows.size, columns.start + columns.size
        if not self._is_whole(self.of.row):
            last = self.writer.minimum(last, rows.end)
        if not self._is_whole(self.of.column) and not self.operands.in_place:
            end = self.writer.minimum(end, self.frame.ends[self.of.column])

        def row(r: Index) -> None:
            def column(c: Index, size: int) -> None:
                here = {**at, self.of.column: Range(c, end, size)}
                place = self.sums.place(at, r - rows.start, c - columns.start)
                lanes = self.of.lanes_in(here)
                value = self.writer.load(self.sums.scratch, place, lanes, "sum")
                write_ops(self.frame, self._grid(here, [r]), {self.of.sum: [value]})

            exact = self._is_whole(self.of.column) and columns.size % width == 0
            sizes = [width] if exact else steps(width, 1)
            self.writer.cover((columns.start, end), sizes, column, "j")

        self.writer.each((rows.start, last), 1, row, "i")
