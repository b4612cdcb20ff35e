"""Facts that follow from the levels of a kernel, each computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels.in_steps import InSteps, in_steps
from stepwell.analysis.levels.kernel_ops import LoopedOp, first_of_rows, loop_ops, loops_of
from stepwell.analysis.structured import dims_of, indices
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.levels import (
    FOR,
    PARALLEL,
    PEEL,
    UNROLL,
    VECTOR,
    Level,
    Levels,
    Schedule,
)
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.kernel.versions import VERSIONS, versions_in

DOTS, DOUBLE_BUFFERED = ("dot", "biased_dot"), "double_buffered"
"""How operands are packed as words for dot-product instructions."""


class Lanes(NamedTuple):
    """The loop of an op that is vectorised, the width of its vectors and how many are interleaved.

    Without vectors the width is 1; axis -1 stands for no loop. ``tail`` is the end of the loop.
    """

    axis: int = -1
    width: int = 1
    many: int = 1
    tail: str = PEEL
    nontemporal: tuple[int, ...] = ()
    """The results that are written with nontemporal stores."""


NO_LANES = Lanes()


def schedule_of(function: kernel.FuncOp) -> Schedule | None:
    """Return the levels of a kernel, if it has any."""
    found = function.attributes.get(SCHEDULE)
    return found.data if isinstance(found, kernel.ScheduleAttr) else None


def write_schedule(function: kernel.FuncOp, schedule: Schedule) -> None:
    """Write the levels of a kernel."""
    function.attributes[SCHEDULE] = kernel.ScheduleAttr(schedule)


def kernel_levels(function: kernel.FuncOp) -> KernelLevels:
    """Return the facts of a kernel whose levels were checked when they were written."""
    return KernelLevels(function, schedule_of(function))


def levels_of_versions(function: kernel.FuncOp) -> list[KernelLevels]:
    """Return the facts of a kernel, then those of its versions."""
    versions = versions_in(function.attributes.get(VERSIONS))
    others = (KernelLevels(function, each.schedule.data) for each in versions)
    return [kernel_levels(function), *others]


def write_all(function: kernel.FuncOp, schedules: Sequence[Schedule]) -> None:
    """Write the levels of a kernel, then those of its versions, as `levels_of_versions` reads."""
    own, *others = schedules
    write_schedule(function, own)
    if versions := versions_in(function.attributes.get(VERSIONS)):
        function.attributes[VERSIONS] = ArrayAttr(
            each.with_schedule(kernel.ScheduleAttr(schedule))
            for each, schedule in zip(versions, others, strict=True)
        )


class KernelLevels:
    """The levels of one kernel, and facts that follow from them.

    Without levels, and with groups, the loops are nested in order.
    """

    def __init__(self, function: kernel.FuncOp, schedule: Schedule | None) -> None:
        self.function = function
        self.groups = schedule if schedule is not None and schedule.has_groups else None
        """The levels of groups of work-items, which `lowering.nests` reads."""
        self.schedule = Schedule() if schedule is None or self.groups else schedule
        self.ops = loop_ops(function)
        self.shared = choices.number(function, "kernel.shared")
        """How many of the first loops all ops share."""
        self.loops = [loops_of(op) for op in self.ops]
        """For each op, whether the iterations of each of its loops are independent."""
        self.all = [self.schedule.of(number) for number in range(len(self.ops))]
        """All levels of each op."""
        self.levels = self.schedule.levels or (self.all[0] if self.all else ())

    # threads

    @cached_property
    def threads(self) -> Levels:
        """The levels that distribute iterations over threads, but no parts of sums."""
        return tuple(x for x in self.levels if x.kind == PARALLEL and not x.parts)

    @cached_property
    def parallel(self) -> int:
        """How many of the shared loops, or of the tasks of scalar code, are parallel."""
        loops = {level.loop for level in self.threads}
        return len(loops) if loops == set(range(len(loops))) else self.shared

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Iterations of each parallel loop that one parallel iteration takes."""
        steps = {level.loop: level.step for level in self.threads}
        return tuple(steps.get(k, 1) for k in range(self.parallel))

    @property
    def grain(self) -> int:
        """Parallel iterations that are worth a thread; 0 where they are counted at launch."""
        found = self.threads[-1].action("grain") if self.threads else None
        return 1 if found is None or found.number is None else found.number

    @property
    def pipeline_rows(self) -> int:
        """Rows of a software-pipelined run: each second loop runs with the next row's first."""
        found = self.threads[-1].action("pipeline") if self.threads else None
        return 0 if found is None or found.number is None else found.number

    @cached_property
    def mirrors(self) -> bool:
        """Whether blocks on and below the diagonal are computed, and the others are copied."""
        return any(level.action("mirror") for level in self.threads)

    # the loops that all ops share

    @cached_property
    def _last(self) -> dict[int, Level]:
        """The innermost level of each loop that is no vector and not unrolled."""
        return {level.loop: level for level in self.levels if level.kind in (PARALLEL, FOR)}

    def step(self, loop: int) -> int:
        """Return the iterations of a shared loop that the innermost levels compute."""
        tiled = loop >= self.shared - 2 or loop == self.axis
        return self._last[loop].step if tiled and loop in self._last else 1

    def tail(self, loop: int) -> str:
        """Return how a shared loop ends."""
        return self._last[loop].tail if loop in self._last else PEEL

    @cached_property
    def tails(self) -> dict[int, str]:
        """How the shared loops end that are not vectorised, where they do not peel."""
        found = {k: self.tail(k) for k in range(self.shared) if k != self.axis}
        return {k: tail for k, tail in found.items() if tail != PEEL}

    @cached_property
    def tile(self) -> tuple[int, int]:
        """The register tile: iterations of the last two shared loops, as rows and vectors."""
        if self.parts is not None or self.shared < 2 or not self.ops:
            return 1, 1
        row, column = self.shared - 2, self.shared - 1
        axis, width, *_ = _lanes(self.all[0], self.shared)
        rows, columns = 1 if axis == row else self.step(row), self.step(column)
        if axis == column or self.in_steps:
            columns = max(columns // width, 1)
            return (rows, columns) if rows > 1 or self.in_steps or self.prefetch else (1, 1)
        return (rows, columns) if rows > 1 else (1, 1)

    @cached_property
    def band(self) -> int:
        """Iterations of the last shared loop that each op takes at a time, in loops of its own."""
        column = self.shared - 1
        alone = column >= 0 and self.tile == (1, 1) and not self.whole_reads
        return self.step(column) if alone and column != self.axis else 1

    @property
    def is_tiled(self) -> bool:
        """Whether several iterations of shared loops, besides vectors, run at a time."""
        return self.tile != (1, 1) or self.band > 1

    # the levels of ops

    @cached_property
    def lanes(self) -> tuple[Lanes, ...]:
        """The vectorised loop of each op that has loops, in order."""
        found = tuple(_lanes(levels, self.shared) for levels in self.all)
        if self.in_steps:
            found = tuple(Lanes(self.shared - 1) if x == NO_LANES else x for x in found)
        if self.tile == (1, 1):
            return found
        return tuple(x._replace(many=1) if x.axis < self.shared else x for x in found)

    @cached_property
    def axis(self) -> int:
        """The shared loop that is vectorised, or -1."""
        found = _lanes(self.all[0], self.shared).axis if self.all else -1
        found = self.shared - 1 if found < 0 and self.in_steps else found
        return found if found < self.shared else -1

    @cached_property
    def unroll(self) -> frozenset[int]:
        """The loops of each op's sum that are unrolled by the target's compiler."""
        return frozenset(
            level.loop
            for levels, loops, lanes in zip(self.all, self.loops, self.lanes, strict=True)
            for level in levels
            if self.parts is None and level.kind == UNROLL
            and self.shared <= level.loop < len(loops)
            and not loops[level.loop] and level.loop != lanes.axis
        )  # fmt: skip

    @cached_property
    def prefetch(self) -> int:
        """How many steps before their use operands are prefetched; 0 for no prefetching."""
        levels = [self.parts] if self.parts else [level for each in self.all for level in each]
        found = [action for level in levels if (action := level.action("prefetch"))]
        return max((1 if x.number is None else x.number for x in found), default=0)

    # sums

    @cached_property
    def parts(self) -> Level | None:
        """The level whose parts of a sum run in parallel."""
        return next((level for levels in self.all for level in levels if level.parts), None)

    @cached_property
    def sums(self) -> dict[int, InSteps]:
        """The levels of each op, by number, whose sum is taken in steps."""
        found = ((n, in_steps(levels, self.loops[n])) for n, levels in enumerate(self.all))
        return {number: levels for number, levels in found if levels is not None}

    @cached_property
    def in_steps(self) -> InSteps | None:
        """The levels of the op whose sum is taken in steps, its partial sums in scratch."""
        found = next(iter(self.sums.values()), None)
        inside = found is not None and found.walked <= len(self.levels)
        return found if inside and self.parts is None else None

    @property
    def whole_reads(self) -> bool:
        """Whether operands are packed or read in runs instead of by the body's accesses."""
        return self.in_steps is not None or self.parts is not None

    @cached_property
    def packs(self) -> dict[int, str]:
        """How each operand is packed that a sum in steps packs."""
        return self.in_steps.packs if self.in_steps else {}

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """The cache block: iterations of the last shared loops (rows, columns last), then depth.

        () unless all shared loops are split once, in order, around the only split of the sum, and
        rows are the only ones inside of it.
        """
        steps, column = self.in_steps, self.shared - 1
        if steps is None or len(steps.splits) > 1:
            return ()
        (split,), first = steps.splits, _first_of_rows(self.ops[next(iter(self.sums))], self.shared)
        before = [level.loop for level in steps.levels[:split]]
        inside = [level.loop for level in steps.levels[split + 1 : steps.walked]]
        once = list(range(self.shared))
        rows = [k for k in once[first:-1] if k in inside]
        if before not in (once, [*once, column]) or inside != rows:
            return ()
        sizes = [level.step for level in steps.levels[: self.shared]]
        alone = all(size == 1 for size in sizes[:first])
        return (*sizes[first:], steps.levels[split].step) if alone else ()


def _lanes(levels: Levels, shared: int) -> Lanes:
    """Return the vectorised loop of an op, the width and the number of interleaved vectors."""
    vector = next((level for level in levels if level.kind == VECTOR), None)
    axis, width = (vector.loop, vector.step) if vector else (_abreast(levels, shared), 1)
    if axis < 0:
        return NO_LANES
    found = [level for level in levels if level.loop == axis and level is not vector]
    unrolled = len(found) > 1 and found[-1].kind == UNROLL
    tail = next((level.tail for level in found if level.tail != PEEL), PEEL)
    many = max(found[-2].step // width, 1) if unrolled else 1
    past = [a.number or 0 for a in vector.actions if a.name == "nontemporal"] if vector else []
    return Lanes(axis, width, many, tail, tuple(past))


def _abreast(levels: Levels, shared: int) -> int:
    """Return the own loop whose scalar iterations are interleaved; or -1."""
    walked: set[int] = set()
    rows = {level.loop for level in levels if level.parts and shared}
    for level in levels:
        own = level.loop >= shared and level.loop not in rows
        if level.kind == UNROLL and level.loop in walked and own:
            return level.loop
        walked.add(level.loop)
    return -1


def _first_of_rows(op: LoopedOp, shared: int) -> int:
    """Return the first shared loop after the last one that the packed operand varies with."""
    for index in indices(op)[: len(op.inputs)] if isinstance(op, linalg.GenericOp) else ():
        used = dims_of(index)
        if shared - 1 in used and shared - 2 not in used:
            return first_of_rows(index, shared)
    return shared - 2
