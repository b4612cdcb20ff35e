"""The loops of each op of a kernel inside the shared ones, and its body.

The unit of writing is a list of points: the iterations, scalar or vector, that one iteration of the
innermost loop computes side by side (the register tile, or the interleaved vectors).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from stepwell.dialects.kernel.levels import MASK, OVERLAP
from stepwell.lowering.linalg_to_loops.accesses import Memory
from stepwell.lowering.linalg_to_loops.body import BodyWriter, Point
from stepwell.lowering.linalg_to_loops.combining import combiner_of, join
from stepwell.lowering.linalg_to_loops.extremes import Watch
from stepwell.lowering.linalg_to_loops.masked import can_mask, cover_masked, end_masked
from stepwell.lowering.linalg_to_loops.overlap import MIN_LANES, cover, ragged_steps
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.register_transpose import read_transposed
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.within import meets, part, rounded
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, Writer


class OpLoops:
    """Writes the loops that only one op has."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        self.writer = writer
        self.plan = plan
        self.memory = Memory(writer, plan)
        self.extents: list[list[Index]] = []
        """The extents of the loops of each op."""
        self.narrowed: dict[int, tuple[Index, Index]] = {}
        """The range of a loop that runs only in part."""
        self.begins: dict[int, Index] = {}
        """First iterations of shared loops that do not begin at 0; extents count from there."""
        self.first: SSAValue | None = None
        """How many lanes of a vector along a shared loop are enabled; None for all."""

    def write_op(self, op: Structured, points: Sequence[Point]) -> None:
        """Write one op at the points of the shared loops."""
        shared = self.plan.schedule.shared
        self.writer.location = op.op.location
        rest = (None,) * (len(op.reductions) - shared)
        here = [replace(p, indices=(*p.indices, *rest)) for p in points]
        self._parallel_loops(op, op.parallel_after(shared), here)

    def bounds(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of loop ``k`` that runs now."""
        return part(self.writer, op, k, self.whole(op, k))

    def whole(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of loop ``k``, or the part of it that this run of a split sum has."""
        if not self.plan.schedule.shared and k in self.narrowed:
            return self.narrowed[k]
        return Index(), self.extents[self.plan.ops.index(op)][k]

    def _parallel_loops(self, op: Structured, loops: Sequence[int], points: list[Point]) -> None:
        """Write the parallel loops that only ``op`` has, then their contents."""
        if not loops:
            self._reduce(op, points)
            return
        k, width, hint = loops[0], op.width, NAMES[loops[0] % len(NAMES)]
        sizes = steps(width, op.interleave) if k == op.axis else [1]
        (lower, upper), ragged = self._own_bounds(op, k), self._is_ragged(op, k)
        points_of = cover_all if ragged else spread

        def body(start: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            here = [q for p in points for q in points_of(p, k, start, size, width)]
            self._parallel_loops(op, loops[1:], here)
            return ()

        if upper.number is None and k == op.axis and self.masks([op], k):

            def write_first(start: Index, size: int, first: SSAValue | None) -> None:
                here = [q for p in points for q in spread(p, k, start, size, width)]
                here = [replace(p, first=first) for p in here]
                self._parallel_loops(op, loops[1:], here)

            cover_masked(self.writer, (lower, upper), width, op.interleave, write_first, hint)
            return
        if self._covers(op, k, lower, upper):

            def write(start: Index, size: int) -> None:
                lanes = min(size, width)
                here = [q for p in points for q in spread(p, k, start, size, lanes)]
                self._parallel_loops(op, loops[1:], here)

            cover(self.writer, (lower, upper), upper, width, op.interleave, write, hint)
            return
        if not ragged:
            self.writer.sweep((lower, upper), sizes, (), body, hint)
            return
        for size, count in ragged_steps((upper - lower).number or 0, width, op.interleave):
            middle = lower + Index.of(size * count)
            self.writer.sweep((lower, middle), [size], (), body, hint)
            lower = middle

    def _own_bounds(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of a parallel loop to run: all of it, where a fill is folded in."""
        whole = self.whole(op, k)
        if k not in op.within or op.initial:
            return whole
        step = op.width if k == op.axis else 1
        low, high = rounded(self.writer, op, k, whole, step)
        if step > 1:
            high = self.writer.maximum(low, self.writer.minimum(high, whole[1]))
        return low, high

    def masks(self, ops: Sequence[Structured], k: int) -> bool:
        """Whether vectors along loop ``k`` end in one under a mask."""
        return all(op.tail == MASK and can_mask(self.plan, op, k, op.width) for op in ops)

    def _is_ragged(self, op: Structured, k: int) -> bool:
        """Whether the last vector along a parallel loop overlaps the one before."""
        lower, upper = self._own_bounds(op, k)
        extent = (upper - lower).number
        if k != op.axis or op.width == 1 or extent is None or extent < op.width:
            return False
        return op.tail == OVERLAP and extent % op.width > 0

    def _covers(self, op: Structured, k: int, lower: Index, upper: Index) -> bool:
        """Whether `_is_ragged` holds for a loop whose extent is known at launch only."""
        known = lower.number != 0 or upper.number is not None
        return k == op.axis and op.width > 1 and not known and op.tail == OVERLAP

    def _reduce(self, op: Structured, points: list[Point]) -> None:
        """Write the reduction loops of ``op`` around its body, its accumulators in registers."""
        carried = op.carried
        if not op.reduced:
            self._compute(op, points, ())
            return
        state = [self.start(op, k, p) for p in points for k in carried]
        totals = self.run(op, points, state)
        self.finish(op, points, totals)

    def run(self, op: Structured, points: Sequence[Point], state: list[SSAValue]) -> list[SSAValue]:
        """Run the reduction loops of ``op`` from ``state``, one value per point and output.

        They are skipped where no point is in the range that the op computes.
        """
        shared = self.plan.schedule.shared
        whole = [
            k
            for k, reduced in enumerate(op.reductions)
            if not reduced and (k not in self.begins if k < shared else op.initial)
        ]
        if (some := meets(self.writer, op, whole, points)) is not None:
            return self.writer.either(
                some, lambda: self._run_loops(op, points, state), lambda: state
            )
        return self._run_loops(op, points, state)

    def _run_loops(
        self, op: Structured, points: Sequence[Point], state: list[SSAValue]
    ) -> list[SSAValue]:
        count = len(op.carried)
        points = [replace(p, carried=i * count) for i, p in enumerate(points)]
        lanes = self._interleave(op)
        if not lanes:
            return list(self._reduction(op, op.reduced, points, state))
        combiners = [combiner_of(op, k) for k in op.carried]
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
                totals[p * count + i] = join(self.writer, combiner, totals[p * count + i], parts)
        return totals

    def _interleave(self, op: Structured) -> int:
        """Return the number of accumulator vectors of each output, 0 for none."""
        if op.axis < 0 or not op.reductions[op.axis] or op.width * op.interleave == 1:
            return 0
        lower, upper = self.whole(op, op.axis)
        trip = (upper - lower).number
        return op.interleave if trip is None else min(op.interleave, trip // op.width)

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
            for part in self._cut(op, loops, points):
                state = self.writer.sweep(part, [1], state, body, hint, names)
                if self.plan.schedule.unroll:
                    _unroll(state)
            return state
        return self._lane_loops(op, loops, points, list(state))

    def _cut(
        self, op: Structured, loops: Sequence[int], points: Sequence[Point]
    ) -> list[tuple[Index, Index]]:
        """Return the ranges of a loop; each step in which a vector extends past its row is peeled.

        So the emitted code has padding tests only in the steps that need them.
        """
        lower, upper = self.bounds(op, loops[0])
        low, high = lower.number, upper.number
        written = self.plan.padding and self.plan.schedule.unroll and len(loops) == 1
        if not written or low is None or high is None:
            return [(lower, upper)]
        out = [
            self.memory.exceeds_row(op.inputs, [p.bind(loops[0], Index.of(n)) for p in points])
            for n in range(low, high)
        ]
        cuts = [n for n in range(low + 1, high) if out[n - low] or out[n - low - 1]]
        return [(Index.of(a), Index.of(b)) for a, b in pairwise([low, *cuts, high])]

    def _lane_loops(
        self, op: Structured, loops: Sequence[int], points: list[Point], state: list[SSAValue]
    ) -> Sequence[SSAValue]:
        """Cover the vectorised reduction loop; each part carries only the values it changes."""
        k, count, lanes = loops[0], len(op.carried), self._interleave(op)
        width = op.width if op.width > 1 else 0
        at, upper = self.whole(op, k)
        first = op.width * lanes
        for size in steps(op.width, lanes):
            scalar = size == 1 and (op.width > 1 or lanes > 1)
            if scalar and upper.number is None and self.masks([op], k):
                self._masked_tail(op, loops, points, state, (at, upper))
                break
            if scalar:
                at = self._narrower(op, loops, points, state, at)
            end = self.writer.last_whole(at, upper, size)
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
            run = (at, end) if size < first else rounded(self.writer, op, k, (at, end), size)
            done = self.writer.loop(
                run, size, [*carried, *marks], body, NAMES[k % len(NAMES)], names
            )
            for e, value in zip(entries, watch.finish(done), strict=True):
                state[e] = value
            at = end
        return state

    def _masked_tail(
        self,
        op: Structured,
        loops: Sequence[int],
        points: list[Point],
        state: list[SSAValue],
        bounds: tuple[Index, Index],
    ) -> None:
        """Cover the tail of a reduction loop with a vector under a mask."""
        count, lanes = len(op.carried), self._interleave(op)
        starts = [len(points) * count + i * lanes * count for i in range(len(points))]
        entries = [start + i for start in starts for i in range(count)]

        def write(here: list[Point], old: Sequence[SSAValue]) -> Sequence[SSAValue]:
            here = [replace(p, carried=i * count) for i, p in enumerate(here)]
            return self._reduction(op, loops[1:], here, old)

        end_masked(self.writer, bounds, loops[0], op.width, points, (state, entries), write)

    def _narrower(
        self,
        op: Structured,
        loops: Sequence[int],
        points: list[Point],
        state: list[SSAValue],
        at: Index,
    ) -> Index:
        """Cover the tail of a reduction loop with narrower vectors, at most one of each width.

        Return the index from which single iterations are left.
        """
        k, width, upper = loops[0], op.width // 2, self.whole(op, loops[0])[1]
        combiners = [combiner_of(op, output) for output in op.carried]
        count, hint = len(combiners), NAMES[k % len(NAMES)]
        entries = [p.carried + j for p in points for j in range(count)]
        while width >= MIN_LANES:
            end = self.writer.last_whole(at, upper, width)

            def body(
                start: Index, totals: Sequence[SSAValue], width: int = width
            ) -> Sequence[SSAValue]:
                here = [p.bind(k, start, width) for p in points]
                here = [replace(p, carried=i * count) for i, p in enumerate(here)]
                each = combiners * len(points)
                none = [
                    self.writer.splat(c.identity(total.type), width)
                    for c, total in zip(each, totals, strict=True)
                ]
                parts = self._reduction(op, loops[1:], here, none)
                return [
                    join(self.writer, c, total, [part])
                    for c, total, part in zip(each, totals, parts, strict=True)
                ]

            names = self._names(op, len(entries))
            old = [state[entry] for entry in entries]
            done = self.writer.loop((at, end), width, old, body, hint, names)
            for entry, value in zip(entries, done, strict=True):
                state[entry] = value
            at, width = end, width // 2
        return at

    def _names(self, op: Structured, count: int) -> list[str | None]:
        """Return the names of ``count`` accumulators; those of the outputs repeat in turn."""
        names = [op.name(k) for k in op.carried]
        return names * (count // max(len(names), 1))

    # one point

    def start(self, op: Structured, output: int, point: Point) -> SSAValue:
        """Return the initial value of an output's reduction."""
        value = op.initial.get(output)
        if value is None:
            value = self.memory.read(op.outputs[output], point, {})
        return self.writer.broadcast(value, point.width)

    def _compute(
        self, op: Structured, points: Sequence[Point], state: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Write the body at every point; store what is not carried; return the next state."""
        carried = op.carried
        cache = self.cached_loads(op, points)
        if self.plan.schedule.tile != (1, 1):
            for k, access in enumerate(op.inputs):
                if op.body is not None and op.body.args[k].first_use is not None:
                    read_transposed(
                        self.memory, access, points, self.plan.schedule.shared - 2, cache
                    )
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

    def cached_loads(self, op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        """Return the operands at ``points`` that are in registers, keyed by where they are read."""
        del op, points
        return {}

    def _arguments(
        self,
        op: Structured,
        point: Point,
        state: Sequence[SSAValue],
        cache: dict[object, SSAValue],
    ) -> list[SSAValue | None]:
        """Return the body's arguments at ``point``; unused arguments are not loaded."""
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
        """Write the final accumulators to the outputs."""
        carried = op.carried
        for i, point in enumerate(points):
            for j, k in enumerate(carried):
                self._write(op, k, point, totals[i * len(carried) + j])

    def _write(self, op: Structured, output: int, point: Point, value: SSAValue) -> None:
        access = op.outputs[output]
        last = self.plan.buffers[access.buffer].last_writer == self.plan.ops.index(op)
        self.memory.write(access, point, value, last)


def _unroll(results: Sequence[SSAValue]) -> None:
    """Mark the loop with these results as unrolled."""
    if results and isinstance(loop := results[0].owner, scf.ForOp):
        loop.attributes["kernel.unroll"] = UnitAttr()


def steps(width: int, count: int) -> list[int]:
    """Return the steps of a vectorised loop: ``count`` vectors, one vector, one iteration."""
    return list(dict.fromkeys([width * count, width, 1]))


def cover_all(point: Point, k: int, start: Index, size: int, width: int) -> list[Point]:
    """Return ``point`` at vectors that cover ``size`` iterations, the last one ending with them."""
    starts = [min(c, size - width) for c in range(0, size, width)]
    return [point.bind(k, start + c, width) for c in starts]


def spread(point: Point, k: int, start: Index, size: int, width: int) -> list[Point]:
    """Return ``point`` at each of ``size`` iterations of loop ``k``, in vectors where they fit."""
    if width > 1 and size >= width:
        return [point.bind(k, start + c * width, width) for c in range(size // width)]
    return [point.bind(k, start + c) for c in range(size)]
