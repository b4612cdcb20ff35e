"""The loops that all ops of a kernel share, written once around the loops of each op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.levels.tails import (
    PaddedRead,
    Part,
    ends_apart,
    in_sizes,
    parts_of,
    tile_sizes,
    whole_tiles,
)
from stepwell.dialects.kernel.levels import BORDER, EVEN, MASK, OVERLAP, REPEAT
from stepwell.dialects.types import fuse_locations
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.epilogue import at_row, vectors_of_row
from stepwell.lowering.linalg_to_loops.grain import grain_at_launch
from stepwell.lowering.linalg_to_loops.masked import cover_masked
from stepwell.lowering.linalg_to_loops.op_loops import OpLoops, cover_all, spread, steps
from stepwell.lowering.linalg_to_loops.overlap import cover
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.within import shared_part
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, element_of
from stepwell.transforms.passes import fail


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
        """Return the steps in which shared loop ``k`` is covered, by its tail policy."""
        schedule, extent = self.plan.schedule, self.extents[0][k].number
        unit, tail = self._unit(k), schedule.tail(k)
        if k == self.plan.axis:
            if extent is not None and tail == OVERLAP:
                rest = extent % unit
                return [unit, *([rest] if rest else [])]
            return steps(self.plan.first.width, unit // self.plan.first.width)
        if unit == 1 or tail == REPEAT:
            return [unit]
        return [unit, 1] if extent is None else tile_sizes(extent, unit, tail)

    def _unit(self, k: int) -> int:
        """Return the iterations of a shared loop that one tile takes."""
        schedule = self.plan.schedule
        return 1 if schedule.axis == k != self.plan.axis else schedule.step(k)

    def _tiled(self, k: int) -> list[Part]:
        """Return the parts of a shared loop of known extent, each of steps of one size."""
        extent = self.extents[0][k].number
        assert extent is not None
        schedule, padded = self.plan.schedule, bool(self.plan.padding)
        unit, tail = self._unit(k), schedule.tail(k)
        if k == self.plan.axis or unit == 1:
            parts = in_sizes(extent, self._sizes(k))
        else:
            reads = list(self._padded_reads()) if tail == BORDER else ()
            parts = parts_of(extent, unit, tail, reads, k)
        apart = padded and k >= schedule.shared - 2 and tail != BORDER
        return ends_apart(parts) if apart else parts

    def _padded_reads(self) -> Iterator[PaddedRead]:
        """Yield the reads of images with virtual padding."""
        for op, extents in zip(self.plan.ops, self.extents, strict=True):
            for access in op.inputs:
                if (padding := self.plan.padding.get(access.buffer)) is not None:
                    image = range(len(padding.offsets))
                    sizes = [self.memory.dim(padding.image, d).number for d in image]
                    known = [-1 if size is None else size for size in sizes]
                    whole = [extent.number or 1 for extent in extents]
                    yield PaddedRead(access.exprs, padding.offsets, known, whole)

    def _covers_at_launch(
        self, k: int, bounds: tuple[Index, Index], write: Callable[[Index, int], object]
    ) -> bool:
        """Write a loop of vectors of unknown extent, where their last overlaps or has a mask."""
        extent, tail, width = self.extents[0][k], self.plan.schedule.tail(k), self.plan.first.width
        if k != self.plan.axis or extent.number is not None or tail not in (MASK, OVERLAP):
            return False
        count, hint = self.plan.schedule.step(k) // width, NAMES[k % len(NAMES)]

        def write_first(start: Index, size: int, first: SSAValue | None = None) -> None:
            self.first = first
            write(start, size)
            self.first = None

        if tail == OVERLAP:
            low, _ = self.plan.schedule.lengths.get(k, (0, 0))
            cover(self.writer, bounds, extent, width, count, write_first, hint, low)
        elif self.masks(self.plan.ops, k):
            cover_masked(self.writer, bounds, width, count, write_first, hint)
        else:
            return False
        return True

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
            trips = self.writer.product(trips, count)
        some = schedule.grain
        for k, b in enumerate(blocks):
            some = max(1, some // min(b, self.extents[0][k].number or b))
        grain = Index.of(some)
        if not schedule.grain:
            ops = self.plan.ops
            grain = grain_at_launch(self.writer, ops, self.extents, blocks)

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
        extent, lower, tail = self.extents[0][k], at * block, self.plan.schedule.tail(k)
        if extent.number is not None and tail == OVERLAP and k != self.plan.axis:
            lower = self.writer.minimum(lower, extent - Index.of(block))
            return lower, lower + block
        if extent.number is not None and tail == EVEN:
            whole = Index.of(whole_tiles(extent.number, block) or 0)

            def edge(n: Index) -> Index:
                return n * (block - 1) + self.writer.minimum(n, whole)

            return edge(at), edge(at + 1)
        if block == 1 or (extent.number is not None and extent.number % block == 0):
            return lower, lower + block
        return lower, self.writer.minimum(lower + block, extent)

    def _shared(
        self, k: int, ranges: dict[int, tuple[Index, Index]], at: list[tuple[Index, int]]
    ) -> None:
        """Open shared loop ``k`` and those after it, then write their contents."""
        if k == self.plan.schedule.shared:
            self._iteration(self._points(at))
            return
        extent = self.extents[0][k]
        bounds = ranges.get(k, (Index(), extent))
        shifted = k not in ranges and k != self.plan.axis and extent.number is not None
        shifted = shifted and self.plan.schedule.tail(k) == OVERLAP

        def body(start: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if shifted:
                start = self.writer.minimum(start, extent - Index.of(size))
            self._shared(k + 1, ranges, [*at, (start, size)])
            return ()

        hint = NAMES[k % len(NAMES)]
        if self._covers_at_launch(k, bounds, lambda start, size: body(start, size, ())):
            return
        if k in ranges or extent.number is None:
            self.writer.sweep(bounds, self._sizes(k), (), body, hint)
        else:
            for low, high, size in self._tiled(k):
                self.writer.sweep((Index.of(low), Index.of(high)), [size], (), body, hint)

    def _points(self, at: list[tuple[Index, int]]) -> list[Point]:
        """Return the points of a tile with these starts and sizes."""
        points = [Point((None,) * len(at))]
        for k, (start, size) in enumerate(at):
            if (begin := self.begins.get(k)) is not None:
                start = begin + start
            width = self.plan.first.width if k == self.plan.axis else 1
            shifted = self.plan.schedule.tail(k) == OVERLAP and width > 1
            at_launch = shifted and self.extents[0][k].number is None
            if 1 < size < width and at_launch:
                width = size
            points_of = spread if not shifted or at_launch else cover_all
            if self._repeats(k):
                rows = [self._further(k, start, r) for r in range(size)]
                points = [p.bind(k, row) for p in points for row in rows]
                continue
            points = [q for p in points for q in points_of(p, k, start, size, width)]
        return [replace(p, slot=i, first=self.first) for i, p in enumerate(points)]

    def _repeats(self, k: int) -> bool:
        """Whether a tile that extends past the end of a loop repeats the last row."""
        return self.plan.schedule.tail(k) == REPEAT

    def _further(self, k: int, start: Index, by: Index | int) -> Index:
        """Return the iteration ``by`` after ``start``, clamped to the last one where needed."""
        if by == 0 or not self._repeats(k):
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
