"""Rule tables: how one op carries many meanings without knowing who asks.

An op's class says what the op *is*. What it *does* under one reading of the program
(evaluate it, infer its shape, batch it, lower it) is a rule: a plain function, kept in that
reading's table under the op's class. A new op adds rows, a new reading adds a table, and
neither edits the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

RuleT = TypeVar("RuleT", bound=Callable[..., object])

OpClass: TypeAlias = type[Any]
"""An op class; all a table asks of it is its ``name``."""


class MissingRule(LookupError):
    """No rule for this op in this table."""


class RuleTable(Generic[RuleT]):
    """Rules of one reading, by op class."""

    def __init__(self, reading: str) -> None:
        self.reading = reading
        self._rules: dict[OpClass, RuleT] = {}
        self._none: dict[OpClass, str] = {}
        self._later: dict[OpClass, None] = {}

    def __call__(self, *ops: OpClass) -> Callable[[RuleT], RuleT]:
        """Register the decorated function as the rule of ``ops``."""

        def register(rule: RuleT) -> RuleT:
            for op in ops:
                if self.covers(op):
                    raise ValueError(f"{op.name} already has a {self.reading} rule")
                self._rules[op] = rule
                self._later.pop(op, None)
            return rule

        return register

    def none(self, *ops: OpClass, because: str) -> None:
        """Record that ``ops`` have no rule on purpose; the op table prints why."""
        for op in ops:
            if self.covers(op):
                raise ValueError(f"{op.name} already has a {self.reading} rule")
            self._none[op] = because

    def later(self, *ops: OpClass) -> None:
        """Record that ``ops`` have no rule yet: a hole that is known, which the op table prints."""
        for op in ops:
            if self.covers(op):
                raise ValueError(f"{op.name} already has a {self.reading} rule")
            self._later[op] = None

    def get(self, op: OpClass) -> RuleT | None:
        """Return the rule of ``op``, or None."""
        return self._rules.get(op)

    def __getitem__(self, op: OpClass) -> RuleT:
        """Return the rule of ``op``, or raise `MissingRule` naming what to write."""
        if (rule := self._rules.get(op)) is not None:
            return rule
        if op in self._none:
            raise MissingRule(f"{op.name} has no {self.reading} rule: {self._none[op]}")
        raise MissingRule(f"{op.name} has no {self.reading} rule yet; add one beside {op.__name__}")

    def covers(self, op: OpClass) -> bool:
        """Whether ``op`` has a rule, or a reason for having none."""
        return op in self._rules or op in self._none

    def expects(self, op: OpClass) -> bool:
        """Whether ``op`` is known to have no rule yet."""
        return op in self._later

    def why_none(self, op: OpClass) -> str | None:
        """Return the reason why ``op`` has no rule, where one was given."""
        return self._none.get(op)

    def __iter__(self) -> Iterator[OpClass]:
        """Iterate the op classes that have a rule."""
        return iter(self._rules)
