"""Pipeline rows: the first loop of the next row runs along with the second loop of this row.

Before:  scf.parallel (%p) = 0 to N { %m = scf.for ... row %p; scf.for ... %m; ... }
After:   scf.parallel (%q) = 0 to N / R {
           %m = scf.for ... row R * %q
           scf.for %p = R * %q to R * %q + R iter_args(%now = %m) {
             %next = scf.for { a step of row %p + 1, steps of row %p, %now } ... yield %next } }

Memory is thus read while there is much to compute, and the latency at the end of a row does not
delay the next row. Every row is computed by the same operations in the same order as before. The
prologue of each R rows runs the first loop alone; the last row recomputes its own first loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from stepwell.analysis.structured import constant_of
from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.lowering.linalg_to_loops.writer import Index, Writer

LOADS = (memref.LoadOp, vector.LoadOp)


def pipeline_rows(writer: Writer, rows: int) -> None:
    """Pipeline each parallel loop of a kernel that allows it, ``rows`` iterations per task."""
    for op in list(writer.entry.ops):
        if isinstance(op, scf.ParallelOp) and (row := _read(op)) is not None:
            writer.block, writer.before, writer.location = writer.entry, op, op.location
            _Rows(writer, op, row, rows).write()
            writer.entry.erase_op(op)


@dataclass(frozen=True)
class _Loop:
    """An innermost loop with constant bounds."""

    op: scf.ForOp
    lower: int
    upper: int
    step: int

    @property
    def body(self) -> Block:
        """The block of the loop."""
        return self.op.body.block


@dataclass(frozen=True)
class _Row:
    """The ops of one iteration: two loops, and the ops before, between and after them."""

    before: list[Operation]
    first: _Loop
    between: list[Operation]
    second: _Loop
    after: list[Operation]
    end: int
    """The upper bound of the range that both loops have in common."""


def _read(parallel: scf.ParallelOp) -> _Row | None:
    """Split an iteration into its parts; None where its first loop cannot be pipelined."""
    ops = [op for op in parallel.body.block.ops if not op.has_trait(IsTerminator)]
    loops = [(k, loop) for k, op in enumerate(ops) if (loop := _loop(op)) is not None]
    if not loops or any(isinstance(op, scf.ForOp) for op in ops[: loops[0][0]]):
        return None
    at, first = loops[0]
    for k, second in loops[1:]:
        if second.lower != first.lower:
            continue
        step = max(first.step, second.step)
        least = min(first.upper, second.upper)
        end = first.lower + (least - first.lower) // step * step
        head = ops[:k]
        if step % first.step or step % second.step or end == first.lower:
            return None
        if not all(_only_reads(each) for op in head for each in op.walk()):
            return None
        return _Row(ops[:at], first, ops[at + 1 : k], second, ops[k + 1 :], end)
    return None


def _loop(op: Operation) -> _Loop | None:
    if not isinstance(op, scf.ForOp) or "kernel.unroll" in op.attributes:
        return None
    numbers = [constant_of(value) for value in (op.lb, op.ub, op.step)]
    if any(each.regions for each in op.body.block.ops) or None in numbers:
        return None
    lower, upper, step = (n or 0 for n in numbers)
    return None if (upper - lower) % step else _Loop(op, lower, upper, step)


def _only_reads(op: Operation) -> bool:
    loop = isinstance(op, scf.ForOp | scf.IfOp)
    return loop or isinstance(op, (*LOADS, scf.YieldOp)) or touches_nothing(op)


@dataclass
class _Rows:
    """Writes the pipelined loop over rows."""

    writer: Writer
    parallel: scf.ParallelOp
    row: _Row
    rows: int

    def __post_init__(self) -> None:
        row = self.row
        head = [*row.before, row.first.op, *row.between]
        self.p = self.parallel.body.block.args[0]
        self.places = self._places(head)
        block, rest = self.parallel.body.block, {row.second.op, *row.after}
        self.carried = [
            value
            for op in head
            if op not in self.places
            for value in op.results
            if any(block.find_ancestor_op_in_block(use.operation) in rest for use in value.uses)
        ]
        """Values that the head of a row computes and its rest uses: they become loop-carried."""

    def _places(self, head: Sequence[Operation]) -> list[Operation]:
        """Return the ops that depend on the row's index only: both stages recompute them."""
        found: list[Operation] = []
        inside = {value for op in head for value in op.results}
        known: set[SSAValue] = set()
        for op in head:
            plain = not op.regions and not isinstance(op, LOADS)
            if plain and all(v in known or v not in inside for v in op.operands):
                found.append(op)
                known.update(op.results)
        return found

    def write(self) -> None:
        """Write a parallel loop whose iterations take several rows each."""
        writer, rows = self.writer, self.rows
        upper = self.parallel.upperBound[0]
        number = constant_of(upper)
        total = Index.of(upper if number is None else number)
        grain = self.parallel.attributes["kernel.grain"]
        assert isinstance(grain, IntegerAttr)
        count = writer.divide_up(total, rows)

        def body(q: Index) -> None:
            low = q * rows
            high = low + rows
            if number is None or number % rows:
                high = writer.minimum(high, total)
            values: dict[SSAValue, SSAValue] = {self.p: writer.value(low)}
            row = self.row
            self._copy([*row.before, row.first.op, *row.between], values)
            start = [values[v] for v in self.carried]

            def one(at: Index, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
                return self._row(at, writer.minimum(at + 1, high - Index.of(1)), state)

            names = [v.name_hint for v in self.carried]
            writer.loop((low, high), 1, start, one, "p", names)

        writer.parallel(count, Index.of(grain.value.data // rows), body)

    def _row(self, at: Index, next: Index, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Write the rest of one row and the head of the next."""
        row, writer = self.row, self.writer
        this_row: dict[SSAValue, SSAValue] = dict(zip(self.carried, state, strict=True))
        this_row[self.p] = writer.value(at)
        self._copy(self.places, this_row)
        next_row: dict[SSAValue, SSAValue] = {self.p: writer.value(next)}
        self._copy(row.before, next_row)
        self._both_loops(next_row, this_row)
        self._copy(row.between, next_row)
        self._copy(row.after, this_row)
        return [next_row[v] for v in self.carried]

    def _both_loops(
        self, next_row: dict[SSAValue, SSAValue], this_row: dict[SSAValue, SSAValue]
    ) -> None:
        """Write the common range of both loops as one loop, then the remainder of each."""
        row = self.row
        both = ((row.first, next_row), (row.second, this_row))
        starts = [[known.get(v, v) for v in loop.op.iter_args] for loop, known in both]
        cut = len(starts[0])
        step = max(loop.step for loop, _ in both)

        def steps(at: Index, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            parts = [state[:cut], state[cut:]]
            for k, (loop, known) in enumerate(both):
                for offset in range(0, step, loop.step):
                    parts[k] = self._step(loop, at + offset, parts[k], known)
            return [*parts[0], *parts[1]]

        names = [arg.name_hint for loop, _ in both for arg in loop.body.args[1:]]
        limits = (Index.of(row.first.lower), Index.of(row.end))
        hint = row.first.body.args[0].name_hint or "j"
        state = self.writer.loop(limits, step, [*starts[0], *starts[1]], steps, hint, names)
        for part, (loop, known) in zip((state[:cut], state[cut:]), both, strict=True):
            limits = (Index.of(row.end), Index.of(loop.upper))
            names = [arg.name_hint for arg in loop.body.args[1:]]

            def rest(
                at: Index,
                part: Sequence[SSAValue],
                loop: _Loop = loop,
                known: Mapping[SSAValue, SSAValue] = known,
            ) -> Sequence[SSAValue]:
                return self._step(loop, at, part, known)

            last = self.writer.loop(limits, loop.step, part, rest, hint, names)
            known.update(zip(loop.op.results, last, strict=True))

    def _step(
        self,
        loop: _Loop,
        at: Index,
        state: Sequence[SSAValue],
        known: Mapping[SSAValue, SSAValue],
    ) -> Sequence[SSAValue]:
        """Write the body of a loop; return its yielded values."""
        values = dict(known)
        values.update(zip(loop.body.args, [self.writer.value(at), *state], strict=True))
        *ops, end = loop.body.ops
        self._copy(ops, values)
        return [values.get(v, v) for v in end.operands]

    def _copy(self, ops: Sequence[Operation], values: dict[SSAValue, SSAValue]) -> None:
        for op in ops:
            self.writer.insert(op.clone(values))
