"""Ranges of the indices that a module computes, as formulas over its arguments' `?`.

They follow from constants, sizes, loops, types, and ops that bound a value: minimum and maximum,
remainders, comparisons around a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from stepwell.core.formulas import Formula

Range: TypeAlias = "tuple[Formula | None, Formula | None]"
"""The smallest and the largest value; None if unknown."""

UNKNOWN: Range = (None, None)
ZERO, ONE = Formula(), Formula.of(1)
_DEEPEST = 64
"""Maximum length of the use-def chain that is followed."""


class Ranges:
    """The known ranges of values at the op being visited."""

    def __init__(self, numbers: Mapping[SSAValue, Formula]) -> None:
        self._numbers = numbers
        self._assumed: dict[SSAValue, Range] = {}
        self.extents: dict[Operation, Sequence[Formula]] = {}
        """The trip counts of structured ops' loops."""

    def of(self, value: SSAValue, depth: int = 0) -> Range:
        """Return the range of a value."""
        found = self._computed(value, depth)
        held = self._assumed.get(value)
        return found if held is None else _intersection(found, held)

    def is_any(self, value: SSAValue) -> bool:
        """Whether the range of an index cast from an integer is only that of the integer's type."""
        casts = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp)
        while value not in self._assumed and isinstance(value.owner, casts):
            value = value.owner.operands[0]
        narrow = isinstance(value.type, IntegerType) and value.type.width.data >= 32
        return narrow and self.of(value) == _of_type(value)

    def _computed(self, value: SSAValue, depth: int) -> Range:
        owner = value.owner
        if isinstance(owner, arith.IndexCastOp) and value.type in (i64, IndexType()):
            return self.of(owner.input, depth + 1)  # both have 64 bits: no wrapping
        if (exact := self._numbers.get(value)) is not None:
            return exact, exact
        if depth < _DEEPEST and isinstance(owner, Operation):
            if (rule := _RULES.get(type(owner))) is not None:
                each = [self.of(v, depth + 1) for v in owner.operands]
                return _in_type(rule(owner, each), value)
            if isinstance(owner, linalg.IndexOp):
                return self._loop(owner)
        if isinstance(value, BlockArgument) and value.index == 0:
            loop = value.block.parent_op()
            if isinstance(loop, scf.ForOp):
                return self._iteration(loop, depth)
        return _of_type(value)

    def _loop(self, op: linalg.IndexOp) -> Range:
        above = op.parent_op()
        while above is not None and above not in self.extents:
            above = above.parent_op()
        return UNKNOWN if above is None else (ZERO, self.extents[above][op.dim.value.data] - ONE)

    def _iteration(self, loop: scf.ForOp, depth: int) -> Range:
        """Return the range of a loop counter: from its start to before its end, if it counts up."""
        step, _ = self.of(loop.step, depth + 1)
        if step is None or (step.bounds()[0] or 0) < 1:
            return UNKNOWN
        low, (_, end) = self.of(loop.lb, depth + 1)[0], self.of(loop.ub, depth + 1)
        return low, None if end is None else end - ONE

    @contextmanager
    def where(self, condition: SSAValue) -> Generator[None]:
        """Assume a condition inside the context."""
        before = dict(self._assumed)
        self._assume(condition)
        try:
            yield
        finally:
            self._assumed = before

    def _assume(self, condition: SSAValue) -> None:
        op = condition.owner
        if isinstance(op, arith.AndIOp):
            self._assume(op.lhs)
            self._assume(op.rhs)
        elif isinstance(op, arith.CmpiOp):
            left, right = self.of(op.lhs), self.of(op.rhs)
            for value, held in _compared(op.predicate.value.data, op.lhs, left, op.rhs, right):
                self._assumed[value] = _intersection(self._assumed.get(value, UNKNOWN), held)


_EQ, _SLT, _SLE, _SGT, _SGE, _ULT, _ULE, _UGT, _UGE = 0, 2, 3, 4, 5, 6, 7, 8, 9


