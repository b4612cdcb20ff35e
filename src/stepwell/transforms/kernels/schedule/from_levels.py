"""Levels written on a kernel, as the choices that its loops are made from.

What a list of levels means is found by trying: choices that may be meant are written and read back
as levels, until these are the ones that were given. So nothing is accepted that is not obeyed.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.structured import indices
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
from stepwell.transforms.kernels.schedule.levels import CHOICES, LOOPS, LoopOp, levels_of, loop_ops

OUTER = (PARALLEL, FOR)


def erase_choices(function: kernel.FuncOp) -> None:
    """Take all choices off a kernel, as far as levels stand for them."""
    for name in CHOICES if (ops := loop_ops(function)) else ():
        function.attributes.pop(name, None)
    for each in ops:
        each.op.attributes.pop(LOOPS, None)


def write_levels(function: kernel.FuncOp, schedule: Schedule) -> None:
    """Write levels as choices on a kernel of tensors that has none.

    VerifyException where the ops have no such loops, or loops are not made so: it says how they
    would be instead.
    """
    _check_loops(function, schedule)
    nearest: Schedule | None = None
    for found in _Writer(function, schedule).candidates():
        for name, value in found.items():
            function.attributes[name] = value
        if (read := levels_of(function)) == schedule:
            return
        nearest = nearest or read
        for name in found:
            del function.attributes[name]
    erase_choices(function)
    raise VerifyException(f"no loops can be made so; the nearest are {nearest}")


def _check_loops(function: kernel.FuncOp, schedule: Schedule) -> None:
    """Refuse levels over loops that there are not."""
    ops = loop_ops(function)
    shared = choices.number(function, "kernel.shared")
    for number in schedule.ops:
        if number >= len(ops):
            raise VerifyException(f"there is no op {number}: the kernel has {len(ops)} with loops")
    for number, op in enumerate(ops):
        for level in schedule.of(number):
            if level.loop >= len(op.parallel) and len(ops) == 1:
                raise VerifyException(
                    f"'{level}': there is no loop d{level.loop}, the op has {len(op.parallel)}"
                )
            known = level.loop < len(op.parallel)
            if known and level.parts and op.parallel[level.loop]:
                raise VerifyException(f"'{level}': only a sum's loop is cut into parts")
            if known and level.kind == PARALLEL and not (level.parts or level.loop < shared):
                raise VerifyException(f"'{level}': only loops that all ops share run in parallel")


class _Writer:
    """Finds the choices that levels stand for."""

    def __init__(self, function: kernel.FuncOp, schedule: Schedule) -> None:
        self.schedule, self.ops = schedule, loop_ops(function)
        self.shared = choices.number(function, "kernel.shared")
        self.all = [schedule.of(number) for number in range(len(self.ops))]
        self.levels = schedule.levels or (self.all[0] if self.all else ())
        self.sums = [number for number, op in enumerate(self.ops) if not all(op.parallel)]

    def candidates(self) -> Iterator[dict[str, Attribute]]:
        """Yield choices that may be meant; which are, reading them again tells."""
        if not self.ops:
            yield {}
            return
        for op, levels in zip(self.ops, self.all, strict=True):
            _write_vectors(op, levels, self.shared)
        common = self._parallel()
        if any(level.parts for levels in self.all for level in levels):
            yield from self._in_parts()
            return
        marks = {f"kernel.{name}" for name in self._marks()}
        common |= {name: UnitAttr() for name in sorted(marks)}
        rows, columns = self._last(self.shared - 2), self._last(self.shared - 1)
        axis = self.ops[0].vectors[0]
        if axis == self.shared - 1:
            columns = max(columns // self.ops[0].vectors[1], 1)
        tile = {"kernel.tile": choices.spelled((rows, columns))} if self.shared >= 2 else {}
        if (block := self._block()) is not None:
            self._name_columns()
            yield from self._tiled({**common, "kernel.block": choices.spelled(block)}, tile)
        elif (stream := self._stream()) is not None:
            self._name_columns()
            yield from self._tiled({**common, "kernel.stream": choices.spelled(stream)}, tile)
        else:
            yield common
            if columns > 1 and axis != self.shared - 1:
                yield {**common, "kernel.band": choices.spelled(columns)}
            if tile:
                yield from self._tiled(common, tile)

    def _name_columns(self) -> None:
        """Say which loop is that of the columns, where they are no vectors."""
        for op in self.ops:
            if LOOPS not in op.op.attributes:
                op.op.attributes[LOOPS] = kernel.LoopsAttr.of(self.shared - 1, 1)

    def _tiled(
        self, common: dict[str, Attribute], tile: dict[str, Attribute]
    ) -> Iterator[dict[str, Attribute]]:
        """Yield a register tile: its vectors side by side are the tile's, not each op's."""
        found = [op.op.attributes.get(LOOPS) for op in self.ops]
        for op, loops in zip(self.ops, found, strict=True):
            if isinstance(loops, kernel.LoopsAttr) and loops.axis.data < self.shared:
                op.op.attributes[LOOPS] = kernel.LoopsAttr.of(loops.axis.data, loops.width.data)
        yield {**common, **tile}

    def _parallel(self) -> dict[str, Attribute]:
        found = [level for level in self.levels if level.kind == PARALLEL and not level.parts]
        if not found:
            return {}
        loops = {level.loop for level in found}
        parallel = len(loops) if loops == set(range(len(loops))) else self.shared
        grain, ahead = found[-1].action("grain"), found[-1].action("pipeline")
        chosen = {"kernel.parallel": parallel, "kernel.grain": grain.number if grain else 1}
        if ahead is not None:
            chosen["kernel.ahead"] = ahead.number
        return {name: choices.spelled(n) for name, n in chosen.items() if n is not None}

    def _in_parts(self) -> Iterator[dict[str, Attribute]]:
        (first, *_) = (level for levels in self.all for level in levels if level.parts)
        found: dict[str, Attribute] = {"kernel.split": choices.spelled(first.parts)}
        if first.action("prefetch"):
            found["kernel.prefetch"] = UnitAttr()
        yield found

    def _marks(self) -> Iterator[str]:
        """Yield the marks that actions, and loops written out, stand for."""
        for number, levels in enumerate(self.all):
            parallel = self.ops[number].parallel
            for level in levels:
                own = self.shared <= level.loop < len(parallel)
                written_out = level.kind == UNROLL and level.loop != self.ops[number].vectors[0]
                if written_out and own and not parallel[level.loop]:
                    yield "unroll"
                for action in level.actions:
                    yield from self._mark(number, action)

    def _mark(self, number: int, action: Action) -> Iterator[str]:
        if action.name == "prefetch":
            yield "prefetch"
        elif action.name == "sum":
            yield "in_floats"
        elif action.name == "pack" and number in self.sums:
            op = self.ops[number].op
            where = indices(op) if isinstance(op, linalg.GenericOp) else []
            index = where[action.number or 0] if (action.number or 0) < len(op.inputs) else ()
            if any(self.shared - 1 in e.used_dims() for e in index):
                yield from {"first": ["pack_first"], "dot4": ["dots"]}.get(action.detail, [])
            else:
                yield "pack_rows"
                if action.detail == "biased_dot4":
                    yield "unsigned_rows"

    def _last(self, k: int) -> int:
        """Return how many iterations of loop ``k`` the innermost levels compute."""
        steps = [level.step for level in self.levels if level.loop == k and level.kind in OUTER]
        return steps[-1] if steps else 1

    def _cut(self) -> Level | None:
        """Return the level that takes a sum in parts, which wait for each other in scratch."""
        for number in self.sums[:1]:
            *_, depth = [k for k, parallel in enumerate(self.ops[number].parallel) if not parallel]
            found = [level for level in self.all[number] if level.loop == depth]
            if len(found) > 1 and found[0].kind == FOR and found[1].kind == FOR:
                return found[0]
        return None

    def _block(self) -> list[int] | None:
        if (cut := self._cut()) is None:
            return None
        before = self.levels[: self.levels.index(cut)]
        columns = [level for level in before if level.loop == self.shared - 1]
        rows = [level for level in before if level.loop == self.shared - 2]
        if not columns or not rows:
            return None
        sizes = {level.loop: level.step for level in reversed(before) if level.loop < self.shared}
        first = min([k for k, n in sizes.items() if n > 1 and k < self.shared - 2], default=-1)
        if first < 0:
            first = self.shared - 2
        return [*(sizes.get(k, 1) for k in range(first, self.shared)), cut.step]

    def _stream(self) -> list[int] | None:
        if (cut := self._cut()) is None:
            return None
        before = self.levels[: self.levels.index(cut)]
        columns = [level.step for level in before if level.loop == self.shared - 1]
        return [columns[0], cut.step] if columns else None


def _write_vectors(op: LoopOp, levels: Levels, shared: int) -> None:
    """Write which loop of an op is vectors, and how many stand side by side."""
    op.op.attributes.pop(LOOPS, None)
    vector = next((level for level in levels if level.kind == VECTOR), None)
    axis, width = (vector.loop, vector.step) if vector else (_scalars_abreast(levels, shared), 1)
    if axis < 0:
        return
    found = [level for level in levels if level.loop == axis and level is not vector]
    unrolled = len(found) > 1 and found[-1].kind == UNROLL
    many = found[-2].step // width if unrolled else 1
    op.op.attributes[LOOPS] = kernel.LoopsAttr.of(axis, width, many)


def _scalars_abreast(levels: Levels, shared: int) -> int:
    """Return the loop of which an op takes several iterations side by side, one by one; or -1."""
    walked: set[int] = set()
    for level in levels:
        if level.kind == UNROLL and level.loop in walked and level.loop >= shared:
            return level.loop
        walked.add(level.loop)
    return -1
