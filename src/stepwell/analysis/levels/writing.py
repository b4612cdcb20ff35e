"""Convert a nesting to levels: each nesting has exactly one spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.levels.nesting import LoopedOp, Nesting, loop_ops, loops_of
from stepwell.analysis.structured import extents, in_panels, indices
from stepwell.dialects import kernel
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

ASSUMED_LOOP_EXTENT, ASSUMED_ROWS = 512, 1 << 14
"""Assumed extent of a sum's loop that is known at run time only: of a full sum, and over rows."""


def write_nesting(function: kernel.FuncOp, nesting: Nesting) -> None:
    """Write the nesting of a kernel as its schedule attribute."""
    function.attributes[SCHEDULE] = kernel.ScheduleAttr(levels_of(function, nesting))


def write_nestings(function: kernel.FuncOp, nestings: Sequence[Nesting]) -> None:
    """Write the nesting of a kernel, then those of its versions, in the order of `nestings_of`."""
    own, *others = nestings
    write_nesting(function, own)
    if versions := versions_in(function.attributes.get(VERSIONS)):
        function.attributes[VERSIONS] = ArrayAttr(
            each.with_schedule(kernel.ScheduleAttr(levels_of(function, nesting)))
            for each, nesting in zip(versions, others, strict=True)
        )


def levels_of(function: kernel.FuncOp, nesting: Nesting) -> Schedule:
    """Return the levels of a kernel's nesting."""
    return _Writer(function, nesting).levels()


def levels_in_steps(function: kernel.FuncOp, nesting: Nesting) -> Levels:
    """Return the levels around the tiles of a sum in steps, without the actions of threads."""
    return _of_several_steps(_Writer(function, nesting).in_steps())


def _operands(op: linalg.GenericOp) -> Iterator[tuple[int, tuple[AffineExpr, ...], set[int]]]:
    """Yield the inputs that an op reads: number, index and the loops that the index uses."""
    for number, index in enumerate(indices(op)[: len(op.inputs)]):
        if op.body.block.args[number].first_use is not None:
            yield number, index, {d for expr in index for d in expr.used_dims()}


def _operand(action: Action) -> tuple[bool, int]:
    """Return the key by which actions are sorted: those on operands come first, by number."""
    return action.number is None, action.number or 0


def _of_several_steps(levels: Iterable[Level]) -> Levels:
    """Leave out levels that repeat the step of the level around them, which have no effect."""
    found: list[Level] = []
    steps: dict[int, int] = {}
    for level in levels:
        if level.kind == VECTOR or steps.get(level.loop) != level.step:
            found.append(level)
        if not level.parts:
            steps[level.loop] = level.step
    return tuple(found)


