"""The loops of a scheduled kernel, as the terms of the model read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.cost.accesses import Access, Shapes, accesses
from stepwell.analysis.levels.nesting import LoopedOp, loop_ops, loops_of
from stepwell.analysis.structured import indices
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import PARALLEL, UNROLL, VECTOR, Level, Schedule


@dataclass(frozen=True)
class Step:
    """A level whose steps run one after the other, or in parallel."""

    level: Level
    trips: float
    """Steps per step of the enclosing level of the same loop, on average."""
    ranges: tuple[float, ...]
    """Iterations of each loop in one step."""

    @property
    def loop(self) -> int:
        """The loop of the level."""
        return self.level.loop

    @property
    def is_parallel(self) -> bool:
        """Whether the steps run in parallel."""
        return self.level.kind == PARALLEL


@dataclass(frozen=True)
class Pack:
    """An operand that is packed in the order in which it is read."""

    access: Access
    depth: int
    """Levels outside of the packing."""
    how: str


@dataclass
class Nest:
    """The loops around the body of one op."""

    op: LoopedOp
    sizes: tuple[int, ...]
    parallel: tuple[bool, ...]
    given: list[Access]
    """The accesses of the op before packing."""
    steps: list[Step] = field(default_factory=list[Step])
    """The levels that are loops, the outermost first."""
    units: dict[int, int] = field(default_factory=dict[int, int])
    """Unrolled iterations of each loop in the innermost levels."""
    axis: int = -1
    """The vectorised loop."""
    width: int = 1
    """Lanes of its vectors."""
    shared: int = 0
    """How many of the steps all ops of the kernel share."""
    packs: list[Pack] = field(default_factory=list[Pack])

    @property
    def block(self) -> Block | None:
        """The body; None for a fill."""
        return self.op.body.block if isinstance(self.op, linalg.GenericOp) else None

    @property
    def whole(self) -> tuple[float, ...]:
        """The extent of each loop."""
        return tuple(map(float, self.sizes))

    def ranges(self, depth: int) -> tuple[float, ...]:
        """Return the iterations of each loop in one step of the first ``depth`` levels."""
        return self.steps[depth - 1].ranges if depth else self.whole

    @cached_property
    def accesses(self) -> list[Access]:
        """The accesses of the op; those of packed operands read the copies."""
        found = list(self.given)
        for pack in self.packs:
            copy = pack.access.packed(self.axis, self.ranges(pack.depth))
            found[found.index(pack.access)] = copy
        return found

    @cached_property
    def arrays(self) -> dict[SSAValue, list[Access]]:
        """The accesses to each array before packing."""
        found: dict[SSAValue, list[Access]] = {}
        for access in self.given:
            found.setdefault(access.array, []).append(access)
        return found

    @cached_property
    def packed(self) -> dict[int, int]:
        """The number of levels outside of each packed operand's packing."""
        return {pack.access.operand: pack.depth for pack in self.packs}

    @cached_property
    def sums(self) -> list[int]:
        """The reduction loops."""
        return [k for k, parallel in enumerate(self.parallel) if not parallel]


def nests_of(function: kernel.FuncOp, schedule: Schedule, shapes: Shapes) -> list[Nest]:
    """Return the loops of every op of a kernel under a schedule."""
    shared = len(schedule.levels)
    ops = enumerate(loop_ops(function))
    return [_nest(op, schedule.of(number), shared, shapes) for number, op in ops]


def _nest(op: LoopedOp, levels: Sequence[Level], shared: int, shapes: Shapes) -> Nest:
    sizes, parallel = loop_sizes(op, shapes), tuple(loops_of(op))
    nest = Nest(op, sizes, parallel, accesses(op, shapes))
    ranges = list(nest.whole)
    for number, level in enumerate(levels):
        k = level.loop
        if k >= len(sizes):  # the op has no such loop: it runs in the last step
            continue
        if level.kind == VECTOR:
            nest.axis, nest.width = k, level.step
            nest.units.setdefault(k, level.step)
        elif level.kind == UNROLL:
            nest.units.setdefault(k, max(round(min(ranges[k], sizes[k])), 1))
        else:
            step = ranges[k] / level.parts if level.parts else float(level.step)
            trips = max(ranges[k] / max(step, 1.0), 1.0)
            ranges[k] = min(ranges[k], max(step, 1.0))
            nest.steps.append(Step(level, trips, tuple(ranges)))
        if number < shared:
            nest.shared = len(nest.steps)
    nest.packs = _packs(nest)
    return nest


def _packs(nest: Nest) -> list[Pack]:
    """Return the packing actions of the levels."""
    found: list[Pack] = []
    for depth, step in enumerate(nest.steps, 1):
        for action in step.level.actions:
            of = [a for a in nest.given if a.operand == action.number]
            if action.name == "pack" and of:
                found.append(Pack(of[0], depth, action.detail))
    return found


def loop_sizes(op: LoopedOp, shapes: Shapes) -> tuple[int, ...]:
    """Return the extent of each loop of an op, 1 where no operand has it."""
    if isinstance(op, linalg.FillOp):
        return tuple(shapes(op.outputs[0]))
    found: dict[int, int] = {}
    for value, index in zip(reversed(op.operands), reversed(indices(op)), strict=True):
        for expr, size in zip(index, shapes(value), strict=True):
            if isinstance(expr, AffineDimExpr):
                found.setdefault(expr.position, size)
    return tuple(found.get(k, 1) for k in range(len(op.iterator_types)))
