"""Build lists of levels: nests over shared loops, blocks, strips, sums in parts.

Each builder spells its loops in one way, so that a list that was read can be compared with it
(`spelled`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels.kernel_ops import LoopedOp, loops_of, op_extents, prefetched_loop
from stepwell.analysis.levels.queries import KernelLevels, Lanes
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

ASSUMED_LOOP_EXTENT, ASSUMED_ROWS = 512, 1 << 14
"""Assumed extent of a sum's loop that is known at run time only: of a full sum, and over rows."""
OF_THREADS = ("grain", "pipeline")
"""Actions of the last parallel level."""
NO_ACTIONS: Mapping[int, tuple[Action, ...]] = {}


def of_several_steps(levels: Iterable[Level]) -> Levels:
    """Leave out levels that repeat the step of the level around them, which have no effect."""
    found: list[Level] = []
    steps: dict[int, int] = {}
    for level in levels:
        if level.kind == VECTOR or steps.get(level.loop) != level.step:
            found.append(level)
        if not level.parts:
            steps[level.loop] = level.step
    return tuple(found)


def together(outer: Levels, own: Sequence[Iterable[Level]]) -> Schedule:
    """Return a schedule of shared levels and those of each op; one list where all ops agree."""
    lists = [of_several_steps((*outer, *each))[len(outer) :] for each in own]
    if len(set(lists)) == 1:
        return Schedule((*outer, *lists[0]))
    return Schedule(outer, {number: each for number, each in enumerate(lists) if each})


@dataclass(frozen=True)
class Inner:
    """The levels inside of the shared ones: how each op computes one step of these.

    steps : iterations of each shared loop in one step
    lanes : of each op; its vectors along a shared loop fill the step of that loop
    unroll : the loops of sums that are unrolled
    prefetch : how many steps of a sum before their use operands are prefetched, 0 for none
    """

    steps: Sequence[int]
    lanes: Sequence[Lanes]
    unroll: Collection[int] = ()
    prefetch: int = 0

    def of(self, number: int, op: LoopedOp) -> Iterator[Level]:
        """Yield the inner levels of one op: its own loops, then the step of the shared ones."""
        loops, shared = loops_of(op), len(self.steps)
        axis, width, many, tail, stores = self.lanes[number]
        own = range(shared, len(loops))
        ordered = [k for k in own if loops[k]] + [k for k in own if not loops[k]]
        first = self.lanes[0].axis
        far = prefetched_loop(op, first) if self.prefetch and 0 <= first < shared else None
        for k in ordered:
            written_out = k in self.unroll and not loops[k] and k != axis
            step, ends = (width * many, tail) if k == axis else (1, PEEL)
            level = Level(UNROLL if written_out else FOR, k, step, tail=ends)
            if k == far:
                level = level.doing(prefetching(self.prefetch))
            yield level
        for k, step in enumerate(self.steps):
            if k != axis and step > 1:
                yield Level(UNROLL, k)
        if axis < 0:
            return
        if (self.steps[axis] if axis < shared else width * many) > width:
            yield Level(UNROLL, axis, width)
        if width > 1:
            past = tuple(Action("nontemporal", output) for output in stores)
            yield Level(VECTOR, axis, width, actions=past)


def prefetching(steps: int) -> Action:
    """Return the action that prefetches so many steps before the use."""
    return Action("prefetch", steps if steps > 1 else None)


def nest(ops: Sequence[LoopedOp], inner: Inner, outer: Iterable[Level] = ()) -> Schedule:
    """Return a nest over the shared loops, with other levels around it."""
    steps = (Level(FOR, k, step) for k, step in enumerate(inner.steps))
    return around(ops, inner, (*outer, *steps))


def around(ops: Sequence[LoopedOp], inner: Inner, outer: Iterable[Level]) -> Schedule:
    """Return these levels of shared loops around the inner levels of each op."""
    levels = of_several_steps(outer)
    return together(levels, [inner.of(number, op) for number, op in enumerate(ops)])


def in_threads(steps: Iterable[int], grain: int = 1, pipeline_rows: int = 0) -> Levels:
    """Return levels that run the first loops in parallel, in these steps.

    grain : parallel iterations that are worth a thread, 0 where they are counted at launch
    pipeline_rows : rows of a software-pipelined run, 0 for none
    """
    levels = [Level(PARALLEL, k, step) for k, step in enumerate(steps)]
    return with_grain(levels, grain, pipeline_rows)


def with_grain(levels: Sequence[Level], grain: int, pipeline_rows: int = 0) -> Levels:
    """Return levels whose last parallel one has these actions of threads, and no other one has."""
    actions = [Action("grain", grain)] if grain != 1 else []
    actions += [Action("pipeline", pipeline_rows)] if pipeline_rows else []
    last = sum(level.kind == PARALLEL for level in levels) - 1
    plain = [without(level, *OF_THREADS) for level in levels]
    return tuple(x.doing(*actions) if number == last else x for number, x in enumerate(plain))


