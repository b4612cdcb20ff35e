"""Write loop code: linear index arithmetic, loops, branches, loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, MemRefType, NoneAttr, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from stepwell.analysis.structured import element
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.builder import INDEX, Builder, vector_type

NAMES = ("i", "j", "k", "l", "m", "n")
"""Names of loop indices, by depth."""
_TRUE = BoolAttr.from_bool(True)


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
            return Index(self.terms, self.offset + other)
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


ZERO = Index()


@dataclass
class Writer(Builder):
    """Writes loops over indices that are linear in those of loops around them."""

    _ranges: dict[SSAValue, tuple[int, int]] = field(
        default_factory=dict[SSAValue, tuple[int, int]]
    )
    """The bounds of the indices of open loops, both inclusive."""

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

    def divide(self, index: Index, by: int | Index, op: type[Operation] = arith.DivUIOp) -> Index:
        """Return ``index`` divided by a positive number, or the remainder, depending on ``op``."""
        by = by if isinstance(by, int) else by.number or by
        if isinstance(by, int):
            if (number := index.number) is not None:
                return Index.of(number % by if op is arith.RemUIOp else number // by)
            if by == 1:
                return Index() if op is arith.RemUIOp else index
            by = Index.of(by)
        rhs, lhs = self.value(by), self.value(index)
        return Index.of(self.shared((op, lhs, rhs), lambda: self.binary(op, lhs, rhs)))

    def divide_up(self, index: Index, by: int | Index) -> Index:
        """Return ``index`` divided by a positive number, rounded up."""
        return self.divide(index + by + -1, by)

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
            return self._quotient(lhs + (by - 1), by)
        quotient = self._quotient(lhs, by)
        return quotient if kind is AffineBinaryOpKind.FloorDiv else lhs - quotient * by

    def _quotient(self, index: Index, by: int) -> Index:
        """Return ``index`` divided by a number, rounded down.

        What cannot be negative is divided without signs: packing divides for each row, and C
        compilers do not find these bounds. Packing 156 filters of 5x5 takes two thirds of the time
        (Granite Rapids).
        """
        found = self.interval(index)
        if found is None or found[0] < 0:
            return self.divide(index, by, arith.FloorDivSIOp)
        quotient = self.divide(index, by)
        self.bound(quotient, found[0] // by, found[1] // by)
        return quotient

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

    def compare(self, how: str, a: Index, b: Index) -> SSAValue:
        """Return the comparison of two indices by a predicate: `sle`, `sge`, ..."""
        return self.result(arith.CmpiOp(self.value(a), self.value(b), how))

    def branch(
        self,
        condition: SSAValue | None,
        then: Callable[[], None],
        no: Callable[[], None] = lambda: None,
    ) -> None:
        """Write an scf.if with both branches; only ``then`` where there is no condition."""
        self.either(condition, lambda: then() or (), lambda: no() or ())

    def either(
        self,
        condition: SSAValue | None,
        then: Callable[[], Sequence[SSAValue]],
        no: Callable[[], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Write an scf.if with both branches, and return its results; as `branch`."""
        if condition is None:
            return list(then())
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

    def each(
        self, bounds: tuple[Index, Index], step: int, body: Callable[[Index], object], hint: str
    ) -> None:
        """Write a loop that carries no values."""

        def inside(at: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body(at)
            return ()

        self.loop(bounds, step, (), inside, hint)

    def cover(
        self,
        bounds: tuple[Index, Index],
        sizes: Sequence[int],
        body: Callable[[Index, int], None],
        hint: str,
    ) -> None:
        """Cover a range as `sweep` does, without values that loops carry."""
        self.sweep(bounds, sizes, (), lambda at, size, _: body(at, size) or (), hint)

    def last_whole(self, lower: Index, upper: Index, size: int) -> Index:
        """Return where the last whole step of ``size`` ends."""
        if size == 1:
            return upper
        return lower + self.divide(upper - lower, size) * size

    def load(
        self, buffer: SSAValue, indices: Sequence[Index], width: int = 0, hint: str | None = None
    ) -> SSAValue:
        """Load a scalar, or ``width`` neighbours along the last dimension."""
        kind = element(buffer)
        operands = [buffer, *(self.value(i) for i in indices)]
        if width:
            type = vector_type(kind, width)
            return self.result(vector.LoadOp.create(operands=operands, result_types=[type]), hint)
        return self.result(memref.LoadOp.create(operands=operands, result_types=[kind]), hint)

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


def select(writer: Writer, condition: SSAValue, then: Index, other: Index) -> Index:
    """Return ``then`` where a condition holds, else ``other``."""
    values = writer.value(then), writer.value(other)
    return Index.of(writer.result(arith.SelectOp(condition, *values)))


def below(writer: Writer, a: Index, b: Index, then: Index, other: Index) -> Index:
    """Return ``then`` where ``a`` is below ``b``, else ``other``."""
    if (number := (b - a).number) is not None:
        return then if number > 0 else other
    return select(writer, writer.compare("slt", a, b), then, other)


def is_dense(buffer: SSAValue) -> bool:
    """Whether neighbours along the last axis of a buffer are contiguous."""
    type = buffer.type
    assert isinstance(type, MemRefType)
    return isinstance(type.layout, NoneAttr) or (type.get_strides() or [0])[-1] == 1
