"""The loops of one kernel: the shared ones once, inside them each op's own.

The unit of writing is a list of points: the iterations, scalar or vector, that one pass through
the innermost loop computes side by side (the register tile, or the interleaved vectors).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.dialects.types import fuse_locations
from stepwell.lowering.linalg_to_loops.accesses import Memory
from stepwell.lowering.linalg_to_loops.body import BodyWriter, Point
from stepwell.lowering.linalg_to_loops.extremes import Watch
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.squares import read_squares
from stepwell.lowering.linalg_to_loops.structured import Combiner, Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer
from stepwell.transforms.passes import fail

BLOCK = 1024
"""Elements of a vectorised parallel loop that one parallel iteration takes, where nothing runs
inside."""
REPEATED = 32
"""The last tile of rows begins early where that computes no more than such a part of them twice."""
NAMES = ("i", "j", "k", "l", "m", "n")


class Nest:
    """Writes the loops of one plan."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        self.writer = writer
        self.plan = plan
        self.memory = Memory(writer, plan)
        self.extents: list[list[Index]] = []
        self.narrowed: dict[int, tuple[Index, Index]] = {}
        """The part of a loop to run, where it is not the whole."""

    def prepare(self) -> None:
        """Write what the loops need to know beforehand: how often they run."""
        self.writer.location = fuse_locations(o.op.location for o in self.plan.ops)
        for op in self.plan.ops:
            self.extents.append(self._extents(op))

    def write(self) -> None:
        """Write everything."""
        self.prepare()
        if self.plan.schedule.parallel:
            self._parallel()
        else:
            self._shared(0, {}, [])

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
            return _steps(first.width, count)
        if rows > 1:
            extent = self.extents[0][k].number
            if extent is None:
                return [rows, 1]
            if self._repeats(k):
                return [rows]
            if self._evenly(k) is not None:
                return [rows, rows - 1]
            return [rows, *([extent % rows] if extent % rows else [])]
        return [1]

    def _rows(self, k: int) -> int:
        """Return how many iterations of shared loop ``k`` a tile or a band has."""
        schedule = self.plan.schedule
        if k == schedule.shared - 1 and k != self.plan.axis:
            return max(schedule.band, schedule.tile[1])
        return schedule.tile[0] if k == schedule.shared - 2 else 1

    def _overlaps(self, k: int) -> bool:
        """Whether the last vector along ``k`` covers some columns a second time, not leaving any.

        A tile that is not whole then has fewer vectors, and there are no single elements.
        """
        extent, width = self.extents[0][k].number, self.plan.first.width
        tiled = self.plan.schedule.tile != (1, 1) and k == self.plan.axis
        return tiled and extent is not None and extent >= width and self.plan.repeatable

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
        size = self._sizes(k)[0]
        shared = self.plan.schedule.shared
        if k == self.plan.axis and all(len(o.reductions) == shared for o in self.plan.ops):
            return -(-BLOCK // size) * size
        return size

    def _parallel(self) -> None:
        """Write the collapsed parallel loops; blocked where a loop is tiled or vectorised."""
        schedule = self.plan.schedule
        blocks = [self._block(k) for k in range(schedule.parallel)]
        counts = [
            self.writer.divide(self.extents[0][k] + (b - 1), b, arith.DivUIOp)
            for k, b in enumerate(blocks)
        ]
        trips = Index.of(1)
        for count in counts:
            trips = self._product(trips, count)
        grain = schedule.grain
        for k, b in enumerate(blocks):
            grain = max(1, grain // min(b, self.extents[0][k].number or b))

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
        if k not in ranges and (whole := self._evenly(k)) is not None:
            middle = Index.of(whole * sizes[0])
            self.writer.sweep((bounds[0], middle), sizes[:1], (), body, hint)
            self.writer.sweep((middle, bounds[1]), sizes[1:], (), body, hint)
            return
        self.writer.sweep(bounds, sizes, (), body, hint)

    def _points(self, at: list[tuple[Index, int]]) -> list[Point]:
        """Return the points of a tile that starts at ``at`` and has these sizes."""
        points = [Point((None,) * len(at))]
        for k, (start, size) in enumerate(at):
            width = self.plan.first.width if k == self.plan.axis else 1
            cover = _cover if width > 1 and self._overlaps(k) else _spread
            points = [q for p in points for q in cover(p, k, start, size, width)]
        return [replace(p, slot=i) for i, p in enumerate(points)]

    def _iteration(self, points: list[Point]) -> None:
        """Write every op at the points of one iteration of the shared loops."""
        self.memory.open(points)
        outer = self.writer.location
        for op in self.plan.ops:
            self.write_op(op, points)
        self.writer.location = outer

    # the loops of one op

    def write_op(self, op: Structured, points: Sequence[Point]) -> None:
        """Write one op at the points of the shared loops."""
        shared = self.plan.schedule.shared
        self.writer.location = op.op.location
        rest = (None,) * (len(op.reductions) - shared)
        here = [replace(p, indices=(*p.indices, *rest)) for p in points]
        self._own(op, op.parallel_after(shared), here)

    def bounds(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of loop ``k``, or the part of it to be run now."""
        if not self.plan.schedule.shared and k in self.narrowed:
            return self.narrowed[k]
        return Index(), self.extents[self.plan.ops.index(op)][k]

    def _own(self, op: Structured, loops: Sequence[int], points: list[Point]) -> None:
        """Write the parallel loops that only ``op`` has, then what they contain."""
        if not loops:
            self._reduce(op, points)
            return
        k, width = loops[0], op.width
        sizes = _steps(width, op.interleave) if k == op.axis else [1]

        def body(start: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            here = [q for p in points for q in _spread(p, k, start, size, width)]
            self._own(op, loops[1:], here)
            return ()

        self.writer.sweep(self.bounds(op, k), sizes, (), body, NAMES[k % len(NAMES)])

    def _reduce(self, op: Structured, points: list[Point]) -> None:
        """Write the reduction loops of ``op`` around its body, its results carried in registers."""
        carried = op.carried
        if not op.reduced:
            self._compute(op, points, ())
            return
        state = [self.start(op, k, p) for p in points for k in carried]
        totals = self.run(op, points, state)
        self.finish(op, points, totals)

    def run(self, op: Structured, points: Sequence[Point], state: list[SSAValue]) -> list[SSAValue]:
        """Run the reduction loops of ``op`` from ``state``, one value per point and output."""
        count = len(op.carried)
        points = [replace(p, carried=i * count) for i, p in enumerate(points)]
        lanes = self._interleave(op)
        if not lanes:
            return list(self._reduction(op, op.reduced, points, state))
        combiners = [self.combiner(op, k) for k in op.carried]
        width = op.width if op.width > 1 else 0
        partial: list[SSAValue] = [
            self.writer.splat(c.identity(state[i].type), width)
            for _ in points
            for _ in range(lanes)
            for i, c in enumerate(combiners)
        ]
        done = self._reduction(op, op.reduced, points, [*state, *partial])
        totals = list(done[: len(state)])
        for p in range(len(points)):
            for i, combiner in enumerate(combiners):
                first = len(state) + p * lanes * count + i
                parts = [done[first + c * count] for c in range(lanes)]
                totals[p * count + i] = self._join(combiner, totals[p * count + i], parts)
        return totals

    def _interleave(self, op: Structured) -> int:
        """Return how many vectors of partial results each output gets, 0 for none."""
        if op.axis < 0 or not op.reductions[op.axis] or op.width * op.interleave == 1:
            return 0
        lower, upper = self.bounds(op, op.axis)
        trip = (upper - lower).number
        return op.interleave if trip is None else min(op.interleave, trip // op.width)

    def combiner(self, op: Structured, output: int) -> Combiner:
        """Return how ``output`` joins partial results."""
        combiner = op.combiner(output)
        if combiner is None:
            fail(op.op, f"output {output} is not a reduction whose order is free")
        return combiner

    def _join(self, combiner: Combiner, total: SSAValue, parts: list[SSAValue]) -> SSAValue:
        """Combine partial vectors pairwise, then their lanes, then the scalar."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            joined = [self.combine(combiner, a, b) for a, b in pairs]
            parts = [*joined, *parts[len(joined) * 2 :]]
        value = parts[0]
        if isinstance(value.type, VectorType):
            kind = CombiningKindAttr(CombiningKindFlag(combiner.kind))
            new = vector.ReductionOp.create(
                operands=[value],
                result_types=[value.type.element_type],
                properties={"kind": kind, "fastmath": arith.FastMathFlagsAttr("none")},
            )
            value = self.writer.result(new, total.name_hint)
        return self.combine(combiner, total, value)

    def combine(self, combiner: Combiner, a: SSAValue, b: SSAValue) -> SSAValue:
        """Join two partial results."""
        return self.writer.binary(combiner.op, a, b, a.name_hint)

    def _reduction(
        self, op: Structured, loops: Sequence[int], points: list[Point], state: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Write the remaining reduction loops; return the state after them."""
        if not loops:
            return self._compute(op, points, state)
        k = loops[0]
        hint = NAMES[k % len(NAMES)]
        if k != op.axis or not self._interleave(op):

            def body(start: Index, _: int, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
                here = [p.bind(k, start) for p in points]
                return self._reduction(op, loops[1:], here, args)

            names = self._names(op, len(state))
            return self.writer.sweep(self.bounds(op, k), [1], state, body, hint, names)
        return self._lane_loops(op, loops, points, list(state))

    def _lane_loops(
        self, op: Structured, loops: Sequence[int], points: list[Point], state: list[SSAValue]
    ) -> Sequence[SSAValue]:
        """Cover the vectorised reduction loop; each part of it carries only what it changes."""
        k, count, lanes = loops[0], len(op.carried), self._interleave(op)
        width = op.width if op.width > 1 else 0
        at, upper = self.bounds(op, k)
        for size in _steps(op.width, lanes):
            end = self.writer.last_whole(at, upper, size)
            scalar = size == 1 and (op.width > 1 or lanes > 1)
            vectors = 1 if scalar else size // op.width
            where = [
                p.carried if scalar else len(points) * count + (i * lanes + c) * count
                for i, p in enumerate(points)
                for c in range(vectors)
            ]
            entries = [w + i for w in where for i in range(count)]
            carried = [state[e] for e in entries]
            alone = not scalar and len(loops) == 1
            watch = Watch(self.writer, op, len(points), vectors if alone else 1)
            marks = watch.start(carried)

            def body(
                start: Index,
                args: Sequence[SSAValue],
                vectors: int = vectors,
                scalar: bool = scalar,
                watch: Watch = watch,
            ) -> Sequence[SSAValue]:
                here = [
                    p.bind(k, start + c * op.width, 0 if scalar else width)
                    for p in points
                    for c in range(vectors)
                ]
                here = [replace(p, carried=i * count) for i, p in enumerate(here)]
                return watch.step(args, self._reduction(op, loops[1:], here, args))

            names = [*self._names(op, len(carried)), *(None for _ in marks)]
            done = self.writer.loop(
                (at, end), size, [*carried, *marks], body, NAMES[k % len(NAMES)], names
            )
            for e, value in zip(entries, watch.finish(done), strict=True):
                state[e] = value
            at = end
        return state

    def _names(self, op: Structured, count: int) -> list[str | None]:
        """Return what ``count`` running values are called, the outputs taking turns."""
        names = [op.name(k) for k in op.carried]
        return names * (count // max(len(names), 1))

    # one point

    def start(self, op: Structured, output: int, point: Point) -> SSAValue:
        """Return the value an output has before its reduction."""
        value = op.initial.get(output)
        if value is None:
            value = self.memory.read(op.outputs[output], point, {})
        return self.writer.broadcast(value, point.width)

    def _compute(
        self, op: Structured, points: Sequence[Point], state: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Write the body at every point; store what is not carried; return the next state."""
        carried = op.carried
        cache: dict[object, SSAValue] = {}
        if self.plan.schedule.tile != (1, 1):
            for k, access in enumerate(op.inputs):
                if op.body is not None and op.body.args[k].first_use is not None:
                    read_squares(self.memory, access, points, self.plan.schedule.shared - 2, cache)
        body = BodyWriter(self.writer, op)
        arguments = [self._arguments(op, p, state, cache) for p in points]
        results = [body.write(p, a) for p, a in zip(points, arguments, strict=True)]
        after = list(state)
        for point, values in zip(points, results, strict=True):
            for i, k in enumerate(carried):
                after[point.carried + i] = self.writer.broadcast(values[k], point.width)
            for k, value in enumerate(values):
                if k not in carried:
                    self._write(op, k, point, value)
        return after

    def _arguments(
        self,
        op: Structured,
        point: Point,
        state: Sequence[SSAValue],
        cache: dict[object, SSAValue],
    ) -> list[SSAValue | None]:
        """Return the body's arguments at ``point``; what the body does not use is not loaded."""
        arguments: list[SSAValue | None] = []
        for k, access in enumerate(op.inputs):
            used = op.body is None or op.body.args[k].first_use is not None
            hint = op.body.args[k].name_hint if op.body is not None else None
            arguments.append(self.memory.read(access, point, cache, hint) if used else None)
        carried = op.carried
        for k, access in enumerate(op.outputs):
            if k in carried:
                arguments.append(state[point.carried + carried.index(k)])
            elif op.argument(k) is None:
                arguments.append(None)
            elif k in op.initial:
                arguments.append(op.initial[k])
            else:
                arguments.append(self.memory.read(access, point, cache))
        return arguments

    def finish(self, op: Structured, points: Sequence[Point], totals: Sequence[SSAValue]) -> None:
        """Write out what the reduction loops carried."""
        carried = op.carried
        for i, point in enumerate(points):
            for j, k in enumerate(carried):
                self._write(op, k, point, totals[i * len(carried) + j])

    def _write(self, op: Structured, output: int, point: Point, value: SSAValue) -> None:
        access = op.outputs[output]
        last = self.plan.buffers[access.buffer].last_writer == self.plan.ops.index(op)
        self.memory.write(access, point, value, last)


def _after(op: Structured, shared: int) -> range:
    return range(shared, len(op.reductions))


def _steps(width: int, count: int) -> list[int]:
    """Return the steps of a vectorised loop: ``count`` vectors, one vector, one iteration."""
    return list(dict.fromkeys([width * count, width, 1]))


def _spread(point: Point, k: int, start: Index, size: int, width: int) -> list[Point]:
    """Return ``point`` at each of ``size`` iterations of loop ``k``, in vectors where they fit."""
    if width > 1 and size >= width:
        return [point.bind(k, start + c * width, width) for c in range(size // width)]
    return [point.bind(k, start + c) for c in range(size)]


def _cover(point: Point, k: int, start: Index, size: int, width: int) -> list[Point]:
    """Return ``point`` at vectors that cover ``size`` iterations, the last one ending with them."""
    starts = [min(c, size - width) for c in range(0, size, width)]
    return [point.bind(k, start + c, width) for c in starts]
