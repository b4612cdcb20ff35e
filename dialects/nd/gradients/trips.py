"""The trip count of an nd.while, if it is known before the loop begins.

For ``i < n`` with a constant step, as Python's `range` and `fori_loop` are written, it is computed
from the first ``i``, ``n`` and the step.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from stepwell.dialects.nd.arithmetic import AddOp, FloorDivOp, SubOp
from stepwell.dialects.nd.compare import GeOp, GtOp, LeOp, LtOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.control import ConditionOp, WhileOp
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.sizes import FromIndexOp
from stepwell.dialects.nd.syntax import element
from stepwell.dialects.types import dtype

_MIRRORED = {GtOp: LtOp, GeOp: LeOp, LtOp: GtOp, LeOp: GeOp}


@dataclass(frozen=True)
class Trips:
    """A counting loop: from ``start`` by ``step`` until it reaches ``bound``."""

    start: SSAValue
    bound: SSAValue
    """Defined in the test, or outside of the loop."""
    step: int
    inclusive: bool
    loop: WhileOp

    def known(self) -> int | None:
        """Return the number of steps if it is a constant, else None."""
        start, bound = constant_of(self.start), constant_of(self.bound)
        if start is None or bound is None:
            return None
        span = (bound - start) * (1 if self.step > 0 else -1) + self.inclusive
        return max(0, -(-span // abs(self.step)))

    def index(self, c: Composer) -> SSAValue | None:
        """Return the number of steps as an index if it is a function of sizes, else None."""
        start, bound = constant_of(self.start), _uncast(self.bound)
        if start is None or not isinstance(bound.owner, FromIndexOp) or self.step != 1:
            return None
        start -= self.inclusive
        n = bound.owner.n
        if start:
            n = c.builder.insert(arith.SubiOp(n, c.index(start))).result
            n = c.builder.insert(arith.MaxSIOp(n, c.index(0))).result
        return n

    def count(self, c: Composer) -> SSAValue:
        """Return the number of steps as an i64 tensor."""
        start = c.cast(self.start, i64)
        bound = c.cast(self._outside(c, self.bound), i64)
        span = c.sub(bound, start) if self.step > 0 else c.sub(start, bound)
        step = abs(self.step)
        span = c.add(span, number(c, step - 1 + self.inclusive))
        return c.max(c.of(FloorDivOp(span, number(c, step))), number(c, 0))

    def _outside(self, c: Composer, value: SSAValue) -> SSAValue:
        """Return a value of the test, computed before the loop."""
        test = self.loop.test.block
        if isinstance(value, BlockArgument):
            return self.loop.carried[value.index] if value.owner is test else value
        op = value.owner
        assert isinstance(op, Operation)
        if op.parent is not test:
            return value
        mapped = {v: self._outside(c, v) for v in op.operands}
        place = list(op.results).index(value)  # pyright: ignore[reportArgumentType]
        return c.builder.insert(op.clone(mapped)).results[place]


def number(c: Composer, value: int) -> SSAValue:
    """Return an i64 constant."""
    return c.of(FullOp.of(value, TensorType(i64, [])))


def _uncast(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, CastOp) and dtype(element(value)).kind != "float":
        value = value.owner.x
    return value


def constant_of(value: SSAValue) -> int | None:
    """Return the integer value of ``value``, None if it is not constant."""
    op = _uncast(value).owner
    if isinstance(op, FullOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def trips_of(loop: WhileOp) -> Trips | None:
    """Return the trip count of ``loop``, None if it is known only by running it."""
    test, body = loop.test.block, loop.body.block
    last, ends = test.last_op, body.last_op
    assert isinstance(last, ConditionOp) and ends is not None
    condition = last.condition.owner
    if not isinstance(condition, LtOp | LeOp | GtOp | GeOp):
        return None
    if not all(is_side_effect_free(op) for op in test.ops if op is not last):
        return None
    for counter, bound, kind in (
        (condition.a, condition.b, type(condition)),
        (condition.b, condition.a, _MIRRORED[type(condition)]),
    ):
        if not isinstance(counter, BlockArgument) or counter.owner is not test:
            continue
        step = _step(body.args[counter.index], ends.operands[counter.index])
        if step is None or (step > 0) != (kind in (LtOp, LeOp)) or not _is_fixed(loop, bound):
            continue
        return Trips(loop.carried[counter.index], bound, step, kind in (LeOp, GeOp), loop)
    return None


def _step(before: SSAValue, after: SSAValue) -> int | None:
    """Return the increment of a counter per step, None if it is not a nonzero constant."""
    op = after.owner
    if isinstance(op, AddOp) and before in op.operands:
        step = constant_of(op.b if op.a is before else op.a)
    elif isinstance(op, SubOp) and op.a is before:
        taken = constant_of(op.b)
        step = None if taken is None else -taken
    else:
        return None
    return step or None


def _is_fixed(loop: WhileOp, value: SSAValue) -> bool:
    """Whether ``value`` of the test is loop-invariant."""
    test = loop.test.block
    if isinstance(value, BlockArgument):
        if value.owner is not test:
            return True
        ends = loop.body.block.last_op
        assert ends is not None
        return ends.operands[value.index] is loop.body.block.args[value.index]
    op = value.owner
    assert isinstance(op, Operation)
    return op.parent is not test or all(_is_fixed(loop, v) for v in op.operands)


def counted(loop: WhileOp) -> tuple[WhileOp, SSAValue]:
    """Make ``loop`` count its steps; return its replacement and the count."""
    block = loop.parent
    assert block is not None
    before = Composer(Builder(InsertPoint.before(loop)))
    zero = number(before, 0)
    test, body = loop.test.block, loop.body.block
    test.insert_arg(zero.type, len(test.args))
    steps = body.insert_arg(zero.type, len(body.args))
    last = body.last_op
    assert last is not None
    inside = Composer(Builder(InsertPoint.before(last)))
    more = inside.add(steps, number(inside, 1))
    last.operands = [*last.operands, more]
    new = WhileOp([*loop.carried, zero], loop.detach_region(0), loop.detach_region(0))
    new.attributes = dict(loop.attributes)
    new.location = loop.location
    before.builder.insert(new)
    new.results[-1].name_hint = "steps"
    return new, new.results[-1]
