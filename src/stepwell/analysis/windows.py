"""Find the iterations of a structured op outside of which it changes nothing.

A body that adds ``x`` if ``j < i`` and else 0 does nothing unless ``j`` is less than ``i``: the
loop over ``j`` may end there. The result is a `Window` for each such loop, whose limits are values
of the body that are invariant in all loops; `invariant` finds these values, and `lift` hoists one
out of the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import copysign
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, ShapedType, i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.analysis.combiners import COMBINERS
from stepwell.analysis.shifts import is_wide
from stepwell.analysis.structured import constant_of, indices, is_parallel, yielded
from stepwell.dialects.readings import reference

Value: TypeAlias = "SSAValue | np.generic"
"""The value of a body's SSA value under an assumption: a constant, or an SSA value."""

_LIFTED: tuple[type[Operation], ...] = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.MaxUIOp,
    arith.MinUIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.CmpiOp,
    arith.SelectOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.IndexCastOp,
    arith.ConstantOp,
)
"""Ops that may be hoisted out of the loops, although the loops may not run at all."""
_DIVISIONS = frozenset(
    {arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp}
    | {arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp}
)
_LOSES_NAN = frozenset({arith.MaxnumfOp, arith.MinnumfOp})
"""Combiners whose identity turns NaN into a number."""
_EQ, _NE, _SLT, _SLE, _SGT, _SGE = range(6)
_SWAPPED = {_EQ: _EQ, _SLT: _SGT, _SLE: _SGE, _SGT: _SLT, _SGE: _SLE}


@dataclass(frozen=True)
class Limit:
    """A loop-invariant number: a value of the body plus an offset."""

    value: SSAValue
    offset: int


@dataclass
class Window:
    """The range of a loop outside of which nothing changes: from every low to before every high.

    Without a low limit the loop begins at 0, without a high limit it runs to its end.
    """

    lows: list[Limit] = field(default_factory=list[Limit])
    highs: list[Limit] = field(default_factory=list[Limit])


@dataclass(frozen=True)
class _Test:
    """The meaning of a comparison: ``loop < high`` or ``loop >= low``."""

    loop: int
    upper: bool
    limit: Limit


InPlace: TypeAlias = Callable[[int, int], bool]
"""Whether the input and the output of these numbers are one array with the same indexing."""


def windows(op: linalg.GenericOp, in_place: InPlace | None = None) -> dict[int, Window]:
    """Return the windows of the loops of ``op`` that have one.

    in_place : which inputs alias outputs with the same indexing; none if None
    """
    body = op.body.block
    tests = {
        each: some
        for each in body.ops
        if isinstance(each, arith.CmpiOp) and (some := _tests(op, each))
    }
    if not tests:
        return {}
    found: dict[int, Window] = {}
    for test in dict.fromkeys(test for some in tests.values() for test in some):
        if _is_neutral(op, _Outside(op, tests, test), in_place):
            window = found.setdefault(test.loop, Window())
            (window.highs if test.upper else window.lows).append(test.limit)
    return found


def invariant(op: linalg.GenericOp, value: SSAValue) -> bool:
    """Whether a value of the body of ``op`` is loop-invariant and cheap to compute."""
    if isinstance(value, BlockArgument) and value.owner is op.body.block:
        is_input = value.index < len(op.inputs)
        return is_input and not any(e.used_dims() for e in indices(op)[value.index])
    if not isinstance(value.owner, Operation) or value.owner.parent is not op.body.block:
        return True
    lifted = isinstance(value.owner, _LIFTED)
    return lifted and all(invariant(op, v) for v in value.owner.operands)


def lift(
    op: linalg.GenericOp,
    value: SSAValue,
    leaf: Callable[[SSAValue], SSAValue],
    put: Callable[[Operation], None],
    done: dict[SSAValue, SSAValue],
) -> SSAValue:
    """Hoist an invariant value of a body out of it.

    leaf : returns the outer value of a body argument or of a captured value
    put : inserts an op
    done : the values hoisted before; added to
    """
    if (found := done.get(value)) is not None:
        return found
    owner = value.owner
    if not isinstance(owner, Operation) or owner.parent is not op.body.block:
        found = leaf(value)
    else:
        operands = [lift(op, v, leaf, put, done) for v in owner.operands]
        new = owner.clone(dict(zip(owner.operands, operands, strict=True)))
        put(new)
        found = new.results[0]
    done[value] = found
    return found


