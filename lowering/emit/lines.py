"""The text of one function: lines with their source lines, and the names of variables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os.path import basename
from typing import NamedTuple

from xdsl.dialects.builtin import LocationAttr, UnknownLoc

from stepwell.core.escape import quoted
from stepwell.dialects.types import places
from stepwell.lowering.emit.names import WORD, Names
from stepwell.lowering.emit.spelling import Spelling


class Line(NamedTuple):
    """One line of text, with its source lines."""

    depth: int
    text: str
    note: str
    defines: str = ""
    """The name that it defines; the line is dropped if that is unused."""

    def __str__(self) -> str:
        indented = f"{'  ' * self.depth}{self.text}"
        return f"{indented}  // {self.note}" if self.note else indented


def words(lines: Iterable[Line]) -> set[str]:
    """Return every identifier used in ``lines``."""
    return set(WORD.findall(" ".join(line.text for line in lines)))


def pruned(lines: Sequence[Line]) -> list[Line]:
    """Return ``lines`` without unused definitions."""
    mentioned = Counter(WORD.findall(" ".join(line.text for line in lines)))
    kept: list[Line] = []
    for line in reversed(lines):
        if line.defines and mentioned[line.defines] == 1:
            mentioned.subtract(WORD.findall(line.text))
        else:
            kept.append(line)
    return kept[::-1]


@dataclass
class Notes:
    """The comment of each location, cached."""

    known: dict[int, tuple[LocationAttr, str]] = field(
        default_factory=dict[int, tuple[LocationAttr, str]]
    )

    def of(self, location: LocationAttr) -> str:
        """Return 'model.mlir:3, 7-9' for a location, '' for an unknown one."""
        if isinstance(location, UnknownLoc):
            return ""
        key = id(location)
        if key not in self.known:
            self.known[key] = (location, source_lines(location))
        return self.known[key][1]


def source_lines(location: LocationAttr) -> str:
    """Return every source line in ``location``, file by file, runs of lines as ranges.

    >>> from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
    >>> source_lines(FileLineColLoc(StringAttr("dir/m.mlir"), IntAttr(3), IntAttr(1)))
    'm.mlir:3'
    """
    files: dict[str, set[int]] = {}
    for place in places(location):
        files.setdefault(quoted(basename(place.file)), set()).add(place.line)
    return "; ".join(f"{file}:{', '.join(_runs(sorted(lines)))}" for file, lines in files.items())


def _runs(lines: list[int]) -> Generator[str]:
    start = last = lines[0]
    for line in [*lines[1:], -1]:
        if line == last + 1:
            last = line
            continue
        yield str(start) if start == last else f"{start}-{last}"
        start = last = line


@dataclass
class FunctionText:
    """The lines of one function in a language, and the names of its variables."""

    spelling: Spelling
    notes: Notes
    names: Names
    lines: list[Line] = field(default_factory=list[Line])
    declared: dict[str, str] = field(default_factory=dict[str, str])
    """The type of every variable, by name, in order of declaration."""
    depth: int = 1
    note: str = ""
    """The source lines of the current op."""

    def line(self, text: str, defines: str = "") -> None:
        """Write one line at the current depth, with the current op's source lines."""
        self.lines.append(Line(self.depth, text, self.note, defines))

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Generator[None]:
        """Write ``head {``, the lines written inside, and ``tail``."""
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.end(tail)

    def end(self, text: str = "}") -> None:
        """Write a closing line, which has no source lines."""
        self.lines.append(Line(self.depth, text, ""))

    def fresh(self, hint: str | None, type: str) -> str:
        """Return a new variable's name."""
        name = self.names.fresh(hint)
        self.declared[name] = type
        return name
