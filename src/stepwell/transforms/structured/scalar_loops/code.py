"""Build scalar code: numbers instead of one-element tensors, and arrays updated in place."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import copysign
from typing import NamedTuple, NoReturn

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from stepwell.analysis.structured import erase_dead
from stepwell.dialects.types import UNKNOWN
from stepwell.transforms.structured.scalar_loops.bounds import Bounds, number_of, of_type


class Refused(Exception):
    """A loop cannot be scalar code, for the reason in the message; it stays as it is.

    store : an array of the loop; if it is stored in memory of its own, the reason is gone
    unless_short : whether a loop of few iterations is no reason
    """

    def __init__(
        self, op: Operation, why: str, store: SSAValue | None = None, unless_short: bool = False
    ) -> None:
        super().__init__(why)
        self.op, self.why, self.store, self.unless_short = op, why, store, unless_short


def refuse(op: Operation, why: str) -> NoReturn:
    """Refuse to translate the loop that contains ``op``."""
    raise Refused(op, why)


class Write(NamedTuple):
    """A store into a slice of an array."""

    before: SSAValue
    place: Sequence[SSAValue | None]
    """For each axis the index, None where the slice has several."""


@dataclass
class Arrays:
    """Maps each tensor to the array that it is a state of, and each array to its newest state.

    Arrays are updated in place: only the newest state can be read or changed.
    """

    of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    newest: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    written: dict[SSAValue, Write] = field(default_factory=dict[SSAValue, "Write"])
    """For a state that a store into the state before it made: that store."""
    scratch: set[int] = field(default_factory=set[int])
    """The arrays that an iteration makes and changes."""
    _entered: list[tuple[dict[SSAValue, None], set[SSAValue]]] = field(
        default_factory=list[tuple[dict[SSAValue, None], set[SSAValue]]]
    )

    def add(self, value: SSAValue, scratch: bool = False) -> None:
        """Register a new array."""
        number = len(self.newest)
        if scratch:
            self.scratch.add(number)
        self.of[value], self.newest[number] = number, value

    def change(self, old: SSAValue, new: SSAValue) -> None:
        """Make ``new`` the newest state of the array that ``old`` is a state of."""
        number = self.of[old]
        self.of[new], self.newest[number] = number, new

    @contextmanager
    def entered(self, states: Iterable[SSAValue]) -> Generator[set[SSAValue]]:
        """Let a loop that begins with these states read them; yield the ones that it does read."""
        found = dict.fromkeys(v for v in states if v in self.of)
        read = set[SSAValue]()
        self._entered.append((found, read))
        yield read
        self._entered.pop()

    def is_entered(self, state: SSAValue) -> bool:
        """Note that a loop that began with ``state`` reads it; return False if there is none."""
        for found, read in self._entered:
            if state in found:
                read.add(state)
                return True
        return False

    def is_stale(self, value: SSAValue) -> bool:
        """Whether ``value`` is a state of an array that has been overwritten."""
        return value in self.of and self.newest[self.of[value]] is not value

    def changed_since(self, before: dict[int, SSAValue]) -> set[int]:
        """Return the arrays that were changed since their newest states were ``before``."""
        return {n for n, value in before.items() if self.newest[n] is not value}


class Code:
    """The insertion point, the replacement of each tensor-level value, and the facts about both."""

    def __init__(self, top: Block) -> None:
        self.top = self.block = top
        self.values: dict[SSAValue, SSAValue] = {}
        self.arrays, self.bounds = Arrays(), Bounds()
        self.scratches: list[SSAValue] = []
        """Arguments of the outermost loop for values that it keeps in memory meanwhile."""
        self.source: Operation | None = None
        """The tensor-level op that is being translated."""
        self._written: dict[object, SSAValue] = {}
        """Numbers that have been computed, keyed by their computation (value numbering)."""
        self._constants: dict[tuple[Attribute, float], SSAValue] = {}
        self._put: list[Operation] = []

    def abandon(self) -> None:
        """Discard all code that has been written."""
        for op in reversed(self._put):
            op.drop_all_references()

    def finish(self) -> None:
        """Insert the constants, and erase unused ops."""
        created = [v.owner for v in self._constants.values()]
        first = self.top.first_op
        assert first is not None
        self.top.insert_ops_before([op for op in created if isinstance(op, Operation)], first)

    def scratch(self, type: TensorType[Attribute]) -> SSAValue:
        """Return memory of its own, whose elements are not set."""
        self.scratches.append(self.top.insert_arg(type, len(self.top.args)))
        self.scratches[-1].name_hint = "scratch"
        return self.scratches[-1]

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Insert into ``block``."""
        outer, self.block, written = self.block, block, dict(self._written)
        with self.bounds.inside():
            yield
        self.block, self._written = outer, written

    def put(self, op: Operation, hints: Iterable[str | None] = ()) -> Operation:
        """Insert ``op``, and name its results."""
        if self.source is not None and op.location == UNKNOWN:
            op.location = self.source.location
        for value, hint in zip(op.results, hints, strict=False):
            value.name_hint = hint
        self.block.add_op(op)
        self._put.append(op)
        return op

    def number(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert a scalar op, unless its result folds or has been computed already."""
        key = (type(op), tuple(op.operands), op.results[0].type, tuple(op.properties.items()))
        found = self._folded(op) or self._written.get(key)
        if found is not None:
            op.drop_all_references()
            return found
        self.put(op, [hint])
        self.bounds.follow(op)
        self._written[key] = op.results[0]
        return op.results[0]

    def constant(self, attribute: IntegerAttr | FloatAttr) -> SSAValue:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
        """Return a constant, of which there is one copy."""
        sign = copysign(1.0, attribute.value.data)  # 0.0 and -0.0 are equal
        key: tuple[Attribute, float] = (attribute, sign)
        if (known := self._constants.get(key)) is None:
            op = arith.ConstantOp(attribute)
            op.location = self.source.location if self.source is not None else UNKNOWN
            known = self._constants[key] = op.result
        return known

    def index(self, number: int) -> SSAValue:
        """Return a constant index."""
        return self.constant(IntegerAttr(number, IndexType()))

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the sum of two indices."""
        if 0 in (number_of(a), number_of(b)):
            return b if number_of(a) == 0 else a
        return self.number(arith.AddiOp(a, b))

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the product of two indices."""
        if 1 in (number_of(a), number_of(b)):
            return b if number_of(a) == 1 else a
        return self.number(arith.MuliOp(a, b))

    def affine(self, expression: AffineExpr, loops: Sequence[SSAValue]) -> SSAValue:
        """Return the value of an affine expression of loop indices."""
        match expression:
            case AffineConstantExpr(value=value):
                return self.index(value)
            case AffineDimExpr(position=position):
                return loops[position]
            case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
                a, b = self.affine(lhs, loops), self.affine(rhs, loops)
                if kind is AffineBinaryOpKind.Add:
                    return self.add(a, b)
                if kind is AffineBinaryOpKind.Mul:
                    return self.times(a, b)
                return self.number(_DIVISIONS[kind](a, b))
            case _:
                raise ValueError(f"an index of structured ops is no {expression}")

    def zero(self, type: Attribute) -> SSAValue:
        """Return 0 of a type."""
        if isinstance(type, IntegerType | IndexType):
            return self.constant(IntegerAttr(0, type))
        assert isinstance(type, AnyFloat)
        return self.constant(FloatAttr(0.0, type))

    def _folded(self, op: Operation) -> SSAValue | None:
        """Return the value that a scalar op folds to, None if an op is needed."""
        match op:
            case arith.ConstantOp() if isinstance(op.value, IntegerAttr | FloatAttr):
                return self.constant(op.value)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            case arith.CmpiOp() if (decided := self.bounds.decided(op)) is not None:
                return self.constant(IntegerAttr(int(decided), 1))
            case arith.SelectOp() if (holds := truth(op.cond)) is not None:
                return op.lhs if holds else op.rhs
            case arith.SelectOp() if (kind := _min_or_max(op)) is not None:
                return self.number(kind(op.lhs, op.rhs))
            case arith.MaxSIOp() | arith.MinSIOp():
                return self._extreme(op)
            case arith.AndIOp() | arith.OrIOp() if op.result.type == i1:
                return _folded_logic(op)
            case _:
                return self._arithmetic(op)

    def _arithmetic(self, op: Operation) -> SSAValue | None:
        """Fold integer arithmetic to a known value or to a cheaper op."""
        match op:
            case arith.IndexCastOp(input=inner) if self._casts_back(op):
                return inner.owner.operands[0] if isinstance(inner.owner, Operation) else None
            case arith.FloorDivSIOp():
                return self._quotient(op)
            case arith.SubiOp() if (left := self._remainder(op)) is not None:
                return left
            case arith.AddiOp() | arith.SubiOp() | arith.MuliOp() | arith.IndexCastOp():
                return self._computed(op)
            case _:
                return None

    def _casts_back(self, op: arith.IndexCastOp) -> bool:
        """Whether a cast undoes another one that preserved the value."""
        first = op.input.owner
        if not isinstance(first, arith.IndexCastOp) or first.input.type != op.result.type:
            return False
        held, range = of_type(op.input.type), self.bounds.of(first.input)
        return bool(held and range and held[0] <= range[0] and range[1] <= held[1])

    def _quotient(self, op: arith.FloorDivSIOp) -> SSAValue | None:
        """Return a floor division as a shift or an unsigned one, if legal."""
        x, by = self.bounds.of(op.lhs), number_of(op.rhs)
        if by is None or by < 1 or x is None:
            return None
        if by & (by - 1) == 0:
            assert isinstance(op.rhs.type, IntegerType | IndexType)
            shift = self.constant(IntegerAttr(by.bit_length() - 1, op.rhs.type))
            return self.number(arith.ShRSIOp(op.lhs, shift))
        return self.number(arith.DivSIOp(op.lhs, op.rhs)) if x[0] >= 0 else None

    def _remainder(self, op: arith.SubiOp) -> SSAValue | None:
        """Return ``x - (x >> k) * 2**k``, a remainder by a power of two, as a mask."""
        match op.rhs.owner:
            case arith.MuliOp(lhs=quotient, rhs=by):
                pass
            case _:
                return None
        match quotient.owner:
            case arith.ShRSIOp(lhs=x, rhs=shift) if x is op.lhs:
                pass
            case _:
                return None
        size, bits = number_of(by), number_of(shift)
        if size is None or bits is None or size != 1 << bits:
            return None
        assert isinstance(by.type, IntegerType | IndexType)
        mask = self.constant(IntegerAttr(size - 1, by.type))
        return self.number(arith.AndIOp(op.lhs, mask))

    def _computed(self, op: Operation) -> SSAValue | None:
        """Return the constant that is the only possible result of integer arithmetic."""
        type = op.results[0].type
        if not isinstance(type, IntegerType | IndexType) or type == i1:
            return None
        found = self.bounds.computed(op)
        return None if found is None else self.constant(IntegerAttr(found, type))

    def _extreme(self, op: arith.MaxSIOp | arith.MinSIOp) -> SSAValue | None:
        a, b = self.bounds.of(op.lhs), self.bounds.of(op.rhs)
        assert a is not None and b is not None
        if self.bounds.is_ordered(op.rhs, op.lhs):
            a, b = (1, 1), (0, 0)
        elif self.bounds.is_ordered(op.lhs, op.rhs):
            a, b = (0, 0), (1, 1)
        if a[0] >= b[1]:
            return op.lhs if isinstance(op, arith.MaxSIOp) else op.rhs
        if b[0] >= a[1]:
            return op.rhs if isinstance(op, arith.MaxSIOp) else op.lhs
        return None


_DIVISIONS = {
    AffineBinaryOpKind.FloorDiv: arith.DivUIOp,
    AffineBinaryOpKind.CeilDiv: arith.CeilDivUIOp,
    AffineBinaryOpKind.Mod: arith.RemUIOp,
}
"""Divisions of indices, which are never negative."""


def _min_or_max(op: arith.SelectOp) -> type[arith.MinSIOp | arith.MaxSIOp] | None:
    """Return the min or max op that a selection between two compared integers computes."""
    test = op.cond.owner
    if not isinstance(test, arith.CmpiOp) or op.result.type == i1:
        return None
    less, sides = test.predicate.value.data, (test.lhs, test.rhs)
    if less not in (2, 3, 4, 5) or {*sides} != {op.lhs, op.rhs}:
        return None
    return arith.MinSIOp if (less in (2, 3)) == (sides[0] is op.lhs) else arith.MaxSIOp


def truth(value: SSAValue) -> bool | None:
    """Return the value of a constant condition, else None."""
    known = number_of(value)
    return None if known is None else bool(known)


def _folded_logic(op: arith.AndIOp | arith.OrIOp) -> SSAValue | None:
    """Fold a conjunction or disjunction with a constant operand."""
    for side, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if (known := truth(side)) is not None:
            return other if known == isinstance(op, arith.AndIOp) else side
    return None


def erase_unused(block: Block) -> None:
    """Erase the unused ops of a block and of its nested blocks."""
    erase_dead(block)
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                erase_unused(inner)
    erase_dead(block)