def _tests(op: linalg.GenericOp, compared: arith.CmpiOp) -> list[_Test]:
    """Return the tests that a comparison of a loop index with an invariant number implies."""
    how, sides = compared.predicate.value.data, (compared.lhs, compared.rhs)
    if (place := _place(sides[0])) is None:
        sides, how = sides[::-1], _SWAPPED.get(how, -1)
        place = _place(sides[0])
    if place is None or how not in _SWAPPED or not invariant(op, sides[1]):
        return []
    loop, ahead = place
    below = _Test(loop, True, Limit(sides[1], int(how in (_SLE, _EQ)) - ahead))
    from_on = _Test(loop, False, Limit(sides[1], int(how == _SGT) - ahead))
    if how == _EQ:
        return [below, from_on]
    return [below] if how in (_SLT, _SLE) else [from_on]


def _place(value: SSAValue) -> tuple[int, int] | None:
    """Return the loop whose index a value is, and the offset added to the index."""
    match value.owner:
        case linalg.IndexOp():
            return value.owner.dim.value.data, 0
        case arith.IndexCastOp(input=inner) if is_wide(value) and is_wide(inner):
            return _place(inner)
        case arith.AddiOp(lhs=lhs, rhs=rhs):
            if (by := constant_of(rhs)) is None:
                lhs, by = rhs, constant_of(lhs)
        case arith.SubiOp(lhs=lhs, rhs=rhs):
            by = None if (by := constant_of(rhs)) is None else -by
        case _:
            return None
    if by is None or not -_SMALL < by < _SMALL or (found := _place(lhs)) is None:
        return None
    return found[0], found[1] + by


_SMALL = 1 << 31
"""Offsets below this cannot overflow 64 bits when a few are added to a loop index."""


@dataclass
class _Outside:
    """The values of a body in iterations where one test fails."""

    op: linalg.GenericOp
    tests: dict[arith.CmpiOp, list[_Test]]
    fails: _Test

    def __post_init__(self) -> None:
        self._of: dict[SSAValue, Value] = {}
        for each in self.op.body.block.ops:
            if len(each.results) == 1 and not each.regions:
                self._of[each.results[0]] = self._result(each)

    def of(self, value: SSAValue) -> Value:
        """Return the known value of an SSA value of the body."""
        return self._of.get(value, value)

    def _result(self, op: Operation) -> Value:
        operands = [self.of(v) for v in op.operands]
        match op:
            case arith.ConstantOp():
                return _first(_evaluated(op, ()), op.result)
            case arith.CmpiOp() if any(self._fails(test) for test in self.tests.get(op, ())):
                return np.bool_(False)
            case arith.SelectOp():
                chosen, yes, no = operands
                if isinstance(chosen, np.generic):
                    return yes if chosen else no
                return yes if yes is no else op.result
            case arith.AndIOp() | arith.OrIOp() if op.result.type == i1:
                return self._joined(op, operands)
            case arith.MuliOp() if any(isinstance(v, np.generic) and v == 0 for v in operands):
                return next(v for v in operands if isinstance(v, np.generic) and v == 0)
            case _:
                return _first(_evaluated(op, operands), op.results[0])

    def _fails(self, test: _Test) -> bool:
        """Whether a test is implied to fail: it is at least as strict as the one that fails."""
        out = self.fails
        if (test.loop, test.upper, test.limit.value) != (out.loop, out.upper, out.limit.value):
            return False
        more = test.limit.offset - out.limit.offset
        return more <= 0 if test.upper else more >= 0

    def _joined(self, op: arith.AndIOp | arith.OrIOp, operands: Sequence[Value]) -> Value:
        absorbing = isinstance(op, arith.OrIOp)
        for side, other in (operands, operands[::-1]):
            if isinstance(side, np.generic):
                return side if bool(side) is absorbing else other
        return op.result


