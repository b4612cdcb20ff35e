"""The loops that all ops of a kernel share, written once around what each op has of its own."""

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
from stepwell.lowering.linalg_to_loops.overlap import cover
from stepwell.lowering.linalg_to_loops.own_loops import OwnLoops, cover_all, spread, steps
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.within import shared_part
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, element_of
from stepwell.transforms.passes import fail

REPEATED = 32
"""The last tile of rows begins early where that computes no more than such a part of them twice."""
AT_ONCE = 3
"""So many operations are done while one element is stored."""


class Nest(OwnLoops):
    """Writes the loops of one plan."""

    def prepare(self) -> None:
        """Write what the loops need to know beforehand: how often they run."""
        self.writer.location = fuse_locations(o.op.location for o in self.plan.ops)
        for op in self.plan.ops:
            self.extents.append(self._extents(op))
        for edges in self.plan.edges.values():
            for dim, bounded in enumerate(edges.bounded):
                if bounded:
                    self.memory.dim(edges.image, dim)

    def write(self) -> None:
        """Write everything."""
        self.prepare()
        self._narrow()
        if self.plan.schedule.parallel:
            self._parallel()
        else:
            self._shared(0, {}, [])

    def _narrow(self) -> None:
        """Let shared loops begin later and end earlier, where all of what is written allows it."""
        for k in range(self.plan.schedule.shared):
            found = shared_part(self.writer, self.plan, k, self.extents[0][k])
            if found is not None:
                self.begins[k] = found[0]
                for extents in self.extents:
                    extents[k] = found[1] - found[0]

    def _extents(self, op: Structured) -> list[Index]:
        """Return how often each loop runs, read off the operands."""
        shared = self.plan.schedule.shared
        if op is not self.plan.first:
            return [*self.extents[0][:shared], *(self._extent(op, k) for k in _after(op, shared))]
        return [self._extent(op, k) for k in _after(op, 0)]

    def _extent(self, op: Structured, k: int) -> Index:
        """Return how often loop ``k`` runs, as a number where some operand knows it."""
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
        """Return the steps by which shared loop ``k`` is covered."""
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
        """Return the heights of tiles along a loop whose length only the launch knows.

        Where they are at least half of a tile, all tiles are whole: rows beyond the last one are
        the last one again.
        """
        return [rows] if self._repeats_last(k) else [rows, 1]

    def _repeats_last(self, k: int) -> bool:
        """Whether a tile has the last row over again where it sticks out of a loop."""
        rows, extent = self._rows(k), self.extents[0][k].number
        low, _ = self.plan.schedule.lengths.get(k, (0, 0))
        tiled = rows > 1 and k == self.plan.schedule.shared - 2
        return tiled and extent is None and 2 * low >= rows and self.plan.repeatable

    def _rows(self, k: int) -> int:
        """Return how many iterations of shared loop ``k`` a tile or a band has."""
        schedule = self.plan.schedule
        if k == schedule.shared - 1 and k != self.plan.axis:
            return max(schedule.band, schedule.tile[1])
        return schedule.tile[0] if k == schedule.shared - 2 else 1

    def _overlaps(self, k: int) -> bool:
        """Whether the last vector along ``k`` covers some columns a second time, not leaving any.

        A tile that is not whole then has fewer vectors, and there are no single elements, of which
        each would wait for its own sum.
        """
        extent, width = self.extents[0][k].number, self.plan.first.width
        if k != self.plan.axis or extent is None or extent < width:
            return False
        tiled = self.plan.schedule.tile != (1, 1)
        own = width > 1 and (self._has_loops_inside() or self._pays(k, extent % width))
        return (tiled or own) and self.plan.repeatable

    def _overlaps_at_launch(self, k: int) -> bool:
        """Whether the same holds along ``k`` at the launch, which alone knows how long it is."""
        schedule, unknown = self.plan.schedule, self.extents[0][k].number is None
        last = k == self.plan.axis == schedule.shared - 1 and self.plan.first.width > 1
        return last and unknown and not self.plan.edges and self.plan.repeatable

    def _pays(self, k: int, rest: int) -> bool:
        """Whether a vector that covers the rest of a row costs less than ``rest`` single elements.

        It does, but where results lie apart: then each lane is stored alone, one in each cycle, in
        which three other operations are done.
        """
        if k < self.plan.schedule.parallel:
            return False
        width = self.plan.first.width
        ops = [op for op in self.plan.ops if op.body is not None]
        work = sum(len(op.inputs) + len(op.body.ops) for op in ops if op.body is not None)
        alone = sum(lanes_at(each, k, width) < 0 for op in self.plan.ops for each in op.outputs)
        return alone * (width - rest) * AT_ONCE <= (rest - 1) * work

    def _has_loops_inside(self) -> bool:
        """Whether some op has loops of its own."""
        return any(len(o.reductions) > self.plan.schedule.shared for o in self.plan.ops)

    def _repeats(self, k: int) -> bool:
        """Whether the last tile of rows along ``k`` begins early, so that all have as many rows.

        That is for so few rows that what runs twice costs less than a second kind of tile.
        """
        rows, extent = self._rows(k), self.extents[0][k].number
        if rows <= 1 or extent is None or extent < rows or not self.plan.repeatable:
            return False
        return 0 < -extent % rows * REPEATED <= extent

    def _evenly(self, k: int) -> int | None:
        """Return how many tiles of rows along ``k`` are whole, the others being one row shorter.

        None where no such tiles cover the rows, or all have as many.
        """
        rows, extent = self._rows(k), self.extents[0][k].number
        if rows <= 1 or extent is None or self._repeats(k):
            return None
        tiles = -(-extent // rows)
        short = tiles * rows - extent
        return tiles - short if 0 < short <= tiles else None

    def _block(self, k: int) -> int:
        """Return how many iterations of shared loop ``k`` one parallel iteration takes."""
        return self.plan.schedule.steps[k]

    def _parallel(self) -> None:
        """Write the collapsed parallel loops; blocked where a loop is tiled or vectorised."""
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
        """Let blocks along a loop be of one length, where only the launch knows how many there are.

        ``counts`` says how many blocks each parallel loop has.
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
        """Open shared loop ``k`` and those after it, then write what they contain."""
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
        if self.plan.edges and k >= self.plan.schedule.shared - 2:
            parts = self._ends_apart(bounds, parts)
            low = self._low_ends(k, bounds, sizes[0])
            if low and _written(low) < _written(parts):
                parts = low
        for some, steps_ in parts:
            self.writer.sweep(some, steps_, (), body, hint)

    def _low_ends(
        self, k: int, bounds: tuple[Index, Index], rows: int
    ) -> list[tuple[tuple[Index, Index], list[int]]]:
        """Cut off the rows that reach beyond edges, and what leaves whole tiles between them.

        Low tiles are little code; the rows are no more than before. None where none is whole.
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
        """Whether the windows of ``row`` along loop ``k`` reach beyond no edge of an image."""
        for op, extents in zip(self.plan.ops, self.extents, strict=True):
            first: list[int] = [row if j == k else 0 for j in range(len(extents))]
            last = [row if j == k else (e.number or 1) - 1 for j, e in enumerate(extents)]
            for access in op.inputs:
                if (edges := self.plan.edges.get(access.buffer)) is None:
                    continue
                for d, expr in enumerate(access.exprs):
                    size = self.memory.dim(edges.image, d).number
                    if k in expr.used_dims() and size is not None:
                        ends = [expr.eval(at, ()) - edges.offsets[d] for at in (first, last)]
                        if min(ends) < 0 or max(ends) >= size:
                            return False
        return True

    def _ends_apart(
        self, bounds: tuple[Index, Index], parts: list[tuple[tuple[Index, Index], list[int]]]
    ) -> list[tuple[tuple[Index, Index], list[int]]]:
        """Cut off the first and the last tile of a loop: only these reach beyond edges."""
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
        """Return the points of a tile that starts at ``at`` and has these sizes."""
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
        """Return an iteration of loop ``k`` behind ``start``, or the last where that may be it."""
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
        """Write the sums of a tile, then a loop over its rows, ``count`` vectors each."""
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
    """Return how many rows the tiles have that are written for these parts of a loop."""
    return sum(sum(sizes) for _, sizes in parts)
