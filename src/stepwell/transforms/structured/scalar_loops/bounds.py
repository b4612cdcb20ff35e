"""Range analysis of the integers in scalar code, computed as the code is written.

The facts come from constants, counters and types alone. They fold comparisons that are decided,
and clamps of numbers that are in range already.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue

Range: TypeAlias = tuple[int, int]
"""The smallest and the largest value, both inclusive."""


def of_type(type: Attribute) -> Range | None:
    """Return the range of a type as signed integers; None for other types."""
    if isinstance(type, IndexType):
        return -(1 << 63), (1 << 63) - 1
    if not isinstance(type, IntegerType):
        return None
    bits = type.width.data
    return (0, 1) if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


class Bounds:
    """The facts known about the integers written so far."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Range] = {}
        self._most: dict[SSAValue, tuple[tuple[SSAValue, int], ...]] = {}
        """Maps x to (y, least) pairs with ``x + least <= y``."""

    def of(self, value: SSAValue) -> Range | None:
        """Return the range of ``value``; None if it is no integer."""
        held = of_type(value.type)
        match value.owner:
            case arith.ConstantOp(value=IntegerAttr(value=number)) if held and held != (0, 1):
                low, high = held
                wrapped = (number.data - low) % (high - low + 1) + low
                return wrapped, wrapped
            case _:
                return self._known.get(value) or held

    def note(self, value: SSAValue, range: Range) -> None:
        """Record that ``value`` is in ``range``, clipped to the range of its type."""
        held = of_type(value.type)
        if held is not None and held[0] <= range[0] and range[1] <= held[1]:
            self._known[value] = range

    def follow(self, op: Operation) -> None:
        """Record the range of the result of ``op``."""
        if (found := self._ruled(op)) is not None:
            self.note(op.results[0], found)

    def order(self, x: SSAValue, y: SSAValue, least: int = 0) -> None:
        """Record that ``x + least <= y``."""
        (x, a), (y, b) = self.sum_of(x), self.sum_of(y)
        if not isinstance(x.owner, arith.ConstantOp) and not isinstance(y.owner, arith.ConstantOp):
            self._most[x] = (*self._most.get(x, ()), (y, b - a - least))

    def is_ordered(self, x: SSAValue, y: SSAValue, least: int = 0) -> bool:
        """Whether ``x + least <= y`` is known."""
        (x, a), (y, b) = self.sum_of(x), self.sum_of(y)
        if x is y:
            return a + least <= b
        return any(other is y and a + least + by <= b for other, by in self._most.get(x, ()))

    def sum_of(self, value: SSAValue) -> tuple[SSAValue, int]:
        """Return ``value`` as another value plus a constant, where no addition wraps around."""
        total = 0
        while True:
            match value.owner:
                case arith.IndexCastOp(input=inner) if self._holds(value, inner):
                    value = inner
                case arith.AddiOp(lhs=x, rhs=y) if self._is_exact(value) and (
                    (by := number_of(y)) is not None or (by := number_of(x)) is not None
                ):
                    value, total = (x if number_of(y) is not None else y), total + by
                case arith.SubiOp(lhs=x, rhs=y) if (
                    self._is_exact(value) and (by := number_of(y)) is not None
                ):
                    value, total = x, total - by
                case _:
                    return value, total

    def _holds(self, value: SSAValue, inner: SSAValue) -> bool:
        """Whether a cast preserves the value of its operand."""
        held, range = of_type(value.type), self.of(inner)
        return held is not None and range is not None and _is_in(range, held)

    def _is_exact(self, value: SSAValue) -> bool:
        """Whether a sum or difference does not wrap around."""
        assert isinstance(value.owner, Operation)
        found, held = self._ruled(value.owner), of_type(value.type)
        return found is not None and held is not None and _is_in(found, held)

    def computed(self, op: Operation) -> int | None:
        """Return the result of ``op`` if its range is a single number."""
        found, held = self._ruled(op), of_type(op.results[0].type)
        if found is None or held is None or found[0] != found[1]:
            return None
        return found[0] if held[0] <= found[0] <= held[1] else None

    def _ruled(self, op: Operation) -> Range | None:
        rule, each = _RULES.get(type(op)), [self.of(v) for v in op.operands]
        found = None if rule is None or None in each else rule(op, each)
        if found is not None and isinstance(op, arith.SubiOp) and found[0] < 0:
            low = 1 if self.is_ordered(op.rhs, op.lhs, 1) else 0
            if low or self.is_ordered(op.rhs, op.lhs):
                return low, found[1]
        return found

    def decided(self, op: arith.CmpiOp) -> bool | None:
        """Return the result of a comparison if the ranges decide it, else None."""
        left, right = self.of(op.lhs), self.of(op.rhs)
        if left is None or right is None or op.lhs.type == i1:
            return None
        number = op.predicate.value.data
        found = _compare(number, left, right)
        if found is not None or number not in (_SLT, _SLE, _SGT, _SGE, _ULT):
            return found
        x, y = (op.rhs, op.lhs) if number in (_SGT, _SGE) else (op.lhs, op.rhs)
        if number == _ULT and (left[0] < 0 or right[0] < 0):
            return None
        less = int(number in (_SLT, _SGT, _ULT))
        if self.is_ordered(x, y, less):
            return True
        return False if self.is_ordered(y, x, 1 - less) else None

    @contextmanager
    def inside(self) -> Generator[None]:
        """On exit, forget the facts learned inside about values defined outside a block."""
        before = dict(self._known), dict(self._most)
        try:
            yield
        finally:
            self._known, self._most = before

    @contextmanager
    def where(self, condition: SSAValue, holds: bool) -> Generator[None]:
        """Assume inside that ``condition`` is ``holds``."""
        with self.inside():
            self._assume(condition, holds)
            yield

    def assume(self, condition: SSAValue) -> None:
        """Assume that a condition holds in the rest of the block."""
        self._assume(condition, True)

    def _assume(self, condition: SSAValue, holds: bool) -> None:
        op = condition.owner
        if (isinstance(op, arith.AndIOp) and holds) or (isinstance(op, arith.OrIOp) and not holds):
            self._assume(op.lhs, holds)
            self._assume(op.rhs, holds)
        elif isinstance(op, arith.CmpiOp):
            number = op.predicate.value.data
            self._hold(number if holds else _CONTRARY[number], op.lhs, op.rhs)

    def _hold(self, predicate: int, x: SSAValue, y: SSAValue) -> None:
        a, b = self.of(x), self.of(y)
        if a is None or b is None:
            return
        if predicate in (_SGT, _SGE):
            self._hold(_SLT if predicate == _SGT else _SLE, y, x)
        elif predicate in (_SLT, _SLE):
            less = int(predicate == _SLT)
            self._narrow(x, (a[0], min(a[1], b[1] - less)))
            self._narrow(y, (max(b[0], a[0] + less), b[1]))
            self.order(x, y, less)
        elif predicate == _EQ:
            both = max(a[0], b[0]), min(a[1], b[1])
            self._narrow(x, both)
            self._narrow(y, both)
        elif predicate in (_ULT, _ULE) and b[0] >= 0:
            self._narrow(x, (max(a[0], 0), min(a[1], b[1] - int(predicate == _ULT))))

    def _narrow(self, value: SSAValue, range: Range) -> None:
        if range[0] <= range[1]:  # otherwise this code is unreachable
            self.note(value, range)


