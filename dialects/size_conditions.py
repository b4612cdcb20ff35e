"""The conditions on the sizes of a function, and the messages of those that fail."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.core.checks import Check
from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.formulas import Formula, Monomial, product
from stepwell.core.host_schedule import Tree
from stepwell.dialects.types import dtype, place_of

Shape: TypeAlias = tuple[Formula, ...]
Words: TypeAlias = "Sequence[str | Formula]"
"""The message of a failed check: texts and the sizes that they mention."""

LIMIT = 1 << 47
"""Upper bound of an array's bytes: the address space of x86-64. No process has more memory. It is
far below 2^63, so that sums of many such sizes, rounded up, do not overflow."""
SLACK = 1 << 8
"""An array of up to this multiple of an argument's bytes is not checked against `LIMIT`."""
SAID = 60
"""Length in characters beyond which a message gives only a formula's value."""


@dataclass
class _Largest:
    """The strictest check among arrays whose size is the same monomial of unknown sizes."""

    bound: int
    check: Check


class Conditions:
    """The conditions found so far, and the op that the next one is about."""

    def __init__(self, function: func.FuncOp) -> None:
        self.source: Operation = function
        """The op that messages and locations refer to."""
        self.checks: dict[str, Check] = {}
        """By the text of their condition, in order."""
        self.never: list[Check] = []
        """Checks that fail for all sizes."""
        self.hopeless: Diagnostic | None = None
        """The error of the first of `never`."""
        self.names: list[str] = []
        """The name of each `?` of the arguments."""
        self._largest: dict[str, _Largest] = {}
        self._argument_elements: dict[str, int] = {}

    def record_argument(self, count: Formula) -> None:
        """Record that an argument has ``count`` elements: memory of that size exists."""
        if len(count.terms) == 1 and count.number is None:
            ((monomial, factor),) = count.terms
            key = Formula(((monomial, 1),)).key
            self._argument_elements[key] = max(self._argument_elements.get(key, 0), factor)

    def finished(self) -> list[Check]:
        """Return the checks; those of equal sizes come before those of too large arrays."""
        largest = (each.check for each in self._largest.values())
        return [*self.never, *self.checks.values(), *largest]

    def fail(self, message: str, help: str = "") -> NoReturn:
        """Raise an error at the current op."""
        raise CompileError(Diagnostic("error", message, place_of(self.source), help=help))

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

    def not_too_large(self, result: SSAValue, shape: Shape) -> None:
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


def named(value: SSAValue) -> str:
    """Return the name of a value in messages."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    if isinstance(value, BlockArgument):
        return f"argument {value.index}"
    return f"the result of {value.owner.name}"  # pyright: ignore[reportAttributeAccessIssue]


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
