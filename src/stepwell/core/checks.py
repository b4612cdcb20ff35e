"""Conditions on the sizes of a call's arguments, with the messages of their failure.

The compiler writes checks into the entry's attribute ``nd.checks`` and into `program.json`. C
evaluates them in every call; if one fails, Python evaluates them again for the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepwell.core.diagnostics import Place
from stepwell.core.host_schedule import OPERATORS, Tree, evaluate

ARITY: dict[str, int] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "floor/", "ceil/", "min", "max", "wrap"), 2),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "&", "|", "^"), 2),
    **dict.fromkeys(("u/", "u%", "umin", "umax", "u<", "u<=", "u>", "u>="), 2),
    "select": 3,
    "not": 1,
}
"""The number of operands of each operator of a check: those of `core.host_schedule` on integers."""


class UnfitSizes(ValueError):
    """The sizes of a call's arguments violate a condition of the program; nothing has run.

    >>> error = UnfitSizes("nd.add: axis 0 of %c has size 7, ...", "model.mlir:4:3")
    >>> str(error), error.place.line
    ('model.mlir:4:3: nd.add: axis 0 of %c has size 7, ...', 4)
    """

    def __init__(self, words: str, at: str = "", before: str = "") -> None:
        self.words = words
        self.place = place_named(at)
        """The location of the op with the condition, if known."""
        said = f"{at}: {words}" if at else words
        super().__init__(f"{before}\n{said}" if before else said)


def place_named(at: str) -> Place | None:
    """Return the place in 'file:line:column'; None if the text has another form."""
    file, line, column = [*at.rsplit(":", 2), "", ""][:3]
    return Place(file, int(line), int(column)) if line.isdecimal() and column.isdecimal() else None


@dataclass(frozen=True)
class Check:
    """A condition; if an intermediate result exceeds 64 bits, it fails.

    >>> check = Check(["==", "d0", "d1"], ("%x has size ", ", %y has size ", ""), ("d0", "d1"))
    >>> check.failure({"d0": 3, "d1": 3}), check.failure({"d0": 3, "d1": 4})
    ('', '%x has size 3, %y has size 4')
    """

    holds: Tree
    words: tuple[str, ...]
    """The message of its failure: texts with a value between any two."""
    values: tuple[Tree, ...] = ()
    at: str = ""
    """file:line:column of the op with the condition."""

    def failure(self, variables: Mapping[str, int]) -> str:
        """Return the message for these sizes; "" if the condition holds."""
        if holds(self.holds, variables):
            return ""
        text = self.words[0]
        for value, words in zip(self.values, self.words[1:], strict=True):
            text += f"{evaluate(value, variables)}{words}"
        return text


def first_failure(checks: Sequence[Check], sizes: Sequence[int]) -> str:
    """Return the message for ``sizes`` (every `?` in order); "" if they fit."""
    variables = {f"d{k}": n for k, n in enumerate(sizes)}
    return next((said for check in checks if (said := check.failure(variables))), "")


def check_all(checks: Sequence[Check], sizes: Sequence[int], before: str = "") -> None:
    """Raise `UnfitSizes` if a check fails for ``sizes``, each `?` of the arguments in order.

    before : a message to put first
    """
    variables = {f"d{k}": n for k, n in enumerate(sizes)}
    for check in checks:
        if said := check.failure(variables):
            raise UnfitSizes(said, check.at, before)


def holds(tree: Tree, variables: Mapping[str, int]) -> bool:
    """Whether a condition holds, with the semantics of the generated C.

    >>> holds(["<=", ["*", "d0", 1 << 62], 5], {"d0": 4})
    False
    """
    try:
        return bool(_within(tree, variables))
    except OverflowError:
        return False


def _within(tree: Tree, variables: Mapping[str, int]) -> int:
    """Evaluate a tree in 64-bit integers; OverflowError if a number does not fit."""
    if isinstance(tree, str):
        return variables[tree]
    value = tree
    if isinstance(tree, list | tuple):
        operator, *operands = tree
        value = OPERATORS[operator](*(_within(each, variables) for each in operands))
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError
    return int(value)
