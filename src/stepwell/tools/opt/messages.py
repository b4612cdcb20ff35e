"""Show diagnostics to a person, each with the line it is about."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from stepwell.core.diagnostics import Diagnostic
from stepwell.tools.opt.expectations import Expectations


@dataclass
class Said:
    """Takes diagnostics of one module: shows them, or compares them with what was expected."""

    show: Callable[[Diagnostic], None]
    expected: Expectations | None
    errors: int = 0

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Take one diagnostic."""
        self.errors += diagnostic.severity == "error"
        if self.expected is None:
            self.show(diagnostic)
        else:
            self.expected.met(diagnostic)


@dataclass
class Messages:
    """Writes diagnostics to standard error; ``sources`` are the lines of files read so far."""

    remarks: bool = False
    sources: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def know(self, name: str, text: str) -> None:
        """Remember a text that lies in no file."""
        self.sources[name] = text.splitlines()

    def hear(self, expected: Expectations | None) -> Said:
        """Return a listener for the diagnostics of one module."""
        return Said(self.say, expected)

    def say(self, diagnostic: Diagnostic) -> None:
        """Show a diagnostic and its notes; remarks only where they were asked for."""
        if diagnostic.severity == "remark" and not self.remarks:
            return
        print(diagnostic.render(self._line(diagnostic)), file=sys.stderr)
        for note in diagnostic.notes:
            self.say(note)

    def note_to_user(self, text: str) -> None:
        """Show a remark of the tool itself."""
        print(f"stepwell-opt: {text}", file=sys.stderr)

    def _line(self, diagnostic: Diagnostic) -> str | None:
        if (place := diagnostic.place) is None:
            return None
        if place.file not in self.sources:
            try:
                with open(place.file, encoding="utf-8", errors="replace") as file:
                    self.sources[place.file] = file.read().splitlines()
            except OSError:
                self.sources[place.file] = []
        rows = self.sources[place.file]
        return rows[place.line - 1] if 0 < place.line <= len(rows) else None
