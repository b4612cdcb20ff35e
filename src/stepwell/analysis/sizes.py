"""Sizes as formulas over the `?` of the function's arguments.

Two sizes are known to be equal if their formulas are equal. A formula is a sum of products of
atoms. An atom is a `?` of an argument, the result of an index operation other than a sum or
product, or a value known only at run time (a loop counter, a number read from a tensor).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    i1,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from stepwell.dialects import kernel

Monomial: TypeAlias = tuple[int, ...]

_NUMBERS = (IndexType(), i64, i1)


@dataclass(frozen=True)
class Size:
    """A sum of products: pairs of (numbers of the multiplied atoms, coefficient), sorted."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(number: int) -> Size:
        """Return a plain number."""
        return Size((((), number),)) if number else Size()

    @staticmethod
    def _sum(terms: Mapping[Monomial, int]) -> Size:
        return Size(tuple(sorted((m, c) for m, c in terms.items() if c)))

    def __add__(self, other: Size) -> Size:
        if not (self.terms and other.terms):
            return self if self.terms else other
        a, b = self.number, other.number
        if a is not None and b is not None:
            return Size.of(a + b)
        terms = dict(self.terms)
        for monomial, factor in other.terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return Size._sum(terms)

    def __mul__(self, other: Size) -> Size:
        a, b = self.number, other.number
        if b == 1:
            return self
        if a is not None and b is not None:
            return Size.of(a * b)
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                both = tuple(sorted(left + right))
                terms[both] = terms.get(both, 0) + a * b
        return Size._sum(terms)

    def __sub__(self, other: Size) -> Size:
        a, b = self.number, other.number
        if a is not None and b is not None:
            return Size.of(a - b)
        return self + other * Size.of(-1)

    @property
    def number(self) -> int | None:
        """The size as a plain number, None if it is not constant."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None


@dataclass(frozen=True)
class Dim:
    """The ``index``-th `?` of the function's arguments."""

    index: int


@dataclass(frozen=True)
class Result:
    """The result of an index operation on its operands."""

    op: type[Operation]
    properties: tuple[tuple[str, Attribute], ...]
    operands: tuple[Size, ...]
    type: Attribute


@dataclass(frozen=True)
class Unknown:
    """A value known only at run time."""

    value: SSAValue


Atom: TypeAlias = Dim | Result | Unknown
Shape: TypeAlias = tuple[Size, ...]

_SUMS: dict[type[Operation], Callable[[Size, Size], Size]] = {
    arith.AddiOp: Size.__add__,
    arith.SubiOp: Size.__sub__,
    arith.MuliOp: Size.__mul__,
}
_PURE = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    arith.FloorDivSIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.MinSIOp,
    arith.MinUIOp,
    arith.MaxSIOp,
    arith.MaxUIOp,
    arith.CmpiOp,
    arith.SelectOp,
)


