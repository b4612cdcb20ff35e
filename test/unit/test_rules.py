"""Rule tables: a second rule of an op is refused, unless its module is executed again."""

from types import ModuleType
from typing import Any

import pytest

from stepwell.core.rules import RuleTable


class Op:
    name = "acme.op"


def executed(table: RuleTable[Any], name: str, text: str) -> None:
    """Execute a module as an import does, in a namespace of its own."""
    module = ModuleType(name)
    module.__dict__.update(table=table, Op=Op)
    exec(text, module.__dict__)


RULE = "@table(Op)\ndef rule(op):\n    return op\n"


def test_a_module_whose_import_was_interrupted_registers_its_rules_again() -> None:
    table: RuleTable[Any] = RuleTable("reference")
    with pytest.raises(KeyboardInterrupt):
        executed(table, "acme", RULE + "raise KeyboardInterrupt")
    executed(table, "acme", RULE)
    table(Op)(table[Op])  # of a module that was imported before
    assert table[Op](3) == 3
    with pytest.raises(ValueError, match=r"acme\.op already has a reference rule"):
        executed(table, "other", RULE)
    with pytest.raises(ValueError, match=r"acme\.op already has a reference rule"):
        executed(RuleTable("reference"), "acme", RULE + RULE)


def test_a_reason_may_be_given_again() -> None:
    table: RuleTable[Any] = RuleTable("gradient")
    for _ in range(2):
        table.none(Op, reason="it has none")
    with pytest.raises(ValueError, match=r"acme\.op already has a gradient rule"):
        table.none(Op, reason="another one")
