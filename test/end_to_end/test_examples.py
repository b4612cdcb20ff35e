"""The worked examples run as they are, and what they compute is what NumPy computes."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "programs"


@pytest.mark.parametrize("example", sorted(p.stem for p in EXAMPLES.glob("*.py")))
def test_a_worked_example(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")
    assert "in NumPy" in capsys.readouterr().out