class _Writer:
    """Spells the nesting of one kernel."""

    def __init__(self, function: kernel.FuncOp, nesting: Nesting) -> None:
        self.ops, self.nesting = loop_ops(function), nesting
        self.shared = nesting.shared
        self.loops = [loops_of(op) for op in self.ops]

    def levels(self) -> Schedule:
        found = self.nesting
        sums = [n for n, loops in enumerate(self.loops) if not all(loops)]
        if not self.ops:
            return self._of_tasks()
        if found.split:
            return self._in_parts()
        return self._together(self.in_steps() if sums and found.in_steps else self._nest())

    def in_steps(self) -> Iterable[Level]:
        """Return the levels around the tiles of a sum in steps."""
        found = self.nesting
        number = next(n for n, loops in enumerate(self.loops) if not all(loops))
        if found.order:
            return found.order
        if found.blocks:
            return self._blocked(number, *found.blocks)
        return self._strip(number, *found.strip)

    def _of_tasks(self) -> Schedule:
        """Return the levels of scalar code: its tasks, independent loops, are one loop."""
        tasks = (Level(PARALLEL, 0),) if self.nesting.tasks else ()
        return Schedule(self._with_grain(tasks))

    def _together(self, found: Iterable[Level]) -> Schedule:
        """Append the levels of each op; a single list where all ops have the same."""
        levels = self._with_grain(self._with_tails(_of_several_steps(found)))
        own = {
            number: _of_several_steps((*levels, *self._inner(number)))[len(levels) :]
            for number in range(len(self.ops))
        }
        if len(set(own.values())) == 1:
            return Schedule((*levels, *own[0]))
        return Schedule(tuple(levels), {number: each for number, each in own.items() if each})

    def _with_tails(self, levels: Levels) -> Levels:
        """Add the tail of each shared loop to the last of its levels."""
        last = {level.loop: number for number, level in enumerate(levels)}
        return tuple(
            replace(level, tail=self.nesting.tail(level.loop))
            if number == last[level.loop] and level.loop < self.shared
            else level
            for number, level in enumerate(levels)
        )

    def _with_grain(self, levels: Levels) -> Levels:
        """Add the actions `grain` and `pipeline` to the last parallel level."""
        last = sum(level.kind == PARALLEL for level in levels) - 1
        grain, pipeline_rows = self.nesting.grain, self.nesting.pipeline_rows
        actions = [Action("grain", grain)] if grain != 1 else []
        actions += [Action("pipeline", pipeline_rows)] if pipeline_rows else []
        return tuple(
            level.doing(*actions) if number == last else level
            for number, level in enumerate(levels)
        )

    # the levels of all ops

    def _nest(self) -> Iterator[Level]:
        found = self.nesting
        steps = dict(enumerate(found.steps[: found.parallel]))
        for k, step in steps.items():
            yield Level(PARALLEL, k, step)
        for k in range(self.shared):
            yield Level(FOR, k, found.step(k))

    def _blocked(self, number: int, *block: int) -> Iterator[Level]:
        *sizes, deep = block
        first, row, column = self.shared - len(sizes), self.shared - 2, self.shared - 1
        size = {k: sizes[k - first] if k >= first else 1 for k in range(self.shared)}
        for k in range(self.shared):
            yield Level(PARALLEL if k < self.nesting.parallel else FOR, k, size[k])
        yield Level(FOR, column, self.nesting.step(column))
        depth = max(k for k, parallel in enumerate(self.loops[number]) if not parallel)
        actions = self._packing(self.ops[number], first, column)
        rows = self._rows_packed(self.ops[number], column) if self.nesting.pack_rows else ()
        line = max((k for k in range(first, row) if size[k] > 1), default=depth)
        packs = sorted((*actions, *(rows if line == depth else ())), key=_operand)
        yield Level(FOR, depth, deep, actions=tuple(packs))
        for k in range(first, column):
            level = Level(FOR, k, self.nesting.step(k) if k == row else 1)
            yield level.doing(*rows) if k == line else level

    def _rows_packed(self, op: LoopedOp, column: int) -> tuple[Action, ...]:
        """Return the action that packs the operand of the rows."""
        assert isinstance(op, linalg.GenericOp)
        found = self.nesting
        how = ("biased_dot" if found.bias_to_unsigned else "dot") if found.dots else ""
        numbers = [n for n, _, dims in _operands(op) if column - 1 in dims]
        return tuple(Action("pack", number, how) for number in numbers)

    def _packing(self, op: LoopedOp, first: int, column: int) -> Iterator[Action]:
        """Yield the actions of a block before it computes."""
        assert isinstance(op, linalg.GenericOp)
        found = self.nesting
        rows = set(range(first, column))
        for number, index, dims in _operands(op):
            if column in dims and not rows & dims:
                ready = in_panels(index, column)
                if found.dots or ready is None or ready[1] != found.step(column):
                    how = "dot" if found.dots else "first" if found.pack_first else ""
                    yield Action("pack", number, how)
        if found.accumulate_in_f32:
            yield Action("sum", detail="f32")
        if found.prefetch:
            yield Action("prefetch")

    def _strip(self, number: int, columns: int, deep: int) -> Iterator[Level]:
        row, column, parallel = self.shared - 2, self.shared - 1, self.nesting.parallel
        for k in range(row):
            yield Level(PARALLEL if k < parallel else FOR, k)
        yield Level(PARALLEL if column < parallel else FOR, column, columns)
        depth = max(k for k, parallel in enumerate(self.loops[number]) if not parallel)
        rows = self._rows_packed(self.ops[number], column) if self.nesting.pack_rows else ()
        prefetch = (Action("prefetch"),) if self.nesting.prefetch else ()
        yield Level(FOR, depth, deep, actions=(*rows, *prefetch))
        yield Level(FOR, column, self.nesting.step(column))
        yield Level(FOR, row, self.nesting.step(row))

    # the levels of one op

    def _inner(self, number: int) -> Iterator[Level]:
        found, loops = self.nesting, self.loops[number]
        axis, width, many, tail, stores = found.lanes[number]
        own = range(self.shared, len(loops))
        ordered = [k for k in own if loops[k]] + [k for k in own if not loops[k]]
        ask = found.prefetch and not found.in_steps and not all(loops) and found.axis >= 0
        for k in ordered:
            written_out = found.unroll and not loops[k] and k != axis
            step = width * many if k == axis else 1
            ends = tail if k == axis else PEEL
            level = Level(UNROLL if written_out else FOR, k, step, tail=ends)
            steps = found.prefetch if found.prefetch > 1 else None
            yield level.doing(Action("prefetch", steps)) if ask and k == ordered[-1] else level
        for k in range(self.shared):
            if k != axis and found.step(k) > 1:
                yield Level(UNROLL, k)
        if axis < 0:
            return
        step = found.step(axis) if axis < self.shared else width * many
        if step > width:
            yield Level(UNROLL, axis, width)
        if width > 1:
            past = tuple(Action("nontemporal", output) for output in stores)
            yield Level(VECTOR, axis, width, actions=past)

    # split sums

    def _in_parts(self) -> Schedule:
        """Return the levels of split sums, whose parts are combined in order."""
        nesting = self.nesting
        prefetch = (Action("prefetch"),) if nesting.prefetch else ()
        found: dict[int, Levels] = {}
        for number, loops in enumerate(self.loops):
            if all(loops):
                found[number] = _of_several_steps((*self._nest(), *self._inner(number)))
                continue
            cut = self._cut(number)
            axis, width, many, *_ = nesting.lanes[number]
            levels = [Level(PARALLEL, cut, 1, nesting.split, prefetch)]
            if self.shared:
                levels += [Level(FOR, cut, nesting.split_rows), Level(FOR, 0, width * many)]
            for k, parallel in enumerate(loops):
                if not parallel and not (self.shared and k == cut):
                    levels.append(Level(FOR, k, width * many if k == axis else 1))
            if self.shared:
                levels.append(Level(UNROLL, cut))
            if width * many > width:
                levels.append(Level(UNROLL, axis, width))
            if width > 1:
                levels.append(Level(VECTOR, axis, width))
            found[number] = _of_several_steps(levels)
        found = {number: levels for number, levels in found.items() if levels}
        return Schedule(found[0]) if len(self.ops) == 1 else Schedule((), found)

    def _cut(self, number: int) -> int:
        """Return the loop of a sum that is split: the longest, counted in steps of vectors."""
        op = self.ops[number]
        assert isinstance(op, linalg.GenericOp)
        axis, width, many, *_ = self.nesting.lanes[number]
        guess = ASSUMED_ROWS if self.shared else ASSUMED_LOOP_EXTENT
        sizes = [guess if n == DYNAMIC_INDEX else n for n in extents(op)]
        units = [width * many if k == axis and not self.shared else 1 for k in range(len(sizes))]
        reduced = [k for k, parallel in enumerate(self.loops[number]) if not parallel]
        return max(reduced, key=lambda k: (sizes[k] // units[k], -k))
