"""Files that were damaged byte by byte: one clear message or a result, never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stepwell.tools.opt import main

ROOT = Path(__file__).parents[3] / "test"
FILES = ("dialects/nd/control.mlir", "dialects/nd/shape.mlir", "dialects/kernel/ops.mlir")
ROUNDS = 30
PIECES = (b"", b"}", b"{", b"%", b'"', b"tensor<", b"-1", b"99999999999999999999", b"\xff", b"\0")


def _damaged(data: bytes, rng: random.Random) -> bytes:
    """Return ``data`` cut short, or with a few bytes taken out, doubled or replaced."""
    if rng.random() < 0.2:
        return data[: rng.randrange(len(data))]
    for _ in range(rng.randint(1, 3)):
        at, length = rng.randrange(len(data)), rng.randint(0, 4)
        piece = rng.choice((*PIECES, data[at : at + 2 * length], bytes([rng.randrange(256)])))
        data = data[:at] + piece + data[at + length :]
    return data


@pytest.mark.parametrize("file", FILES)
def test_damaged(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (ROOT / file).read_bytes()
    parts = whole.split(b"\n\n")
    rng = random.Random(file)
    for number in range(ROUNDS):
        start = rng.randrange(len(parts))
        path = tmp_path / f"{number}.mlir"
        path.write_bytes(_damaged(b"\n\n".join(parts[start : start + 3]), rng))
        code = main([str(path), "-p", "canonicalize,cse"])
        said = capsys.readouterr()
        shown = f"{path.read_bytes()!r}\n{said.err}"
        assert "Traceback" not in said.err and "crashed" not in said.err, shown
        assert code in (0, 1) and (code == 0 or "error: " in said.err), shown
        assert "\n\n" not in said.err and len(said.err) < 4000, shown
