"""Express every `?` of a function in terms of its arguments' `?`, and collect the conditions.

An analysis of the graph floor. A call is accepted exactly if the module would verify with the
call's sizes in place of every `?`, including in branches that the call would not take. A condition
that is not proved for all sizes becomes a `Check`; all checks are evaluated before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import IsTerminator, SymbolTable

from stepwell.core.checks import Check
from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.formulas import Formula, Monomial, product
from stepwell.core.host_schedule import Tree
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import readings
from stepwell.dialects.types import dtype, place_of

Shape: TypeAlias = tuple[Formula, ...]
Words: TypeAlias = "Sequence[str | Formula]"
"""The message of a failed check: texts and the sizes that they mention."""

LIMIT = 1 << 47
"""Upper bound of an array's bytes: the address space of x86-64. No process has more memory. It is
far below 2^63, so that sums of many such sizes, rounded up, do not overflow."""
SLACK = 1 << 8
"""An array of up to this multiple of an argument's bytes is not checked against `LIMIT`."""
LONGEST = 10_000
"""Length in characters beyond which the formula of a size is refused as too complicated."""
SAID = 60
"""Length in characters beyond which a message gives only a formula's value."""


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


@dataclass
class _Largest:
    """The strictest check among arrays whose size is the same monomial of unknown sizes."""

    bound: int
    check: Check