_EQ, _NE, _SLT, _SLE, _SGT, _SGE, _ULT, _ULE, _UGT, _UGE = range(10)
_CONTRARY = (_NE, _EQ, _SGE, _SGT, _SLE, _SLT, _UGE, _UGT, _ULE, _ULT)


def _is_in(range: Range, held: Range) -> bool:
    return held[0] <= range[0] and range[1] <= held[1]


def _compare(predicate: int, left: Range, right: Range) -> bool | None:
    if predicate in (_SGT, _SGE, _UGT, _UGE):
        turned = {_SGT: _SLT, _SGE: _SLE, _UGT: _ULT, _UGE: _ULE}[predicate]
        return _compare(turned, right, left)
    if predicate in (_ULT, _ULE):
        if right[0] < 0 or (left[0] < 0 <= left[1]):
            return None
        if left[1] < 0:  # as unsigned it exceeds every non-negative number
            return False
        predicate = _SLT if predicate == _ULT else _SLE
    if predicate in (_EQ, _NE):
        if left[1] < right[0] or right[1] < left[0]:
            return predicate == _NE
        same = left == right and left[0] == left[1]
        return predicate == _EQ if same else None
    less = int(predicate == _SLT)
    if left[1] <= right[0] - less:
        return True
    return False if left[0] > right[1] - less else None