def without(level: Level, *names: str) -> Level:
    """Return a level without the actions of these names."""
    kept = tuple(action for action in level.actions if action.name not in names)
    return level if kept == level.actions else replace(level, actions=kept)


# sums in steps


def block(
    sizes: Sequence[int],
    tile: tuple[int, int],
    split: Level,
    packs: Mapping[int, tuple[Action, ...]] = NO_ACTIONS,
    parallel: int | None = None,
    mirror: bool = False,
) -> Levels:
    """Return the levels around the tiles of a block.

    sizes : iterations of each shared loop in a block
    tile : rows and columns
    split : the level of the sum
    packs : further actions, by the loop of rows at whose level they are
    parallel : how many of the loops are parallel; by default all
    mirror : whether blocks beyond the diagonal are copied
    """
    row, column = len(sizes) - 2, len(sizes) - 1
    some = len(sizes) if parallel is None else parallel
    levels = [Level(PARALLEL if k < some else FOR, k, size) for k, size in enumerate(sizes)]
    if mirror:
        levels[column] = levels[column].doing(Action("mirror"))
    levels += [Level(FOR, column, tile[1]), split]
    for k in range(column):
        levels.append(Level(FOR, k, tile[0] if k == row else 1, actions=packs.get(k, ())))
    return of_several_steps(levels)


def strip(shared: int, columns: int, tile: tuple[int, int], split: Level) -> Levels:
    """Return the levels around the tiles of strips, whose columns threads share.

    columns : of a strip
    split : the level of the sum
    """
    row, column = shared - 2, shared - 1
    levels = [Level(PARALLEL, k) for k in range(row)]
    levels += [Level(PARALLEL, column, columns), split]
    return of_several_steps((*levels, Level(FOR, column, tile[1]), Level(FOR, row, tile[0])))


# sums in parts


def in_parts(
    ops: Sequence[LoopedOp],
    shared: int,
    lanes: Sequence[Lanes],
    parts: int,
    rows: int = 0,
    prefetch: int = 0,
) -> Schedule:
    """Return the levels of sums that are taken in parallel parts, whose results are added in order.

    rows : how many a part of a sum over rows reads side by side
    """
    axis, width, many, *_ = lanes[0]
    inner = Inner([width * many if k == axis else 1 for k in range(shared)], lanes)
    found: dict[int, Levels] = {}
    for number, op in enumerate(ops):
        if all(loops_of(op)):
            steps = (Level(FOR, k, step) for k, step in enumerate(inner.steps))
            levels = (*steps, *inner.of(number, op))
        else:
            actions = (prefetching(prefetch),) if prefetch else ()
            cut = Level(PARALLEL, _cut(op, shared, lanes[number]), 1, parts, actions)
            levels = _part(op, shared, lanes[number], cut, rows)
        if levels := of_several_steps(levels):
            found[number] = levels
    return Schedule(found[0]) if len(ops) == 1 else Schedule((), found)


def _part(op: LoopedOp, shared: int, lanes: Lanes, cut: Level, rows: int) -> Levels:
    axis, width, many, *_ = lanes
    levels = [cut]
    if shared:
        levels += [Level(FOR, cut.loop, rows), Level(FOR, 0, width * many)]
    for k, parallel in enumerate(loops_of(op)):
        if not parallel and not (shared and k == cut.loop):
            levels.append(Level(FOR, k, width * many if k == axis else 1))
    if shared:
        levels.append(Level(UNROLL, cut.loop))
    if many > 1:
        levels.append(Level(UNROLL, axis, width))
    if width > 1:
        levels.append(Level(VECTOR, axis, width))
    return tuple(levels)


