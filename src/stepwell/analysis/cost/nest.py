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
    """A level that runs one step after the other, or gives steps to threads."""

    level: Level
    trips: float
    """Steps in one step of the level outside of the same loop, on the average."""
    ranges: tuple[float, ...]
    """Iterations of each loop in one step."""

    @property
    def loop(self) -> int:
        """The loop that it walks through."""
        return self.level.loop

    @property
    def is_parallel(self) -> bool:
        """Whether threads share the steps."""
        return self.level.kind == PARALLEL


@dataclass(frozen=True)
class Pack:
    """An operand that is copied before it is read, so that it lies as it is read."""

    access: Access
    depth: int
    """After how many levels."""
    how: str


@dataclass
class Nest:
    """The loops around the body of one op."""

    op: LoopedOp
    sizes: tuple[int, ...]
    parallel: tuple[bool, ...]
    given: list[Access]
    """What the op touches, where nothing is packed."""
    steps: list[Step] = field(default_factory=list[Step])
    """The levels that are loops, the outermost first."""
    units: dict[int, int] = field(default_factory=dict[int, int])
    """Iterations of each loop that the innermost levels write out beside each other."""
    axis: int = -1
    """The loop of the vectors, ..."""
    width: int = 1
    """... and their lanes."""
    shared: int = 0
    """How many of the steps all ops of the kernel share."""
    packs: list[Pack] = field(default_factory=list[Pack])

    @property
    def block(self) -> Block | None:
        """The body; None of a fill."""
        return self.op.body.block if isinstance(self.op, linalg.GenericOp) else None

    @property
    def whole(self) -> tuple[float, ...]:
        """All iterations of each loop."""
        return tuple(map(float, self.sizes))

    def ranges(self, depth: int) -> tuple[float, ...]:
        """Return the iterations of each loop in one step of the first ``depth`` levels."""
        return self.steps[depth - 1].ranges if depth else self.whole

    @cached_property
    def accesses(self) -> list[Access]:
        """What the op touches; of packed operands, the copies."""
        found = list(self.given)
        for pack in self.packs:
            copy = pack.access.packed(self.axis, self.ranges(pack.depth))
            found[found.index(pack.access)] = copy
        return found

    @cached_property
    def arrays(self) -> dict[SSAValue, list[Access]]:
        """What is touched of each array, where it lies."""
        found: dict[SSAValue, list[Access]] = {}
        for access in self.given:
            found.setdefault(access.array, []).append(access)
        return found

    @cached_property
    def packed(self) -> dict[int, int]:
        """After how many levels each packed operand is copied."""
        return {pack.access.operand: pack.depth for pack in self.packs}

    @cached_property
    def sums(self) -> list[int]:
        """The loops that are summed over."""
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
    """Return what the actions of the levels pack."""
    found: list[Pack] = []
    for depth, step in enumerate(nest.steps, 1):
        for action in step.level.actions:
            of = [a for a in nest.given if a.operand == action.number]
            if action.name == "pack" and of:
                found.append(Pack(of[0], depth, action.detail))
    return found


def loop_sizes(op: LoopedOp, shapes: Shapes) -> tuple[int, ...]:
    """Return how long each loop of an op is; those that no operand tells have one iteration."""
    if isinstance(op, linalg.FillOp):
        return tuple(shapes(op.outputs[0]))
    found: dict[int, int] = {}
    for value, index in zip(reversed(op.operands), reversed(indices(op)), strict=True):
        for expr, size in zip(index, shapes(value), strict=True):
            if isinstance(expr, AffineDimExpr):
                found.setdefault(expr.position, size)
    return tuple(found.get(k, 1) for k in range(len(op.iterator_types)))