class Sizing:
    """A walk of a function that finds the sizes of its values and the conditions on them."""

    def __init__(self, function: func.FuncOp) -> None:
        self.source: Operation = function
        """The op that messages and locations refer to."""
        self.checks: dict[str, Check] = {}
        """By the text of their condition, in order."""
        self.never: list[Check] = []
        """Checks that fail for all sizes."""
        self.hopeless: Diagnostic | None = None
        """The error of the first of `never`."""
        self.pins: list[tuple[Operation, int, Shape, Shape]] = []
        """Terminator operands of branches and loops: op, operand number, wanted and found sizes."""
        self.names: list[str] = []
        """The name of each `?` of the arguments."""
        self._shapes: dict[SSAValue, Shape] = {}
        self._numbers: dict[SSAValue, Formula] = {}
        self._largest: dict[str, _Largest] = {}
        self._argument_elements: dict[str, int] = {}
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
            self._record_argument(product(shape))

    def _record_argument(self, count: Formula) -> None:
        """Record that an argument has ``count`` elements: memory of that size exists."""
        if len(count.terms) == 1 and count.number is None:
            ((monomial, factor),) = count.terms
            key = Formula(((monomial, 1),)).key
            self._argument_elements[key] = max(self._argument_elements.get(key, 0), factor)

    def finished(self) -> list[Check]:
        """Return the checks; those of equal sizes come before those of too large arrays."""
        largest = (each.check for each in self._largest.values())
        return [*self.never, *self.checks.values(), *largest]

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

    def fail(self, message: str, help: str = "") -> NoReturn:
        """Raise an error at the current op."""
        raise CompileError(Diagnostic("error", message, place_of(self.source), help=help))

    # -- conditions

    def equal(self, a: Formula, b: Formula, words: Words) -> None:
        """Require two sizes to be equal; ``words`` is the message if they are not."""
        if (apart := (a - b).number) != 0:
            self.require(["==", a.tree(), b.tree()] if apart is None else 0, words)

    def at_least(self, a: Formula, b: Formula, words: Words) -> None:
        """Require ``a`` to be at least ``b``."""
        low, high = (a - b).bounds()
        if low is None or low < 0:
            never = high is not None and high < 0
            self.require(0 if never else [">=", a.tree(), b.tree()], words)

    def require(self, condition: Tree, words: Words) -> None:
        """Require a condition."""
        if not condition:
            self.never.append(self._check(condition, words))
            if self.hopeless is None:
                place, text = place_of(self.source), "".join(map(self._plain, words))
                self.hopeless = Diagnostic("error", self._op_prefix() + text, place)
        elif (key := repr(condition)) not in self.checks:
            self.checks[key] = self._check(condition, words)

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

    def _check(self, condition: Tree, words: Words) -> Check:
        texts, values = [""], list[Tree]()
        for each in (self._op_prefix(), *words):
            if isinstance(each, str):
                texts[-1] += each
            elif each.number is not None:
                texts[-1] += str(each.number)
            else:
                values.append(each.tree())
                said = each.spelled(self.names)
                texts.append(f" ({said})" if len(said) <= SAID else "")
        place = place_of(self.source)
        return Check(condition, tuple(texts), tuple(values), "" if place is None else str(place))

    def _op_prefix(self) -> str:
        return "" if isinstance(self.source, func.FuncOp) else f"{self.source.name}: "

    def _plain(self, word: str | Formula) -> str:
        return word if isinstance(word, str) else word.spelled(self.names)

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

    @contextmanager
    def speaking_of(self, op: Operation) -> Any:
        """Attribute messages and locations to ``op``, or to the composite that contains it."""
        outer = self.source
        if _in_function(op):
            self.source = op
        try:
            yield
        finally:
            self.source = outer

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
            self._not_too_large(result, tuple(known))
        return tuple(known)

    def _not_too_large(self, result: SSAValue, shape: Shape) -> None:
        """Require an array to have fewer bytes than an address space."""
        assert isinstance(result.type, TensorType)
        self._bound(result, shape, product(shape), dtype(result.type.element_type).bytes)
        if len(shape) > 1:  # an empty axis makes the product zero, however large the others are
            for size in shape:
                if not all(_is_small(*term) for term in size.terms):
                    self._bound(result, shape, size, 1)

    def _bound(self, result: SSAValue, shape: Shape, count: Formula, bytes: int) -> None:
        """Require ``count`` times ``bytes`` to be less than an address space."""
        if all(
            self._is_near_argument(monomial, factor * bytes) for monomial, factor in count.terms
        ):
            return
        factor = 1
        if len(count.terms) == 1:
            ((monomial, factor),) = count.terms
            count = Formula(((monomial, 1),))
        bound = LIMIT // (bytes * abs(factor))
        low, high = count.bounds()
        if high is not None and high <= bound:
            return
        if (key := count.key) not in self._largest or bound < self._largest[key].bound:
            words: list[str | Formula] = [f"{named(result)} would have "]
            for axis, size in enumerate(shape):
                words += [" x " if axis else "", size]
            words.append(" elements, which no memory holds")
            if low is not None and low > bound:
                self.require(0, words)
            else:
                self._largest[key] = _Largest(
                    bound, self._check(["<=", count.tree(), bound], words)
                )

    def _is_near_argument(self, monomial: Monomial, bytes: int) -> bool:
        """Whether the term is small, non-positive or close to the size of an argument."""
        if any((atom.bounds()[0] or -1) < 0 for atom in monomial if atom.operands):
            return False
        key = Formula(((monomial, 1),)).key
        return bytes <= (
            self._argument_elements.get(key, 0) * SLACK if monomial else LIMIT // SLACK
        )

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


def named(value: SSAValue) -> str:
    """Return the name of a value in messages."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    if isinstance(value, BlockArgument):
        return f"argument {value.index}"
    return f"the result of {value.owner.name}"  # pyright: ignore[reportAttributeAccessIssue]


def _sizes(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def _is_small(monomial: Monomial, factor: int) -> bool:
    """Whether a term is a small number, or a small multiple of an argument's `?`."""
    if not monomial:
        return factor <= LIMIT // SLACK
    return len(monomial) == 1 and not monomial[0].operands and factor <= SLACK


def _in_function(op: Operation) -> bool:
    """Whether ``op`` belongs to the program, not to a decomposition built by the analysis."""
    at = op.parent_op()
    while at is not None and not isinstance(at, func.FuncOp):
        at = at.parent_op()
    return at is not None


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