class Sizes:
    """The sizes of the values of one function."""

    def __init__(self, arguments: Sequence[SSAValue]) -> None:
        self.arguments = tuple(arguments)
        self.atoms: list[Atom] = []
        self.dims: list[tuple[int, int]] = []
        """(argument, axis) of every `?` of the arguments, in order."""
        self._numbers: dict[Atom, int] = {}
        self._known: dict[SSAValue, Size] = {}
        self._shapes: dict[SSAValue, Shape] = {}
        for number, argument in enumerate(arguments):
            self._shapes[argument] = self._argument(number, argument.type)

    def _argument(self, number: int, type: Attribute) -> Shape:
        shape: list[Size] = []
        for axis, n in enumerate(static_shape(type)):
            if n == DYNAMIC_INDEX:
                self.dims.append((number, axis))
                shape.append(self.atom(Dim(len(self.dims) - 1)))
            else:
                shape.append(Size.of(n))
        return tuple(shape)

    def atom(self, atom: Atom) -> Size:
        """Return ``atom`` as a size."""
        if atom not in self._numbers:
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return Size((((self._numbers[atom],), 1),))

    def unknowns(self, size: Size) -> list[SSAValue]:
        """Return the values inside ``size`` that are known only at run time."""
        found: list[SSAValue] = []
        for monomial, _ in size.terms:
            for number in monomial:
                match self.atoms[number]:
                    case Unknown(value):
                        found.append(value)
                    case Result(operands=operands):
                        found.extend(v for each in operands for v in self.unknowns(each))
                    case Dim():
                        pass
        return found

    def in_caller(self, size: Size, given: Sequence[SSAValue], by: Sizes) -> Size:
        """Translate ``size`` to the function ``by``, which calls this one with ``given``."""
        total = Size()
        for monomial, factor in size.terms:
            term = Size.of(factor)
            for number in monomial:
                match self.atoms[number]:
                    case Dim(index):
                        argument, axis = self.dims[index]
                        term = term * by.shape(given[argument])[axis]
                    case Unknown(value) as atom:
                        if value in self.arguments:
                            term = term * by.of(given[self.arguments.index(value)])
                        else:
                            term = term * by.atom(atom)
                    case Result(op, properties, operands, type):
                        inner = tuple(self.in_caller(each, given, by) for each in operands)
                        term = term * by.atom(Result(op, properties, inner, type))
            total = total + term
        return total

    def never_negative(self, size: Size) -> bool:
        """Whether ``size`` is provably >= 0: a sum of extents of arguments."""
        return all(
            factor >= 0 and all(isinstance(self.atoms[n], Dim) for n in monomial)
            for monomial, factor in size.terms
        )

    def equate(self, value: SSAValue, known: SSAValue) -> None:
        """Set ``value``, from another form of the function, equal to ``known``."""
        if isinstance(known.type, TensorType | MemRefType):
            self._shapes[value] = self.shape(known)
        else:
            self._known[value] = self.of(known)

    def of(self, value: SSAValue) -> Size:
        """Return the formula of ``value``, an index."""
        if (known := self._known.get(value)) is None:
            known = self._known[value] = self._of(value)
        return known

    def _of(self, value: SSAValue) -> Size:
        op = value.owner
        if isinstance(op, Block) or value.type not in _NUMBERS:
            return self.atom(Unknown(value))
        if isinstance(op, arith.ConstantOp) and value.type != i1:
            assert isinstance(op.value, IntegerAttr)
            return Size.of(op.value.value.data)
        if isinstance(op, tensor.DimOp | memref.DimOp):
            axis = self.of(op.index).number
            return self.atom(Unknown(value)) if axis is None else self.shape(op.source)[axis]
        if isinstance(op, arith.IndexCastOp):
            return self.of(op.input)
        if (combine := _SUMS.get(type(op))) is not None:
            return combine(self.of(op.operands[0]), self.of(op.operands[1]))
        if isinstance(op, arith.MaxSIOp):
            a, b = self.of(op.lhs), self.of(op.rhs)
            if self.never_negative(a - b) or self.never_negative(b - a):
                return a if self.never_negative(a - b) else b
        if isinstance(op, _PURE):
            operands = tuple(self.of(v) for v in op.operands)
            properties = tuple(sorted(op.properties.items()))
            type_ = value.type if value.type == i1 else IndexType()
            return self.atom(Result(type(op), properties, operands, type_))
        return self.atom(Unknown(value))

    def shape(self, value: SSAValue) -> Shape:
        """Return the sizes of ``value``, a tensor or a buffer."""
        if (known := self._shapes.get(value)) is None:
            static = static_shape(value.type)
            if DYNAMIC_INDEX in static:
                found = self._shape(value)
                known = tuple(
                    f if n == DYNAMIC_INDEX else Size.of(n)
                    for n, f in zip(static, found, strict=True)
                )
            else:
                known = tuple(Size.of(n) for n in static)
            self._shapes[value] = known
        return known

    def _shape(self, value: SSAValue) -> Shape:
        if isinstance(value, BlockArgument):
            return self._carried(value)
        assert isinstance(value, OpResult)
        if (rule := _RULES.get(type(value.op))) is not None:
            return rule(self, value)
        rank = len(static_shape(value.type))
        return (self.atom(Unknown(value)),) * rank

    def _carried(self, value: BlockArgument) -> Shape:
        """Return the sizes of a loop-carried value: those of its initial value."""
        loop = value.block.parent_op()
        if isinstance(loop, scf.ForOp) and value.index:
            return self.shape(loop.iter_args[value.index - 1])
        if isinstance(loop, scf.WhileOp):
            if value.block is loop.before_region.block:
                return self.shape(loop.arguments[value.index])
            return self.shape(loop.res[value.index])
        return (self.atom(Unknown(value)),) * len(static_shape(value.type))

    def mixed(self, static: Sequence[int], dynamic: Sequence[SSAValue]) -> Shape:
        """Return a list with the dynamic entries replaced by the operands, in order."""
        rest = iter(dynamic)
        return tuple(self.of(next(rest)) if n == DYNAMIC_INDEX else Size.of(n) for n in static)


