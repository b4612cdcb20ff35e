"""Reverse-mode derivatives of nd.while: as a scan, or with a tape of bounded length.

If the number of steps is known before the loop and is a size, the loop becomes a scan. Otherwise
the memory of the backward pass must not depend on it, since all memory is planned before a program
runs. So the steps are recomputed in pieces of fixed length, the last piece first. The values that
the backward pass of a piece needs are recorded on a tape of that length, reused by all pieces. The
states at which pieces begin are kept in a stack of fixed depth. If there are more pieces than
slots, half of the free slots keep states far apart. The other half keep the states between two of
them when these are needed. A step is recomputed about log(number of steps) times (note 063).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.arithmetic import FloorDivOp
from stepwell.dialects.nd.callback import CallbackOp
from stepwell.dialects.nd.checking import CheckOp
from stepwell.dialects.nd.compare import GeOp, LtOp, MinOp, SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.control import ConditionOp, ScanOp, WhileOp, YieldOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.gradients.branches import replace
from stepwell.dialects.nd.gradients.keeping import bytes_of
from stepwell.dialects.nd.gradients.regions import Body, captured, last_of
from stepwell.dialects.nd.gradients.reverse import Reverse, reads
from stepwell.dialects.nd.gradients.scans import add_argument, scan_backward
from stepwell.dialects.nd.gradients.sizes import Outside
from stepwell.dialects.nd.gradients.trips import Trips, counted, number, trips_of
from stepwell.dialects.nd.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from stepwell.dialects.nd.shape import ReshapeOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import gradient

TAPE_BYTES = 1 << 20
"""Maximum bytes of a tape: it is zeroed first, and fits into a level-2 cache."""
LONGEST_TAPE = 1024
"""Maximum steps on a tape; a longer tape saves nothing."""
SHORTEST_TAPE = 16
"""Minimum steps on a tape; with a shorter one, steps would be recomputed too often."""


@gradient(WhileOp)
def _while(r: Reverse, op: WhileOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Write the backward loops of nd.while."""
    trips = trips_of(op)
    if trips is not None and (scan := _as_scan(op, trips)) is not None:
        scan_backward(r, scan, cotangents)
        return
    backward = _Backward(r, op, cotangents)
    if trips is not None:
        steps = trips.count(r)
    else:
        new, steps = counted(op)
        replace(op, new.results[: len(op.results)])
    backward.write(steps)


def _as_scan(op: WhileOp, trips: Trips) -> ScanOp | None:
    """Replace a loop whose trip count is a function of sizes by a scan."""
    c = Composer(Builder(InsertPoint.before(op)))
    length = trips.known()
    steps = length if length is not None else trips.index(c)
    if steps is None:
        return None
    new = ScanOp(op.carried, [], op.detach_region(1), length=steps)
    new.attributes = dict(op.attributes)
    new.location = op.location
    c.builder.insert(new)
    replace(op, new.results)
    return new


@dataclass(frozen=True)
class _Plan:
    """The values passed to a step's backward pass, and the step that computes them."""

    into: Block
    """The backward pass of a step: cotangents, sums and kept values -> cotangents and sums."""
    forward: Block
    """A step: carried values -> carried values after it."""
    kept: Sequence[SSAValue]
    """Values of ``forward``."""
    state: Sequence[int]
    """The carried values that the kept ones depend on, at this step or a later one."""


