"""The levels that the choices on a kernel stand for.

Levels are what people read and write: in `stepwell explain`, in lock files and by hand. Passes
still exchange single choices (`kernel.tile` and its like).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from stepwell.analysis.structured import extents, in_slivers, indices, is_parallel, shape
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.levels import (
    FOR,
    PARALLEL,
    UNROLL,
    VECTOR,
    Action,
    Level,
    Levels,
    Schedule,
)
from stepwell.dialects.kernel.sharing import SCHEDULE, is_border

PARALLEL_BLOCK = 1024
"""Elements of a vectorised loop in one iteration of a parallel one, as `Nest` takes them."""
SPLIT_ROWS = 8
"""Rows that a part of a sum over rows reads side by side, as `Columns` takes them."""
GUESSED_LOOP, GUESSED_ROWS = 512, 1 << 14
"""How long a sum's loop is thought to be where only the run knows, as by `split` and `Columns`."""
MARKS = ("pack_rows", "in_floats", "dots", "unsigned_rows", "pack_first", "prefetch", "unroll")
NUMBERS = ("parallel", "grain", "split", "band", "ahead")
LISTS = ("tile", "block", "stream")
CHOICES = tuple(f"kernel.{name}" for name in (*LISTS, *NUMBERS, *MARKS))
LOOPS = "kernel.loops"


@dataclass
class LoopOp:
    """An op of a kernel that has loops, and which of them are vectors."""

    op: linalg.GenericOp | linalg.FillOp

    @cached_property
    def parallel(self) -> list[bool]:
        """Whether the iterations of each loop are independent."""
        if isinstance(self.op, linalg.FillOp):
            return [True] * len(shape(self.op.outputs[0]))
        return is_parallel(self.op)

    @property
    def vectors(self) -> tuple[int, int, int]:
        """The loop of the vectors, how wide they are and how many stand side by side."""
        found = self.op.attributes.get(LOOPS)
        if not isinstance(found, kernel.LoopsAttr):
            return -1, 1, 1
        return found.axis.data, found.width.data, found.interleave.data


def loop_ops(function: kernel.FuncOp) -> list[LoopOp]:
    """Return the ops of a kernel that have loops: fills that start a sum are part of the sum."""
    return [LoopOp(op) for op in function.body.block.ops if _has_loops(op)]


def _has_loops(op: Operation) -> TypeGuard[linalg.GenericOp | linalg.FillOp]:
    if isinstance(op, linalg.FillOp):
        values = op.results or op.outputs
        uses = [use for use in values[0].uses if use.operation is not op]
        return not any(isinstance(use.operation, linalg.GenericOp) for use in uses)
    return isinstance(op, linalg.GenericOp) and not is_border(op)


def levels_of(function: kernel.FuncOp) -> Schedule:
    """Return the levels of a kernel: those written on it, or those its choices stand for."""
    written = function.attributes.get(SCHEDULE)
    if isinstance(written, kernel.ScheduleAttr):
        return written.data
    return _Reader(function).read()


