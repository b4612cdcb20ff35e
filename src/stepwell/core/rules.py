"""Rule tables: one op has many meanings, in tables that do not know each other.

An op's class defines its syntax and its constraints. Each reading of the program (evaluate it,
infer its shapes, batch it, lower it) has a table of rules: plain functions, one for each op class.
A new op adds rows, a new reading adds a table, and neither changes the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

RuleT = TypeVar("RuleT", bound=Callable[..., object])

OpClass: TypeAlias = type[Any]
"""An op class; a table uses only its ``name``."""


class MissingRule(LookupError):
    """The table has no rule for this op."""


class RuleTable(Generic[RuleT]):
    """The rules of one reading, by op class."""

    def __init__(self, reading: str) -> None:
        self.reading = reading
        self._rules: dict[OpClass, RuleT] = {}
        self._none: dict[OpClass, str] = {}
        self._later: dict[OpClass, None] = {}

    def __call__(self, *ops: OpClass) -> Callable[[RuleT], RuleT]:
        """Register the decorated function as the rule of ``ops``."""

        def register(rule: RuleT) -> RuleT:
            for op in ops:
                if self.covers(op) and not is_again(self._rules.get(op), rule):
                    raise ValueError(f"{op.name} already has a {self.reading} rule")
                self._rules[op] = rule
                self._later.pop(op, None)
            return rule

        return register

    def none(self, *ops: OpClass, reason: str) -> None:
        """Record that ``ops`` have no rule on purpose; the op table prints the reason."""
        for op in ops:
            if self.covers(op) and self._none.get(op) != reason:
                raise ValueError(f"{op.name} already has a {self.reading} rule")
            self._none[op] = reason

    def later(self, *ops: OpClass) -> None:
        """Record that ``ops`` have no rule yet; the op table prints the gap."""
        for op in ops:
            if self.covers(op):
                raise ValueError(f"{op.name} already has a {self.reading} rule")
            self._later[op] = None

    def get(self, op: OpClass) -> RuleT | None:
        """Return the rule of ``op``, or None."""
        return self._rules.get(op)

    def __getitem__(self, op: OpClass) -> RuleT:
        """Return the rule of ``op``, or raise `MissingRule` with advice."""
        if (rule := self._rules.get(op)) is not None:
            return rule
        if op in self._none:
            raise MissingRule(f"{op.name} has no {self.reading} rule: {self._none[op]}")
        raise MissingRule(f"{op.name} has no {self.reading} rule yet; add one beside {op.__name__}")

    def covers(self, op: OpClass) -> bool:
        """Whether ``op`` has a rule, or a reason for having none."""
        return op in self._rules or op in self._none

    def expects(self, op: OpClass) -> bool:
        """Whether the rule of ``op`` is deferred."""
        return op in self._later

    def why_none(self, op: OpClass) -> str | None:
        """Return the reason why ``op`` has no rule, if there is one."""
        return self._none.get(op)

    def __iter__(self) -> Iterator[OpClass]:
        """Iterate the op classes that have a rule."""
        return iter(self._rules)


def is_again(before: Any, rule: Any) -> bool:
    """Whether both are one rule of a module that was executed again: its import was interrupted.

    Python drops such a module; the next import makes a new one, with other functions.
    """
    if before is rule:
        return True
    known = getattr(before, "__globals__", None)
    anew = getattr(rule, "__globals__", None)
    if known is None or anew is None or known is anew:
        return False
    return known.get("__name__") == anew.get("__name__")
