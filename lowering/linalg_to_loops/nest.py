"""The loops that all ops of a kernel share, written once around the loops of each op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.dialects.types import fuse_locations
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.epilogue import at_row, vectors_of_row
from stepwell.lowering.linalg_to_loops.grain import grain_at_launch
from stepwell.lowering.linalg_to_loops.op_loops import OpLoops, cover_all, spread, steps
from stepwell.lowering.linalg_to_loops.overlap import cover
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.within import shared_part
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, element_of
from stepwell.transforms.passes import fail

MIN_ROWS_PER_RECOMPUTED = 32
"""Shift the last row tile back to overlap its neighbour if at most 1/32 of the rows is recomputed.
"""
OPS_PER_STORE = 3
"""Operations that run in the time of one scalar store."""


class Nest(OpLoops):
    """Writes the loops of one plan."""

    def prepare(self) -> None:
        """Write the extents of the loops before them."""
        self.writer.location = fuse_locations(o.op.location for o in self.plan.ops)
        for op in self.plan.ops:
            self.extents.append(self._extents(op))
        for padding in self.plan.padding.values():
            for dim, bounded in enumerate(padding.bounded):
                if bounded:
                    self.memory.dim(padding.image, dim)

    def write(self) -> None:
        """Write the whole nest."""
        self.prepare()
        self._narrow()
        if self.plan.schedule.parallel:
            self._parallel()
        else:
            self._shared(0, {}, [])

    def _narrow(self) -> None:
        """Shrink the ranges of shared loops to the part that all written elements need."""
        for k in range(self.plan.schedule.shared):
            found = shared_part(self.writer, self.plan, k, self.extents[0][k])
            if found is not None:
                self.begins[k] = found[0]
                for extents in self.extents:
                    extents[k] = found[1] - found[0]

    def _extents(self, op: Structured) -> list[Index]:
        """Return the extent of each loop, taken from the operands."""
        shared = self.plan.schedule.shared
        if op is not self.plan.first:
            return [*self.extents[0][:shared], *(self._extent(op, k) for k in _after(op, shared))]
        return [self._extent(op, k) for k in _after(op, 0)]

    def _extent(self, op: Structured, k: int) -> Index:
        """Return the extent of loop ``k``, as a number where some operand's type has it."""
        candidates = [
            (access.buffer, dim)
            for access in (*op.inputs, *op.outputs)
            for dim, expr in enumerate(access.exprs)
            if isinstance(expr, AffineDimExpr) and expr.position == k
        ]
        if not candidates:
            fail(op.op, f"no operand tells how often loop {k} runs")
        static = [c for c in candidates if self.memory.is_static(*c)]
        return self.memory.dim(*(static or candidates)[0])

    # shared loops

    def _sizes(self, k: int) -> list[int]:
        """Return the steps in which shared loop ``k`` is covered."""
        plan, first = self.plan, self.plan.first
        rows = self._rows(k)
        if k == plan.axis:
            count = plan.schedule.tile[1] if plan.schedule.tile != (1, 1) else first.interleave
            if self._overlaps(k):
                rest = (self.extents[0][k].number or 0) % (first.width * count)
                return [first.width * count, *([rest] if rest else [])]
            return steps(first.width, count)
        if rows > 1:
            extent = self.extents[0][k].number
            if extent is None:
                return self._unknown_rows(k, rows)
            if self._repeats(k):
                return [rows]
            if self._evenly(k) is not None:
                return [rows, rows - 1]
            return [rows, *([extent % rows] if extent % rows else [])]
        return [1]

    def _unknown_rows(self, k: int, rows: int) -> list[int]:
        """Return the heights of tiles along a loop whose extent is known at launch only.

        If the loop has at least half a tile's rows, all tiles are whole: rows beyond the last one
        repeat it.
        """
        return [rows] if self._repeats_last(k) else [rows, 1]

    def _repeats_last(self, k: int) -> bool:
        """Whether a tile that extends past the end of a loop repeats the last row."""
        rows, extent = self._rows(k), self.extents[0][k].number
        low, _ = self.plan.schedule.lengths.get(k, (0, 0))
        tiled = rows > 1 and k == self.plan.schedule.shared - 2
        return tiled and extent is None and 2 * low >= rows and self.plan.repeatable

    def _rows(self, k: int) -> int:
        """Return the rows of a tile or band along shared loop ``k``."""
        schedule = self.plan.schedule
        if k == schedule.shared - 1 and k != self.plan.axis:
            return max(schedule.band, schedule.tile[1])
        return schedule.tile[0] if k == schedule.shared - 2 else 1

    def _overlaps(self, k: int) -> bool:
        """Whether the last vector along ``k`` is shifted back to end with the loop.

        A partial tile then has fewer vectors, and no single elements, each of which would need a
        serial sum of its own.
        """
        extent, width = self.extents[0][k].number, self.plan.first.width
        if k != self.plan.axis or extent is None or extent < width:
            return False
        tiled = self.plan.schedule.tile != (1, 1)
        own = width > 1 and (self._has_loops_inside() or self._pays(k, extent % width))
        return (tiled or own) and self.plan.repeatable

    def _overlaps_at_launch(self, k: int) -> bool:
        """Whether `_overlaps` holds along ``k`` for an extent that is known at launch only."""
        schedule, unknown = self.plan.schedule, self.extents[0][k].number is None
        last = k == self.plan.axis == schedule.shared - 1 and self.plan.first.width > 1
        return last and unknown and not self.plan.padding and self.plan.repeatable

    def _pays(self, k: int, rest: int) -> bool:
        """Whether a vector over the tail of a row costs less than ``rest`` single elements.

        It does, unless results are scattered: then each lane is stored alone, one in each cycle, in
        which three other operations are done.
        """
        if k < self.plan.schedule.parallel:
            return False
        width = self.plan.first.width
        ops = [op for op in self.plan.ops if op.body is not None]
        work = sum(len(op.inputs) + len(op.body.ops) for op in ops if op.body is not None)
        alone = sum(lanes_at(each, k, width) < 0 for op in self.plan.ops for each in op.outputs)
        return alone * (width - rest) * OPS_PER_STORE <= (rest - 1) * work

    def _has_loops_inside(self) -> bool:
        """Whether some op has loops besides the shared ones."""
        return any(len(o.reductions) > self.plan.schedule.shared for o in self.plan.ops)

    def _repeats(self, k: int) -> bool:
        """Whether the last row tile along ``k`` is shifted back, so that all tiles are equal.

        That holds where the recomputed rows cost less than a second kind of tile.
        """
        rows, extent = self._rows(k), self.extents[0][k].number
        if rows <= 1 or extent is None or extent < rows or not self.plan.repeatable:
            return False
        return 0 < -extent % rows * MIN_ROWS_PER_RECOMPUTED <= extent

    def _evenly(self, k: int) -> int | None:
        """Return how many row tiles along ``k`` are whole, the others being one row shorter.

        None where no such tiles cover the rows, or all tiles are equal.
        """
        rows, extent = self._rows(k), self.extents[0][k].number
        if rows <= 1 or extent is None or self._repeats(k):
            return None
        tiles = -(-extent // rows)
        short = tiles * rows - extent
        return tiles - short if 0 < short <= tiles else None

    def _block(self, k: int) -> int:
        """Return the iterations of shared loop ``k`` that one parallel iteration takes."""
        return self.plan.schedule.steps[k]

    def _parallel(self) -> None:
        """Write the collapsed parallel loops, in blocks where a loop is tiled or vectorised."""
        schedule = self.plan.schedule
        blocks = [self._block(k) for k in range(schedule.parallel)]
        counts = [
            self.writer.divide(self.extents[0][k] + (b - 1), b, arith.DivUIOp)
            for k, b in enumerate(blocks)
        ]
        self._even(blocks, counts)
        trips = Index.of(1)
        for count in counts:
            trips = self._product(trips, count)
        some = schedule.grain
        for k, b in enumerate(blocks):
            some = max(1, some // min(b, self.extents[0][k].number or b))
        grain = Index.of(some)
        if not schedule.grain:
            ops = self.plan.ops
            grain = grain_at_launch(self.writer, ops, self.extents, blocks, self._product)

        def body(p: Index) -> None:
            ranges: dict[int, tuple[Index, Index]] = {}
            for k in reversed(range(schedule.parallel)):
                at = p
                if k:
                    by = counts[k].number or self.writer.value(counts[k])
                    at = self.writer.divide(p, by, arith.RemUIOp)
                    p = self.writer.divide(p, by, arith.DivUIOp)
                ranges[k] = self._range(k, at, blocks[k])
            self._shared(0, ranges, [])

        self.writer.parallel(trips, grain, body)

    def _even(self, blocks: Sequence[int], counts: list[Index]) -> None:
        """Make the blocks of a loop equally long, where their number is known at launch only.

        ``counts`` has the number of blocks of each parallel loop.
        """

    def _range(self, k: int, at: Index, block: int) -> tuple[Index, Index]:
        extent, lower = self.extents[0][k], at * block
        if block == self._rows(k) and self._repeats(k):
            lower = self.writer.minimum(lower, extent - Index.of(block))
            return lower, lower + block
        if (whole := self._evenly(k)) is not None:

            def edge(n: Index) -> Index:
                return n * (block - 1) + self.writer.minimum(n, Index.of(whole))

            return edge(at), edge(at + 1)
        if block == 1 or (extent.number is not None and extent.number % block == 0):
            return lower, lower + block
        return lower, self.writer.minimum(lower + block, extent)

    def _product(self, a: Index, b: Index) -> Index:
        if a.number is not None:
            return b * a.number
        if b.number is not None:
            return a * b.number
        lhs, rhs = self.writer.value(a), self.writer.value(b)
        return Index.of(self.writer.binary(arith.MuliOp, lhs, rhs))

    def _shared(
        self, k: int, ranges: dict[int, tuple[Index, Index]], at: list[tuple[Index, int]]
    ) -> None:
        """Open shared loop ``k`` and those after it, then write their contents."""
        if k == self.plan.schedule.shared:
            self._iteration(self._points(at))
            return
        bounds = ranges.get(k, (Index(), self.extents[0][k]))

        def body(start: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if k not in ranges and self._repeats(k):
                start = self.writer.minimum(start, self.extents[0][k] - Index.of(size))
            self._shared(k + 1, ranges, [*at, (start, size)])
            return ()

        sizes, hint = self._sizes(k), NAMES[k % len(NAMES)]
        if self._overlaps_at_launch(k):
            width = self.plan.first.width

            def write(start: Index, size: int) -> None:
                body(start, size, ())

            count = sizes[0] // width
            low, _ = self.plan.schedule.lengths.get(k, (0, 0))
            cover(self.writer, bounds, self.extents[0][k], width, count, write, hint, low)
            return
        parts = [(bounds, sizes)]
        if k not in ranges and (whole := self._evenly(k)) is not None:
            middle = Index.of(whole * sizes[0])
            parts = [((bounds[0], middle), sizes[:1]), ((middle, bounds[1]), sizes[1:])]
        if self.plan.padding and k >= self.plan.schedule.shared - 2:
            parts = self._ends_apart(bounds, parts)
            low = self._low_ends(k, bounds, sizes[0])
            if low and _written(low) < _written(parts):
                parts = low
        for some, steps_ in parts:
            self.writer.sweep(some, steps_, (), body, hint)

    def _low_ends(
        self, k: int, bounds: tuple[Index, Index], rows: int
    ) -> list[tuple[tuple[Index, Index], list[int]]]:
        """Peel the rows that read padding, and the remainder of whole tiles between them.

        Low tiles are little code, and the number of rows stays the same. Return [] where no tile is
        whole.
        """
        end = bounds[1].number
        if k != self.plan.schedule.shared - 2 or bounds[0].number != 0 or not end:
            return []
        inside = [row for row in range(end) if self._reads_inside(k, row)]
        whole = len(inside) // rows * rows
        if not whole:
            return []
        low = inside[0] + (len(inside) - whole) // 2
        parts = [(0, low, low), (low, low + whole, rows), (low + whole, end, end - low - whole)]
        return [((Index.of(a), Index.of(b)), [size]) for a, b, size in parts if a < b]

    def _reads_inside(self, k: int, row: int) -> bool:
        """Whether the windows of ``row`` along loop ``k`` read no padding of an image."""
        for op, extents in zip(self.plan.ops, self.extents, strict=True):
            first: list[int] = [row if j == k else 0 for j in range(len(extents))]
            last = [row if j == k else (e.number or 1) - 1 for j, e in enumerate(extents)]
            for access in op.inputs:
                if (padding := self.plan.padding.get(access.buffer)) is None:
                    continue
                for d, expr in enumerate(access.exprs):
                    size = self.memory.dim(padding.image, d).number
                    if k in expr.used_dims() and size is not None:
                        ends = [expr.eval(at, ()) - padding.offsets[d] for at in (first, last)]
                        if min(ends) < 0 or max(ends) >= size:
                            return False
        return True

    def _ends_apart(
        self, bounds: tuple[Index, Index], parts: list[tuple[tuple[Index, Index], list[int]]]
    ) -> list[tuple[tuple[Index, Index], list[int]]]:
        """Peel the first and the last tile of a loop: only these read padding."""
        found: list[tuple[tuple[Index, Index], list[int]]] = []
        for (low, high), sizes in parts:
            at, end = low.number, high.number
            if at is None or end is None:
                return parts
            for n, size in enumerate(sizes, 1):
                stop = end if n == len(sizes) else at + (end - at) // size * size
                cuts = [at]
                if at == bounds[0].number:
                    cuts.append(min(at + size, stop))
                if stop == bounds[1].number and stop > at:
                    cuts.append(max(at + (stop - 1 - at) // size * size, cuts[-1]))
                cuts.append(stop)
                pairs = pairwise(cuts)
                found += [((Index.of(a), Index.of(b)), [size]) for a, b in pairs if a < b]
                at = stop
        return found

    def _points(self, at: list[tuple[Index, int]]) -> list[Point]:
        """Return the points of a tile with these starts and sizes."""
        points = [Point((None,) * len(at))]
        for k, (start, size) in enumerate(at):
            if (begin := self.begins.get(k)) is not None:
                start = begin + start
            width = self.plan.first.width if k == self.plan.axis else 1
            if 1 < size < width and self._overlaps_at_launch(k):
                width = size
            cover = cover_all if width > 1 and self._overlaps(k) else spread
            if self._repeats_last(k):
                rows = [self._further(k, start, r) for r in range(size)]
                points = [p.bind(k, row) for p in points for row in rows]
                continue
            points = [q for p in points for q in cover(p, k, start, size, width)]
        return [replace(p, slot=i) for i, p in enumerate(points)]

    def _further(self, k: int, start: Index, by: Index | int) -> Index:
        """Return the iteration ``by`` after ``start``, clamped to the last one where needed."""
        if by == 0 or not self._repeats_last(k):
            return start + by
        return self.writer.minimum(start + by, self.extents[0][k] + -1)

    def _iteration(self, points: list[Point]) -> None:
        """Write every op at the points of one iteration of the shared loops."""
        self.memory.open(points)
        outer = self.writer.location
        if count := vectors_of_row(self.plan, points, self._further):
            self._by_rows(points, count)
        else:
            for op in self.plan.ops:
                self.write_op(op, points)
        self.writer.location = outer

    def _by_rows(self, points: list[Point], count: int) -> None:
        """Write the sums of a tile, then its epilogue: a loop over rows of ``count`` vectors."""
        first, *rest = self.plan.ops
        shared, width = self.plan.schedule.shared, points[0].width
        self.writer.location = first.op.location
        inner = (None,) * (len(first.reductions) - shared)

        def whole(some: Sequence[Point]) -> list[Point]:
            return [replace(p, indices=(*p.indices, *inner)) for p in some]

        (output,) = first.carried
        here = whole(points)
        totals = self.run(first, here, [self.start(first, output, p) for p in here])
        kind = element_of(first.outputs[output].buffer)
        rows = len(points) // count
        room = memref.AllocaOp.get(kind, 64, [rows, count * width])
        sums = self.writer.result(room, "sums")
        for n, total in enumerate(totals):
            at = [Index.of(n // count), Index.of(n % count * width)]
            self.writer.store(total, sums, at)

        def row(r: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            some = [
                at_row(p, shared - 2, r, n, self._further) for n, p in enumerate(points[:count])
            ]
            self.memory.open(some)
            places = [[r, Index.of(n * width)] for n in range(count)]
            self.finish(
                first, whole(some), [self.writer.load(sums, p, width, "sum") for p in places]
            )
            for op in rest:
                self.write_op(op, some)
            return ()

        self.writer.loop((Index(), Index.of(rows)), 1, (), row, "r")


def _after(op: Structured, shared: int) -> range:
    return range(shared, len(op.reductions))


def _written(parts: Sequence[tuple[tuple[Index, Index], list[int]]]) -> int:
    """Return the total rows of the tiles that are emitted for these parts of a loop."""
    return sum(sum(sizes) for _, sizes in parts)