def _first(number: np.generic | None, value: SSAValue) -> Value:
    return value if number is None else number


def _evaluated(op: Operation, operands: Sequence[Value]) -> np.generic | None:
    """Return the result of an op on constants, None if it is not known."""
    numbers = [v for v in operands if isinstance(v, np.generic)]
    known = len(numbers) == len(operands) and reference.get(type(op)) is not None
    if not known or type(op) in _DIVISIONS or op.dialect_name() not in ("arith", "math"):
        return None
    if isinstance(op.results[0].type, ShapedType):
        return None
    with np.errstate(all="ignore"):
        result: Any = reference[type(op)](op, [np.asarray(n) for n in numbers])
    number: Any = np.asarray(result)[()]
    return number


def _is_neutral(op: linalg.GenericOp, outside: _Outside, in_place: InPlace | None) -> bool:
    """Whether every output keeps its value."""
    return all(_keeps_value(op, outside, k, in_place) for k in range(len(op.outputs)))


def _keeps_value(
    op: linalg.GenericOp, outside: _Outside, output: int, in_place: InPlace | None
) -> bool:
    block, count = op.body.block, len(op.inputs)
    own, given = block.args[count + output], yielded(block)[output]
    new = outside.of(given)
    if new is own:
        return True
    if isinstance(new, BlockArgument) and new.owner is block and new.index < count:
        return in_place is not None and in_place(new.index, output)
    return _is_reduced(op, output) and _combines_identity(op, outside, output, given)


def _is_reduced(op: linalg.GenericOp, output: int) -> bool:
    """Whether an output is invariant in the reduction loops, and there are such loops."""
    index, parallel = indices(op)[len(op.inputs) + output], is_parallel(op)
    return not all(parallel) and all(parallel[d] for e in index for d in e.used_dims())


def _combines_identity(
    op: linalg.GenericOp, outside: _Outside, output: int, given: SSAValue
) -> bool:
    """Whether the operand of a reduction is an identity of its combiner."""
    own, last = op.body.block.args[len(op.inputs) + output], given.owner
    if not isinstance(last, Operation) or own not in last.operands:
        return False
    if isinstance(last, math.FmaOp):
        factors = [outside.of(v) for v in (last.a, last.b)]
        if last.c is not own or not all(isinstance(v, np.generic) for v in factors):
            return False
        combiner, added = COMBINERS[arith.AddfOp], np.multiply(*map(np.asarray, factors))[()]
    else:
        combiner = COMBINERS.get(type(last))
        added = outside.of(next((v for v in last.operands if v is not own), own))
    if combiner is None or combiner.op in _LOSES_NAN or not isinstance(added, np.generic):
        return False
    number, wanted = added.item(), combiner.identity(own.type).value.data
    if isinstance(number, bool) or isinstance(wanted, int):
        bits = own.type.width.data if isinstance(own.type, IntegerType) else 64
        return int(number) % (1 << bits) == int(wanted) % (1 << bits)
    if combiner.op is arith.AddfOp and number == 0:  # -0.0 + 0.0 is 0.0
        return copysign(1, number) < 0 or _is_never_negative_zero(op, output)
    return number == wanted


def _is_never_negative_zero(op: linalg.GenericOp, output: int) -> bool:
    """Whether a running sum begins with a number other than -0.0, so that it never is -0.0."""
    fill = _fill(op, op.outputs[output])
    start = fill.inputs[0].owner if fill is not None else None
    if not isinstance(start, arith.ConstantOp):
        return False
    number = getattr(getattr(start.value, "value", None), "data", None)
    return isinstance(number, float) and copysign(1, number) > 0


def _fill(op: linalg.GenericOp, target: SSAValue) -> linalg.FillOp | None:
    """Return the op that fills the destination of ``op`` immediately before it."""
    if isinstance(target.owner, linalg.FillOp):
        return target.owner
    for each in _before(op):
        if target in each.operands:
            return each if isinstance(each, linalg.FillOp) else None
    return None


def _before(op: Operation) -> Iterator[Operation]:
    while (previous := op.prev_op) is not None:
        yield (op := previous)