def _cut(op: LoopedOp, shared: int, lanes: Lanes) -> int:
    """Return the loop of a sum that is split: the longest, counted in steps of vectors."""
    guess = ASSUMED_ROWS if shared else ASSUMED_LOOP_EXTENT
    sizes = [guess if n == DYNAMIC_INDEX else n for n in op_extents(op)]
    unit = lanes.width * lanes.many
    units = [unit if k == lanes.axis and not shared else 1 for k in range(len(sizes))]
    reduced = [k for k, parallel in enumerate(loops_of(op)) if not parallel]
    return max(reduced, key=lambda k: (sizes[k] // units[k], -k))


# existing levels, with changes


def rebuilt(
    levels: KernelLevels,
    ops: Sequence[LoopedOp] | None = None,
    lanes: Sequence[Lanes] | None = None,
    steps: Sequence[int] | None = None,
    tails: Mapping[int, str] | None = None,
    outer: Levels | None = None,
    grain: int | None = None,
    prefetch: int | None = None,
) -> Schedule:
    """Return the schedule of a kernel with some changes: without any, as builders spell it.

    ops : the ops of the kernel now
    lanes : of each op
    steps : iterations of each shared loop in one step of the innermost levels
    tails : of shared loops that are not vectorised
    outer : the levels around the tiles of a sum in steps
    grain : parallel iterations that are worth a thread
    prefetch : how many steps before their use operands of a tile are prefetched
    """
    ops, lanes = levels.ops if ops is None else ops, levels.lanes if lanes is None else lanes
    grain = levels.grain if grain is None else grain
    if not ops:
        return Schedule(in_threads([1] * min(levels.parallel, 1), grain))
    if levels.parts is not None:
        far = levels.prefetch if prefetch is None else prefetch
        rows = rows_of_parts(levels) if levels.shared else 0
        return in_parts(ops, levels.shared, lanes, levels.parts.parts, rows, far)
    inner = inner_of(levels, lanes, steps, prefetch)
    if levels.in_steps:
        outer = around_tiles(levels) if outer is None else outer
        return around(ops, inner, with_grain(outer, grain, levels.pipeline_rows))
    threads = in_threads(_of_whole_steps(levels, inner.steps), grain, levels.pipeline_rows)
    found = nest(ops, inner, threads)
    return with_tails(found, levels.shared, levels.tails if tails is None else tails, lanes[0])


def around_tiles(levels: KernelLevels) -> Levels:
    """Return the levels around the tiles of a sum in steps."""
    assert levels.in_steps is not None
    return levels.levels[: levels.in_steps.walked]


def rows_of_parts(levels: KernelLevels) -> int:
    """Return the rows that a part of a sum over rows reads side by side."""
    for each in levels.all:
        cut = next((level.loop for level in each if level.parts), -1)
        for level in each:
            if level.kind == FOR and level.loop == cut:
                return level.step
    return 0


def _of_whole_steps(levels: KernelLevels, steps: Sequence[int]) -> Iterator[int]:
    """Yield the iterations that threads take of each parallel loop, if inner levels have others."""
    for k, many in enumerate(levels.steps):
        yield steps[k] if many == levels.step(k) else -(-many // steps[k]) * steps[k]


def inner_of(
    levels: KernelLevels,
    lanes: Sequence[Lanes] | None = None,
    steps: Sequence[int] | None = None,
    prefetch: int | None = None,
) -> Inner:
    """Return the inner levels of a kernel, with some changes."""
    far = 0 if levels.in_steps else levels.prefetch if prefetch is None else prefetch
    found = [levels.step(k) for k in range(levels.shared)] if steps is None else steps
    return Inner(found, levels.lanes if lanes is None else lanes, levels.unroll, far)


def with_tails(schedule: Schedule, shared: int, tails: Mapping[int, str], lanes: Lanes) -> Schedule:
    """Return a schedule whose shared loops end so, each at its last level that is no vector.

    lanes : of the first op, which say how the vectorised loop ends
    """
    levels = schedule.levels
    ends = {**tails, lanes.axis: lanes.tail} if 0 <= lanes.axis < shared else tails
    last = {level.loop: n for n, level in enumerate(levels) if level.kind in (PARALLEL, FOR)}
    return Schedule(
        tuple(
            replace(level, tail=ends.get(level.loop, PEEL))
            if level.loop < shared and n == last.get(level.loop) else level
            for n, level in enumerate(levels)
        ),
        schedule.ops,
    )  # fmt: skip


def with_block(
    levels: KernelLevels, sizes: Sequence[int], tile: tuple[int, int] | None = None
) -> Schedule:
    """Return the schedule of a kernel with other blocks, and another register tile.

    sizes : as in `KernelLevels.blocks`
    tile : rows and vectors; by default as now
    """
    steps = levels.in_steps
    assert steps is not None
    *lengths, deep = sizes
    rows, vectors = levels.tile if tile is None else tile
    inner = (rows, vectors * levels.lanes[0].width)
    if levels.mirrors:  # blocks of whole steps of columns
        unit = lcm(lengths[-1], rows)
        lengths[-2] = -(-lengths[-2] // unit) * unit
    first, split = levels.shared - len(lengths), steps.splits[0]
    inside = {x.loop: x.actions for x in steps.levels[split + 1 : steps.walked]}
    cut = replace(steps.levels[split], step=deep)
    sizes = [*[1] * first, *lengths]
    outer = block(sizes, inner, cut, inside, levels.parallel, levels.mirrors)
    return rebuilt(levels, steps=[*[1] * (levels.shared - 2), *inner], outer=outer)


def edited(levels: KernelLevels, *changes: Callable[[Level], Level]) -> Schedule:
    """Return the schedule of a sum in steps with each level around its tiles changed."""
    outer = around_tiles(levels)
    for change in changes:
        outer = tuple(map(change, outer))
    return rebuilt(levels, outer=outer)


def without_prefetch(level: Level) -> Level:
    """Return a level that prefetches nothing."""
    return without(level, "prefetch")


def packing_before(level: Level) -> Level:
    """Return a level that packs before its first tile computes."""
    late = tuple(replace(a, detail="") if a.detail == "first" else a for a in level.actions)
    return level if late == level.actions else replace(level, actions=late)
