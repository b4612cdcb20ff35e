"""Texts to begin with: what the tests' own files consist of, and any other files at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

TEST = Path(__file__).parents[1]
SPLIT = "// -----"
MOST = 20_000
"""Characters of a text that is worth damaging: larger ones are slow, and say no more."""


def chunks(path: Path) -> Iterator[str]:
    """Yield the modules of a file, which stand between lines of ``// -----``."""
    rows: list[str] = []
    for row in path.read_text("utf-8", errors="replace").split("\n"):
        if row.strip() == SPLIT:
            yield "\n".join(rows)
            rows = []
        else:
            rows.append(row)
    yield "\n".join(rows)


def texts(folders: Iterable[Path] = ()) -> list[str]:
    """Return the texts of our own tests, and of the .mlir files of ``folders``."""
    files = [f for folder in (TEST, *folders) for f in sorted(folder.rglob("*.mlir"))]
    found = {chunk: None for file in files for chunk in chunks(file) if chunk.strip()}
    return [text for text in found if len(text) <= MOST]