Rule: TypeAlias = Callable[[Any, Sequence[Any]], "Range | None"]


def _sum(op: Any, each: Sequence[Range]) -> Range:
    (a, b), (c, d) = each
    return a + c, b + d


def _difference(op: Any, each: Sequence[Range]) -> Range:
    (a, b), (c, d) = each
    return a - d, b - c


def _product(op: Any, each: Sequence[Range]) -> Range:
    corners = [x * y for x in each[0] for y in each[1]]
    return min(corners), max(corners)


def _maximum(op: Any, each: Sequence[Range]) -> Range:
    (a, b), (c, d) = each
    return max(a, c), max(b, d)


def _minimum(op: Any, each: Sequence[Range]) -> Range:
    (a, b), (c, d) = each
    return min(a, c), min(b, d)


def _if_natural(rule: Rule) -> Rule:
    """Return a signed rule for the unsigned op: the same if no operand can be negative."""
    return lambda op, each: rule(op, each) if all(low >= 0 for low, _ in each) else None


def _remainder(op: Any, each: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = each
    if c < 1:
        return None
    return (0 if a >= 0 else max(a, 1 - d)), (min(b, d - 1) if b >= 0 else 0)


def _quotient(op: Any, each: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = each
    return (a // d, b // c) if a >= 0 and c >= 1 else None


def _shifted(op: Any, each: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = each
    return (a >> c, b >> c) if c == d and 0 <= c < 64 else None


def _mask(op: Any, each: Sequence[Range]) -> Range | None:
    highs = [high for low, high in each if low >= 0]
    return (0, min(highs)) if highs else None


def _choice(op: Any, each: Sequence[Range]) -> Range:
    """Unite both operands' ranges; in `x + n if x < 0 else x` the condition refines each."""
    (a, b), (c, d) = each[1:]
    test, sum = op.cond.owner, op.lhs.owner
    counts_back = (
        isinstance(test, arith.CmpiOp)
        and test.predicate.value.data == _SLT
        and test.lhs is op.rhs
        and isinstance(sum, arith.AddiOp)
        and op.rhs in sum.operands
        and _is_zero(test.rhs)
    )
    if counts_back:
        by = number_of(sum.rhs if sum.lhs is op.rhs else sum.lhs)
        if by is not None and c < 0 <= d:
            return min(c + by, 0), max(by - 1, d)
    return min(a, c), max(b, d)


def number_of(value: SSAValue) -> int | None:
    """Return the integer value of a constant, else None."""
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr(value=found)):
            return found.data
        case _:
            return None


def _is_zero(value: SSAValue) -> bool:
    return number_of(value) == 0


def _operand_range(op: Any, each: Sequence[Range]) -> Range:
    return each[0]


def _wider(op: Any, each: Sequence[Range]) -> Range:
    return (-1, 0) if op.operands[0].type == i1 else each[0]


_RULES: Mapping[type[Operation], Rule] = {
    arith.AddiOp: _sum,
    arith.SubiOp: _difference,
    arith.MuliOp: _product,
    arith.MaxSIOp: _maximum,
    arith.MinSIOp: _minimum,
    arith.MaxUIOp: _if_natural(_maximum),
    arith.MinUIOp: _if_natural(_minimum),
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _if_natural(_remainder),
    arith.DivSIOp: _quotient,
    arith.DivUIOp: _if_natural(_quotient),
    arith.FloorDivSIOp: _quotient,
    arith.AndIOp: _mask,
    arith.ShRSIOp: _shifted,
    arith.SelectOp: _choice,
    arith.IndexCastOp: _operand_range,
    arith.ExtSIOp: _wider,
    arith.ExtUIOp: _if_natural(_operand_range),
    arith.TruncIOp: _operand_range,
}