class _Backward:
    """The loops of the backward pass."""

    def __init__(self, r: Reverse, op: WhileOp, cotangents: Sequence[SSAValue | None]) -> None:
        self.r, self.carried = r, list(op.carried)
        self.inputs = captured(r, op)
        copy = op.clone()
        for each in list(copy.body.walk()):
            if isinstance(each, CallbackOp):
                r.refuse(
                    op,
                    "a loop that calls Python has no gradient: its steps are done again",
                    "write it as lax.fori_loop or lax.scan with a length that is known",
                )
            if isinstance(each, CheckOp):
                each.detach()
                each.erase()
        self.copy = copy
        body = Body(copy.body.block)
        arguments = body.block.args
        n = len(self.carried)
        starts = [a for a, v in zip(arguments, self.carried, strict=True) if r.wants(v)]
        body.follow_loop([*self.inputs, *starts], n)
        wants = body.inner.wants
        seeded = {k for k, g in enumerate(cotangents) if g is not None and wants(arguments[k])}
        self.useful = sorted(k for k in body.useful(seeded, n) if wants(arguments[k]))
        self.begin = [
            r.full(v, 0) if (g := cotangents[k]) is None else g
            for k, v in enumerate(self.carried)
            if k in self.useful
        ]
        self.plan = self._plan(body)

    def _plan(self, body: Body) -> _Plan:
        into, arguments = Block(), body.block.args
        given = [add_argument(into, arguments[k]) for k in self.useful]
        sums = [add_argument(into, v) for v in self.inputs]
        seeds = [body.yields[k] for k in self.useful]
        body.run(zip(seeds, given, strict=True), zip(self.inputs, sums, strict=True))
        ends = [body.inner.result(arguments[k]) for k in self.useful]
        ends += [body.inner.result(v) for v in self.inputs]
        first: dict[SSAValue, tuple[SSAValue, int]]
        first = {a: (v, 0) for a, v in zip(arguments, self.carried, strict=True)}
        self.outside = Outside(self.r, body.block, first)
        ends, kept = body.take_out(into, ends, self.outside, lambda value: False)
        into.add_op(YieldOp(ends))
        return _Plan(into, body.block, kept, _needed(body.block, kept))

    def write(self, steps: SSAValue) -> None:
        """Write the loops; ``steps`` is the trip count."""
        r, plan = self.r, self.plan
        begin = [*self.begin, *(r.so_far(v) for v in self.inputs)]
        length = _length(sum(bytes_of(v) for v in plan.kept))
        state = [self.carried[k] for k in plan.state]
        slots = _length(sum(bytes_of(v) for v in state))
        whole, one = number(r, length), number(r, 1)
        pieces = _ceil(r, steps, whole)
        places = r.of(_zeros(one, slots, []))
        rows = [_write(r, r.of(_zeros(v, slots, r.sizes(v))), number(r, 0), v) for v in state]
        tapes = [self._tape(v, length) for v in plan.kept]

        def piece(c: Composer, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            k, top, places, *rest = values
            rows, tapes, sums = _split(rest, len(state), len(plan.kept))
            low = c.mul(k, whole)
            high = c.of(MinOp(c.add(low, whole), steps))
            at = _read(c, places, top, one)
            states = [_read(c, s, top, v) for s, v in zip(rows, state, strict=True)]
            far = self._state_distance(c, low, at, top, slots, whole)
            above, places, *rest = self._snapshots(c, [top, places, at, *states, *rows], far, low)
            states, rows = rest[1 : 1 + len(state)], rest[1 + len(state) :]
            tapes = self._record(c, [low, *states], high, low, tapes)
            sums = self._back(c, sums, high, low, tapes)
            below = c.sub(above, one)
            return [c.sub(k, one), below, places, *rows, *tapes, *sums]

        ends = _loop(
            r,
            [r.sub(pieces, one), number(r, 0), places, *rows, *tapes, *begin],
            lambda c, values: c.of(GeOp(values[0], number(c, 0))),
            piece,
        )[3 + len(rows) + len(tapes) :]
        targets = [*(self.carried[k] for k in self.useful), *self.inputs]
        for target, end in zip(targets, ends, strict=True):
            r.accumulate(target, end)
        plan.into.erase()  # only copies of it were inserted
        self.copy.erase()

    def _state_distance(
        self,
        c: Composer,
        low: SSAValue,
        at: SSAValue,
        top: SSAValue,
        slots: int,
        whole: SSAValue,
    ) -> SSAValue:
        """Return the number of steps from ``at`` to the next state that is saved.

        If the free slots suffice, every piece's state is saved. Otherwise half of the slots are
        used now, and the others later for the states between two of these.
        """
        one = number(c, 1)
        left = c.of(FloorDivOp(c.sub(low, at), whole))
        free = c.sub(number(c, slots), top)
        some = c.add(c.of(FloorDivOp(c.sub(free, one), number(c, 2))), one)
        apart = c.of(SelectOp(c.of(GeOp(free, left)), one, _ceil(c, left, some)))
        return c.mul(c.max(apart, one), whole)

    def _step(
        self, c: Composer, state: Sequence[SSAValue], more: Sequence[SSAValue] = ()
    ) -> tuple[list[SSAValue], list[SSAValue]]:
        """Write a step; return the state after it, and its copies of ``more``."""
        block = self.plan.forward
        ends = last_of(block).operands
        wanted = [*(ends[k] for k in self.plan.state), *more]
        mapped: dict[SSAValue, SSAValue] = {
            block.args[k]: v for k, v in zip(self.plan.state, state, strict=True)
        }
        needed = _slice(block, wanted)
        for op in block.ops:
            if op in needed:
                c.builder.insert(op.clone(mapped))
        found = [mapped.get(v, v) for v in wanted]
        return found[: len(state)], found[len(state) :]

    def _advance(self, c: Composer, state: Sequence[SSAValue], end: SSAValue) -> Sequence[SSAValue]:
        """Write a loop that runs steps until ``end`` of them are done."""

        def step(c: Composer, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            after, _ = self._step(c, values[1:])
            return [c.add(values[0], number(c, 1)), *after]

        return _loop(c, state, lambda c, values: c.of(LtOp(values[0], end)), step)

    def _snapshots(
        self, c: Composer, begin: Sequence[SSAValue], far: SSAValue, low: SSAValue
    ) -> Sequence[SSAValue]:
        """Run steps until ``low`` of them are done, saving states on the way.

        begin : the slot of the first state, the number of steps before each slot's state and before
            the first one, that state, and the slots' states
        returns : the same values afterwards; the slot is the first unused one
        """
        count = len(self.plan.state)

        def slot(c: Composer, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            top, places, at, *rest = values
            states, rows = rest[:count], rest[count:]
            places = _write(c, places, top, at)
            rows = [_write(c, row, top, v) for row, v in zip(rows, states, strict=True)]
            end = c.of(MinOp(c.add(at, far), low))
            _, *states = self._advance(c, [at, *states], end)
            return [c.add(top, number(c, 1)), places, end, *states, *rows]

        return _loop(c, begin, lambda c, values: c.of(LtOp(values[2], low)), slot)

    def _tape(self, value: SSAValue, length: int) -> SSAValue:
        sizes = self.outside.sizes(value)
        assert sizes is not None
        return self.r.of(_zeros(value, length, sizes))

    def _record(
        self,
        c: Composer,
        state: Sequence[SSAValue],
        end: SSAValue,
        low: SSAValue,
        tapes: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        """Run the steps of a piece; record the values that the backward pass needs on the tapes."""
        count = len(self.plan.state)

        def step(c: Composer, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            k, at, tapes = values[0], values[1 : 1 + count], values[1 + count :]
            after, kept = self._step(c, at, self.plan.kept)
            place = c.sub(k, low)
            tapes = [_write(c, t, place, v) for t, v in zip(tapes, kept, strict=True)]
            return [c.add(k, number(c, 1)), *after, *tapes]

        begin = [*state, *tapes]
        return _loop(c, begin, lambda c, values: c.of(LtOp(values[0], end)), step)[1 + count :]

    def _back(
        self,
        c: Composer,
        sums: Sequence[SSAValue],
        high: SSAValue,
        low: SSAValue,
        tapes: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        """Propagate cotangents backward through the steps of a piece."""
        into, kept = self.plan.into, self.plan.kept

        def step(c: Composer, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            k = c.sub(values[0], number(c, 1))
            place = c.sub(k, low)
            rows = [_read(c, t, place, v) for t, v in zip(tapes, kept, strict=True)]
            mapped = dict(zip(into.args, [*values[1:], *rows], strict=True))
            given: dict[SSAValue, SSAValue] = {**mapped}
            last = last_of(into)
            for op in into.ops:
                if op is not last:
                    c.builder.insert(op.clone(given))
            return [k, *(given.get(v, v) for v in last.operands)]

        going = _loop(c, [high, *sums], lambda c, values: c.of(LtOp(low, values[0])), step)
        return going[1:]


def _length(bytes: int) -> int:
    """Return the length in steps of a tape that needs ``bytes`` for each step."""
    return min(max(TAPE_BYTES // max(bytes, 1), SHORTEST_TAPE), LONGEST_TAPE)


def _ceil(c: Composer, a: SSAValue, b: SSAValue) -> SSAValue:
    """Return ``a / b`` rounded up."""
    return c.of(FloorDivOp(c.add(a, c.sub(b, number(c, 1))), b))


def _zeros(value: SSAValue, length: int, sizes: Sequence[SSAValue]) -> Operation:
    return FullOp.of(0, TensorType(element(value), [length, *shape_of(value)]), sizes)


def _write(c: Composer, row: SSAValue, place: SSAValue, value: SSAValue) -> SSAValue:
    """Return ``row`` with ``value`` at ``place``."""
    shape = shape_of(value)
    sizes = c.sizes(value) if sum(n == DYNAMIC for n in shape) > 1 else []
    one = c.of(ReshapeOp(value, [1, *shape], sizes))
    return c.of(DynamicUpdateSliceOp(row, one, [place], [0]))


def _read(c: Composer, row: SSAValue, place: SSAValue, like: SSAValue) -> SSAValue:
    """Return the value that `_write` wrote, in the type of ``like``."""
    shape = shape_of(like)
    one = c.of(DynamicSliceOp(row, [place], [0], [1]))
    ambiguous = sum(n == DYNAMIC for n in shape) > 1
    sizes = [c.size(row, a + 1) for a, n in enumerate(shape) if n == DYNAMIC] if ambiguous else []
    return c.of(ReshapeOp(one, shape, sizes))


def _slice(block: Block, wanted: Sequence[SSAValue]) -> set[Operation]:
    """Return the ops of ``block`` that ``wanted`` depends on."""
    needed: set[Operation] = set()
    values = set(wanted)
    for op in reversed(list(block.ops)):
        if any(v in values for v in op.results):
            needed.add(op)
            values.update(reads(op))
    return needed


def _needed(block: Block, kept: Sequence[SSAValue]) -> list[int]:
    """Return the carried values that ``kept`` depends on, at this step or a later one."""
    ends = last_of(block).operands
    found: set[int] = set()
    while True:
        wanted = [*kept, *(ends[k] for k in found)]
        values = {*wanted, *(v for op in _slice(block, wanted) for v in reads(op))}
        more = {k for k, a in enumerate(block.args) if a in values} - found
        if not more:
            return sorted(found)
        found |= more


def _split(
    values: Sequence[SSAValue], first: int, second: int
) -> tuple[Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]]:
    """Return the first ``first`` values, the next ``second`` values, and the rest."""
    return values[:first], values[first : first + second], values[first + second :]


_Step = Callable[[Composer, Sequence[SSAValue]], Sequence[SSAValue]]


def _loop(
    c: Composer,
    begin: Sequence[SSAValue],
    go_on: Callable[[Composer, Sequence[SSAValue]], SSAValue],
    step: _Step,
) -> Sequence[SSAValue]:
    """Write a loop; return the carried values after it."""
    types = [v.type for v in begin]
    test, body = Block(arg_types=types), Block(arg_types=types)
    for block in (test, body):
        for argument, value in zip(block.args, begin, strict=True):
            argument.name_hint = value.name_hint
    test.add_op(ConditionOp(go_on(Composer(Builder(InsertPoint.at_end(test))), test.args)))
    body.add_op(YieldOp(step(Composer(Builder(InsertPoint.at_end(body))), body.args)))
    return c.builder.insert(WhileOp(begin, Region(test), Region(body))).results
