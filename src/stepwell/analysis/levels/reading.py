"""Read the nesting of a kernel off its levels; refuse levels that cannot be lowered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.levels.in_steps import InSteps, in_steps
from stepwell.analysis.levels.legality import check_nesting
from stepwell.analysis.levels.nesting import (
    NO_LANES,
    Lanes,
    LoopedOp,
    Nesting,
    first_of_rows,
    is_free,
    loop_ops,
    loops_of,
)
from stepwell.analysis.levels.stores import check_stores
from stepwell.analysis.levels.tail_rules import check_tails
from stepwell.analysis.levels.writing import levels_in_steps, levels_of
from stepwell.analysis.structured import indices
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.levels import (
    FOR,
    PARALLEL,
    PEEL,
    UNROLL,
    VECTOR,
    Action,
    Level,
    Levels,
    Schedule,
)
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.kernel.versions import VERSIONS, versions_in

OUTER = (PARALLEL, FOR)
OF_THREADS = ("grain", "pipeline")
"""Actions of the last parallel level, which `Nesting` keeps as numbers."""


def schedule_of(function: kernel.FuncOp) -> Schedule | None:
    """Return the levels of a kernel, if it has any."""
    found = function.attributes.get(SCHEDULE)
    return found.data if isinstance(found, kernel.ScheduleAttr) else None


def nesting_of(function: kernel.FuncOp) -> Nesting:
    """Return the nesting of a kernel whose levels were checked when they were written.

    Without levels, and with groups, which `lowering.nests` reads, the loops are nested in order.
    """
    schedule = schedule_of(function)
    if schedule is None or schedule.has_groups:
        shared = choices.number(function, "kernel.shared")
        return Nesting(shared, lanes=(NO_LANES,) * len(loop_ops(function)))
    return _Reader(function, schedule).nesting()


def nestings_of(function: kernel.FuncOp) -> list[Nesting]:
    """Return the nesting of a kernel, then those of its versions."""
    versions = versions_in(function.attributes.get(VERSIONS))
    others = (_Reader(function, each.schedule.data).nesting() for each in versions)
    return [nesting_of(function), *others]


def lanes_of(function: kernel.FuncOp) -> dict[Operation, Lanes]:
    """Return the vectorised loop of each op that has loops."""
    return dict(zip(loop_ops(function), nesting_of(function).lanes, strict=True))


def sums_in_steps(function: kernel.FuncOp) -> dict[Operation, InSteps]:
    """Return the levels of each op of a kernel whose sum is taken in steps."""
    schedule, ops = schedule_of(function), loop_ops(function)
    if schedule is None or schedule.has_groups:
        return {}
    found = ((op, in_steps(schedule.of(n), loops_of(op))) for n, op in enumerate(ops))
    return {op: levels for op, levels in found if levels is not None}


def check_levels(function: kernel.FuncOp, schedule: Schedule) -> Nesting:
    """Return the nesting of a kernel; raise VerifyException where its levels cannot be lowered.

    The nesting must be spelled as these very levels: so no level is accepted without effect.
    """
    reader = _Reader(function, schedule)
    reader.check_loops()
    nesting = reader.nesting()
    check_nesting(reader.ops, reader.loops, nesting, reader.all)
    check_tails(function, nesting)
    check_stores(function, nesting)
    if (spelled := levels_of(function, nesting)) != schedule:
        raise VerifyException(f"no loops can be made so; the nearest are {spelled}")
    return nesting


class _Reader:
    """Reads the levels of one kernel."""

    def __init__(self, function: kernel.FuncOp, schedule: Schedule) -> None:
        self.function, self.schedule, self.ops = function, schedule, loop_ops(function)
        self.shared = choices.number(function, "kernel.shared")
        self.loops = [loops_of(op) for op in self.ops]
        self.all = [schedule.of(number) for number in range(len(self.ops))]
        self.levels = schedule.levels or (self.all[0] if self.all else ())
        self.sums = [number for number, loops in enumerate(self.loops) if not all(loops)]

    def check_loops(self) -> None:
        """Refuse levels over loops that do not exist."""
        for number in self.schedule.ops:
            if number >= len(self.ops):
                count = len(self.ops)
                raise VerifyException(f"there is no op {number}: the kernel has {count} with loops")
        for number, levels in enumerate(self.all):
            own = 0 if len(self.ops) == 1 else len(self.schedule.levels)
            for n, level in enumerate(levels):
                self._check_loop(level, self.ops[number], self.loops[number], n >= own)

    def _check_loop(self, level: Level, op: LoopedOp, loops: list[bool], own: bool) -> None:
        if own and level.loop >= len(loops):
            raise VerifyException(
                f"'{level}': there is no loop d{level.loop}, the op has {len(loops)}"
            )
        known = level.loop < len(loops)
        taken_at_once = level.kind in (UNROLL, VECTOR) and level.step > 1
        if known and taken_at_once and not loops[level.loop] and not is_free(op, loops):
            raise VerifyException(f"'{level}': iterations of d{level.loop} run in order")
        if known and level.parts and loops[level.loop]:
            raise VerifyException(f"'{level}': only a sum's loop is cut into parts")
        if known and level.kind == PARALLEL and not (level.parts or level.loop < self.shared):
            raise VerifyException(f"'{level}': only loops that all ops share run in parallel")

    def nesting(self) -> Nesting:
        """Return the nesting that the levels describe."""
        levels = self._in_steps()
        found = self._nesting(levels)
        if levels is not None and not found.split:
            order = self._order(levels)
            if not found.in_steps or levels_in_steps(self.function, found) != order:
                found.blocks, found.strip, found.order = (), (0, 0), order
                self._read_tile(found)
        return found

    def _in_steps(self) -> InSteps | None:
        """Return the levels of the first op whose sum is taken in steps."""
        found = (in_steps(self.all[number], self.loops[number]) for number in self.sums)
        return next((levels for levels in found if levels is not None), None)

    def _order(self, levels: InSteps) -> Levels:
        """Return the levels around a tile without the actions of threads, if all ops share them."""
        if levels.walked > len(self.levels):
            return ()
        return tuple(_without_threads(level) for level in self.levels[: levels.walked])

    def _nesting(self, levels: InSteps | None) -> Nesting:
        found = Nesting(self.shared)
        if not self.ops:
            self._read_threads(found)
            found.tasks, found.parallel, found.steps = found.parallel > 0, 0, ()
            return found
        found.lanes = tuple(map(self._lanes, range(len(self.ops))))
        if parts := self._parts():
            found.split, found.prefetch = parts.parts, _distance(parts)
            found.split_rows = self._rows_of_parts()
            return found
        self._read_threads(found)
        for mark in set(self._marks()):
            setattr(found, mark, True)
        found.prefetch = max((_distance(level) for each in self.all for level in each), default=0)
        if levels is not None:
            self._read_steps(found, levels)
        found.tails = {
            level.loop: level.tail
            for level in self.levels
            if level.tail != PEEL and level.loop < self.shared and level.loop != found.axis
        }
        self._read_tile(found)
        return found

    def _read_tile(self, found: Nesting) -> None:
        """Read the register tile."""
        rows, columns = self._last(self.shared - 2), self._last(self.shared - 1)
        if found.in_steps:
            found.lanes = tuple(Lanes(self.shared - 1) if x == NO_LANES else x for x in found.lanes)
        if 0 <= found.lanes[0].axis == self.shared - 2:
            rows = 1  # a step of that loop is a vector
        if found.lanes[0].axis == self.shared - 1:
            columns = max(columns // found.lanes[0].width, 1)
            alone = rows == 1 and not (found.in_steps or found.prefetch)
            tile = (1, 1) if alone else (rows, columns)
        elif rows == 1 and columns > 1:
            found.band, tile = columns, (1, 1)
        else:
            tile = rows, columns
        if self.shared >= 2 and tile != (1, 1):
            found.tile = tile
            found.lanes = tuple(
                x._replace(many=1) if x.axis < self.shared else x for x in found.lanes
            )

    def _read_threads(self, found: Nesting) -> None:
        """Read the parallel loops and the iterations of each that a parallel iteration takes."""
        levels = [level for level in self.levels if level.kind == PARALLEL and not level.parts]
        if not levels:
            return
        loops = {level.loop for level in levels}
        found.parallel = len(loops) if loops == set(range(len(loops))) else self.shared
        steps = {level.loop: level.step for level in levels}
        found.steps = tuple(steps.get(k, 1) for k in range(found.parallel))
        grain, pipeline_rows = levels[-1].action("grain"), levels[-1].action("pipeline")
        found.grain = 1 if grain is None or grain.number is None else grain.number
        found.pipeline_rows = (pipeline_rows and pipeline_rows.number) or 0

    def _parts(self) -> Level | None:
        return next((level for levels in self.all for level in levels if level.parts), None)

    def _rows_of_parts(self) -> int:
        """Return the rows that a part of a sum over rows reads side by side."""
        for levels in self.all:
            cut = next((level.loop for level in levels if level.parts), None)
            for level in levels if self.shared else ():
                if level.loop == cut and level.kind == FOR:
                    return level.step
        return 0

    def _lanes(self, number: int) -> Lanes:
        """Return the vectorised loop of an op, the width and the number of interleaved vectors."""
        levels = self.all[number]
        vector = next((level for level in levels if level.kind == VECTOR), None)
        axis, width = (vector.loop, vector.step) if vector else (self._abreast(levels), 1)
        if axis < 0:
            return NO_LANES
        found = [level for level in levels if level.loop == axis and level is not vector]
        unrolled = len(found) > 1 and found[-1].kind == UNROLL
        tail = next((level.tail for level in found if level.tail != PEEL), PEEL)
        many = max(found[-2].step // width, 1) if unrolled else 1
        past = [a.number or 0 for a in vector.actions if a.name == "nontemporal"] if vector else []
        return Lanes(axis, width, many, tail, tuple(past))

    def _abreast(self, levels: Levels) -> int:
        """Return the own loop whose scalar iterations are interleaved; or -1."""
        walked: set[int] = set()
        rows = {level.loop for level in levels if level.parts and self.shared}
        for level in levels:
            own = level.loop >= self.shared and level.loop not in rows
            if level.kind == UNROLL and level.loop in walked and own:
                return level.loop
            walked.add(level.loop)
        return -1

    def _marks(self) -> Iterator[str]:
        """Yield the flags of `Nesting` that actions and unrolled loops stand for."""
        for number, levels in enumerate(self.all):
            loops, axis = self.loops[number], self._lanes(number).axis
            for level in levels:
                own = self.shared <= level.loop < len(loops)
                written_out = level.kind == UNROLL and level.loop != axis
                if written_out and own and not loops[level.loop]:
                    yield "unroll"
                for action in level.actions:
                    yield from self._mark(number, action)

    def _mark(self, number: int, action: Action) -> Iterator[str]:
        if action.name == "sum":
            yield "accumulate_in_f32"
        elif action.name == "pack" and number in self.sums:
            op = self.ops[number]
            where = indices(op) if isinstance(op, linalg.GenericOp) else []
            index = where[action.number or 0] if (action.number or 0) < len(op.inputs) else ()
            if action.detail in ("dot", "biased_dot"):
                yield "dots"
            if any(self.shared - 1 in e.used_dims() for e in index):
                yield from ["pack_first"] if action.detail == "first" else []
            else:
                yield "pack_rows"
                if action.detail == "biased_dot":
                    yield "bias_to_unsigned"

    def _last(self, k: int) -> int:
        """Return the iterations of loop ``k`` that the innermost levels compute."""
        steps = [level.step for level in self.levels if level.loop == k and level.kind in OUTER]
        return steps[-1] if steps else 1

    def _read_steps(self, found: Nesting, levels: InSteps) -> None:
        """Read a block, if levels split rows and columns before the sum; a strip, if columns."""
        split, row, column = levels.splits[0], self.shared - 2, self.shared - 1
        deep, sizes = levels.levels[split].step, dict[int, int]()
        for level in levels.levels[:split]:
            sizes.setdefault(level.loop, level.step)
        first = self._first_of_rows()
        if column in sizes and row not in sizes:
            found.strip = sizes[column], deep
        elif column in sizes and all(sizes.get(k, 1) == 1 for k in range(first)):
            found.blocks = (*(sizes.get(k, 1) for k in range(first, self.shared)), deep)

    def _first_of_rows(self) -> int:
        """Return the first shared loop after the last one that the packed operand varies with."""
        op = self.ops[self.sums[0]]
        for index in indices(op)[: len(op.inputs)] if isinstance(op, linalg.GenericOp) else ():
            used = {d for expr in index for d in expr.used_dims()}
            if self.shared - 1 in used and self.shared - 2 not in used:
                return first_of_rows(index, self.shared)
        return self.shared - 2


def _without_threads(level: Level) -> Level:
    """Return a level without the actions that `Nesting` keeps as numbers."""
    if level.kind != PARALLEL or not level.actions:
        return level
    return replace(level, actions=tuple(a for a in level.actions if a.name not in OF_THREADS))


def _distance(level: Level) -> int:
    """Return how many steps before their use a level prefetches operands."""
    found = level.action("prefetch")
    return 0 if found is None else 1 if found.number is None else found.number
