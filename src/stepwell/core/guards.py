"""Run-time guards of programs that compute their own addresses, and their error messages.

A module that begins at the floor of buffers or of loops has its own loads and stores. The indices
of an access that is not proved to be in bounds are compared with the sizes at run time. If this
guard fails, the access is not made, the call ends, and the guard's number identifies the op.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.core.checks import place_named
from stepwell.core.diagnostics import Place

GUARDED = "kernel.guarded"
"""The attribute of a module whose accesses are checked at run time."""
LONGEST_AXIS = 1 << 47
"""Upper bound of an axis: no address space has more bytes, and sums of these do not overflow."""
FARTHEST = 1 << 61
"""Bound on the magnitude of loop bounds and steps, so that differences fit in 64 bits."""
FIRST = 1 << 20
"""The error number of a program's first guard; checks of sizes have smaller numbers."""
VALUES = 2
"""The number of values that a failed guard reports."""


class OutOfBounds(IndexError):
    """An access was out of bounds: it was not made, and the call has no results.

    >>> error = OutOfBounds("memref.load: axis 0 of %x has no place 7, its size is 4", "m.mlir:3:8")
    >>> str(error), error.place.line
    ('m.mlir:3:8: memref.load: axis 0 of %x has no place 7, its size is 4', 3)
    """

    def __init__(self, words: str, at: str = "") -> None:
        self.words = words
        self.place: Place | None = place_named(at)
        """The location of the op, if known."""
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
"""The exceptions that checks of a program can raise."""


def unfit_check(kind: str, words: int, values: int) -> str:
    """Return why a check of ``kind`` with these texts and numbers is invalid; "" if it is valid."""
    if kind not in RAISED:
        return f"no check raises '{kind}'; there are {', '.join(RAISED)}"
    if values > VALUES:
        return f"a message has {VALUES} numbers at most, got {values}"
    if words != values + 1:
        return f"there must be one text more than numbers, got {words} and {values}"
    return ""


@dataclass(frozen=True)
class Guard:
    """A comparison at run time.

    >>> guard = Guard(no_place("memref.load", "%x", 0), "m.mlir:3:8")
    >>> print(guard.fault([7, 4]))
    m.mlir:3:8: memref.load: axis 0 of %x has no place 7, its size is 4
    """

    words: tuple[str, ...]
    """The message of its failure: texts with a number between any two."""
    at: str = ""
    """file:line:column of the op."""
    kind: str = ""
    """The name of the exception; "" is `OutOfBounds`."""

    def fault(self, values: Sequence[int]) -> Exception:
        """Return the error of its failure; ``values`` are the numbers that the program recorded.

        The traceback of the error of a user's check ends at the user's line.
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
"""The attribute with the location of the check, of errors that checks raise."""


def is_checked(error: BaseException) -> bool:
    """Whether a check of a program raised ``error``."""
    return _CHECKED in vars(error)


def checked_place(error: BaseException) -> Place | None:
    """Return the location of the check that raised ``error``; None if none did."""
    return vars(error).get(_CHECKED)


def raised_at(error: Exception, at: str) -> Exception:
    """Return ``error`` with a traceback as if the user's line ``at`` had raised it."""
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
    """Return the message for an index out of bounds of an axis, with the axis' size."""
    places, more = ("place", "") if count == 1 else ("places", f" and the {count - 1} after it")
    return f"{op}: axis {axis} of {buffer} has no {places} ", f"{more}, its size is ", ""
