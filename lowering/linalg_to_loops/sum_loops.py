"""The loops that an op sums over, around its body at points; accumulators are in registers.

Where a loop is vectorised, each of its parts carries only the accumulators that it changes:
several interleaved vectors, then one, then narrower ones or one under a mask, then single
iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from stepwell.analysis.structured import coefficient
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.combining import combiner_of, join
from stepwell.lowering.linalg_to_loops.extremes import Watch
from stepwell.lowering.linalg_to_loops.first_lanes import replace_first
from stepwell.lowering.linalg_to_loops.frame import Bounds, Frame
from stepwell.lowering.linalg_to_loops.points import compute, finish, start
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.tails import before_mask, steps
from stepwell.lowering.linalg_to_loops.within import meets, rounded
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index
from stepwell.transforms.kernels.schedule.vectors import MIN_LANES

Step = Callable[[list[Point], Sequence[SSAValue]], Sequence[SSAValue]]
"""Writes one step at points; returns the accumulators after it."""

Several: TypeAlias = tuple[int, Callable[[Sequence[Point]], None]]
"""A number of steps, and a function that writes code before them at the points of the first."""


def write_sum(frame: Frame, op: Structured, points: list[Point]) -> None:
    """Write the loops of a sum at points, from its initial values to its results."""
    state = [start(frame, op, k, p) for p in points for k in op.carried]
    finish(frame, op, points, Sum(frame, op).run(points, state))


class Sum:
    """The sum of one op.

    several : how many steps of the innermost loop are written out, and what begins them
    """

    def __init__(self, frame: Frame, op: Structured, several: Several | None = None) -> None:
        self.frame, self.op, self.writer = frame, op, frame.writer
        self.several = several
        self.count = len(op.carried)
        """Accumulators of a point."""
        self.vectors = self._interleave()
        """The vectors of accumulators of each output, 0 for none."""
        self.width = op.width if op.width > 1 else 0
        self.combiners = [combiner_of(op, k) for k in op.carried] if self.vectors else []

    def _interleave(self) -> int:
        op = self.op
        if op.axis < 0 or not op.reductions[op.axis] or op.width * op.interleave == 1:
            return 0
        lower, upper = self.frame.whole(op, op.axis)
        trip = (upper - lower).number
        if trip is None:
            return op.interleave
        least = int(self.frame.masks([op], op.axis))  # of which a mask enables some lanes
        return max(min(op.interleave, trip // op.width), least)

    def run(self, points: Sequence[Point], state: list[SSAValue]) -> list[SSAValue]:
        """Run the loops from ``state``, one value per point and output.

        They are skipped where no point is in the range that the op computes.
        """
        op, frame = self.op, self.frame
        whole = [
            k
            for k, reduced in enumerate(op.reductions)
            if not reduced
            and (k not in frame.begins if k < frame.plan.levels.shared else op.initial)
        ]
        some = meets(self.writer, op, whole, points)
        return self.writer.either(some, lambda: self._totals(points, state), lambda: state)

    def _totals(self, points: Sequence[Point], state: list[SSAValue]) -> list[SSAValue]:
        points, op = self._numbered(points), self.op
        if not self.vectors:
            return list(self._loops(op.reduced, points, state))
        partial: list[SSAValue] = [
            self.writer.splat(c.identity(state[i].type), self.width)
            for _ in range(len(points) * self.vectors)
            for i, c in enumerate(self.combiners)
        ]
        done = self._loops(op.reduced, points, [*state, *partial])
        totals = list(done[: len(state)])
        for n, total in enumerate(totals):
            point, i = divmod(n, self.count)
            first = len(state) + point * self.vectors * self.count + i
            parts = [done[first + c * self.count] for c in range(self.vectors)]
            totals[n] = join(self.writer, self.combiners[i], total, parts)
        return totals

    def _numbered(self, points: Sequence[Point]) -> list[Point]:
        """Return points whose accumulators follow each other."""
        return [p._replace(carried=i * self.count) for i, p in enumerate(points)]

    def _loops(
        self, loops: Sequence[int], points: list[Point], state: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Write the remaining loops; return the state after them."""
        if not loops:
            return compute(self.frame, self.op, points, state)
        if self._is_written_out(loops):  # rows, which share loads, are innermost
            for n in self._written_order(loops[-1]):
                here = [p.bind(loops[-1], Index.of(n)) for p in points]
                state = self._loops(loops[:-1], here, state)
            return state
        k = loops[0]
        if k == self.op.axis and self.vectors:
            return self._lanes(loops, points, list(state))

        return self._in_turn(loops, points, state)

    def _in_turn(
        self, loops: Sequence[int], points: list[Point], state: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Write the first of the remaining loops, step after step, and the others inside of it."""
        k, inner = loops[0], loops[1:]
        many, begin = self.several if self.several and not inner else (1, None)

        def body(at: Index, size: int, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if begin is not None and size == many:
                begin([p.bind(k, at) for p in points])
            for n in range(size):
                here = [p.bind(k, at + n) for p in points]
                self.frame.before_row(self.op, inner, here)
                args = self._loops(inner, here, args)
            return args

        sizes = [many, 1] if many > 1 else [1]
        for part in self._cut(loops, points):
            names = self._names(len(state))
            state = self.writer.sweep(part, sizes, state, body, NAMES[k % len(NAMES)], names)
            loop = state[0].owner if state else None
            if k in self.frame.plan.levels.unroll and isinstance(loop, scf.ForOp):
                loop.attributes["kernel.unroll"] = UnitAttr()
        return state

    def _is_written_out(self, loops: Sequence[int]) -> bool:
        """Whether the steps of the last loop, over a window, are written one by one.

        Each load is then shared: C compilers do not share loads under a mask, nor the lanes of
        vectors at a stride, which are those of another step, moved.
        """
        k, op, plan = loops[-1], self.op, self.frame.plan
        if k not in plan.levels.unroll or k == op.axis:
            return False
        moved = len(loops) == 1 and self._shares_lanes(k)
        if not moved and not any(padding.masked for padding in plan.padding.values()):
            return False
        lower, upper = self.frame.bounds(op, k)
        return lower.number == 0 and upper.number is not None

    def _shares_lanes(self, k: int) -> tuple[int, int] | None:
        """Return the strides of vectors and of loop ``k`` along rows that both read."""
        for x in self.op.inputs:
            stride, step = (coefficient(x.exprs[-1], loop) or 0 for loop in (self.op.axis, k))
            if x.buffer in self.frame.plan.padding and stride > 1 and step:
                return stride, step
        return None

    def _written_order(self, k: int) -> list[int]:
        """Return the steps of loop ``k``: those that share lanes follow each other.

        Vectors whose lanes are moved later would occupy registers in the steps between.
        """
        stride, step = self._shares_lanes(k) or (1, 1)
        count = self.frame.bounds(self.op, k)[1].number or 0
        return sorted(range(count), key=lambda n: n * step % stride)

    def _cut(self, loops: Sequence[int], points: Sequence[Point]) -> list[Bounds]:
        """Return the ranges of a loop; each step in which a vector extends past its row is peeled.

        So the emitted code has padding tests only in the steps that need them.
        """
        lower, upper = self.frame.bounds(self.op, loops[0])
        low, high = lower.number, upper.number
        plan = self.frame.plan
        written = plan.padding and loops[0] in plan.levels.unroll and len(loops) == 1
        if not written or low is None or high is None:
            return [(lower, upper)]
        out = [
            self.frame.memory.exceeds_row(
                self.op.inputs, [p.bind(loops[0], Index.of(n)) for p in points]
            )
            for n in range(low, high)
        ]
        cuts = [n for n in range(low + 1, high) if out[n - low] or out[n - low - 1]]
        return [(Index.of(a), Index.of(b)) for a, b in pairwise([low, *cuts, high])]

    def _names(self, count: int) -> list[str | None]:
        """Return the names of ``count`` accumulators; those of the outputs repeat in turn."""
        names = [self.op.name(k) for k in self.op.carried]
        return names * (count // max(len(names), 1))

    # the vectorised loop

    def _lanes(
        self, loops: Sequence[int], points: list[Point], state: list[SSAValue]
    ) -> list[SSAValue]:
        """Write the vectorised loop part by part."""
        k, width = loops[0], self.op.width
        at, upper = self.frame.whole(self.op, k)
        if self.frame.ends_under_mask(self.op, k):
            end = before_mask(self.writer, width, upper, self.frame.lengths(self.op, k))
            self._part(loops, (at, end), (width, 1), points, state, self._entries(points, 1))
            self._masked(loops, points, state, (end, upper))
            return state
        wide = width * self.vectors
        for size in steps(width, self.vectors):
            if size == 1 < wide:
                self._tail(loops, points, state, (at, upper))
                break
            end, many = self.writer.last_whole(at, upper, size), size // width
            run = (at, end) if size < wide else rounded(self.writer, self.op, k, (at, end), size)
            self._part(loops, run, (self.width, many), points, state, self._entries(points, many))
            at = end
        return state

    def _entries(self, points: Sequence[Point], vectors: int) -> list[int]:
        """Return the places of the first vectors of accumulators of each point."""
        first, each = len(points) * self.count, self.vectors * self.count
        own = range(vectors * self.count)
        return [first + p * each + i for p in range(len(points)) for i in own]

    def _part(
        self,
        loops: Sequence[int],
        bounds: Bounds,
        lanes: tuple[int, int],
        points: Sequence[Point],
        state: list[SSAValue],
        entries: Sequence[int],
        step: Step | None = None,
    ) -> None:
        """Write a part of the loop, which changes the accumulators ``entries``.

        lanes : of a vector, 0 for single iterations; and the vectors of a step
        """
        k, (width, many) = loops[0], lanes
        each = max(width, 1)
        watch = Watch(self.writer, self.op, len(points), many if len(loops) == 1 else 1)
        carried = [state[e] for e in entries]
        marks = watch.start(carried)

        def body(at: Index, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            here = [p.bind(k, at + c * each, width) for p in points for c in range(many)]
            here = self._numbered(here)
            return watch.step(
                args, step(here, args) if step else self._loops(loops[1:], here, args)
            )

        names = [*self._names(len(carried)), *(None for _ in marks)]
        hint = NAMES[k % len(NAMES)]
        done = self.writer.loop(bounds, each * many, [*carried, *marks], body, hint, names)
        for entry, value in zip(entries, watch.finish(done), strict=True):
            state[entry] = value

    def _tail(
        self, loops: Sequence[int], points: list[Point], state: list[SSAValue], bounds: Bounds
    ) -> None:
        """Cover the end of the loop: at most one narrower vector of each width, then singly."""
        at, upper = bounds
        width = self.op.width // 2
        if self.frame.masks([self.op], loops[0]):
            self._masked(loops, points, state, bounds)
            return
        entries = [p.carried + i for p in points for i in range(self.count)]
        while width >= MIN_LANES:
            end = self.writer.last_whole(at, upper, width)
            joined = self._joined(loops[1:], width)
            self._part(loops, (at, end), (width, 1), points, state, entries, joined)
            at, width = end, width // 2
        self._part(loops, (at, upper), (0, 1), points, state, entries)

    def _joined(self, loops: Sequence[int], width: int) -> Step:
        """Return a step that adds a narrower vector, and then its lanes, to scalar accumulators."""

        def step(here: list[Point], totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            each = self.combiners * len(here)
            none = [
                self.writer.splat(c.identity(total.type), width)
                for c, total in zip(each, totals, strict=True)
            ]
            parts = self._loops(loops, here, none)
            return [
                join(self.writer, c, total, [part])
                for c, total, part in zip(each, totals, parts, strict=True)
            ]

        return step

    def _masked(
        self, loops: Sequence[int], points: list[Point], state: list[SSAValue], bounds: Bounds
    ) -> None:
        """Cover the end of the loop with the first lanes of one vector."""
        lower, upper = bounds
        left = self.writer.value(upper - lower)
        entries = self._entries(points, 1)
        old = [state[e] for e in entries]

        def masked() -> list[SSAValue]:
            here = [p.bind(loops[0], lower, self.width)._replace(first=left) for p in points]
            new = self._loops(loops[1:], self._numbered(here), old)
            return [replace_first(self.writer, a, b, left) for a, b in zip(new, old, strict=True)]

        known = (upper - lower).number is not None
        if known or self.frame.ends_under_mask(self.op, loops[0]):
            new = masked()
        else:
            some = self.writer.compare("sgt", Index.of(left), Index())
            new = self.writer.either(some, masked, lambda: old)
        for entry, value in zip(entries, new, strict=True):
            state[entry] = value
