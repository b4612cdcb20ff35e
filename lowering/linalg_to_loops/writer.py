"""Write loop code: linear index arithmetic, constants, loops, loads and stores.

A value that can be shared (an index, a broadcast) is kept in the scope of its block and reused in
that block and the loops inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, TypeVar

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    LocationAttr,
    MemRefType,
    UnknownLoc,
    VectorType,
    i64,
)
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from stepwell.dialects import kernel
from stepwell.dialects.types import UNKNOWN


@cache
def vector_type(element: Attribute, width: int) -> VectorType[Any]:
    """Return the type of ``width`` lanes; building one costs ten times as much as an op."""
    return VectorType(element, [width])


@lru_cache(maxsize=1024)
def _in_lanes(value: IntegerAttr | FloatAttr, width: int) -> Attribute:
    """Return a number in every lane."""
    number: Any = value.value.data
    return DenseIntOrFPElementsAttr.from_list(vector_type(value.type, width), [number] * width)


@cache
def _index_attribute(number: int) -> IntegerAttr:
    return IntegerAttr(number, INDEX)


OpT = TypeVar("OpT", bound=Operation)
INDEX = IndexType()
NAMES = ("i", "j", "k", "l", "m", "n")
"""Names of loop indices, by depth."""


@dataclass(frozen=True)
class Index:
    """A linear expression over index values: ``sum(coefficient * value) + offset``."""

    terms: tuple[tuple[SSAValue, int], ...] = ()
    offset: int = 0

    @staticmethod
    def of(value: SSAValue | int) -> Index:
        """Return one value, or a number, as an expression."""
        return Index((), value) if isinstance(value, int) else Index(((value, 1),))

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return replace(self, offset=self.offset + other)
        sums = dict(self.terms)
        for value, coefficient in other.terms:
            sums[value] = sums.get(value, 0) + coefficient
        terms = tuple((v, c) for v, c in sums.items() if c)
        return Index(terms, self.offset + other.offset)

    def __mul__(self, factor: int) -> Index:
        if factor == 0:
            return Index()
        return Index(tuple((v, c * factor) for v, c in self.terms), self.offset * factor)

    def __sub__(self, other: Index) -> Index:
        return self + other * -1

    @property
    def number(self) -> int | None:
        """The value, if it is a compile-time constant."""
        return None if self.terms else self.offset

    @property
    def key(self) -> tuple[frozenset[tuple[SSAValue, int]], int]:
        """A key that equal expressions share, whatever the order of their terms."""
        return frozenset(self.terms), self.offset


@dataclass
class Writer:
    """Appends ops to a block; everything written is at ``location``."""

    block: Block
    entry: Block
    location: LocationAttr = UNKNOWN
    _scopes: list[dict[object, SSAValue]] = field(
        default_factory=lambda: list[dict[object, SSAValue]]([{}])
    )
    _constants: dict[Attribute, SSAValue] = field(default_factory=dict[Attribute, SSAValue])
    _last_constant: Operation | None = None
    _ranges: dict[SSAValue, tuple[int, int]] = field(
        default_factory=dict[SSAValue, tuple[int, int]]
    )
    """The bounds of the indices of open loops, both inclusive."""

    def insert(self, op: OpT) -> OpT:
        """Append ``op`` and set its location."""
        if isinstance(op.location, UnknownLoc):
            op.location = self.location
        self.block.add_op(op)
        return op

    def result(self, op: Operation, hint: str | None = None) -> OpResult:
        """Append ``op``; return its only result."""
        self.insert(op)
        if hint is not None:
            op.results[0].name_hint = hint
        return op.results[0]

    def shared(self, key: object, make: Callable[[], SSAValue]) -> SSAValue:
        """Return the value already written under ``key``, or write it."""
        for scope in reversed(self._scopes):
            if (found := scope.get(key)) is not None:
                return found
        value = self._scopes[-1][key] = make()
        return value

    # constants, all at the top of the kernel

    def constant(self, value: Attribute, type: Attribute, hint: str | None = None) -> SSAValue:
        """Return a constant; equal ones are one."""
        if (found := self._constants.get(value)) is not None:
            return found
        op = arith.ConstantOp.create(result_types=[type], properties={"value": value})
        op.location = self.location
        if self._last_constant is not None:
            self.entry.insert_op_after(op, self._last_constant)
        elif (first := self.entry.first_op) is not None:
            self.entry.insert_op_before(op, first)
        else:
            self.entry.add_op(op)
        self._last_constant = op
        op.results[0].name_hint = hint
        self._constants[value] = op.results[0]
        return op.results[0]

    def index(self, number: int) -> SSAValue:
        """Return an index constant."""
        hint = f"c{number}" if number >= 0 else f"m{-number}"
        return self.constant(_index_attribute(number), INDEX, hint)

    def splat(self, value: IntegerAttr | FloatAttr, width: int) -> SSAValue:
        """Return a scalar constant, or a vector of ``width`` lanes of it."""
        if width == 0:
            return self.constant(value, value.type)
        return self.constant(_in_lanes(value, width), vector_type(value.type, width))

    # index arithmetic

    def value(self, index: Index) -> SSAValue:
        """Return the value of a linear expression."""
        if (number := index.number) is not None:
            return self.index(number)
        if len(index.terms) == 1 and index.offset == 0 and index.terms[0][1] == 1:
            return index.terms[0][0]
        return self.shared(("index", index.key), lambda: self._sum(index))

    def _sum(self, index: Index) -> SSAValue:
        if index.offset:
            base, by = self.value(Index(index.terms)), self.index(index.offset)
            return self.binary(arith.AddiOp, base, by, base.name_hint)
        *rest, (value, factor) = sorted(index.terms, key=lambda term: term[1] < 0)
        if not rest:
            return self.binary(arith.MuliOp, value, self.index(factor), value.name_hint)
        last = self.value(Index(((value, abs(factor)),)))
        op = arith.SubiOp if factor < 0 else arith.AddiOp
        return self.binary(op, self.value(Index(tuple(rest))), last)

    def binary(
        self, op: type[Operation], lhs: SSAValue, rhs: SSAValue, hint: str | None = None
    ) -> SSAValue:
        """Write one op of two operands of one type."""
        overflow = op in (arith.AddiOp, arith.MuliOp, arith.SubiOp)
        properties: dict[str, Attribute] = {"overflowFlags": _NO_FLAGS} if overflow else {}
        new = op.create(operands=[lhs, rhs], result_types=[lhs.type], properties=properties)
        return self.result(new, hint)

    def across(self, kind: str, lanes: SSAValue, hint: str | None = None) -> SSAValue:
        """Combine the lanes of a vector; ``kind`` is a name in vector.reduction."""
        assert isinstance(lanes.type, VectorType)
        new = vector.ReductionOp.create(
            operands=[lanes],
            result_types=[lanes.type.element_type],
            properties={
                "kind": CombiningKindAttr(CombiningKindFlag(kind)),
                "fastmath": arith.FastMathFlagsAttr("none"),
            },
        )
        return self.result(new, hint)

    def divide(self, index: Index, by: int | SSAValue, op: type[Operation]) -> Index:
        """Return ``index`` divided by a positive number, or the remainder, depending on ``op``."""
        if isinstance(by, int):
            if (number := index.number) is not None:
                return Index.of(number % by if op is arith.RemUIOp else number // by)
            if by == 1:
                return Index() if op is arith.RemUIOp else index
            by = self.index(by)
        lhs, rhs = self.value(index), by
        return Index.of(self.shared((op, lhs, rhs), lambda: self.binary(op, lhs, rhs)))

    def bound(self, index: Index, low: int, high: int) -> None:
        """Record that a value is between two numbers, both inclusive."""
        if len(index.terms) == 1 and index.terms[0][1] == 1 and not index.offset:
            self._ranges[index.terms[0][0]] = low, high

    def interval(self, index: Index) -> tuple[int, int] | None:
        """Return the bounds of ``index``, both inclusive, where they are known."""
        low = high = index.offset
        for value, factor in index.terms:
            if (found := self._ranges.get(value)) is None:
                return None
            ends = found[0] * factor, found[1] * factor
            low, high = low + min(ends), high + max(ends)
        return low, high

    def is_within(self, index: Index, size: Index) -> bool | None:
        """Whether ``index`` is in 0 .. ``size``; None where only the run time decides."""
        found, end = self.interval(index), size.number
        if found is None or end is None:
            return None
        low, high = found
        return True if low >= 0 and high < end else False if high < 0 or low >= end else None

    def minimum(self, a: Index, b: Index) -> Index:
        """Return the smaller of two."""
        return self._extreme(arith.MinSIOp, a, b)

    def maximum(self, a: Index, b: Index) -> Index:
        """Return the greater of two."""
        return self._extreme(arith.MaxSIOp, a, b)

    def _extreme(self, op: type[Operation], a: Index, b: Index) -> Index:
        if (found := self.interval(b - a)) is not None and (found[0] >= 0 or found[1] <= 0):
            return a if (found[0] >= 0) is (op is arith.MinSIOp) else b
        lhs, rhs = self.value(a), self.value(b)
        return Index.of(self.shared((op, lhs, rhs), lambda: self.binary(op, lhs, rhs)))

    def product(self, a: Index, b: Index) -> Index:
        """Return the product of two."""
        if a.number is not None or b.number is not None:
            return b * a.number if a.number is not None else a * b.offset
        return Index.of(self.binary(arith.MuliOp, self.value(a), self.value(b)))

    def affine(self, expr: AffineExpr, dims: Sequence[Index | None]) -> Index:
        """Evaluate ``expr`` at the given loop indices."""
        match expr:
            case AffineConstantExpr():
                return Index.of(expr.value)
            case AffineDimExpr():
                found = dims[expr.position]
                assert found is not None, "the loop is not open"
                return found
            case AffineBinaryOpExpr():
                lhs, rhs = self.affine(expr.lhs, dims), self.affine(expr.rhs, dims)
                return self._affine_binary(expr.kind, lhs, rhs)
            case _:
                raise ValueError(f"symbols are not used in maps: {expr}")

    def _affine_binary(self, kind: AffineBinaryOpKind, lhs: Index, rhs: Index) -> Index:
        if kind is AffineBinaryOpKind.Add:
            return lhs + rhs
        if kind is AffineBinaryOpKind.Mul:
            return lhs * rhs.offset if rhs.number is not None else rhs * lhs.offset
        by = rhs.offset
        if kind is AffineBinaryOpKind.CeilDiv:
            return self.divide(lhs + (by - 1), by, arith.FloorDivSIOp)
        quotient = self.divide(lhs, by, arith.FloorDivSIOp)
        return quotient if kind is AffineBinaryOpKind.FloorDiv else lhs - quotient * by

    # control

    def loop(
        self,
        bounds: tuple[Index, Index],
        step: int,
        carried: Sequence[SSAValue],
        body: Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]],
        hint: str = "i",
        names: Sequence[str | None] = (),
    ) -> Sequence[SSAValue]:
        """Write an scf.for; ``body(index, carried values) -> next carried values``.

        ``hint`` names the index, ``names`` the carried values.
        """
        lower, upper = bounds
        if (trip := (upper - lower).number) is not None:
            if trip <= 0:
                return carried
            if trip <= step:
                return body(lower, carried)
        first, end, by = self.value(lower), self.value(upper), self.index(step)
        block = Block(arg_types=[INDEX, *(v.type for v in carried)])
        block.args[0].name_hint = hint
        for arg, name in zip(block.args[1:], names or [None] * len(carried), strict=True):
            arg.name_hint = name
        op = self.insert(scf.ForOp(first, end, by, carried, Region(block)))
        for result, arg in zip(op.results, block.args[1:], strict=True):
            result.name_hint = arg.name_hint
        if lower.number is not None and upper.number is not None:
            last = lower.number + (upper.number - 1 - lower.number) // step * step
            self._ranges[block.args[0]] = lower.number, last
        self.fill(block, lambda: body(Index.of(block.args[0]), block.args[1:]), scf.YieldOp)
        return op.results

    def inside(self, block: Block, write: Callable[[], Sequence[SSAValue]]) -> Sequence[SSAValue]:
        """Run ``write`` with ``block`` open, in a scope of its own."""
        outer, self.block = self.block, block
        self._scopes.append({})
        values = write()
        self.block = outer
        self._scopes.pop()
        return values

    def fill(
        self,
        block: Block,
        write: Callable[[], Sequence[SSAValue]],
        end: Callable[..., Operation],
    ) -> Sequence[SSAValue]:
        """Run ``write`` with ``block`` open; ``end`` makes the terminator from its values."""
        values = self.inside(block, write)
        last = end(*values)
        last.location = self.location
        block.add_op(last)
        return values

    def compare(self, how: str, a: Index, b: Index) -> SSAValue:
        """Return the comparison of two indices by a predicate: `sle`, `sge`, ..."""
        return self.result(arith.CmpiOp(self.value(a), self.value(b), how))

    def branch(self, condition: SSAValue, then: Callable[[], None], no: Callable[[], None]) -> None:
        """Write an scf.if with both branches."""
        self.either(condition, lambda: then() or (), lambda: no() or ())

    def either(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[SSAValue]],
        no: Callable[[], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Write an scf.if with both branches; return its results."""
        blocks = Block(), Block()
        values: Sequence[SSAValue] = ()
        for block, write in zip(blocks, (then, no), strict=True):
            values = self.fill(block, write, scf.YieldOp)
        types = [value.type for value in values]
        op = self.insert(scf.IfOp(condition, types, Region(blocks[0]), Region(blocks[1])))
        for result, value in zip(op.results, values, strict=True):
            result.name_hint = value.name_hint
        return list(op.results)

    def parallel(self, trips: Index, grain: Index, body: Callable[[Index], None]) -> None:
        """Write an scf.parallel over ``0 .. trips``; ``grain`` iterations are worth a thread."""
        block = Block(arg_types=[INDEX])
        block.args[0].name_hint = "p"
        lower, upper, step = self.index(0), self.value(trips), self.index(1)
        op = scf.ParallelOp([lower], [upper], [step], Region(block))
        if grain.number is None:
            self.insert(kernel.GrainOp(self.value(grain)))
        else:
            op.attributes["kernel.grain"] = IntegerAttr(max(grain.number, 1), 64)
        self.insert(op)
        self.fill(block, lambda: body(Index.of(block.args[0])) or (), scf.ReduceOp)

    def sweep(
        self,
        bounds: tuple[Index, Index],
        sizes: Sequence[int],
        carried: Sequence[SSAValue],
        body: Callable[[Index, int, Sequence[SSAValue]], Sequence[SSAValue]],
        hint: str = "i",
        names: Sequence[str | None] = (),
    ) -> Sequence[SSAValue]:
        """Cover a range by steps of ``sizes[0]`` while they fit, then of ``sizes[1]``, ...

        ``body(start, size, carried) -> carried``; the last of ``sizes`` divides the remainder.
        """
        at, upper = bounds
        for n, size in enumerate(sizes, 1):

            def step(i: Index, args: Sequence[SSAValue], size: int = size) -> Sequence[SSAValue]:
                return body(i, size, args)

            end = upper if n == len(sizes) else self.last_whole(at, upper, size)
            carried = self.loop((at, end), size, carried, step, hint, names)
            at = end
        return carried

    def last_whole(self, lower: Index, upper: Index, size: int) -> Index:
        """Return where the last whole step of ``size`` ends."""
        if size == 1:
            return upper
        return lower + self.divide(upper - lower, size, arith.DivUIOp) * size

    # memory

    def shuffle(
        self, a: SSAValue, b: SSAValue, lanes: Sequence[int], hint: str | None = None
    ) -> SSAValue:
        """Return the lanes of two concatenated vectors that ``lanes`` selects."""
        mask = DenseArrayBase.from_list(i64, lanes)
        op = vector.ShuffleOp.create(
            operands=[a, b], result_types=[a.type], properties={"mask": mask}
        )
        return self.result(op, hint)

    def load(
        self, buffer: SSAValue, indices: Sequence[Index], width: int = 0, hint: str | None = None
    ) -> SSAValue:
        """Load a scalar, or ``width`` neighbours along the last dimension."""
        element = element_of(buffer)
        operands = [buffer, *(self.value(i) for i in indices)]
        if width:
            type = vector_type(element, width)
            return self.result(vector.LoadOp.create(operands=operands, result_types=[type]), hint)
        return self.result(memref.LoadOp.create(operands=operands, result_types=[element]), hint)

    def store(
        self,
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[Index],
        nontemporal: bool = False,
    ) -> None:
        """Store a scalar, or the lanes of a vector along the last dimension.

        nontemporal : store a vector without filling the caches
        """
        many = isinstance(value.type, VectorType)
        kind = vector.StoreOp if many else memref.StoreOp
        properties = {"nontemporal": _TRUE} if nontemporal and many else {}
        at = [self.value(i) for i in indices]
        self.insert(kind.create(operands=[value, buffer, *at], properties=properties))

    def broadcast(self, value: SSAValue, width: int) -> SSAValue:
        """Return ``value`` in every one of ``width`` lanes."""
        if isinstance(value.type, VectorType) or not width:
            return value
        if isinstance(owner := value.owner, arith.ConstantOp) and isinstance(
            owner.value, IntegerAttr | FloatAttr
        ):
            return self.splat(owner.value, width)
        type = vector_type(value.type, width)
        return self.shared(
            ("broadcast", value, width),
            lambda: self.result(
                vector.BroadcastOp.create(operands=[value], result_types=[type]), value.name_hint
            ),
        )

    def lane(self, value: SSAValue, lane: int) -> SSAValue:
        """Return one lane of a vector."""
        assert isinstance(value.type, VectorType)
        return self.result(vector.ExtractOp(value, [lane], value.type.element_type))

    def assemble(self, lanes: Sequence[SSAValue]) -> SSAValue:
        """Return a vector of the given lanes."""
        type = vector_type(lanes[0].type, len(lanes))
        whole: SSAValue = self.result(vector.BroadcastOp(lanes[0], type))
        for k, lane in enumerate(lanes[1:], 1):
            whole = self.result(vector.InsertOp(lane, whole, [k]))
        return whole


def element_of(buffer: SSAValue) -> Attribute:
    """Return the element type of a memref."""
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.element_type


_TRUE = BoolAttr.from_bool(True)
_NO_FLAGS = arith.IntegerOverflowAttr("none")
