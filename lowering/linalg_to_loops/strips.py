"""Skinny contractions: few rows and one large operand, which is read in place and only once.

The operand that varies with the columns is read a few of its rows at a time along a strip of
columns, so that memory serves few long runs instead of many short ones; the sums of the strip wait
in scratch. The matching slice of the row operand is packed and widened first, because every tile of
the strip reads it. Each strip is one parallel iteration. The epilogue runs once the sums are
complete. With `prefetch` each step prefetches the same place of the next part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.lowering.linalg_to_loops.blocks import contraction_of, roles_of
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.nest import Nest
from stepwell.lowering.linalg_to_loops.packing import Packing
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.prefetch import prefetch_lines, select
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, Writer, element_of


class Strips(Nest):
    """Writes the loops of a plan that reads an operand in column strips."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        super().__init__(writer, plan)
        self.sum = contraction_of(plan)
        self.row, self.column = plan.schedule.shared - 2, plan.schedule.shared - 1
        self.depth = self.sum.reduced[-1]
        self.columns, self.deep = plan.schedule.strip
        self.tile_rows, self.vectors = plan.schedule.tile
        self.part: tuple[Index, Index] = (Index(), Index())
        """The current part of the sum, counted from 0."""
        self.since = Index()
        """The index of the sum at which the part begins."""
        self.following = Index(), Index()
        """The beginning of the next part: its index of the sum, and its distance in columns."""
        self.batch: list[Index] = []
        self.packing: Packing | None = None
        self.micro = self.sum

    def prepare(self) -> None:
        """Compute the extents."""
        super().prepare()
        rows = self.extents[0][self.row].number
        assert rows is not None
        self.rows = rows
        self.micro = self._micro()

    def _micro(self) -> Structured:
        """Return the contraction as the innermost loop computes it.

        Its index of the sum counts from the part's first; an additional loop, which is never
        written, stands for the offset of the part.
        """
        loops = len(self.sum.reductions)
        dims: list[AffineExpr] = [AffineDimExpr(k) for k in range(loops)]
        dims[self.depth] = AffineDimExpr(self.depth) + AffineDimExpr(loops)
        micro = replace(
            self.sum,
            inputs=tuple(
                Access(a.buffer, tuple(e.replace_dims_and_symbols(dims, ()) for e in a.exprs))
                for a in self.sum.inputs
            ),
        )
        if self.rows > 1:
            by_rows, _ = roles_of(self.sum, self.row, self.column)
            single = replace(self.sum, width=1, interleave=1)
            self.packing = Packing(self, single, by_rows, self.row, self.sum.reduced, self.rows)
            micro = replace(micro, body=self.packing.body_after_widening())
        return micro

    def bounds(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of a loop; within the sum, the current part."""
        return self.part if op is self.micro and k == self.depth else super().bounds(op, k)

    def cached_loads(self, op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        """Prefetch the lines that the next part reads at the same place."""
        if op is self.micro and self.plan.schedule.prefetch and points[0].width > 1:
            _, by_columns = roles_of(self.sum, self.row, self.column)
            indices = [index or Index() for index in points[0].indices]
            since, further = self.following
            first, last = (points[n].indices[self.column] or Index() for n in (0, -1))
            indices[-1], indices[self.column] = since, first + further
            count = ((last - first).number or 0) + points[0].width
            prefetch_lines(self.writer, self.micro.inputs[by_columns], indices, self.column, count)
        return super().cached_loads(op, points)

    def _block(self, k: int) -> int:
        return {self.row: max(self.rows, 1), self.column: self.columns}.get(k, 1)

    def _shared(
        self, k: int, ranges: dict[int, tuple[Index, Index]], at: list[tuple[Index, int]]
    ) -> None:
        if k < self.row:
            super()._shared(k, ranges, at)
        elif k == self.row:
            self._shared(k + 1, ranges, at)
        elif k > self.column:
            self.batch = [start for start, _ in at]
            self._strip(ranges[self.column])
        elif k in ranges:
            self._shared(k + 1, ranges, at)
        else:

            def body(start: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                upper = self.writer.minimum(start + self.columns, self.extents[0][k])
                self._shared(k + 1, {**ranges, k: (start, upper)}, at)
                return ()

            self.writer.loop((Index(), self.extents[0][k]), self.columns, (), body, "j")

    def _strip(self, columns: tuple[Index, Index]) -> None:
        """Write one strip: initialise its sums, add part by part, write the epilogue."""
        element = element_of(self.sum.outputs[0].buffer)
        sums = memref.AllocaOp.get(element, 64, [max(self.rows, 1) * self.columns])
        self.sums = self.writer.result(sums, "sums")
        if self.packing is not None:
            self.packing.allocate(self.deep)
            inputs = list(self.micro.inputs)
            inputs[self.packing.operand] = self.packing.access
            self.micro.inputs = tuple(inputs)
        self._begin()
        extent = self.extents[self.plan.ops.index(self.sum)][self.depth]
        whole = self.writer.last_whole(Index(), extent, self.deep)

        def part(k: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._part(columns, k, Index.of(self.deep))
            return ()

        self.writer.loop((Index(), whole), self.deep, (), part, "k")
        if (extent - whole).number != 0:
            self._part(columns, whole, extent - whole)
        self._epilogue(columns)

    def _part(self, columns: tuple[Index, Index], start: Index, count: Index) -> None:
        """Write the code that adds ``count`` terms from ``start`` on to the sums of the strip."""
        self.since, self.part = start, (Index(), count)
        if self.plan.schedule.prefetch:
            extent = self.extents[self.plan.ops.index(self.sum)][self.depth]
            after, zero = start + self.deep, Index()
            since = select(self.writer, after, extent, after, zero)
            further = select(self.writer, after, extent, zero, Index.of(self.columns))
            self.following = since, further
        if self.packing is not None:
            self.packing.write_few(self.batch, start, count)
        self._walk_columns(columns)

    def _begin(self) -> None:
        width = self.sum.width
        start = self.writer.broadcast(self.sum.initial[0], width if width > 1 else 0)

        def begin(at: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            value = start if size == width else first
            self.writer.store(value, self.sums, [at])
            return ()

        first = self.sum.initial[0]
        count = Index.of(self.rows * self.columns)
        self.writer.sweep((Index(), count), [width, 1] if width > 1 else [1], (), begin, "j")

    def _place(self, row: Index, column: Index, lanes: int) -> list[Index]:
        """Return the place of a sum in scratch; columns count from the strip's first.

        The sums of a tile are contiguous: rows at a power-of-two distance would evict each other
        from the L1 cache.
        """
        return [column * self.rows + row * max(lanes, 1)]

    def _walk_columns(self, columns: tuple[Index, Index]) -> None:
        """Write the walk along the strip that adds one part to its sums."""
        width = self.sum.width
        left = [self.rows % self.tile_rows] if self.rows % self.tile_rows else []

        def tiles(j: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def tile(i: Index, rows: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                self._tile(i, rows, j, j - columns[0], size)
                return ()

            bounds = Index(), Index.of(self.rows)
            return self.writer.sweep(bounds, [self.tile_rows, *left], (), tile, "i")

        steps = list(dict.fromkeys([width * self.vectors, width, 1]))
        self.writer.sweep(columns, steps, (), tiles, NAMES[self.column % 6])

    def _tile(self, i: Index, rows: int, j: Index, at: Index, size: int) -> None:
        """Add a part to the sums of ``size`` columns from ``j``, at ``at`` in scratch."""
        width = self.sum.width if size >= self.sum.width > 1 else 0
        columns = range(0, size, width or 1)
        axis = self.column if width else -1
        points = [
            Point((*self.batch, i + r, j + c, None, self.since), axis, width)
            for r in range(rows)
            for c in columns
        ]
        places = [self._place(i + r, at + c, width) for r in range(rows) for c in columns]
        state = [self.writer.load(self.sums, place, width, "sum") for place in places]
        for place, value in zip(places, self.run(self.micro, points, state), strict=True):
            self.writer.store(value, self.sums, place)

    def _epilogue(self, columns: tuple[Index, Index]) -> None:
        """Write the epilogue, which loads the sums from scratch."""
        width = self.sum.width

        def row(i: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def column(j: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                lanes = width if size >= width > 1 else 0
                place = self._place(i, j - columns[0], lanes)
                value = self.writer.load(self.sums, place, lanes, "sum")
                point = Point((*self.batch, i, j), self.column if lanes else -1, lanes)
                self._finish(replace(point, slot=0), value)
                return ()

            return self.writer.sweep(columns, [width, 1] if width > 1 else [1], (), column, "j")

        self.writer.loop((Index(), Index.of(self.rows)), 1, (), row, "i")

    def _finish(self, point: Point, total: SSAValue) -> None:
        """Write every op at ``point``, with ``total`` as the result of the contraction."""
        self.memory.open([point])
        outer = self.writer.location
        for op in self.plan.ops:
            if op is self.sum:
                self.writer.location = op.op.location
                self.finish(op, [point], [total])
            else:
                self.write_op(op, [point])
        self.writer.location = outer
