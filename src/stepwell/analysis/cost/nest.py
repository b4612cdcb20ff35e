"""The loops of a scheduled kernel, as the terms of the model read them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.cost.accesses import Access, Shapes, accesses
from stepwell.analysis.cost.work import Count, chain_from, count
from stepwell.analysis.levels.kernel_ops import LoopedOp, loop_ops, loops_of
from stepwell.analysis.structured import combiner, indices
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import PARALLEL, PEEL, UNROLL, VECTOR, Level, Schedule


@dataclass(frozen=True)
class Step:
    """A level whose steps run one after the other, or in parallel."""

    level: Level
    trips: float
    """Steps per step of the enclosing level of the same loop, on average."""
    ranges: tuple[float, ...]
    """Iterations of each loop in one step."""
    count: float
    """All steps of this level of its loop, shorter ones at ends too."""

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
class Reading:
    """The properties of one op that no schedule changes."""

    op: LoopedOp
    sizes: tuple[int, ...]
    """The extent of each loop."""
    parallel: tuple[bool, ...]
    given: list[Access]
    """The accesses of the op before packing."""
    body: Count
    """The instructions of the body; none for a fill."""

    @cached_property
    def arrays(self) -> dict[SSAValue, list[Access]]:
        """The accesses to each array before packing."""
        found: dict[SSAValue, list[Access]] = {}
        for access in self.given:
            found.setdefault(access.array, []).append(access)
        return found

    @cached_property
    def sums(self) -> list[int]:
        """The reduction loops."""
        return [k for k, parallel in enumerate(self.parallel) if not parallel]

    @cached_property
    def carried(self) -> float:
        """The instructions on the chain from one iteration of a sum to the next."""
        op, carried = self.op, 0.0
        assert isinstance(op, linalg.GenericOp)
        for number in range(len(op.outputs)):
            argument = op.body.block.args[len(op.inputs) + number]
            if argument.first_use is not None:
                free = combiner(op, number) is not None
                carried = max(carried, 1.0 if free else chain_from(op.body.block, argument))
        return carried

    @cached_property
    def bytes(self) -> int:
        """The bytes of the widest element."""
        return max((access.bytes for access in self.given), default=4)


def readings_of(
    function: kernel.FuncOp, fma: bool, shapes: Shapes, unaligned: Collection[int] = ()
) -> list[Reading]:
    """Return the properties of the ops of a kernel.

    fma : whether a multiply-add is one instruction
    unaligned : the arguments that may begin within a cache line, by number
    """

    def reading(op: LoopedOp) -> Reading:
        body = count(op.body.block, fma) if isinstance(op, linalg.GenericOp) else Count()
        given = accesses(op, shapes, unaligned)
        return Reading(op, loop_sizes(op, shapes), tuple(loops_of(op)), given, body)

    return [reading(op) for op in loop_ops(function)]


@dataclass
class Nest:
    """The loops around the body of one op."""

    reading: Reading
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
    def sizes(self) -> tuple[int, ...]:
        """The extent of each loop."""
        return self.reading.sizes

    @property
    def given(self) -> list[Access]:
        """The accesses of the op before packing."""
        return self.reading.given

    @property
    def arrays(self) -> dict[SSAValue, list[Access]]:
        """The accesses to each array before packing."""
        return self.reading.arrays

    @property
    def sums(self) -> list[int]:
        """The reduction loops."""
        return self.reading.sums

    @cached_property
    def whole(self) -> tuple[float, ...]:
        """The extent of each loop."""
        return tuple(map(float, self.sizes))

    def ranges(self, depth: int) -> tuple[float, ...]:
        """Return the iterations of each loop in one step of the first ``depth`` levels."""
        return self.steps[depth - 1].ranges if depth else self.whole

    def repeats(self, depth: int, access: Access) -> float:
        """Return how many steps of the first ``depth`` levels read as much of an access as one.

        Shorter steps read less, but of loops that it does not vary with, where they read it whole.
        """
        found, counted = 1.0, set[int]()
        for step in reversed(self.steps[:depth]):
            if step.loop in access.loops:
                found *= step.trips
            elif step.loop not in counted:
                counted.add(step.loop)
                found *= step.count
        return found

    @cached_property
    def accesses(self) -> list[Access]:
        """The accesses of the op; those of packed operands read the copies."""
        found = list(self.given)
        for pack in self.packs:
            copy = pack.access.packed(self.axis, self.ranges(pack.depth))
            found[found.index(pack.access)] = copy
        return found

    @cached_property
    def tail(self) -> str:
        """The tail policy of the vectorised loop: that of its innermost level with steps."""
        return next((s.level.tail for s in reversed(self.steps) if s.loop == self.axis), PEEL)

    @cached_property
    def in_panels(self) -> bool:
        """Whether an operand is read from panels as wide as the innermost levels."""
        return any(
            any(axis.is_rest and self.axis in axis.steps for axis in access.axes)
            or (access.is_copy and self.axis in access.loops)
            for access in self.accesses
            if not access.written
        )

    @cached_property
    def prefetches(self) -> bool:
        """Whether a level prefetches what its next step reads."""
        return any(step.level.action("prefetch") for step in self.steps if step.level.actions)

    @cached_property
    def computed(self) -> float:
        """The part of all blocks that is computed: others are copied beyond the diagonal."""
        if not any(step.level.action("mirror") for step in self.steps if step.level.actions):
            return 1.0
        *_, rows, _ = (step for step in self.steps if step.is_parallel)
        return (1 + 1 / ceil(self.sizes[rows.loop] / rows.level.step)) / 2

    @cached_property
    def packed(self) -> dict[int, int]:
        """The number of levels outside of each packed operand's packing."""
        return {pack.access.operand: pack.depth for pack in self.packs}


def nests_of(readings: Sequence[Reading], schedule: Schedule) -> list[Nest]:
    """Return the loops of every op of a kernel under a schedule."""
    shared = len(schedule.levels)
    ops = enumerate(readings)
    return [_nest(reading, schedule.of(number), shared) for number, reading in ops]


def _nest(reading: Reading, levels: Sequence[Level], shared: int) -> Nest:
    sizes = reading.sizes
    nest = Nest(reading)
    ranges = list(nest.whole)
    blocks = [{size: 1} for size in sizes]
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
            blocks[k] = divided(blocks[k], ceil(max(step, 1.0)))
            nest.steps.append(Step(level, trips, tuple(ranges), sum(blocks[k].values())))
        if number < shared:
            nest.shared = len(nest.steps)
    nest.packs = _packs(nest)
    return nest


def divided(blocks: Mapping[int, int], by: int) -> dict[int, int]:
    """Return how many steps of each size take blocks, of which so many have each size."""
    found: dict[int, int] = {}
    for size, many in blocks.items():
        for part, times in ((by, size // by), (size % by, 1)):
            if part and times:
                found[part] = found.get(part, 0) + many * times
    return found


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
