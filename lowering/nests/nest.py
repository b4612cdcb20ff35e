"""Write the groups of a kernel and, within each, its ops, from the outermost level inwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects import arith

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.buffers import place_buffers
from stepwell.lowering.nests.kinds.group import trips
from stepwell.lowering.nests.parts import write_parts
from stepwell.lowering.nests.points import Walker
from stepwell.lowering.nests.scope import Scope, State
from stepwell.lowering.nests.steps import Step, steps_of, without_lanes
from stepwell.lowering.nests.sums import Sum


class Nest(Walker):
    """The loops of one kernel."""

    def write(self) -> None:
        """Write all of the kernel."""
        if self.groups[0].parts:
            write_parts(self)
            return
        first = self._scope(self.extents[0][: self.shared])
        groups = [Step(level, 0) for level in self.groups]
        counts = [trips(self, step, first) for step in groups]

        def body(number: Index) -> None:
            self._number(groups, counts, number)

            def inside(scope: Scope, _: State) -> State:
                self._within(scope)
                return ()

            self.walk(groups, first, (), inside)

        self.over_groups(reduce(self.writer.product, counts, Index.of(1)), body)

    def _scope(self, ends: Sequence[Index]) -> Scope:
        point = Point(tuple(Index() for _ in ends))
        return Scope((point,), tuple(ends))

    def _number(self, groups: Sequence[Step], counts: Sequence[Index], number: Index) -> None:
        """Split the number of a group into its number along each loop."""
        for step, count in reversed(list(zip(groups, counts, strict=True))):
            by = count.number if count.number is not None else self.writer.value(count)
            last = step is groups[0]
            at = number if last else self.writer.divide(number, by, arith.RemUIOp)
            if count.number is not None:
                self.writer.bound(at, 0, count.number - 1)
            self.group_numbers[step.loop] = at
            number = number if last else self.writer.divide(number, by, arith.DivUIOp)

    # within a group

    def _within(self, scope: Scope) -> None:
        """Write every op; all in one loop over lanes if they share the lanes."""
        place_buffers(self, scope)
        if not self.together:
            for number, op in enumerate(self.plan.ops):
                self.write_op(op, self.steps(number), self.of_op(scope, self.extents[number]))
            return
        shared = steps_of(self.inner, scope.sizes)

        def each(here: Scope) -> None:
            self.places.registers.clear()
            self.walk(without_lanes(shared), here, (), lambda inner, _: self._each(inner))

        self.in_lanes(shared, scope, each)

    def _each(self, scope: Scope) -> State:
        for number, op in enumerate(self.plan.ops):
            own = steps_of(self.own_levels(number), scope.sizes)
            self.write_op(op, own, self.of_op(scope, self.extents[number]))
        return ()

    def write_op(self, op: Structured, steps: Sequence[Step], scope: Scope) -> None:
        """Write one op."""
        self.writer.location = op.op.location
        self.number = self.plan.ops.index(op)
        if op.carried:
            Sum(self, op).write(steps, scope)
            return

        def inside(here: Scope) -> None:
            self.walk(without_lanes(steps), here, (), lambda s, _: self.compute(op, s, ()))

        self.in_lanes(steps, scope, inside)
