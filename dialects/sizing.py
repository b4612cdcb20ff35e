"""Express every `?` of a function in terms of its arguments' `?`, and collect the conditions.

An analysis of the graph floor. A call is accepted exactly if the module would verify with the
call's sizes in place of every `?`, including in branches that the call would not take. A condition
that is not proved for all sizes becomes a `Check`; all checks are evaluated before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import IsTerminator, SymbolTable

from stepwell.core.formulas import Formula, product
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import readings
from stepwell.dialects.size_conditions import Conditions, Shape, named

LONGEST = 10_000
"""Length in characters beyond which the formula of a size is refused as too complicated."""


def sizing_of(function: func.FuncOp) -> Sizing | None:
    """Return the sizes of ``function`` on the graph floor; None if it has no `?`.

    Raise `CompileError` if a size is computed by an op without a rule.
    """
    if not _is_sized(function):
        return None
    sizing = Sizing(function)
    sizing.block(function.body.block)
    return sizing


def _is_sized(function: func.FuncOp) -> bool:
    """Whether any tensor has a `?`, or there is a call, whose callee may have one."""
    return any(
        _is_dynamic(v.type) or isinstance(op, func.CallOp) or op.name == "nd.call"
        for op in function.walk()
        for v in (*op.operands, *op.results)
    ) or any(_is_dynamic(a.type) for a in function.args)


@cache
def _is_dynamic(type: Any) -> bool:
    return isinstance(type, TensorType) and DYNAMIC in type.get_shape()


class Sizing(Conditions):
    """A walk of a function that finds the sizes of its values and the conditions on them."""

    def __init__(self, function: func.FuncOp) -> None:
        super().__init__(function)
        self.pins: list[tuple[Operation, int, Shape, Shape]] = []
        """Terminator operands of branches and loops: op, operand number, wanted and found sizes."""
        self._shapes: dict[SSAValue, Shape] = {}
        self._numbers: dict[SSAValue, Formula] = {}
        self._calls: list[str] = [function.sym_name.data]
        for number, argument in enumerate(function.args):
            shape: list[Formula] = []
            for axis, n in enumerate(_sizes(argument)):
                if n == DYNAMIC:
                    shape.append(Formula.dim(len(self.names)))
                    name = argument.name_hint or f"input{number}"
                    self.names.append(f"{name}.shape[{axis}]")
                else:
                    shape.append(Formula.of(n))
            self._shapes[argument] = tuple(shape)
            self.record_argument(product(shape))

    # -- sizes of values

    def shape(self, value: SSAValue) -> Shape:
        """Return the sizes of a tensor."""
        if (known := self._shapes.get(value)) is not None:
            return known
        if DYNAMIC in (static := _sizes(value)):
            self.fail(f"the sizes of {named(value)} are not known here")
        return tuple(Formula.of(n) for n in static)

    def number(self, value: SSAValue) -> Formula:
        """Return the formula of an index value."""
        if (known := self._numbers.get(value)) is not None:
            return known
        owner = value.owner
        by = owner.name if isinstance(owner, Operation) else named(value)
        self.fail(
            f"a size is computed by {by}, which is not known here",
            "compute sizes from nd.dim, arith.constant and integer arithmetic",
        )

    # -- conditions

    def pin(self, op: Operation | None, number: int, wanted: Shape, found: Shape) -> None:
        """Record that an operand's sizes are checked, not proved, to be the wanted ones."""
        if op is not None and wanted != found:
            self.pins.append((op, number, wanted, found))

    def same_shapes(self, first: SSAValue, *others: SSAValue) -> Shape:
        """Require tensors to have the same shape, and return it."""
        shape = self.shape(first)
        for other in others:
            for axis, (a, b) in enumerate(zip(shape, self.shape(other), strict=True)):
                self.same_size(a, b, first, axis, other, axis)
        return shape

    def same_size(
        self, a: Formula, b: Formula, x: SSAValue, axis: int, y: SSAValue, other: int
    ) -> None:
        """Require axis ``axis`` of ``x``, of size ``a``, to agree with ``other`` of ``y``."""
        first, second = f"axis {axis} of {named(x)}", f"axis {other} of {named(y)}"
        if first == second:
            second = f"axis {other} of another {named(y)}"
        self.equal(a, b, (f"{first} has size ", a, f", but {second} has size ", b))

    # -- walking

    def block(self, block: Block) -> None:
        """Visit every op of a block."""
        for op in block.ops:
            self.visit(op)

    def visit(self, op: Operation) -> None:
        """Compute the sizes of the results of ``op`` and collect its conditions."""
        if (rule := _ARITH.get(type(op))) is not None:
            with suppress(KeyError):
                self._numbers[op.results[0]] = self._bounded(rule(self._numbers, op))
            return
        rule = extents_of(type(op))
        if not (op.regions or rule is _call) and not any(
            _is_dynamic(v.type) or isinstance(v.type, IndexType)
            for v in (*op.operands, *op.results)
        ):
            return
        with self.speaking_of(op):
            if rule is not None:
                self._define(op, rule(op, self))
            elif (parts := readings.decomposition.get(type(op))) is not None:
                self._define(op, self._by_decomposition(op, parts))
            elif not op.has_trait(IsTerminator):
                self.fail(
                    f"{op.name} has no 'extents' rule, so its sizes must be known when compiling",
                    "write numbers in place of '?', or give the op a rule in readings.extents",
                )

    def _bounded(self, formula: Formula) -> Formula:
        if len(formula.key) > LONGEST:
            self.fail("a size is computed by too long a formula")
        return formula

    def _define(self, op: Operation, results: Sequence[Any]) -> None:
        for result, found in zip(op.results, results, strict=True):
            if isinstance(found, Formula):
                self._numbers[result] = self._bounded(found)
            else:
                self._shapes[result] = self._result_shape(result, found)

    def _result_shape(self, result: SSAValue, shape: Shape) -> Shape:
        """Return the sizes of a result; check its static sizes and that none is negative."""
        static = _sizes(result)
        known: list[Formula] = []
        for axis, (n, size) in enumerate(zip(static, shape, strict=True)):
            what = f"axis {axis} of {named(result)}"
            if n == DYNAMIC:
                self.at_least(size, Formula(), (f"{what} would have size ", size))
                known.append(self._bounded(size))
            else:
                want = Formula.of(n)
                self.equal(size, want, (f"{what} has size ", size, f", but its type says {n}"))
                known.append(want)
        if DYNAMIC in static:
            self.not_too_large(result, tuple(known))
        return tuple(known)

    def _by_decomposition(self, op: Operation, parts: Any) -> Sequence[Any]:
        """Return the sizes that the decomposition of ``op``, built in its own block, gives."""
        block = Block(arg_types=[v.type for v in op.operands])
        for was, now in zip(op.operands, block.args, strict=True):
            now.name_hint = was.name_hint
            self._bind(was, now)
        stand_in = op.clone(dict(zip(op.operands, block.args, strict=True)))
        block.add_op(stand_in)
        results = parts(Builder(InsertPoint.before(stand_in)), stand_in)
        for each in block.ops:
            if each is not stand_in:
                self.visit(each)
        return [self.shape(v) for v in results]

    def _bind(self, value: SSAValue, to: SSAValue) -> None:
        """Copy the sizes of ``value`` to ``to``."""
        if isinstance(value.type, TensorType):
            self._shapes[to] = self.shape(value)
        elif value in self._numbers:
            self._numbers[to] = self._numbers[value]

    def region(self, block: Block, shapes: Sequence[Shape]) -> Sequence[SSAValue]:
        """Visit a region whose arguments have ``shapes``; return its terminator's operands."""
        self._shapes.update(zip(block.args, shapes, strict=True))
        self.block(block)
        last = block.last_op
        return () if last is None else last.operands

    def called(self, op: Operation, name: str) -> Sequence[Any]:
        """Visit the callee with the operands of a call; return the sizes of its results."""
        callee = SymbolTable.lookup_symbol(op, name)
        if not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            self.fail(f"the sizes of what @{name} returns are not known")
        if name in self._calls:
            self.fail(f"@{name} calls itself", "say it with nd.while or nd.scan")
        self._calls.append(name)
        body = callee.body.block
        for value, argument in zip(op.operands, body.args, strict=True):
            self._bind(value, argument)
        self.block(body)
        self._calls.pop()
        last = body.last_op
        assert last is not None
        return [
            self.shape(v) if isinstance(v.type, TensorType) else self.number(v)
            for v in last.operands
        ]


