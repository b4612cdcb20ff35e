"""Pack one operand of a blocked contraction, panel by panel, in the order of its use.

A panel is ``depth`` by ``columns``, row-major, with zero columns beyond the operand's end. Where
the sum has several loops, a panel has one such slice for each iteration of the loops before the
last. Filters that store the window after the features are read in runs over all of these loops
(`runs`). Casts with which the contraction's body widens an element are done while packing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
)
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.structured import in_panels
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.plan import Buffer
from stepwell.lowering.linalg_to_loops.register_transpose import transpose_block
from stepwell.lowering.linalg_to_loops.runs import Run, run_of
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.widening import Widening
from stepwell.lowering.linalg_to_loops.writer import Index


class Packing:
    """Writes the packing of one operand."""

    def __init__(
        self,
        frame: Frame,
        op: Structured,
        operand: int,
        column: int,
        sums: Sequence[int],
        columns: int,
    ) -> None:
        self.frame, self.op, self.operand = frame, op, operand
        self.column, self.columns = column, columns
        *self.sums, self.depth = sums
        self.width = op.width
        self.source = op.inputs[operand]
        self.widening = Widening(op, operand)
        self.even = True
        """Whether a panel begins where the previous one ends."""
        self.base = Index()
        """The first row of the scratch that a part is packed into."""
        self.outer: list[Index] = []
        """Indices of the loops of the sum before the last."""
        self.run = self._run()
        """The run of memory that each column is, where it is not contiguous along the last loop."""

    def _run(self) -> Run | None:
        loops = self.column, self.depth
        if self.width == 1 or self.width in (lanes_at(self.source, k, self.width) for k in loops):
            return None
        return run_of(self.source, self.depth, self.sums)

    def allocate(self, depth: int) -> None:
        """Allocate the scratch and set ``access`` to the innermost loop's read of it."""
        buffers, writer = self.frame.plan.buffers, self.frame.writer
        outer = [max(size_of(self.op, k), 1) for k in self.sums]
        sums: list[AffineExpr] = [AffineDimExpr(k) for k in self.sums]
        if self.run is not None:
            outer, sums = [self.run.size], [self.run.place]
            self.source = self.run.flat(writer, self.op.inputs[self.operand])
            buffers[self.source.buffer] = Buffer()
        op = memref.AllocaOp.get(self.widening.element, 64, [*outer, max(depth, 1), self.columns])
        self.scratch = writer.result(op, "packed")
        buffers[self.scratch] = Buffer()
        loops = AffineDimExpr(self.depth), AffineDimExpr(self.column)
        self.access = Access(self.scratch, (*sums, *loops))

    def write(self, batch: list[Index], j: Index, k: Index, count: Index) -> None:
        """Pack ``count`` iterations of the sum from ``k`` for the panel at ``j``."""
        self.begin(batch, j, k, count)
        self._around([])

    def begin(self, batch: list[Index], j: Index, k: Index, count: Index) -> None:
        """Set the part that is packed next."""
        self.batch, self.j, self.k, self.count = batch, j, k, count
        if self.run is not None:
            self.k, self.count = k * self.run.size, count * self.run.size

    @property
    def in_rows(self) -> bool:
        """Whether all columns of a panel exist and are contiguous, in vectors."""
        extent = self.frame.ends[self.column].number
        side_by_side = lanes_at(self.source, self.column, self.width) == self.width > 1
        return side_by_side and extent is not None and extent % self.columns == 0

    def copied(self, points: Sequence[Point]) -> dict[object, SSAValue]:
        """Pack the operand of the innermost loop at ``points``; return it keyed by its reads."""
        found: dict[object, SSAValue] = {}
        for point in points:
            if (key := self.frame.memory.key(self.access, point)) not in found:
                column, k, *self.outer = (
                    point.indices[loop] or Index() for loop in (self.column, self.depth, *self.sums)
                )
                column = column - self.j
                place = self._point(column, k, self.column, point.width)
                value = found[key] = self._element(place)
                self._store(value, k, column)
        return found

    def _around(self, outer: list[Index]) -> None:
        """Open the loops of the sum before the last; pack inside them."""
        if len(outer) < len(self.sums) and self.run is None:
            size = size_of(self.op, self.sums[len(outer)])

            bounds = Index(), Index.of(size)
            self.frame.writer.each(bounds, 1, lambda at: self._around([*outer, at]), "k")
            return
        self.outer = outer
        self._copy()

    def _copy(self) -> None:
        """Copy the columns of a panel that exist, at one iteration of the loops around the last."""
        extent = self.frame.ends[self.column]
        if self.even and extent.number is not None and extent.number % self.columns == 0:
            self._columns(self.columns)
            return
        inside = self.frame.writer.compare("sle", self.j + self.columns, extent)
        whole = partial(self._columns, self.columns)
        self.frame.writer.branch(inside, whole, lambda: self._last(extent))

    def _last(self, extent: Index) -> None:
        """Pack the last panel, of which only some columns exist."""
        others = [x for n, x in enumerate(self.op.inputs) if n != self.operand]
        alone = not any(self.column in e.used_dims() for x in others for e in x.exprs)
        known = extent.number if self.even and alone else None  # else panels begin anywhere
        if known is not None and self._ends_in_vectors(known):
            self._columns(known % self.columns)
        else:
            self._edge(extent - self.j)

    def _ends_in_vectors(self, extent: int) -> bool:
        """Whether whole vectors of the operand reach every one of so many columns."""
        along = lanes_at(self.source, self.column, self.width) == self.width
        along = along and in_panels(self.source.exprs, self.column) is None
        across = lanes_at(self.source, self.depth, self.width) == self.width
        return self.width > 1 and (across or (along and extent >= self.width))

    def _columns(self, inside: int) -> None:
        """Copy ``inside`` columns in vectors; pad the rest with zeros."""
        writer, width = self.frame.writer, self.width
        whole = inside // width * width
        if width in (lanes_at(self.source, self.column, width), 1):
            writer.each((Index(), self.count), 1, partial(self._row, inside=inside), "k")
        elif lanes_at(self.source, self.depth, width) == width:
            self._transposed(Index.of(whole))
            for c in range(whole, self.columns, width):
                self._transpose(Index.of(c), max(inside - c, 0))
        else:
            self._edge(Index.of(inside))

    def _point(self, column: Index, k: Index, axis: int = -1, lanes: int = 0) -> Point:
        """Return a point of the operand; ``column`` and ``k`` count from the panel's beginning."""
        return Point(self.place(self.batch, self.j + column, self.outer, self.k + k), axis, lanes)

    def place(
        self, batch: Sequence[Index], column: Index, outer: Sequence[Index], k: Index
    ) -> tuple[Index | None, ...]:
        """Return the indices of all loops at an element of the operand."""
        before = (None,) * (self.column - len(batch))
        after = (None,) * (self.depth - len(self.sums) - self.column - 1)
        return (*batch, *before, column, *after, *(outer or (None,) * len(self.sums)), k)

    def _store(self, value: SSAValue, k: Index, column: Index) -> None:
        """Store one element, or a vector, where the innermost loop reads it."""
        outer = self.outer
        if self.run is not None:
            outer = [self.frame.writer.divide(k, self.run.size, arith.RemUIOp)]
            k = self.frame.writer.divide(k, self.run.size, arith.DivUIOp)
        self.frame.writer.store(value, self.scratch, [*outer, self.base + k, column])

    def _element(self, point: Point) -> SSAValue:
        """Read one element, or a vector, and widen it."""
        value = self.frame.memory.read(self.source, point, {})
        return self.widening.write(self.frame.writer, value, point.width)

    def copy_row(self, k: Index) -> None:
        """Copy a row of the panel that has begun: its columns are contiguous, their end known."""
        extent = self.frame.ends[self.column]
        assert extent.number is not None
        if not (left := extent.number % self.columns):
            self._row(k, self.columns)
            return
        inside = self.frame.writer.compare("sle", self.j + self.columns, extent)
        whole, ragged = (partial(self._row, k, many) for many in (self.columns, left))
        self.frame.writer.branch(inside, whole, ragged)

    def _transposed(self, end: Index) -> None:
        """Transpose columns that are contiguous along the sum through registers."""
        column = partial(self._transpose, some=self.width)
        self.frame.writer.each((Index(), end), self.width, column, "j")

    def _transpose(self, c: Index, some: int) -> None:
        """Transpose ``some`` columns from ``c``, at most a vector of them; pad with zeros."""
        writer, width = self.frame.writer, self.width
        empty = [writer.splat(self.widening.zero, width) for _ in range(width - some)]

        def block(k: Index, size: int) -> None:
            if size == 1:
                for value in empty[:1]:
                    self._store(value, k, c)
                for n in range(some):
                    self._copy_lanes(c + n, 1, k)
                return
            points = [self._point(c + n, k, self.depth, width) for n in range(some)]
            rows = [self._element(p) for p in points]
            for n, value in enumerate(transpose_block(writer, [*rows, *empty]) if some else empty):
                self._store(value, k + n, c)

        writer.cover((Index(), self.count), [width, 1], block, "k")

    def _row(self, k: Index, inside: int) -> None:
        """Copy a row of ``inside`` columns in vectors; pad the rest with zeros."""
        writer, width = self.frame.writer, self.width
        lanes, values = width if width > 1 else 0, list[SSAValue]()
        empty = writer.splat(self.widening.zero, lanes) if inside < self.columns else None
        for c in range(0, inside, width):
            begin = min(c, inside - width)
            value = self._element(self._point(Index.of(begin), k, self.column, lanes))
            if c != begin and empty:  # it ends with the columns; its last lanes come first
                moved = [min(n + c - begin, width) for n in range(width)]
                value = writer.shuffle(value, empty, moved, value.name_hint)
            values.append(value)
        values += [empty] * (-(-self.columns // width) - len(values)) if empty else []
        for n, value in enumerate(values):
            self._store(value, k, Index.of(n * width))

    def _edge(self, inside: Index) -> None:
        """Copy ``inside`` columns one by one; pad the rest with zeros."""
        writer = self.frame.writer
        if self.width > 1 and lanes_at(self.source, self.depth, self.width) == self.width:
            self._transposed_edge(inside)
            return
        along = lanes_at(self.source, self.column, self.width) == self.width
        sizes = [self.width, 1] if along and self.width > 1 else [1]

        def row(k: Index) -> None:
            self._clear(k)
            copy = partial(self._copy_lanes, k=k)
            writer.cover((Index(), inside), sizes, copy, "j")

        writer.each((Index(), self.count), 1, row, "k")

    def _clear(self, k: Index) -> None:
        """Set a row of the panel to zero."""
        empty = self.frame.writer.splat(self.widening.zero, self.width if self.width > 1 else 0)
        for c in range(0, self.columns, self.width):
            self._store(empty, k, Index.of(c))

    def _copy_lanes(self, column: Index, size: int, k: Index) -> None:
        """Copy ``size`` columns of a row that are contiguous, or one."""
        lanes = size if size > 1 else 0
        axis = self.column if lanes else -1
        self._store(self._element(self._point(column, k, axis, lanes)), k, column)

    def _transposed_edge(self, inside: Index) -> None:
        """Transpose ``inside`` columns through registers where whole blocks fit; pad with zeros."""
        writer, rows = self.frame.writer, (Index(), self.count)

        def column(c: Index) -> None:
            writer.each(rows, 1, partial(self._copy_lanes, c, 1), "k")

        writer.each(rows, 1, self._clear, "k")
        whole = writer.last_whole(Index(), inside, self.width)
        self._transposed(whole)
        writer.each((whole, inside), 1, column, "j")


def size_of(op: Structured, k: int) -> int:
    """Return the extent of loop ``k``, DYNAMIC_INDEX where no operand's type has it."""
    here = AffineDimExpr(k)
    for access in op.inputs:
        if here in access.exprs and isinstance(access.buffer.type, MemRefType):
            return access.buffer.type.get_shape()[access.exprs.index(here)]
    return DYNAMIC_INDEX
