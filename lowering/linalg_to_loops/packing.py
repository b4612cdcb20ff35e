"""Copy a part of an operand into panels, in the order in which a contraction reads them.

A panel is ``depth`` by ``columns`` units, row-major; of columns beyond the operand's end it has
zeros. A unit is an element, widened as the contraction's body would widen it, or a word of several
(`dots`); rows of words may stay contiguous along the sum. Where the sum has several loops, a panel
has one such slice for each iteration of the loops before the last. Filters that store the window
after the features are read in runs over all of these loops (`runs`).

One walk copies a panel. Where columns are contiguous in the operand, they are copied row by row in
vectors; where a column's units are, squares of them are transposed in registers; others are copied
one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.structured import in_panels, loop_extents, zero_of
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.dots import BIAS, Words
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.plan import Buffer
from stepwell.lowering.linalg_to_loops.register_transpose import transpose_block
from stepwell.lowering.linalg_to_loops.runs import Run, run_of
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.widening import Widening
from stepwell.lowering.linalg_to_loops.writer import Index

NARROW_LANES = 4
"""Columns copied at once where they do not fill a vector."""
ROW_PADDING_WORDS = 16
"""Words of padding between packed rows, so that the rows of a tile map to different cache sets."""


class Packing:
    """Writes the packing of one operand.

    column : the loop of the panel's columns
    sums : the loops of its rows
    columns : of a panel, at least; it has whole vectors
    words : the form of its units, None for elements
    target : the panels of a kernel that only packs; None for scratch, which `allocate` allocates
    """

    def __init__(
        self,
        frame: Frame,
        op: Structured,
        operand: int,
        column: int,
        sums: Sequence[int],
        columns: int,
        words: Words | None = None,
        target: Access | None = None,
    ) -> None:
        self.frame, self.writer, self.op, self.operand = frame, frame.writer, op, operand
        self.column, self.words, self.target = column, words, target
        *self.sums, self.depth = sums
        self.width = op.width
        self.source = op.inputs[operand]
        self.widening = Widening(op, operand)
        self.terms = 1
        """Elements of a unit."""
        if words is not None:
            self.widening.casts, self.widening.element, self.terms = [], i32, words.terms
        wide = self.terms * self.width
        self.along = self.width > 1 and lanes_at(self.source, column, self.width) == self.width
        """Whether columns are contiguous in the operand."""
        self.deep = self.width > 1 and lanes_at(self.source, self.depth, wide) == wide
        """Whether the units of a column are."""
        self.keeps_rows = words is not None and words.keeps_rows(self.deep)
        """Whether the units of a column, which is then called a row, are contiguous when packed."""
        unit = 1 if self.keeps_rows else self.width
        self.columns = -(-columns // unit) * unit
        self.even = True
        """Whether a panel begins where the previous one ends."""
        self.base = Index()
        """The first row of the scratch that a part is packed into."""
        self.outer: list[Index] = []
        """Indices of the loops of the sum before the last."""
        alone = self.width == 1 or self.along or self.deep
        plain = words is None and target is None and not alone
        self.run: Run | None = run_of(self.source, self.depth, self.sums) if plain else None
        """The run of memory that each column is, where it is not contiguous along the last loop."""

    def allocate(self, depth: int) -> None:
        """Allocate the scratch and set ``access`` to the innermost loop's read of it."""
        buffers, writer = self.frame.plan.buffers, self.writer
        outer = [max(size_of(self.op, k), 1) for k in self.sums]
        sums: list[AffineExpr] = [AffineDimExpr(k) for k in self.sums]
        if self.run is not None:
            outer, sums = [self.run.size], [self.run.place]
            self.source = self.run.flat(writer, self.op.inputs[self.operand])
            buffers[self.source.buffer] = Buffer()
            self.deep = True
        units, column = max(-(-depth // self.terms), 1), AffineDimExpr(self.column)
        shape, loops = [*outer, units, self.columns], [*sums, AffineDimExpr(self.depth), column]
        if self.keeps_rows:
            apart = 0 if self.sums else ROW_PADDING_WORDS
            shape, loops = [self.columns, *outer, units + apart], [column, *loops[:-1]]
        self.scratch = writer.result(
            memref.AllocaOp.get(self.widening.element, 64, shape), "packed"
        )
        buffers[self.scratch] = Buffer()
        self.access = Access(self.scratch, tuple(loops))

    def write(self, batch: Sequence[Index], j: Index, k: Index, count: Index) -> None:
        """Pack ``count`` iterations of the sum from ``k`` for the panel at ``j``."""
        self.begin(batch, j, k, count)
        self._around([])

    def begin(self, batch: Sequence[Index], j: Index, k: Index, count: Index) -> None:
        """Set the part that is packed next."""
        self.batch, self.j, self.k, self.count = batch, j, k, count
        if self.run is not None:
            self.k, self.count = k * self.run.size, count * self.run.size

    @property
    def in_rows(self) -> bool:
        """Whether all columns of a panel exist and are contiguous, in vectors."""
        extent = self.frame.ends[self.column].number
        return self.along and extent is not None and extent % self.columns == 0

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

    def copy_row(self, k: Index) -> None:
        """Copy a row of the panel that has begun: its columns are contiguous, their end known."""

        def last(inside: Index) -> None:
            self._clear(k, self._written(inside))
            self._row(k, 1, inside)

        self._if_whole(partial(self._row, k, 1), last)

    # the walk

    def _around(self, outer: list[Index]) -> None:
        """Open the loops of the sum before the last; pack inside them."""
        if len(outer) < len(self.sums) and self.run is None:
            bounds = Index(), Index.of(size_of(self.op, self.sums[len(outer)]))
            self.writer.each(bounds, 1, lambda at: self._around([*outer, at]), "k")
            return
        self.outer = outer
        if self.keeps_rows:
            inside = self.frame.ends[self.column] - self.j
            inside = self.writer.minimum(Index.of(self.columns), inside)
            row = partial(self._across, many=1, last=inside)
            self.writer.each((Index(), inside), 1, row, "j")
        else:
            self._if_whole(self._columns, self._last)

    def _if_whole(self, whole: Callable[[Index], None], last: Callable[[Index], None]) -> None:
        """Write ``whole`` for panels all of whose columns exist, ``last`` for the last one."""
        extent, columns = self.frame.ends[self.column], Index.of(self.columns)
        left = None if extent.number is None else extent.number % self.columns
        if self.even and left == 0:
            whole(columns)
            return
        others = [x for n, x in enumerate(self.op.inputs) if n != self.operand]
        alone = not any(self.column in e.used_dims() for x in others for e in x.exprs)
        known = left is not None and self.even and alone  # else panels begin anywhere
        inside = Index.of(left) if left is not None and known else extent - self.j
        exists = self.writer.compare("sle", self.j + self.columns, extent)
        self.writer.branch(exists, lambda: whole(columns), lambda: last(inside))

    def _last(self, inside: Index) -> None:
        """Pack ``inside`` columns, and zeros for those after them; any words may be there."""
        first = self._written(inside)
        if self.words is None and first < self.columns:
            clear = partial(self._clear, first=first)
            self.writer.each((Index(), self.count), 1, clear, "k")
        self._columns(inside)

    def _written(self, inside: Index) -> int:
        """Return how many columns are known to be written, in whole vectors."""
        end = inside.number
        known = end is not None and (self.deep or self._fill_vectors(end))
        return -(-end // self.width) * self.width if known and end is not None else 0

    def _columns(self, inside: Index) -> None:
        """Copy ``inside`` columns."""
        if self.deep:
            some = partial(self._across, many=self.width, last=inside + -1)
            self.writer.each((Index(), inside), self.width, some, "j")
        else:
            self._each_unit(partial(self._row, inside=inside))

    def units(self, count: Index) -> Index:
        """Return the number of units of so many elements."""
        return self.writer.divide_up(count, self.terms)

    def _row(self, k: Index, terms: int, inside: Index) -> None:
        """Copy unit ``k`` of ``inside`` columns."""
        writer, width = self.writer, self.width
        if (end := inside.number) is not None and self._fill_vectors(end):
            for c, value in [(c, self._lanes(c, k, terms, end)) for c in range(0, end, width)]:
                self._store(value, k, Index.of(c))
            return
        sizes = [width, min(width, NARROW_LANES), 1] if self.along else [1]

        def some(c: Index, lanes: int) -> None:
            axis, lanes = (self.column, lanes) if lanes > 1 else (-1, 0)
            self._store(self._unit(c, k, axis, lanes, terms), k, c)

        writer.cover((Index(), inside), list(dict.fromkeys(sizes)), some, "j")

    def _fill_vectors(self, end: int) -> bool:
        """Whether vectors of the operand reach each of the first ``end`` columns of a panel."""
        if not self.along or end % self.width == 0:
            return self.along or self.width == 1
        extent = self.frame.ends[self.column].number
        plain = in_panels(self.source.exprs, self.column) is None
        return plain and extent is not None and extent >= self.width

    def _lanes(self, c: int, k: Index, terms: int, end: int) -> SSAValue:
        """Return unit ``k`` of a vector of columns from ``c``, zeros for those from ``end`` on.

        A vector that would pass the end is read so that it ends there; its lanes are then moved.
        """
        width = self.width
        if width == 1:
            return self._unit(Index.of(c), k, terms=terms)
        begin = min(c, end - width)
        value = self._unit(Index.of(begin), k, self.column, width, terms)
        if c == begin:
            return value
        moved = [min(n + c - begin, width) for n in range(width)]
        empty = self.writer.splat(zero_of(self.widening.element), width)
        return self.writer.shuffle(value, empty, moved, value.name_hint)

    def _across(self, c: Index, many: int, last: Index) -> None:
        """Copy ``many`` columns from ``c``, vectors of units at a time; the ``last`` repeats."""
        writer, width = self.writer, self.width
        columns = [c, *(writer.minimum(c + n, last) for n in range(1, many))]

        def vectors(k: Index) -> None:
            found = [self._unit(column, k, self.depth, width) for column in columns]
            if many > 1:
                found = transpose_block(writer, found)
            for n, value in enumerate(found):
                self._store(value, k + n, c)

        def single(k: Index, terms: int) -> None:
            for n, column in enumerate(columns):
                self._store(self._unit(column, k, terms=terms), k, c + n)

        self._each_unit(single, self._each_vector(vectors) if self.deep else Index())

    def _each_vector(self, write: Callable[[Index], None]) -> Index:
        """Call ``write`` for each vector of whole units; return where the tail of units begins."""
        writer, lanes = self.writer, self.width
        whole = writer.divide(self.count, self.terms)
        end = writer.last_whole(Index(), whole, lanes)
        writer.each((Index(), end), lanes, write, "k")
        known = whole.number
        if known is None or known < lanes or known == end.number:
            return end
        write(Index.of(known - lanes))
        return whole

    def _each_unit(self, write: Callable[[Index, int], None], first: Index | None = None) -> None:
        """Call ``write`` with each unit from ``first`` on and its number of elements."""
        writer, terms = self.writer, self.terms
        whole = writer.divide(self.count, terms)
        writer.each((first or Index(), whole), 1, lambda n: write(n, terms), "k")
        left = self.count - whole * terms
        if left.number is not None:
            if left.number:
                write(whole, left.number)
            return
        for size in range(1, terms):
            some = writer.compare("eq", left, Index.of(size))
            writer.branch(some, lambda size=size: write(whole, size))

    # units

    def _unit(
        self, column: Index, k: Index, axis: int = -1, lanes: int = 0, terms: int = 1
    ) -> SSAValue:
        """Return unit ``k`` of a column, of so many elements; or a vector of them along a loop."""

        def element(q: int, axis: int, lanes: int) -> SSAValue:
            return self._element(self._point(column, k * self.terms + q, axis, lanes))

        if self.words is None:
            return element(0, axis, lanes)
        if axis == self.depth:
            word = self.words.contiguous(element(0, axis, self.terms * lanes))
        elif self.deep and not lanes and terms == self.terms:
            word = self.writer.lane(self.words.contiguous(element(0, self.depth, terms)), 0)
        else:
            word = self.words.assembled([element(q, axis, lanes) for q in range(terms)])
        return self.words.with_bias(word)

    def _element(self, point: Point) -> SSAValue:
        """Read one element, or a vector, and widen it."""
        value = self.frame.memory.read(self.source, point, {})
        return self.widening.write(self.writer, value, point.width)

    def _point(self, column: Index, k: Index, axis: int = -1, lanes: int = 0) -> Point:
        """Return a point of the operand; ``column`` and ``k`` count from the panel's beginning."""
        return Point(self.place(self.batch, self.j + column, self.outer, self.k + k), axis, lanes)

    def place(
        self, batch: Sequence[Index], column: Index, outer: Sequence[Index], k: Index
    ) -> tuple[Index | None, ...]:
        """Return the indices of all loops at an element of the operand."""
        loops = (*range(len(batch)), self.column, *self.sums[: len(outer)], self.depth)
        at = dict(zip(loops, (*batch, column, *outer, k), strict=True))
        return tuple(at.get(n) for n in range(len(self.op.reductions)))

    def _clear(self, k: Index, first: int) -> None:
        """Set a row of the panel to zero from its ``first`` column on."""
        empty = self.writer.splat(
            zero_of(self.widening.element), self.width if self.width > 1 else 0
        )
        for c in range(first, self.columns, self.width):
            self._store(empty, k, Index.of(c))

    def _store(self, value: SSAValue, k: Index, column: Index) -> None:
        """Store one unit, or a vector, where the innermost loop reads it."""
        outer, writer = self.outer, self.writer
        if self.target is not None:
            here = self._point(Index(), k).indices
            at = [writer.affine(e, here) for e in self.target.exprs[:-1]]
            writer.store(value, self.target.buffer, [*at, column])
            return
        if self.run is not None:
            outer = [writer.divide(k, self.run.size, arith.RemUIOp)]
            k = writer.divide(k, self.run.size)
        at = [column, *outer, k] if self.keeps_rows else [*outer, self.base + k, column]
        writer.store(value, self.scratch, at)


def biases(packing: Packing, width: int, element: str) -> list[SSAValue]:
    """Return, for each vector of columns, 128 times the sum of the last packed part."""
    writer, starts = packing.writer, range(0, packing.columns, width)
    zero, bias = (writer.splat(n, width) for n in (IntegerAttr(0, i32), BIAS))
    sizes = [Index.of(size_of(packing.op, k)) for k in packing.sums]
    sizes.append(packing.units(packing.count))

    def word(outer: list[Index], totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if len(outer) < len(sizes):
            bounds = Index(), sizes[len(outer)]
            return writer.loop(bounds, 1, totals, lambda n, args: word([*outer, n], args), "k")
        reads = [writer.load(packing.scratch, [*outer, Index.of(c)], width) for c in starts]
        return [
            writer.result(kernel.DotOp(total, bias, read, ("ui8", element)))
            for read, total in zip(reads, totals, strict=True)
        ]

    return list(word([], [zero for _ in starts]))


def size_of(op: Structured, k: int) -> int:
    """Return the extent of loop ``k``, DYNAMIC_INDEX where no operand's type has it."""
    reads = [(access.buffer, access.exprs) for access in op.inputs]
    return loop_extents(len(op.reductions), reads)[k]
