"""What a program that states its own addresses may touch while it runs, and what is said if not.

A module that begins at the floors of buffers or loops says itself where it reads and writes. What
of that is not proved is compared with sizes when it runs: the access that fails does not happen,
the call ends, and the number of the guard that failed tells which place of the text it was.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.core.checks import place_named
from stepwell.core.diagnostics import Place

GUARDED = "kernel.guarded"
"""The attribute of a module whose accesses are compared with sizes when they happen."""
LONGEST_AXIS = 1 << 47
"""No axis is longer: no address space holds more bytes, and sums of so many do not overflow."""
FARTHEST = 1 << 61
"""Bounds and steps of loops are nearer to zero: what is counted between them has 64 bits."""
FIRST = 1 << 20
"""The error number of the first guard of a program; those of checks of sizes are smaller."""
VALUES = 2
"""So many numbers a guard that fails tells of."""


class OutOfBounds(IndexError):
    """A program wanted to touch what is not there: it did not, and gives no results.

    >>> error = OutOfBounds("memref.load: axis 0 of %x has no place 7, its size is 4", "m.mlir:3:8")
    >>> str(error), error.place.line
    ('m.mlir:3:8: memref.load: axis 0 of %x has no place 7, its size is 4', 3)
    """

    def __init__(self, words: str, at: str = "") -> None:
        self.words = words
        self.place: Place | None = place_named(at)
        """Of the op that wanted it, where that is known."""
        super().__init__(f"{at}: {words}" if at else words)


RAISED = (
    "ArithmeticError",
    "AssertionError",
    "Exception",
    "FloatingPointError",
    "IndexError",
    "KeyError",
    "LookupError",
    "NotImplementedError",
    "OverflowError",
    "RuntimeError",
    "TypeError",
    "UnboundLocalError",
    "ValueError",
    "ZeroDivisionError",
)
"""Exceptions that a check of a program can raise."""


def unfit_check(kind: str, words: int, values: int) -> str:
    """Return why a check cannot be of ``kind``, with so many texts and numbers; "" if it can."""
    if kind not in RAISED:
        return f"no check raises '{kind}'; there are {', '.join(RAISED)}"
    if values > VALUES:
        return f"a message has {VALUES} numbers at most, got {values}"
    if words != values + 1:
        return f"there must be one text more than numbers, got {words} and {values}"
    return ""


@dataclass(frozen=True)
class Guard:
    """One thing that is compared when it happens.

    >>> guard = Guard(no_place("memref.load", "%x", 0), "m.mlir:3:8")
    >>> print(guard.fault([7, 4]))
    m.mlir:3:8: memref.load: axis 0 of %x has no place 7, its size is 4
    """

    words: tuple[str, ...]
    """What is wrong where it fails: texts, between any two of which stands a number."""
    at: str = ""
    """file:line:column of the op."""
    kind: str = ""
    """The name of the exception that it raises; "" is `OutOfBounds`."""

    def fault(self, values: Sequence[int]) -> Exception:
        """Return the error to raise where it failed; ``values`` are what the program noted.

        One of a check of the user's ends, as its traceback shows it, at the user's line.
        """
        text = self.words[0]
        for value, words in zip(values, self.words[1:], strict=False):
            text += f"{value}{words}"
        if not self.kind:
            return OutOfBounds(text, self.at)
        error: Exception = getattr(builtins, self.kind)(*([text] if text else []))
        vars(error)[_CHECKED] = place_named(self.at)
        return raised_at(error, self.at)

    def __str__(self) -> str:
        text = "...".join(self.words)
        return f"{self.at}: {text}" if self.at else text


_CHECKED = "stepwell_place"
"""An attribute of errors that checks of programs raise: where the check stands."""


def is_checked(error: BaseException) -> bool:
    """Whether a check of a program raised ``error``."""
    return _CHECKED in vars(error)


def checked_place(error: BaseException) -> Place | None:
    """Return where the check stands that raised ``error``; None where none did."""
    return vars(error).get(_CHECKED)


def raised_at(error: Exception, at: str) -> Exception:
    """Return ``error`` as if the line ``at`` (file:line:column) of the user's had raised it."""
    if (place := place_named(at)) is None:
        return error
    row = "\n" * (min(place.line, 1 << 20) - 1) + "raise error"
    code = compile(row, place.file, "exec").replace(co_name="compiled")
    try:
        exec(code, {"error": error})
    except Exception as found:
        trail = found.__traceback__
        return found.with_traceback(trail.tb_next if trail is not None else None)
    return error


def no_place(op: str, buffer: str, axis: int, count: int = 1) -> tuple[str, ...]:
    """Return what to say of an index that is not within an axis, and of the axis' size."""
    places, more = ("place", "") if count == 1 else ("places", f" and the {count - 1} after it")
    return f"{op}: axis {axis} of {buffer} has no {places} ", f"{more}, its size is ", ""
