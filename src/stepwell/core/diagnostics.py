"""One shape for everything the compiler says to a person."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "remark", "note"]


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
    """What is wrong, where, what was expected, and how to go on.

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
        """Spell it for a terminal; ``source_line`` is the text of the line it points at."""
        at = f"{self.place}: " if self.place else ""
        rows = [f"{at}{self.severity}: {self.message}"]
        if self.place and source_line is not None:
            pad = "".join("\t" if c == "\t" else " " for c in source_line[: self.place.column - 1])
            rows.append(f"{self.place.line:>5} | {source_line}")
            rows.append(f"      | {pad}{'^' * self.place.width}")
        if self.help:
            rows.append(f"   help: {self.help}")
        return "\n".join(rows)

    def with_note(self, message: str, place: Place | None = None) -> Diagnostic:
        """Return this with one more note."""
        return replace(self, notes=(*self.notes, Diagnostic("note", message, place)))


@dataclass(eq=False)
class CompileError(Exception):
    """The program cannot be compiled as it stands; ``diagnostic`` says why, for a person."""

    diagnostic: Diagnostic

    def __str__(self) -> str:
        return self.diagnostic.render()


_handler: ContextVar[Callable[[Diagnostic], None] | None] = ContextVar("handler", default=None)


def report(diagnostic: Diagnostic) -> None:
    """Hand a warning or remark to whoever listens; nobody by default."""
    if (handler := _handler.get()) is not None:
        handler(diagnostic)


@contextmanager
def listening(handler: Callable[[Diagnostic], None]) -> Generator[None]:
    """Send every `report` inside to ``handler``."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)