def static_shape(type: Attribute) -> tuple[int, ...]:
    """Return the shape of a tensor or buffer type; () for any other type."""
    return type.get_shape() if isinstance(type, TensorType | MemRefType) else ()


def kept_axes(full: Sequence[int], reduced: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of a slice of sizes ``full`` that its rank-reduced type keeps.

    >>> kept_axes((1, 4, 1, 8), (4, 1, 8)), kept_axes((1, 4), (1, 4))
    ((1, 2, 3), (0, 1))
    """
    kept: list[int] = []
    for axis, n in enumerate(full):
        if len(kept) < len(reduced) and n == reduced[len(kept)]:
            kept.append(axis)
    return tuple(kept)


def product(sizes: Sequence[Size]) -> Size:
    """Return the product of ``sizes``."""
    result = Size.of(1)
    for each in sizes:
        result = result * each
    return result


def groups_of(op: Operation) -> tuple[tuple[int, ...], ...]:
    """Return the reassociation of an expand_shape or collapse_shape as integers."""
    groups = op.properties["reassociation"]
    return tuple(tuple(i.value.data for i in group) for group in groups)  # pyright: ignore


def _given(sizes: Sizes, value: OpResult) -> Shape:
    """Return the sizes of a new tensor: the last operands are those known at run time."""
    static, operands = static_shape(value.type), value.op.operands
    return sizes.mixed(static, operands[len(operands) - static.count(DYNAMIC_INDEX) :])


def _destination(sizes: Sizes, value: OpResult) -> Shape:
    assert isinstance(value.op, kernel.LaunchOp | linalg.GenericOp | linalg.FillOp)
    return sizes.shape(value.op.outputs[value.index])


def _slice(sizes: Sizes, value: OpResult) -> Shape:
    op = value.op
    assert isinstance(op, tensor.ExtractSliceOp | memref.SubviewOp)
    static = op.static_sizes.get_values()
    full = sizes.mixed(static, op.sizes)
    return tuple(full[a] for a in kept_axes(static, static_shape(value.type)))


def _dest(sizes: Sizes, value: OpResult) -> Shape:
    assert isinstance(value.op, tensor.InsertSliceOp | tensor.InsertOp)
    return sizes.shape(value.op.dest)


def _same(sizes: Sizes, value: OpResult) -> Shape:
    return sizes.shape(value.op.operands[0])


def _expand(sizes: Sizes, value: OpResult) -> Shape:
    op = value.op
    assert isinstance(op, tensor.ExpandShapeOp | memref.ExpandShapeOp)
    return sizes.mixed(op.static_output_shape.get_values(), op.operands[1:])


def _collapse(sizes: Sizes, value: OpResult) -> Shape:
    source = sizes.shape(value.op.operands[0])
    return tuple(product([source[i] for i in group]) for group in groups_of(value.op))


def _if(sizes: Sizes, value: OpResult) -> Shape:
    assert isinstance(value.op, scf.IfOp)
    branches: list[Shape] = []
    for region in value.op.regions:
        last = region.block.last_op
        assert last is not None
        branches.append(sizes.shape(last.operands[value.index]))
    first, second = branches
    unknown = sizes.atom(Unknown(value))
    return tuple(a if a == b else unknown for a, b in zip(first, second, strict=True))


def _for(sizes: Sizes, value: OpResult) -> Shape:
    assert isinstance(value.op, scf.ForOp)
    return sizes.shape(value.op.iter_args[value.index])


def _while(sizes: Sizes, value: OpResult) -> Shape:
    assert isinstance(value.op, scf.WhileOp)
    condition = value.op.before_region.block.last_op
    assert isinstance(condition, scf.ConditionOp)
    return sizes.shape(condition.args[value.index])


_RULES: dict[type[Operation], Callable[[Sizes, OpResult], Shape]] = {
    tensor.EmptyOp: _given,
    tensor.SplatOp: _given,
    memref.AllocOp: _given,
    kernel.LaunchOp: _destination,
    kernel.StackOp: _given,
    linalg.GenericOp: _destination,
    linalg.FillOp: _destination,
    tensor.ExtractSliceOp: _slice,
    memref.SubviewOp: _slice,
    tensor.InsertSliceOp: _dest,
    tensor.InsertOp: _dest,
    tensor.CastOp: _same,
    memref.CastOp: _same,
    tensor.ExpandShapeOp: _expand,
    tensor.CollapseShapeOp: _collapse,
    memref.ExpandShapeOp: _expand,
    memref.CollapseShapeOp: _collapse,
    scf.IfOp: _if,
    scf.ForOp: _for,
    scf.WhileOp: _while,
}


@dataclass
class SizeWriter:
    """Writes sizes as index arithmetic, each number and product once."""

    sizes: Sizes
    dim: Callable[[int], SSAValue]
    """Returns the value of the n-th `?` of the arguments."""
    append: Callable[[Operation], object]
    """Inserts an op at a point that dominates all uses of the sizes."""
    outer: SizeWriter | None = None
    """Writes sizes that depend on arguments only, at a dominating point."""
    unknown: Callable[[SSAValue], SSAValue] = lambda value: value
    """Returns the replacement of a value known only at run time."""

    def __post_init__(self) -> None:
        self._written: dict[Size | tuple[Size, Attribute], SSAValue] = {}

    def __call__(self, size: Size, hint: str | None = None) -> SSAValue:
        """Return ``size`` as a value, written at its first use."""
        if self.outer is not None and not self.sizes.unknowns(size):
            return self.outer(size, hint)
        if (value := self._written.get(size)) is None:
            value = self._written[size] = self._write(size)
            if hint and value.name_hint is None and not isinstance(value, BlockArgument):
                value.name_hint = hint
        return value

    def _write(self, size: Size) -> SSAValue:
        if (number := size.number) is not None:
            return self._put(arith.ConstantOp(IntegerAttr(number, IndexType())))
        value: SSAValue | None = None
        for monomial, factor in sorted(size.terms, key=lambda t: (not t[0], t[1] < 0)):
            term = self._term(monomial, abs(factor))
            if value is None and factor < 0:
                value = self(Size())
            if value is None:
                value = term
            elif factor < 0:
                value = self._put(arith.SubiOp(value, term))
            else:
                value = self._put(arith.AddiOp(value, term))
        assert value is not None
        return value

    def _term(self, monomial: Monomial, factor: int) -> SSAValue:
        value: SSAValue | None = None
        for number in monomial:
            atom = self._atom(number)
            value = atom if value is None else self._put(arith.MuliOp(value, atom))
        if value is None:
            return self(Size.of(factor))
        if factor == 1:
            return value
        return self._put(arith.MuliOp(value, self(Size.of(factor))))

    def _atom(self, number: int) -> SSAValue:
        atom = self.sizes.atoms[number]
        match atom:
            case Dim(index):
                return self.dim(index)
            case Unknown(value):
                return self._as_index(number, self.unknown(value))
            case Result():
                key = Size((((number,), 1),))
                if key not in self._written:
                    self._written[key] = self._result(atom)
                return self._written[key]

    def _as_index(self, number: int, value: SSAValue) -> SSAValue:
        """Return a number read from a tensor as an index; formulas ignore the cast."""
        if value.type != i64:
            return value
        key = Size((((number,), 1),))
        if key not in self._written:
            self._written[key] = self._put(arith.IndexCastOp(value, IndexType()))
        return self._written[key]

    def _result(self, atom: Result) -> SSAValue:
        """Recreate the op; operands of a comparison or selection may have other types."""
        operands: list[SSAValue] = [self(each) for each in atom.operands]
        properties = dict(atom.properties)
        op = atom.op.create(operands=operands, result_types=[atom.type], properties=properties)
        return self._put(op)

    def _put(self, op: Operation) -> SSAValue:
        self.append(op)
        return op.results[0]
