"""The register tiles of a blocked contraction: down the rows of a block, one panel wide.

The tail of rows is a smaller tile where their number is known. Otherwise, and for columns, tiles at
the edge are computed whole, from packed zeros and repetitions of the last row, and only the part
inside is stored. Where the sum comes in parts, the partial sums of a tile wait in scratch; the
epilogue reads the registers of the last part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.structured import in_panels
from stepwell.lowering.linalg_to_loops.blocks import contraction_of, roles_of
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.dots import (
    DotPacking,
    dot_body,
    is_for_matrix_unit,
    without_bias,
)
from stepwell.lowering.linalg_to_loops.epilogue import is_long
from stepwell.lowering.linalg_to_loops.f32_accumulation import accumulate_in_f32, joined
from stepwell.lowering.linalg_to_loops.nest import Nest
from stepwell.lowering.linalg_to_loops.packing import Packing
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.prefetch import PackPrefetch
from stepwell.lowering.linalg_to_loops.structured import Access, Structured, dims_of
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, Writer, element_of


@dataclass(frozen=True)
class Panel:
    """One walk down the rows of a block: a panel and a part of the sum."""

    batch: list[Index]
    """Indices of the loops that no block splits."""
    ranges: dict[int, tuple[Index, Index]]
    """The block: the range of each loop."""
    j: Index
    """The first column."""
    k: Index
    """The beginning of the part of the sum."""
    extent: Index | None
    """The end of the whole sum, if it comes in parts."""


class Tiles(Nest):
    """Writes the tiles of a plan whose sum is taken in parts."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        super().__init__(writer, plan)
        self.sum = contraction_of(plan)
        shared = plan.schedule.shared
        *self.sizes, self.deep = plan.schedule.blocks
        self.first, self.row, self.column = shared - len(self.sizes), shared - 2, shared - 1
        self.depth = self.sum.reduced[-1]
        tile_rows, vectors = plan.schedule.tile
        self.rows, self.columns = tile_rows, vectors * self.sum.width
        self.part: tuple[Index, Index] = (Index(), Index())
        """The current part of the sum, counted from 0, in steps of the innermost loop."""
        self.count = Index()
        """The terms of the sum in that part."""
        self.offsets: SSAValue | None = None
        """Buffer of per-column corrections for the bias of 128 that is added to rows."""
        row_operand, packed = roles_of(self.sum, self.first, self.column)
        self.along = self.column in dims_of(self.sum.inputs[row_operand].exprs)
        """Whether the operand read in place varies with the columns too, and ends where they do."""
        self.product = accumulate_in_f32(self.sum) if plan.schedule.accumulate_in_f32 else self.sum
        """The contraction as it is in registers."""
        self.panels = in_panels(self.sum.inputs[packed].exprs, self.column)
        self.packing: Packing | None = None
        self.row_packing: Packing | None = None
        self.words: DotPacking | None = None
        """The packing of the column operand as words."""
        if plan.schedule.dots:
            self._pack_words(row_operand, packed)
        elif self.panels is None or self.panels[1] != self.columns:
            self.packing = Packing(
                self, self.product, packed, self.column, self.sum.reduced, self.columns
            )
            self.product = replace(self.product, body=self.packing.body_after_widening())
        if plan.schedule.pack_rows and self.row_packing is None:
            self.row_packing = self._pack_rows(row_operand)
            self.product = replace(self.product, body=self.row_packing.body_after_widening())
        self.micro = self._micro(row_operand, packed)
        self.prefetching: PackPrefetch | None = None
        if plan.schedule.prefetch and self.packing is not None:
            self.prefetching = PackPrefetch(self.packing, self.deep)
        self.copying = False
        """Whether the innermost loop packs its operand."""

    @cached_property
    def long(self) -> bool:
        """Whether the sums of a tile wait in scratch for a loop over the epilogue."""
        after = [op for op in self.plan.ops if op is not self.sum]
        return is_long(after, self.rows * self.columns // self.sum.width)

    @property
    def packs_first(self) -> bool:
        """Whether the first tile of a block packs while it computes."""
        packing = self.packing if self.plan.schedule.pack_first else None
        return packing is not None and packing.in_rows and not self.along

    def _micro(self, row_operand: int, packed: int) -> Structured:
        """Return the contraction as the innermost loop computes it.

        Its column counts from the panel's first, its index of the sum from the part's first.
        Additional loops, which are never written, stand for the offset of the part, the number of
        the panel, and the panel's first column.
        """
        loops = len(self.sum.reductions)
        dims: list[AffineExpr] = [AffineDimExpr(k) for k in range(loops)]
        dims[self.depth] = AffineDimExpr(self.depth) + AffineDimExpr(loops)
        dims[self.column] = AffineDimExpr(self.column) + AffineDimExpr(loops + 2)
        inputs = list(self.product.inputs)

        def moved(operand: int) -> list[AffineExpr]:
            return [e.replace_dims_and_symbols(dims, ()) for e in inputs[operand].exprs]

        inputs[row_operand] = Access(inputs[row_operand].buffer, tuple(moved(row_operand)))
        if self.packing is not None:
            # the packed operand's access is known once its scratch is allocated
            return replace(self.product, inputs=tuple(inputs))
        assert self.panels is not None
        exprs = moved(packed)
        exprs[self.panels[0]], exprs[-1] = AffineDimExpr(loops + 1), AffineDimExpr(self.column)
        inputs[packed] = Access(inputs[packed].buffer, tuple(exprs))
        return replace(self.product, inputs=tuple(inputs))

    def _pack_words(self, row_operand: int, packed: int) -> None:
        """Pack both operands as words."""
        self.product = dot_body(self.sum, self.plan.schedule, row_operand)
        sums = self.sum.reduced
        self.packing = self.words = DotPacking(
            self, self.sum, packed, self.column, sums, self.columns
        )
        self.row_packing = DotPacking(
            self,
            self.sum,
            row_operand,
            self.row,
            sums,
            self.sizes[-2],
            rows=True,
            biased=self.plan.schedule.bias_to_unsigned,
            by_rows=is_for_matrix_unit(self.plan),
        )

    def _pack_rows(self, row_operand: int) -> Packing:
        """Return the packing of the rows of a block; rows take the place of columns."""
        width, rows = self.sum.width, self.sizes[-2]
        columns = -(-rows // width) * width
        packing = Packing(self, self.product, row_operand, self.row, self.sum.reduced, columns)
        packing.even = columns == rows
        return packing

    def bounds(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of a loop; within the sum, the current part."""
        if op is self.micro:
            return self.part if k == self.depth else super().bounds(self.sum, k)
        return super().bounds(op, k)

    def cached_loads(self, op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        """Return the operands that a step of the innermost loop packs, and prefetch."""
        if op is not self.micro:
            return {}
        if self.prefetching is not None:
            self.prefetching.step(points[0])
        return self.packing.copied(points) if self.packing is not None and self.copying else {}

    # tiles

    def _down(self, at: Panel, outer: list[Index]) -> None:
        """Write the loop of tiles down the rows, inside the loops before the rows."""
        k = self.first + len(outer)
        if k < self.row:

            def line(o: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                self._down(at, [*outer, o])
                return ()

            self.writer.loop(at.ranges[k], 1, (), line, NAMES[k % 6])
            return

        if self.row_packing is not None and outer:
            rows = at.ranges[self.row][0]
            self.row_packing.write([*at.batch, *outer], rows, at.k, self.count)

        def tile(i: Index, rows: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._tile(at, [*outer, i], rows)
            return ()

        extent = self.extents[0][self.row].number
        left = [extent % self.rows] if extent is not None and extent % self.rows else []
        if left:
            self.writer.sweep(at.ranges[k], [self.rows, *left], (), tile, "i")
        else:
            self.writer.loop(at.ranges[k], self.rows, (), lambda i, _: tile(i, self.rows, ()), "i")

    def _tile(self, at: Panel, start: list[Index], rows: int) -> None:
        """Write the tile of ``rows`` rows that begins at ``start``."""
        end = self.extents[0][self.column]
        if self.along and not self._is_whole(self.column):
            self._when_all(
                [(at.j + self.columns, end)],
                lambda: self._whole_tile(at, start, rows),
                lambda: self._partial_panel(at, start, rows, end),
            )
        else:
            self._whole_tile(at, start, rows)

    def _point(self, at: Panel, row: list[Index], column: Index, lanes: int) -> Point:
        """Return a point of the innermost loop; ``column`` counts from the panel's first."""
        sums = (None,) * len(self.sum.reduced)
        number = self.writer.divide(at.j, self.columns, arith.DivUIOp) if self.panels else None
        indices = (*at.batch, *row, column, *sums, at.k, number, at.j)
        return Point(indices, self.column if lanes else -1, lanes)

    def _partial_panel(self, at: Panel, start: list[Index], rows: int, end: Index) -> None:
        """Write a tile of a partial panel: one vector, or one column, at a time."""
        *outer, i = start

        def row(r: Index, count: int) -> None:
            def piece(c: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                lanes = size if size > 1 else 0
                lines = [[*outer, r + n] for n in range(count)]
                points = [self._point(at, line, c - at.j, lanes) for line in lines]
                state = [self.start(self.sum, 0, point) for point in points]
                done = self._run(points, state)
                axis = self.column if lanes else -1
                here = [Point((*at.batch, *line, c), axis, lanes) for line in lines]
                self._finish([replace(p, slot=n) for n, p in enumerate(here)], done)
                return ()

            self.writer.sweep((at.j, end), _falling(self.sum.width), (), piece, "j")

        if self._is_whole(self.row):
            row(i, rows)
            return
        last = self.writer.minimum(i + rows, at.ranges[self.row][1])

        def one(r: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            row(r, 1)
            return ()

        self.writer.loop((i, last), 1, (), one, "i")

    def _whole_tile(self, at: Panel, start: list[Index], rows: int) -> None:
        """Write a tile of all the columns of a panel."""
        *outer, i = start
        points = [
            self._point(at, [*outer, row], Index.of(c), self.sum.width)
            for row in self._rows_of(at, i, rows)
            for c in range(0, self.columns, self.sum.width)
        ]
        scratch_row = Index() if at.extent is None else self._scratch_row(at, start)
        if at.extent is None:
            state = [self.start(self.sum, 0, point) for point in points]
        else:
            state = [
                self.writer.load(self.sums, self._place(scratch_row, n), point.width, "sum")
                for n, point in enumerate(points)
            ]
        if self.prefetching is not None:
            turn = self.writer.divide(self._scratch_row(at, start), self.rows, arith.DivUIOp)
            extent = self.extents[self.plan.ops.index(self.sum)][self.depth]
            self.prefetching.begin(at.batch, at.j, at.k, extent, turn)
        done = self._run_packing(at, start, points, state)
        if at.extent is None:
            self._epilogue(at, start, rows, done, scratch_row)
            return
        self._branch(
            (at.k + self.count, at.extent),
            lambda: self._epilogue(at, start, rows, done, scratch_row),
            lambda: self._store_sums(done, scratch_row),
        )

    def _run_packing(
        self, at: Panel, start: list[Index], points: list[Point], state: list[SSAValue]
    ) -> list[SSAValue]:
        """Run the innermost loop; in the first tile of a block it may pack the operand."""
        rows = len(points) * self.sum.width // self.columns
        extent = self.extents[0][self.row].number
        whole = extent is None or not 0 < extent % self.sizes[-2] < self.rows
        if not self.packs_first or (rows < self.rows and whole):
            return self._run(points, state)

        def packing() -> Sequence[SSAValue]:
            self.copying = True
            done = self._run(points, state)
            self.copying = False
            return done

        first = self.writer.compare("eq", self._scratch_row(at, start), Index())
        return self.writer.either(first, packing, lambda: self._run(points, state))

    def _run(self, points: list[Point], state: list[SSAValue]) -> list[SSAValue]:
        """Run the innermost loop from ``state``; sums of f32 begin at zero and are added to it."""
        if self.offsets is not None:
            state = without_bias(self.writer, self.offsets, points, self.column, state)
        if not self.plan.schedule.accumulate_in_f32:
            return self.run(self.micro, points, state)
        zero = self.writer.splat(FloatAttr(0.0, f32), points[0].width)
        return joined(self.writer, state, self.run(self.micro, points, [zero] * len(state)))

    def _rows_of(self, at: Panel, i: Index, count: int) -> list[Index]:
        """Return the rows of a tile as the innermost loop indexes them."""
        if self.row_packing is None:
            return self._clamped(i, count)
        return [i - at.ranges[self.row][0] + r for r in range(count)]

    def _clamped(self, i: Index, count: int) -> list[Index]:
        """Return the rows of a tile, clamped to the last row."""
        extent = self.extents[0][self.row]
        rows = [i + r for r in range(count)]
        if self._is_whole(self.row):
            return rows
        return [i, *(self.writer.minimum(row, extent + -1) for row in rows[1:])]

    def _is_whole(self, k: int) -> bool:
        """Whether every tile is known to be inside, along rows or columns."""
        extent = self.extents[0][k].number
        return extent is not None and (k == self.row or extent % self.columns == 0)

    def _epilogue(
        self, at: Panel, start: list[Index], rows: int, done: list[SSAValue], scratch_row: Index
    ) -> None:
        """Write the epilogue, on registers where the tile is inside."""
        width = self.sum.width
        *outer, i = start

        def inside() -> None:
            points = [
                Point((*at.batch, *outer, i + r, at.j + c), self.column, width)
                for r in range(rows)
                for c in range(0, self.columns, width)
            ]
            self._finish([replace(p, slot=n) for n, p in enumerate(points)], done)

        def edge() -> None:
            self._store_sums(done, scratch_row)
            self._epilogue_of_edge(at, start, rows, scratch_row)

        pairs: list[tuple[Index, Index]] = []
        if not self._is_whole(self.row):
            pairs.append((i + rows, at.ranges[self.row][1]))
        if not self.along and not self._is_whole(self.column):
            pairs.append((at.j + self.columns, self.extents[0][self.column]))
        if self.long:
            edge()
        else:
            self._when_all(pairs, inside, edge)

    def _when_all(
        self, pairs: list[tuple[Index, Index]], then: Callable[[], None], no: Callable[[], None]
    ) -> None:
        """Write ``then`` for where the first of each pair is at most the second, else ``no``."""
        if not pairs:
            then()
            return
        self._branch_on([self.writer.compare("sle", *pair) for pair in pairs], then, no)

    def _epilogue_of_edge(
        self, at: Panel, start: list[Index], rows: int, scratch_row: Index
    ) -> None:
        """Write the epilogue vector by vector from the sums in scratch."""
        *outer, i = start
        last = i + rows
        if not self._is_whole(self.row):
            last = self.writer.minimum(last, at.ranges[self.row][1])
        end, width = at.j + self.columns, self.sum.width
        if not self._is_whole(self.column):
            end = self.writer.minimum(end, self.extents[0][self.column])

        def row(r: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def column(c: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                lanes = width if size > 1 or width == 1 else 0
                lanes = 0 if width == 1 else lanes
                value = self.writer.load(self.sums, [scratch_row + (r - i), c - at.j], lanes, "sum")
                point = Point((*at.batch, *outer, r, c), self.column if lanes else -1, lanes)
                self._finish([point], [value])
                return ()

            sizes = [width] if self._is_whole(self.column) else _falling(width)
            return self.writer.sweep((at.j, end), sizes, (), column, "j")

        self.writer.loop((i, last), 1, (), row, "i")

    def _finish(self, points: list[Point], totals: Sequence[SSAValue]) -> None:
        """Write every op at ``points``, with ``totals`` as the results of the contraction."""
        self.memory.open(points)
        outer = self.writer.location
        for op in self.plan.ops:
            if op is self.sum:
                self.writer.location = op.op.location
                self.finish(op, points, totals)
            else:
                self.write_op(op, points)
        self.writer.location = outer

    # partial sums in scratch

    def _allocate_sums(self, rows: int) -> None:
        """Allocate the scratch for the sums of ``rows`` rows of a panel."""
        element = element_of(self.sum.outputs[0].buffer)
        sums = memref.AllocaOp.get(element, 64, [rows, self.columns])
        self.sums = self.writer.result(sums, "sums")

    def _fill_sums(self) -> None:
        """Initialise the sums of a panel."""
        start = self.writer.broadcast(self.sum.initial[0], self.sum.width)

        def row(i: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for c in range(0, self.columns, self.sum.width):
                self.writer.store(start, self.sums, [i, Index.of(c)])
            return ()

        self.writer.loop((Index(), Index.of(prod(self.sizes[:-1]))), 1, (), row, "i")

    def _scratch_row(self, at: Panel, start: list[Index]) -> Index:
        """Return the scratch row of the sums of the row at ``start``."""
        found = Index()
        for k, index in enumerate(start, self.first):
            found = found * self._block(k) + (index - at.ranges[k][0])
        return found

    def _place(self, row: Index, vector: int) -> list[Index]:
        """Return the scratch indices of the n-th vector of a tile whose first row is at ``row``."""
        down, column = divmod(vector * self.sum.width, self.columns)
        return [row + down, Index.of(column)]

    def _store_sums(self, done: Sequence[SSAValue], row: Index) -> None:
        for n, value in enumerate(done):
            self.writer.store(value, self.sums, self._place(row, n))

    # branches

    def _branch(
        self, equal: tuple[Index, Index], then: Callable[[], None], no: Callable[[], None]
    ) -> None:
        self._branch_on([self.writer.compare("sge", *equal)], then, no)

    def _branch_on(
        self, all_of: list[SSAValue], then: Callable[[], None], no: Callable[[], None]
    ) -> None:
        condition = all_of[0]
        for other in all_of[1:]:
            condition = self.writer.binary(arith.AndIOp, condition, other)
        self.writer.branch(condition, then, no)


def _falling(width: int) -> list[int]:
    return [width, 1] if width > 1 else [1]
