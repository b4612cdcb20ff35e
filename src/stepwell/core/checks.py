"""What must hold of the sizes of a call's arguments, with words for when it does not.

The compiler writes checks into the entry's attribute ``nd.checks`` and into `program.json`; C
evaluates them in every call, Python where one fails, to say which.
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
"""How many operands each operator of a check takes: those of `core.host_schedule` on integers."""


class UnfitSizes(ValueError):
    """The sizes of a call's arguments are not what the program wants: nothing has run.

    >>> error = UnfitSizes("nd.add: axis 0 of %c has size 7, ...", "model.mlir:4:3")
    >>> str(error), error.place.line
    ('model.mlir:4:3: nd.add: axis 0 of %c has size 7, ...', 4)
    """

    def __init__(self, words: str, at: str = "", before: str = "") -> None:
        self.words = words
        self.place = place_named(at)
        """Of the op that wants it, where that is known."""
        said = f"{at}: {words}" if at else words
        super().__init__(f"{before}\n{said}" if before else said)


def place_named(at: str) -> Place | None:
    """Return the place that 'file:line:column' names; None where it names none."""
    file, line, column = [*at.rsplit(":", 2), "", ""][:3]
    return Place(file, int(line), int(column)) if line.isdecimal() and column.isdecimal() else None


@dataclass(frozen=True)
class Check:
    """One thing that must hold; a number beyond 64 bits on the way means that it does not.

    >>> check = Check(["==", "d0", "d1"], ("%x has size ", ", %y has size ", ""), ("d0", "d1"))
    >>> check.failure({"d0": 3, "d1": 3}), check.failure({"d0": 3, "d1": 4})
    ('', '%x has size 3, %y has size 4')
    """

    holds: Tree
    words: tuple[str, ...]
    """What is wrong where it does not hold: texts, between any two of which stands a value."""
    values: tuple[Tree, ...] = ()
    at: str = ""
    """file:line:column of the op that wants it."""

    def failure(self, variables: Mapping[str, int]) -> str:
        """Return what is wrong with these sizes; nothing where it holds."""
        if holds(self.holds, variables):
            return ""
        text = self.words[0]
        for value, words in zip(self.values, self.words[1:], strict=True):
            text += f"{evaluate(value, variables)}{words}"
        return text


def first_failure(checks: Sequence[Check], sizes: Sequence[int]) -> str:
    """Return what is wrong with ``sizes`` (every `?` in order); nothing if they fit."""
    variables = {f"d{k}": n for k, n in enumerate(sizes)}
    return next((said for check in checks if (said := check.failure(variables))), "")


def check_all(checks: Sequence[Check], sizes: Sequence[int], before: str = "") -> None:
    """Raise `UnfitSizes` where one does not hold of ``sizes``, each `?` of the arguments in order.

    before : what is wrong besides, to be said first
    """
    variables = {f"d{k}": n for k, n in enumerate(sizes)}
    for check in checks:
        if said := check.failure(variables):
            raise UnfitSizes(said, check.at, before)


def holds(tree: Tree, variables: Mapping[str, int]) -> bool:
    """Whether a condition holds, as the C that it becomes finds it.

    >>> holds(["<=", ["*", "d0", 1 << 62], 5], {"d0": 4})
    False
    """
    try:
        return bool(_within(tree, variables))
    except OverflowError:
        return False


def _within(tree: Tree, variables: Mapping[str, int]) -> int:
    """Evaluate a tree whose every number has 64 bits; OverflowError where one has more."""
    if isinstance(tree, str):
        return variables[tree]
    value = tree
    if isinstance(tree, list | tuple):
        operator, *operands = tree
        value = OPERATORS[operator](*(_within(each, variables) for each in operands))
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError
    return int(value)