def _compared(
    predicate: int, x: SSAValue, left: Range, y: SSAValue, right: Range
) -> list[tuple[SSAValue, Range]]:
    """Return the ranges that a comparison implies for its operands if it holds."""
    if predicate in (_SGT, _SGE, _UGT, _UGE):
        turned = {_SGT: _SLT, _SGE: _SLE, _UGT: _ULT, _UGE: _ULE}[predicate]
        return _compared(turned, y, right, x, left)
    if predicate == _EQ:
        return [(x, right), (y, left)]
    less = ONE if predicate in (_SLT, _ULT) else ZERO
    most = None if right[1] is None else right[1] - less
    if predicate in (_SLT, _SLE):
        return [(x, (None, most)), (y, (None if left[0] is None else left[0] + less, None))]
    if predicate in (_ULT, _ULE) and _not_negative(right):
        return [(x, (ZERO, most))]
    return []


def _not_negative(range: Range) -> bool:
    low = None if range[0] is None else range[0].bounds()[0]
    return low is not None and low >= 0


def _intersection(a: Range, b: Range) -> Range:
    """Return the intersection of two ranges."""
    return _tighter("max", a[0], b[0]), _tighter("min", a[1], b[1])


def _tighter(operator: str, a: Formula | None, b: Formula | None) -> Formula | None:
    if a is None or b is None:
        return b if a is None else a
    return Formula.apply(operator, a, b)


def _union(a: Range, b: Range) -> Range:
    """Return the union of two ranges."""
    return _looser("min", a[0], b[0]), _looser("max", a[1], b[1])


def _looser(operator: str, a: Formula | None, b: Formula | None) -> Formula | None:
    return None if a is None or b is None else Formula.apply(operator, a, b)


def _of_type(value: SSAValue) -> Range:
    """Return the range of an integer's type."""
    if isinstance(value.type, IntegerType) and value.type.width.data < 64:
        half = 1 << (value.type.width.data - 1)
        return Formula.of(-half), Formula.of(half - 1)
    return UNKNOWN


def _in_type(range: Range, value: SSAValue) -> Range:
    """Return a range, or that of the type if the numbers may wrap around."""
    low, high = _of_type(value)
    if low is None or high is None:
        return range
    if range[0] is None or range[1] is None:
        return low, high
    within = (range[0] - low).bounds()[0], (high - range[1]).bounds()[0]
    return range if all(n is not None and n >= 0 for n in within) else (low, high)


Rule: TypeAlias = Callable[[Any, Sequence[Range]], Range]


def _sum(op: Any, each: Sequence[Range]) -> Range:
    (a, b), (c, d) = each
    return None if a is None or c is None else a + c, None if b is None or d is None else b + d


def _difference(op: Any, each: Sequence[Range]) -> Range:
    (a, b), (c, d) = each
    return None if a is None or d is None else a - d, None if b is None or c is None else b - c


def _product(op: Any, each: Sequence[Range]) -> Range:
    for x, (low, high) in (each, each[::-1]):
        factor = low.number if low is not None and low == high else None
        if factor is not None:
            return _times(x, factor)
    if all(map(_not_negative, each)):
        (a, b), (c, d) = each
        assert a is not None and c is not None
        return a * c, None if b is None or d is None else b * d
    return UNKNOWN


def _times(range: Range, factor: int) -> Range:
    low, high = (None if n is None else n * Formula.of(factor) for n in range)
    return (low, high) if factor >= 0 else (high, low)


def _maximum(op: Any, each: Sequence[Range]) -> Range:
    return _tighter("max", each[0][0], each[1][0]), _looser("max", each[0][1], each[1][1])


def _minimum(op: Any, each: Sequence[Range]) -> Range:
    return _looser("min", each[0][0], each[1][0]), _tighter("min", each[0][1], each[1][1])


def _unsigned_minimum(op: Any, each: Sequence[Range]) -> Range:
    """The unsigned minimum is at most any operand that is not negative."""
    highs = [high for (low, high) in each if _not_negative((low, high))]
    if not highs:
        return UNKNOWN
    return ZERO, highs[0] if len(highs) == 1 else _tighter("min", highs[0], highs[1])


