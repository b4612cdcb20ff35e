"""--verify-diagnostics: compare diagnostics with those that the file's comments expect.

// expected-error {{text}}          an error on this line whose message contains the text
// expected-warning@+1 {{text}}     on the next line; also @-2, @above, @below
// expected-remark 2 {{text}}       twice
// expected-note@unknown {{text}}   at no known position
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stepwell.core.diagnostics import Diagnostic, Place

_COMMENT = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)"
    r"(?P<regex>-re)?"
    r"(?:@(?P<at>[+-]\d+|above|below|unknown))?"
    r"\s*(?P<times>\d+)?\s*\{\{(?P<text>.*?)\}\}"
)
_SUSPICIOUS = re.compile(r"//.*\bexpected-(?:error|warning|remark|note)\b")


@dataclass
class _Expected:
    severity: str
    line: int | None
    text: str
    comment: Place
    times: int = 1
    regex: bool = False

    def fits(self, diagnostic: Diagnostic, file: str) -> bool:
        """Whether ``diagnostic`` is the expected one."""
        if not self.times or diagnostic.severity != self.severity:
            return False
        place = diagnostic.place
        if self.line is None:
            if place is not None and place.file == file:
                return False
        elif place is None or place.file != file or place.line != self.line:
            return False
        if self.regex:
            return re.search(self.text, diagnostic.message) is not None
        return self.text in diagnostic.message


@dataclass
class Expectations:
    """The expected diagnostics of one module, and the unexpected ones that occurred."""

    text: str
    file: str
    first_line: int
    _expected: list[_Expected] = field(default_factory=list[_Expected], init=False)
    _problems: list[Diagnostic] = field(default_factory=list[Diagnostic], init=False)

    def __post_init__(self) -> None:
        for number, row in enumerate(self.text.splitlines(), self.first_line):
            found = list(_COMMENT.finditer(row))
            for match in found:
                self._expected.append(self._read(match, number))
            if not found and (odd := _SUSPICIOUS.search(row)):
                place = Place(self.file, number, odd.start() + 1)
                message = "cannot read this expectation; it should be expected-error {{text}}"
                self._problems.append(Diagnostic("error", message, place))

    def _read(self, match: re.Match[str], number: int) -> _Expected:
        at = match["at"] or "+0"
        offset = {"above": -1, "below": 1, "unknown": 0}.get(at)
        line = number + (int(at) if offset is None else offset)
        return _Expected(
            match["severity"],
            None if at == "unknown" else line,
            match["text"],
            Place(self.file, number, match.start() + 1),
            int(match["times"] or 1),
            bool(match["regex"]),
        )

    def met(self, diagnostic: Diagnostic) -> None:
        """Check off the expectation that ``diagnostic`` meets; record unexpected non-remarks."""
        for expected in self._expected:
            if expected.fits(diagnostic, self.file):
                expected.times -= 1
                break
        else:
            if diagnostic.severity in ("error", "warning"):
                message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
                self._problems.append(Diagnostic("error", message, diagnostic.place))
        for note in diagnostic.notes:
            for expected in self._expected:
                if expected.fits(note, self.file):
                    expected.times -= 1
                    break

    def unmet(self) -> list[Diagnostic]:
        """Return the unmet expectations and the unexpected diagnostics."""
        return self._problems + [
            Diagnostic("error", f"expected {e.severity} '{e.text}' was not produced", e.comment)
            for e in self._expected
            if e.times
        ]
