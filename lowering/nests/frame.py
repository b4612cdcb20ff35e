"""The loops over groups and lanes of a kernel, and the state that all writers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, UnitAttr, i64
from xdsl.ir import Block, Region, SSAValue

from stepwell.dialects.kernel.levels import GROUP, LANE, Levels, Schedule
from stepwell.lowering.linalg_to_loops.builder import INDEX
from stepwell.lowering.linalg_to_loops.frame import Frame as Loops
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.writer import Index, Writer
from stepwell.lowering.nests.places import Places
from stepwell.lowering.nests.scope import Scope
from stepwell.lowering.nests.steps import Step, lanes_of, steps_of

LANES_OF_GROUP = "kernel.lanes"
"""Attribute of a loop over groups: the lanes of a group."""
LANE_LOOP = "kernel.lane"
"""Attribute of a loop over the lanes of a group."""


class Frame:
    """One kernel while its loops are written."""

    def __init__(self, writer: Writer, plan: Plan, schedule: Schedule) -> None:
        self.writer, self.plan, self.schedule = writer, plan, schedule
        self.shared = plan.levels.shared
        self.places = Places(writer)
        self.local: dict[object, SSAValue] = {}
        """Local memory of staged operands."""
        self.groups = [level for level in schedule.levels if level.kind == GROUP]
        inner = schedule.levels[len(self.groups) :]
        shares = all(level.loop < self.shared for level in inner)
        self.inner = inner if shares else ()
        """The levels over shared loops within a group, which all ops share."""
        self._first = () if shares else inner
        self.lanes = max((lanes_of(self.steps(n)) for n in range(len(plan.ops))), default=1)
        loops = Loops(writer, plan)
        self.extents = list(loops.extents.values())
        """The extents of the loops of each op."""
        self.dim = loops.memory.dim
        """Returns the extent of a dimension; the first call must be outside all loops."""
        for access in (each for op in plan.ops for each in (*op.inputs, *op.outputs)):
            if isinstance(access.buffer.type, MemRefType):
                for dim in range(len(access.exprs)):
                    self.dim(access.buffer, dim)
        self.group_numbers: dict[int, Index] = {}
        """For each loop, the number of the current group's step."""
        self.number = 0
        """The number of the op that is written."""
        self.open_lanes: Sequence[Step] = ()
        """The lane levels that are open."""

    @property
    def together(self) -> bool:
        """Whether all ops run in one loop over lanes."""
        return any(level.kind == LANE for level in self.inner)

    def steps(self, number: int) -> list[Step]:
        """Return the levels of an op within a group."""
        return steps_of((*self.inner, *self.own_levels(number)), self.group_sizes())

    def own_levels(self, number: int) -> Levels:
        """Return the levels of one op besides those over shared loops."""
        return (*self._first, *self.schedule.ops.get(number, ()))

    def group_sizes(self) -> dict[int, int]:
        """Return the iterations of each loop that a group takes."""
        return {level.loop: level.step for level in self.groups if not level.parts}

    def of_op(self, scope: Scope, ends: Sequence[Index]) -> Scope:
        """Return the scope of an op, with its own loops at 0."""
        have = len(scope.ends)
        rest = tuple(Index() for _ in ends[have:])
        points = tuple(p._replace(indices=(*p.indices, *rest)) for p in scope.points)
        return replace(scope, points=points, ends=(*scope.ends, *ends[have:]))

    # groups and lanes

    def over_groups(self, count: Index, body: Callable[[Index], None]) -> None:
        """Write a loop over groups."""

        def inside(number: Index) -> None:
            self.places.begin_group()
            self.local.clear()
            body(number)
            self.places.group = None

        loop = self._parallel(count, inside, "g")
        loop.attributes[LANES_OF_GROUP] = IntegerAttr(self.lanes, i64)

    def over_lanes(self, count: int, body: Callable[[Index], None]) -> None:
        """Write a loop over the first ``count`` lanes, after a barrier."""

        def inside(lane: Index) -> None:
            self.writer.bound(lane, 0, count - 1)
            body(lane)

        loop = self._parallel(Index.of(count), inside, "l")
        loop.attributes[LANE_LOOP] = UnitAttr()

    def _parallel(self, count: Index, body: Callable[[Index], None], hint: str) -> scf.ParallelOp:
        block = Block(arg_types=[INDEX])
        block.args[0].name_hint = hint
        ends = [self.writer.index(0), self.writer.value(count), self.writer.index(1)]
        op = scf.ParallelOp([ends[0]], [ends[1]], [ends[2]], Region(block))
        self.writer.insert(op)
        self.writer.fill(block, lambda: body(Index.of(block.args[0])) or (), scf.ReduceOp)
        return op

    def lane_of(self, step: Step, scope: Scope) -> Index:
        """Return the number of the current lane's step: lanes of inner levels are neighbours."""
        assert scope.lane is not None
        lanes = self.open_lanes
        at = next(n for n, each in enumerate(lanes) if each == step)
        behind = prod(each.count for each in lanes[at + 1 :])
        own = self.writer.divide(scope.lane, behind)
        if at:
            own = self.writer.divide(own, step.count, arith.RemUIOp)
        self.writer.bound(own, 0, step.count - 1)
        return own