def _sizes(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


@cache
def extents_of(kind: type[Operation]) -> Any:
    """Return the rule of an op's class or of a base class."""
    found = (readings.extents.get(each) for each in kind.__mro__)
    return next((rule for rule in found if rule is not None), None)


@readings.extents(func.CallOp)
def _call(op: func.CallOp, sizing: Sizing) -> Sequence[Any]:
    return sizing.called(op, op.callee.string_value())


# -- index arithmetic

Numbers: TypeAlias = Mapping[SSAValue, Formula]


def _constant(numbers: Numbers, op: arith.ConstantOp) -> Formula:
    if not isinstance(op.value, IntegerAttr):
        raise KeyError
    return Formula.of(op.value.value.data & 1 if _width(op) == 1 else op.value.value.data)


def _width(op: Operation) -> int:
    """Return the width in bits of an integer result; 64 for an index."""
    type = op.results[0].type
    return type.width.data if isinstance(type, IntegerType) else 64


def _wrapped(op: Operation, result: Formula) -> Formula:
    """Wrap an integer that is not an index, as arith does."""
    if isinstance(op.results[0].type, IndexType) or _width(op) == 1:
        return result
    return Formula.apply("wrap", result, Formula.of(_width(op)))


def _binary(operator: str) -> Any:
    def rule(numbers: Numbers, op: Operation) -> Formula:
        if operator in ("u/", "u%", "umin", "umax") and _width(op) < 64:
            raise KeyError
        return _wrapped(op, Formula.apply(operator, *(numbers[v] for v in op.operands)))

    return rule


_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "u<", "u<=", "u>", "u>=")