def _unsigned_maximum(op: Any, each: Sequence[Range]) -> Range:
    return _maximum(op, each) if all(map(_not_negative, each)) else UNKNOWN


def _remainder(op: Any, each: Sequence[Range]) -> Range:
    """A remainder is below a positive divisor in magnitude, and at least 0 if x or op allow it."""
    x, (low, high) = each
    if low is None or high is None or (low.bounds()[0] or 0) < 1:
        return UNKNOWN
    if not isinstance(op, arith.RemUIOp) and not _not_negative(x):
        return ONE - high, high - ONE
    return ZERO, high - ONE


def _mask(op: Any, each: Sequence[Range]) -> Range:
    """A bitwise and is at most any operand that is not negative."""
    highs = [high for (low, high) in each if _not_negative((low, high))]
    return (ZERO, highs[0]) if highs else UNKNOWN


def _quotient(op: Any, each: Sequence[Range]) -> Range:
    """Division by one or more does not increase a number."""
    x, (low, _) = each
    if not _not_negative(x) or low is None or (low.bounds()[0] or 0) < 1:
        return UNKNOWN
    return ZERO, x[1] if low.number is None or x[1] is None else Formula.apply("floor/", x[1], low)


def _choice(op: Any, each: Sequence[Range]) -> Range:
    return _union(each[1], each[2])


def _same(op: Any, each: Sequence[Range]) -> Range:
    return each[0]


def _unsigned_wider(op: Any, each: Sequence[Range]) -> Range:
    if _not_negative(each[0]):
        return each[0]
    return ZERO, Formula.of((1 << op.operands[0].type.width.data) - 1)


def _cast(op: Any, each: Sequence[Range]) -> Range:
    """A cast keeps the range; `_in_type` handles wrapping into a narrower type."""
    assert isinstance(op.result.type, IndexType | IntegerType)
    return each[0]


_RULES: Mapping[type[Operation], Rule] = {
    arith.AddiOp: _sum,
    arith.SubiOp: _difference,
    arith.MuliOp: _product,
    arith.MaxSIOp: _maximum,
    arith.MinSIOp: _minimum,
    arith.MaxUIOp: _unsigned_maximum,
    arith.MinUIOp: _unsigned_minimum,
    arith.RemUIOp: _remainder,
    arith.RemSIOp: _remainder,
    arith.AndIOp: _mask,
    arith.DivUIOp: _quotient,
    arith.DivSIOp: _quotient,
    arith.FloorDivSIOp: _quotient,
    arith.SelectOp: _choice,
    arith.IndexCastOp: _cast,
    arith.ExtSIOp: _same,
    arith.ExtUIOp: _unsigned_wider,
    arith.TruncIOp: _same,
}


def of_expression(expression: AffineExpr, extents: Sequence[Formula]) -> Range:
    """Return the range of an affine expression in iterations of loops that run."""
    match expression:
        case AffineConstantExpr(value=value):
            return Formula.of(value), Formula.of(value)
        case AffineDimExpr(position=position):
            return ZERO, extents[position] - ONE
        case AffineBinaryOpExpr():
            left = of_expression(expression.lhs, extents)
            right = of_expression(expression.rhs, extents)
            return _combined(expression.kind, left, right)
        case _:
            return UNKNOWN


def _combined(kind: AffineBinaryOpKind, left: Range, right: Range) -> Range:
    if kind is AffineBinaryOpKind.Add:
        return _sum(None, (left, right))
    if kind is AffineBinaryOpKind.Mul:
        return _product(None, (left, right))
    number = right[0].number if right[0] is not None and right[0] == right[1] else None
    if number is None or number < 1 or left[0] is None or left[1] is None:
        return UNKNOWN
    by = Formula.of(number)
    if kind is AffineBinaryOpKind.Mod:
        inside = _not_negative(left) and ((by - left[1]).bounds()[0] or 0) >= 1
        return left if inside else (ZERO, by - ONE)
    operator = "floor/" if kind is AffineBinaryOpKind.FloorDiv else "ceil/"
    return Formula.apply(operator, left[0], by), Formula.apply(operator, left[1], by)
