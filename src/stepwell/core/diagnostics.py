"""The common form of all errors, warnings and remarks of the compiler."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

from stepwell.core.files import is_quickly_read

Severity: TypeAlias = Literal["error", "warning", "remark", "note"]


MOST_COLUMNS = 240
"""Maximum columns shown of a source line: generated text has lines of megabytes."""
MOST_WORDS = 2000
"""Maximum characters shown of a message: types and attributes may be of any length."""
_LEFT_OUT = " ... "


def _around(line: str, at: int) -> tuple[str, int]:
    """Return the part of a line shown around character ``at``, and its offset in that part."""
    if len(line) <= MOST_COLUMNS:
        return line, at
    first = max(0, min(at - MOST_COLUMNS // 3, len(line) - MOST_COLUMNS))
    left = _LEFT_OUT if first else ""
    right = _LEFT_OUT if first + MOST_COLUMNS < len(line) else ""
    return left + line[first : first + MOST_COLUMNS] + right, at - first + len(left)


def _shortened(message: str) -> str:
    """Return a message, without its middle if it is very long."""
    if len(message) <= MOST_WORDS:
        return message
    tail = MOST_WORDS // 4
    return message[: MOST_WORDS - tail] + _LEFT_OUT + message[-tail:]


@dataclass(frozen=True)
class Place:
    """A position in a source file, 1-based like every editor."""

    file: str
    line: int
    column: int
    width: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """An error, warning or remark: the fault, its place, the expected form, and how to fix it.

    >>> print(Diagnostic("error", "unknown op 'nd.ad'", Place("a.mlir", 3, 8),
    ...       help="did you mean 'nd.add'?").render("  %0 = nd.ad %x, %x : tensor<4xf32>"))
    a.mlir:3:8: error: unknown op 'nd.ad'
        3 |   %0 = nd.ad %x, %x : tensor<4xf32>
          |        ^
       help: did you mean 'nd.add'?
    """

    severity: Severity
    message: str
    place: Place | None = None
    notes: tuple[Diagnostic, ...] = ()
    help: str = ""

    def render(self, source_line: str | None = None) -> str:
        """Spell it for a terminal; ``source_line`` is the text of the line of its place."""
        at = f"{self.place}: " if self.place else ""
        rows = [f"{at}{self.severity}: {_shortened(self.message)}"]
        if self.place and source_line is not None:
            shown, before = _around(source_line, self.place.column - 1)
            pad = "".join("\t" if c == "\t" else " " for c in shown[:before])
            width = min(self.place.width, max(len(shown) - before, 1))
            rows.append(f"{self.place.line:>5} | {shown}")
            rows.append(f"      | {pad}{'^' * width}")
        if self.help:
            rows.append(f"   help: {self.help}")
        return "\n".join(rows)

    def with_note(self, message: str, place: Place | None = None) -> Diagnostic:
        """Return a copy with one more note."""
        return replace(self, notes=(*self.notes, Diagnostic("note", message, place)))


@dataclass(eq=False)
class CompileError(Exception):
    """The program cannot be compiled; ``diagnostic`` has the reason."""

    diagnostic: Diagnostic
    sources: dict[str, str] = field(default_factory=dict[str, str])
    """Texts that are not in files, by the names used in places."""

    def __str__(self) -> str:
        said = (self.diagnostic, *self.diagnostic.notes)
        return "\n".join(each.render(self._line(each.place)) for each in said)

    def _line(self, place: Place | None) -> str | None:
        if place is None:
            return None
        if (text := self.sources.get(place.file)) is None:
            if not is_quickly_read(place.file):
                return None
            return linecache.getline(place.file, place.line).rstrip("\n") or None
        rows = text.splitlines()
        return rows[place.line - 1] if 0 < place.line <= len(rows) else None


_handler: ContextVar[Callable[[Diagnostic], None] | None] = ContextVar("handler", default=None)


def report(diagnostic: Diagnostic) -> bool:
    """Pass a warning or remark to the handler; return False if there is none, as by default."""
    if (handler := _handler.get()) is None:
        return False
    handler(diagnostic)
    return True


def is_heard() -> bool:
    """Whether there is a handler: expensive remarks are only computed if so."""
    return _handler.get() is not None


@contextmanager
def listening(handler: Callable[[Diagnostic], None]) -> Generator[None]:
    """Send every `report` inside the context to ``handler``."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a help text that names the closest of ``known``, "" if none is close.

    cutoff : the minimum similarity, 1 being equality

    >>> did_you_mean("nd.ad", ["nd.pad", "nd.add", "nd.sub"])
    "did you mean 'nd.add'?"
    """
    difflib: Any = import_module("difflib")  # loaded only for errors
    close = difflib.get_close_matches(name, known, n=5, cutoff=cutoff)
    if not close:
        return ""

    def likeness(other: str) -> tuple[float, int]:
        """Rank by similarity, then by the number of letters at the same position."""
        same = sum(a == b for a, b in zip(other, name, strict=False))
        return difflib.SequenceMatcher(None, other, name).ratio(), same

    return f"did you mean '{max(close, key=likeness)}'?"