def _compare(numbers: Numbers, op: arith.CmpiOp) -> Formula:
    return Formula.apply(_PREDICATES[op.predicate.value.data], numbers[op.lhs], numbers[op.rhs])


def _cast(numbers: Numbers, op: Operation) -> Formula:
    return _wrapped(op, numbers[op.operands[0]])


_ARITH: dict[type[Operation], Any] = {
    arith.ConstantOp: _constant,
    arith.AddiOp: _binary("+"),
    arith.SubiOp: _binary("-"),
    arith.MuliOp: _binary("*"),
    arith.DivSIOp: _binary("/"),
    arith.RemSIOp: _binary("%"),
    arith.FloorDivSIOp: _binary("floor/"),
    arith.CeilDivSIOp: _binary("ceil/"),
    arith.MinSIOp: _binary("min"),
    arith.MaxSIOp: _binary("max"),
    arith.DivUIOp: _binary("u/"),
    arith.RemUIOp: _binary("u%"),
    arith.MinUIOp: _binary("umin"),
    arith.MaxUIOp: _binary("umax"),
    arith.AndIOp: _binary("&"),
    arith.OrIOp: _binary("|"),
    arith.XOrIOp: _binary("^"),
    arith.CmpiOp: _compare,
    arith.SelectOp: lambda numbers, op: Formula.apply("select", *(numbers[v] for v in op.operands)),
    arith.IndexCastOp: _cast,
    arith.ExtSIOp: _cast,
    arith.TruncIOp: _cast,
}
"""The ops of index arithmetic that may compute sizes."""