class _Reader:
    """Reads the choices on one kernel."""

    def __init__(self, function: kernel.FuncOp) -> None:
        self.function, self.ops = function, loop_ops(function)
        self.shared = choices.number(function, "kernel.shared")
        self.parallel = choices.number(function, "kernel.parallel")
        self.tile = choices.numbers(function, "kernel.tile") or (1, 1)
        self.axis = self.ops[0].vectors[0] if self.ops else -1
        if self.axis >= self.shared:
            self.axis = -1

    def has(self, mark: str) -> bool:
        return f"kernel.{mark}" in self.function.attributes

    def read(self) -> Schedule:
        sums = [op for op in self.ops if not all(op.parallel)]
        if not self.ops:
            return Schedule()
        if parts := choices.number(self.function, "kernel.split"):
            return self._in_parts(parts)
        if sums and (block := choices.numbers(self.function, "kernel.block")):
            return self._together(self._blocked(sums[0], *block))
        if sums and (stream := choices.numbers(self.function, "kernel.stream")):
            return self._together(self._streamed(sums[0], *stream))
        return self._together(self._nest())

    def _together(self, found: Iterable[Level]) -> Schedule:
        """Add what each op has of its own; one list where there is but one op with loops."""
        levels = self._with_grain(tuple(found))
        own = {number: tuple(self._inner(op)) for number, op in enumerate(self.ops)}
        if len(set(own.values())) == 1:
            return Schedule((*levels, *own[0]))
        return Schedule(tuple(levels), {number: each for number, each in own.items() if each})

    def _with_grain(self, levels: Levels) -> Levels:
        """Say on the last parallel level what threads take at a time."""
        last = sum(level.kind == PARALLEL for level in levels) - 1
        grain = choices.number(self.function, "kernel.grain", 1)
        ahead = choices.number(self.function, "kernel.ahead")
        actions = [Action("grain", grain)] if grain != 1 else []
        actions += [Action("pipeline", ahead)] if ahead else []
        return tuple(
            level.doing(*actions) if number == last else level
            for number, level in enumerate(levels)
        )

    # the levels of all ops

    def _step(self, k: int) -> int:
        """Return how many iterations of shared loop ``k`` the innermost levels compute."""
        if k == self.axis:
            _, width, many = self.ops[0].vectors
            return width * (self.tile[1] if tuple(self.tile) != (1, 1) else many)
        if k == self.shared - 1:
            return max(choices.number(self.function, "kernel.band"), self.tile[1], 1)
        return self.tile[0] if k == self.shared - 2 else 1

    def _nest(self) -> Iterator[Level]:
        blocks = [self._parallel_step(k) for k in range(self.parallel)]
        for k, block in enumerate(blocks):
            yield Level(PARALLEL, k, block)
        for k in range(self.shared):
            if k >= self.parallel or blocks[k] != self._step(k):
                yield Level(FOR, k, self._step(k))

    def _parallel_step(self, k: int) -> int:
        step = self._step(k)
        alone = self.axis < 0 and k == self.shared - 1 > 0 and step == 1
        if k != self.axis and not alone:
            return step
        inside = any(len(op.parallel) > self.shared for op in self.ops)
        return step if inside else -(-PARALLEL_BLOCK // step) * step

    def _blocked(self, found: LoopOp, *block: int) -> Iterator[Level]:
        *sizes, deep = block
        first, row, column = self.shared - len(sizes), self.shared - 2, self.shared - 1
        size = {k: sizes[k - first] if k >= first else 1 for k in range(self.shared)}
        for k in range(self.shared):
            yield Level(PARALLEL if k < self.parallel else FOR, k, size[k])
        if size[column] != self._step(column):
            yield Level(FOR, column, self._step(column))
        depth = max(k for k, parallel in enumerate(found.parallel) if not parallel)
        yield Level(FOR, depth, deep, actions=tuple(self._packing(found, first, column)))
        for k in range(first, column):
            if size[k] != (step := self._step(k) if k == row else 1):
                yield Level(FOR, k, step)

    def _packing(self, found: LoopOp, first: int, column: int) -> Iterator[Action]:
        """Yield what a block does before it computes."""
        assert isinstance(found.op, linalg.GenericOp)
        where = indices(found.op)[: len(found.op.inputs)]
        dims = [set[int]().union(*(e.used_dims() for e in index)) for index in where]
        rows = set(range(first, column))
        for number, index in enumerate(where):
            if column in dims[number] and not rows & dims[number]:
                ready = in_slivers(index, column)
                if ready is None or ready[1] != self._step(column):
                    how = "dot4" if self.has("dots") else "first" if self.has("pack_first") else ""
                    yield Action("pack", number, how)
            elif self.has("pack_rows") and column - 1 in dims[number]:
                dots = "biased_dot4" if self.has("unsigned_rows") else "dot4"
                yield Action("pack", number, dots if self.has("dots") else "")
        if self.has("in_floats"):
            yield Action("sum", detail="f32")
        if self.has("prefetch"):
            yield Action("prefetch")

    def _streamed(self, found: LoopOp, columns: int, deep: int) -> Iterator[Level]:
        row, column = self.shared - 2, self.shared - 1
        for k in range(row):
            yield Level(PARALLEL if k < self.parallel else FOR, k)
        yield Level(PARALLEL if column < self.parallel else FOR, column, columns)
        depth = max(k for k, parallel in enumerate(found.parallel) if not parallel)
        actions = [Action("prefetch")] if self.has("prefetch") else []
        yield Level(FOR, depth, deep, actions=tuple(actions))
        if columns != self._step(column):
            yield Level(FOR, column, self._step(column))
        yield Level(FOR, row, self._step(row))

    # the levels of one op

    def _inner(self, op: LoopOp) -> Iterator[Level]:
        axis, width, many = op.vectors
        own = range(self.shared, len(op.parallel))
        ordered = [k for k in own if op.parallel[k]] + [k for k in own if not op.parallel[k]]
        plain = not (self.has("block") or self.has("stream"))
        ask = self.has("prefetch") and plain and not all(op.parallel) and self.axis >= 0
        for k in ordered:
            written_out = self.has("unroll") and not op.parallel[k] and k != axis
            step = width * many if k == axis else 1
            level = Level(UNROLL if written_out else FOR, k, step)
            yield level.doing(Action("prefetch")) if ask and k == ordered[-1] else level
        for k in range(self.shared):
            if k != axis and self._step(k) > 1:
                yield Level(UNROLL, k)
        if axis < 0:
            return
        step = self._step(axis) if axis < self.shared else width * many
        if step > width:
            yield Level(UNROLL, axis, width)
        if width > 1:
            yield Level(VECTOR, axis, width)

    # sums in parts

    def _in_parts(self, parts: int) -> Schedule:
        """Return the levels of sums that are cut into parts, whose results are added in order."""
        prefetch = (Action("prefetch"),) if self.has("prefetch") else ()
        found: dict[int, Levels] = {}
        for number, op in enumerate(self.ops):
            if all(op.parallel):
                found[number] = (*self._nest(), *self._inner(op))
                continue
            cut = self._cut(op)
            axis, width, many = op.vectors
            levels = [Level(PARALLEL, cut, 1, parts, prefetch)]
            if self.shared:
                levels += [Level(FOR, cut, SPLIT_ROWS), Level(FOR, 0, width * many)]
            for k, parallel in enumerate(op.parallel):
                if not parallel and not (self.shared and k == cut):
                    levels.append(Level(FOR, k, width * many if k == axis else 1))
            if self.shared:
                levels.append(Level(UNROLL, cut))
            if width * many > width:
                levels.append(Level(UNROLL, axis, width))
            if width > 1:
                levels.append(Level(VECTOR, axis, width))
            found[number] = tuple(levels)
        found = {number: levels for number, levels in found.items() if levels}
        return Schedule(found[0]) if len(self.ops) == 1 else Schedule((), found)

    def _cut(self, op: LoopOp) -> int:
        """Return which loop of a sum is cut: the longest, counted in what is taken at once."""
        assert isinstance(op.op, linalg.GenericOp)
        axis, width, many = op.vectors
        guess = GUESSED_ROWS if self.shared else GUESSED_LOOP
        sizes = [guess if n == DYNAMIC_INDEX else n for n in extents(op.op)]
        units = [width * many if k == axis and not self.shared else 1 for k in range(len(sizes))]
        reduced = [k for k, parallel in enumerate(op.parallel) if not parallel]
        return max(reduced, key=lambda k: (sizes[k] // units[k], -k))
