"""Sizes as exact formulas over ``d0, d1, ...``, every `?` of a function's arguments in order.

A formula is a sum of products of atoms; an atom is a `?`, or an operator of `core.host_schedule`
applied to formulas. Formulas that are equal as polynomials compare equal, which is how sizes are
proved to agree. They are integers of unlimited size: nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from stepwell.core.host_schedule import OPERATORS, Tree

Bounds: TypeAlias = tuple[int | None, int | None]
"""The smallest and the largest value, None if unknown."""

_INFIX = {"/": "//", "floor/": "//", "ceil/": "ceil//", "%": "%", "u/": "//", "u%": "%"}
_COMPARE = frozenset(("==", "!=", "<", "<=", ">", ">=", "u<", "u<=", "u>", "u>=", "not"))


@dataclass(frozen=True)
class Atom:
    """A `?` (``operator`` is its name), or an operator with its operands."""

    operator: str
    operands: tuple[Formula, ...] = ()

    @cached_property
    def key(self) -> str:
        """A text that identifies the atom."""
        if not self.operands:
            return self.operator
        return f"{self.operator}({', '.join(each.key for each in self.operands)})"

    def tree(self) -> Tree:
        """Return it in the form that `core.host_schedule` evaluates."""
        if not self.operands:
            return self.operator
        if self.operator == "wrap":
            return ["wrap", self.operands[0].tree(), self.operands[1].number]
        return [self.operator, *(each.tree() for each in self.operands)]

    def spelled(self, names: Sequence[str]) -> str:
        """Spell it for messages; ``names`` are those of the `?`."""
        if not self.operands:
            return names[int(self.operator[1:])]
        said = [each.spelled(names) for each in self.operands]
        if (sign := _INFIX.get(self.operator, "")) or self.operator in _COMPARE - {"not"}:
            grouped = [f"({s})" if " " in s else s for s in said]
            return f"({grouped[0]} {sign or self.operator} {grouped[1]})"
        return f"{self.operator}({', '.join(said)})"

    def bounds(self) -> Bounds:
        """Return proven bounds of its value."""
        if not self.operands:
            return 0, None
        rule = _BOUNDS.get(self.operator)
        if rule is None:
            return (0, 1) if self.operator in _COMPARE else (None, None)
        return rule([each.bounds() for each in self.operands])


Monomial: TypeAlias = tuple[Atom, ...]


@dataclass(frozen=True)
class Formula:
    """A sum of products: each product's atoms, in order of their keys, and its coefficient."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(number: int) -> Formula:
        """Return a plain number."""
        return Formula((((), number),)) if number else Formula()

    @staticmethod
    def dim(index: int) -> Formula:
        """Return the ``index``-th `?` of the arguments."""
        return Formula((((Atom(f"d{index}"),), 1),))

    @staticmethod
    def apply(operator: str, *operands: Formula) -> Formula:
        """Apply an operator of `core.host_schedule` to formulas.

        >>> Formula.apply("max", Formula.of(3), Formula.of(5)).number
        5
        """
        if (plain := _PLAIN.get(operator)) is not None:
            return plain(operands[0], operands[1])
        numbers = [each.number for each in operands]
        if None not in numbers:
            return Formula.of(int(OPERATORS[operator](*numbers)))
        if operator == "select" and numbers[0] is not None:
            return operands[1] if numbers[0] else operands[2]
        if operator in ("min", "max", "umin", "umax") and operands[0] == operands[1]:
            return operands[0]
        if operator in ("/", "floor/", "ceil/", "u/") and numbers[1] == 1:
            return operands[0]
        if operator in ("min", "max"):
            low, high = (operands[0] - operands[1]).bounds()
            if low is not None and low >= 0:
                return operands[operator == "min"]
            if high is not None and high <= 0:
                return operands[operator == "max"]
        return Formula((((Atom(operator, operands),), 1),))

    @staticmethod
    def _sum(terms: Mapping[Monomial, int]) -> Formula:
        kept = [(m, c) for m, c in terms.items() if c]
        kept.sort(key=lambda term: [atom.key for atom in term[0]])
        return Formula(tuple(kept))

    def __add__(self, other: Formula) -> Formula:
        terms = dict(self.terms)
        for monomial, factor in other.terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return Formula._sum(terms)

    def __sub__(self, other: Formula) -> Formula:
        return self + other * Formula.of(-1)

    def __mul__(self, other: Formula) -> Formula:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                both = tuple(sorted(left + right, key=lambda atom: atom.key))
                terms[both] = terms.get(both, 0) + a * b
        return Formula._sum(terms)

    @property
    def number(self) -> int | None:
        """The formula as a plain number, None if it is not constant."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @cached_property
    def key(self) -> str:
        """A text that identifies the formula."""
        return " + ".join(f"{c}*{'*'.join(a.key for a in m)}" for m, c in self.terms) or "0"

    def tree(self) -> Tree:
        """Return it in the form that `core.host_schedule` evaluates.

        >>> (Formula.dim(0) * Formula.of(4) + Formula.of(-1)).tree()
        ['+', -1, ['*', 'd0', 4]]
        """
        total: Tree | None = None
        for monomial, factor in self.terms:
            term: Tree | None = None
            for atom in monomial:
                term = atom.tree() if term is None else ["*", term, atom.tree()]
            if term is None:
                term = factor
            elif factor != 1:
                term = ["*", term, factor]
            total = term if total is None else ["+", total, term]
        return 0 if total is None else total

    def spelled(self, names: Sequence[str]) -> str:
        """Spell it for messages; ``names`` are those of the `?`.

        >>> (Formula.dim(0) * Formula.of(4) + Formula.of(-1)).spelled(["x.shape[0]"])
        '4 * x.shape[0] - 1'
        """
        rows = sorted(self.terms, key=lambda term: (not term[0], term[1] < 0))
        text = ""
        for monomial, factor in rows:
            parts = [atom.spelled(names) for atom in monomial]
            if abs(factor) != 1 or not parts:
                parts.insert(0, str(abs(factor)))
            sign = (" - " if factor < 0 else " + ") if text else ("-" if factor < 0 else "")
            text += sign + " * ".join(parts)
        return text or "0"

    def bounds(self) -> Bounds:
        """Return proven bounds of its value, each `?` being at least 0.

        >>> (Formula.dim(0) + Formula.of(1)).bounds(), Formula.of(3).bounds()
        ((1, None), (3, 3))
        """
        low: int | None = 0
        high: int | None = 0
        for monomial, factor in self.terms:
            least: int | None = 1
            most: int | None = 1
            for atom in monomial:
                a, b = atom.bounds()
                if a is None or a < 0:
                    return None, None
                least *= a
                most = None if b is None or most is None else most * b
            if factor < 0:
                least, most = most, least
            low = None if low is None or least is None else low + factor * least
            high = None if high is None or most is None else high + factor * most
        return low, high


def product(sizes: Sequence[Formula]) -> Formula:
    """Return the product of ``sizes``."""
    result = Formula.of(1)
    for each in sizes:
        result = result * each
    return result


_PLAIN: Mapping[str, Callable[[Formula, Formula], Formula]] = {
    "+": Formula.__add__,
    "-": Formula.__sub__,
    "*": Formula.__mul__,
}


def _least(given: Sequence[Bounds]) -> Bounds:
    (a, b), (c, d) = given
    low = None if a is None or c is None else min(a, c)
    return low, d if b is None else b if d is None else min(b, d)


def _greatest(given: Sequence[Bounds]) -> Bounds:
    (a, b), (c, d) = given
    low = c if a is None else a if c is None else max(a, c)
    return low, None if b is None or d is None else max(b, d)


def _either(given: Sequence[Bounds]) -> Bounds:
    (a, b), (c, d) = given[-2:]
    low = None if a is None or c is None else min(a, c)
    return low, None if b is None or d is None else max(b, d)


def _quotient(given: Sequence[Bounds]) -> Bounds:
    (a, b), (c, d) = given
    if a is None or a < 0 or c is None or c < 0:
        return None, None
    return 0 if d is None or c == 0 else a // d, None if b is None else -(-b // max(c, 1))


def _remainder(given: Sequence[Bounds]) -> Bounds:
    (a, _), (c, d) = given
    if a is None or a < 0 or c is None or c < 0:
        return None, None
    return 0, None if d is None else max(d - 1, 0)


def _unsigned(rule: Callable[[Sequence[Bounds]], Bounds]) -> Callable[[Sequence[Bounds]], Bounds]:
    def bounds(given: Sequence[Bounds]) -> Bounds:
        plain = all(low is not None and low >= 0 for low, _ in given)
        return rule(given) if plain else (None, None)

    return bounds


_BOUNDS: Mapping[str, Callable[[Sequence[Bounds]], Bounds]] = {
    "min": _least,
    "max": _greatest,
    "umin": _unsigned(_least),
    "umax": _unsigned(_greatest),
    "select": _either,
    "/": _quotient,
    "floor/": _quotient,
    "ceil/": _quotient,
    "u/": _quotient,
    "%": _remainder,
    "u%": _remainder,
}
