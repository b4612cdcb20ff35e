"""Print diagnostics, each with its source line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from stepwell.core.diagnostics import Diagnostic
from stepwell.core.files import is_quickly_read, read_whole
from stepwell.tools.opt.expectations import Expectations


@dataclass
class Said:
    """Receives the diagnostics of one module: prints them, or compares them with expected ones."""

    show: Callable[[Diagnostic], None]
    expected: Expectations | None
    errors: int = 0

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Receive one diagnostic."""
        self.errors += diagnostic.severity == "error"
        if self.expected is None:
            self.show(diagnostic)
        else:
            self.expected.met(diagnostic)


@dataclass
class Messages:
    """Writes diagnostics to standard error; ``sources`` caches the lines of files."""

    remarks: bool = False
    sources: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def know(self, name: str, text: str) -> None:
        """Register a text that is not in a file."""
        self.sources[name] = text.splitlines()

    def hear(self, expected: Expectations | None) -> Said:
        """Return a listener for the diagnostics of one module."""
        return Said(self.say, expected)

    def say(self, diagnostic: Diagnostic) -> None:
        """Print a diagnostic and its notes; remarks only if requested."""
        if diagnostic.severity == "remark" and not self.remarks:
            return
        print(diagnostic.render(self._line(diagnostic)), file=sys.stderr)
        for note in diagnostic.notes:
            self.say(note)

    def note_to_user(self, text: str) -> None:
        """Print a remark of the tool itself."""
        print(f"stepwell-opt: {text}", file=sys.stderr)

    def _line(self, diagnostic: Diagnostic) -> str | None:
        if (place := diagnostic.place) is None:
            return None
        if place.file not in self.sources:
            try:
                found = read_whole(place.file) if is_quickly_read(place.file) else b""
            except (OSError, ValueError):
                found = b""
            self.sources[place.file] = found.decode("utf-8", "replace").splitlines()
        rows = self.sources[place.file]
        return rows[place.line - 1] if 0 < place.line <= len(rows) else None
