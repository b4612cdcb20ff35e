"""Reductions: accumulators in registers, combined across lanes in a tree of a fixed shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from stepwell.analysis.structured import element
from stepwell.dialects.kernel.levels import LANE
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.combining import combine, combiner_of
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.places import LANES, LOCAL
from stepwell.lowering.nests.points import clamped, compute, in_lanes, store, walk
from stepwell.lowering.nests.scope import Scope, State
from stepwell.lowering.nests.steps import Step
from stepwell.transforms.passes import fail

Finish: TypeAlias = Callable[[int, Scope, Point, SSAValue], None]
"""``(output, scope, point, total)``: stores a result."""


class Sum:
    """One op that reduces."""

    def __init__(self, frame: Frame, op: Structured, finish: Finish | None = None) -> None:
        self.frame, self.op, self.writer = frame, op, frame.writer
        self.finish: Finish = finish or self._store
        self.starts_empty = finish is not None

    def _store(self, output: int, scope: Scope, point: Point, value: SSAValue) -> None:
        store(self.frame, self.op, output, scope, point, value)

    def _is_sum(self, step: Step) -> bool:
        return self.op.reductions[step.loop]

    def write(self, steps: Sequence[Step], scope: Scope) -> None:
        """Write the levels outside of the sum, then the sum."""
        lanes = [step for step in steps if step.kind == LANE]
        rest = [step for step in steps if step.kind != LANE]
        if scope.lane is not None:
            self._in_registers(rest, scope)
            return
        at = min((steps.index(step) for step in lanes), default=0)
        outside = [step for step in steps[:at] if step.kind != LANE]
        inside = [step for step in steps[at:] if step.kind != LANE]
        if any(self._is_sum(step) for step in lanes):
            if outside:
                fail(self.op.op, "lanes share a sum only outside of its loops")
            self._in_tree(lanes, inside, scope)
        elif outside:
            self._in_steps(lanes, outside, inside, scope)
        else:
            in_lanes(self.frame, lanes, scope, lambda s: self._in_registers(inside, s))

    # points of one lane

    def _points(self, steps: Sequence[Step], scope: Scope) -> Scope:
        """Return the scope of all points whose sums a lane accumulates side by side."""
        found: list[Scope] = []
        own = [step for step in steps if not self._is_sum(step)]
        walk(self.frame, own, scope, (), lambda s, _: found.append(s) or ())
        return found[0]

    def _loops(self, steps: Sequence[Step], scope: Scope, state: State) -> State:
        sums = [step for step in steps if self._is_sum(step)]
        return walk(self.frame, sums, scope, state, lambda s, v: compute(self.frame, self.op, s, v))

    def _start(self, scope: Scope) -> list[SSAValue]:
        return [self._first(k, scope, p) for p in scope.points for k in self.op.carried]

    def _first(self, output: int, scope: Scope, point: Point) -> SSAValue:
        value = self.op.initial.get(output)
        if value is None:
            safe = clamped(self.frame, scope, self._at_start(point))
            access = self.op.outputs[output]
            value = self.frame.places.read(self.op, access, -1, scope, (point, safe), {})
        return self.writer.broadcast(value, point.width)

    def _at_start(self, point: Point) -> Point:
        for k, reduced in enumerate(self.op.reductions):
            point = point.bind(k, Index()) if reduced else point
        return point

    def _finish(self, scope: Scope, totals: State) -> None:
        count = len(self.op.carried)
        for n, point in enumerate(scope.points):
            for j, output in enumerate(self.op.carried):
                self.finish(output, scope, point, totals[n * count + j])

    def _in_registers(self, steps: Sequence[Step], scope: Scope) -> None:
        """Accumulate in the registers of one lane, which computes the whole sum."""
        parallel = [s for s in steps if not self._is_sum(s)]
        first = next((n for n, s in enumerate(steps) if self._is_sum(s)), len(steps))
        outside = [s for s in parallel if steps.index(s) < first and s.kind == "for"]
        inside = [s for s in steps if s not in outside]

        def at(here: Scope, _: State) -> State:
            points = self._points(inside, here)
            self._finish(points, self._loops(inside, points, self._start(points)))
            return ()

        walk(self.frame, outside, scope, (), at)

    # lanes that synchronise between the steps of a sum

    def _kinds(self) -> list[Attribute]:
        return [element(self.op.outputs[k].buffer) for k in self.op.carried]

    def _in_steps(
        self,
        lanes: Sequence[Step],
        outside: Sequence[Step],
        inside: Sequence[Step],
        scope: Scope,
    ) -> None:
        """Keep the accumulators of each lane in its registers between staged steps."""
        frame, writer = self.frame, self.writer
        slots = prod(s.count for s in inside if not self._is_sum(s))
        kinds = self._kinds()
        kept = [
            frame.places.allocate([frame.lanes, slots], kind, LANES, self.op.name(k))
            for k, kind in zip(self.op.carried, kinds, strict=True)
        ]

        def each(points: Scope) -> list[tuple[SSAValue, list[Index]]]:
            lane = points.lane or Index()
            return [
                (memory, [lane, Index.of(n)]) for n in range(len(points.points)) for memory in kept
            ]

        def begin(here: Scope) -> None:
            points = self._points(inside, here)
            for value, (memory, at) in zip(self._start(points), each(points), strict=True):
                writer.store(value, memory, at)

        def step(here: Scope) -> None:
            points = self._points(inside, here)
            state = [
                writer.load(memory, at, 0, self.op.name(k))
                for (memory, at), k in zip(each(points), self._names(points), strict=True)
            ]
            for value, (memory, at) in zip(
                self._loops(inside, points, state), each(points), strict=True
            ):
                writer.store(value, memory, at)

        def end(here: Scope) -> None:
            points = self._points(inside, here)
            self._finish(points, [writer.load(memory, at) for memory, at in each(points)])

        in_lanes(frame, lanes, scope, begin)
        walk(frame, outside, scope, (), lambda s, _: in_lanes(frame, lanes, s, step) or ())
        in_lanes(frame, lanes, scope, end)

    def _names(self, points: Scope) -> list[int]:
        return [k for _ in points.points for k in self.op.carried]

    # lanes that share a sum

    def _in_tree(self, lanes: Sequence[Step], inside: Sequence[Step], scope: Scope) -> None:
        """Accumulate a part in each lane, then combine halves of the lanes down to one."""
        frame, writer, op = self.frame, self.writer, self.op
        shared = [step for step in lanes if self._is_sum(step)]
        others = [step for step in lanes if not self._is_sum(step)]
        if list(lanes) != [*shared, *others]:
            fail(op.op, "lanes that share a sum come before those that do not")
        many, own = prod(s.count for s in shared), prod(s.count for s in others)
        slots = prod(s.count for s in inside if not self._is_sum(s))
        combiners = [combiner_of(self.op, k) for k in op.carried]
        shape = [slots, many * own]
        parts = [
            frame.places.allocate(shape, kind, LOCAL, f"{op.name(k) or 'sum'}_parts")
            for k, kind in zip(op.carried, self._kinds(), strict=True)
        ]

        def own_part(here: Scope) -> None:
            points = self._points(inside, here)
            empty = [
                writer.splat(c.identity(kind), 0)
                for _ in points.points
                for c, kind in zip(combiners, self._kinds(), strict=True)
            ]
            totals = self._loops(inside, points, empty)
            for n, value in enumerate(totals):
                slot, which = divmod(n, len(parts))
                writer.store(value, parts[which], [Index.of(slot), here.lane or Index()])

        in_lanes(frame, lanes, scope, own_part)
        half = many // 2
        while half:
            frame.over_lanes(half * own, lambda lane, far=half * own: self._add(parts, lane, far))
            half //= 2

        def end(here: Scope) -> None:
            self._finish_tree(parts, self._points(inside, here))

        if others:
            in_lanes(frame, others, scope, end)
        else:
            frame.over_lanes(1, lambda lane: end(replace(scope, lane=lane)))

    def _finish_tree(self, parts: Sequence[SSAValue], points: Scope) -> None:
        """Write the results from the parts of the first lanes and the initial values."""
        lane = points.lane or Index()
        totals = [
            self.writer.load(memory, [Index.of(n), lane])
            for n in range(len(points.points))
            for memory in parts
        ]
        if not self.starts_empty:
            totals = [
                self.writer.binary(combiner_of(self.op, k).op, start, total, total.name_hint)
                for k, start, total in zip(
                    self._names(points), self._start(points), totals, strict=True
                )
            ]
        self._finish(points, totals)

    def _add(self, parts: Sequence[SSAValue], lane: Index, far: int) -> None:
        """Combine each lane's parts with those of the lane ``far`` lanes after it."""
        for memory, output in zip(parts, self.op.carried, strict=True):
            combiner = combiner_of(self.op, output)
            for slot in range(_rows(memory)):
                at = [Index.of(slot), lane]
                a = self.writer.load(memory, at)
                b = self.writer.load(memory, [Index.of(slot), lane + far])
                self.writer.store(combine(self.writer, combiner, a, b), memory, at)


def _rows(memory: SSAValue) -> int:
    assert isinstance(memory.type, MemRefType)
    return memory.type.get_shape()[0]
