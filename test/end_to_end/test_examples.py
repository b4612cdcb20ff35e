"""The worked examples run as they are: what they compute is what NumPy computes, and they learn."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("example", sorted(p.stem for p in (EXAMPLES / "programs").glob("*.py")))
def test_a_worked_example(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "programs" / f"{example}.py"), run_name="__main__")
    assert "in NumPy" in capsys.readouterr().out


LEARN = {
    "character_model/train.py": (["--steps", "25", "--layers", "1"], "bits a character"),
    "fit/decays.py": (["--curves", "100"], "are off by"),
    "heat/heat.py": (["--size", "24", "--steps", "60"], "strength"),
    "neural_ode/spiral.py": (["--steps", "100"], "the distance went"),
    "newton/newton.py": ([], "of the labels"),
    "schedules/product.py": (["--size", "50", "--rounds", "1"], "as the compiler chooses"),
    "sequence/sunspots.py": ([], "the LSTM"),
}
"""Examples that assert what they found: their options here, and what they say in the end."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("example", LEARN)
def test_an_example_that_learns(
    example: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options, said = LEARN[example]
    monkeypatch.setattr(sys, "argv", [example, *options])
    monkeypatch.syspath_prepend(str((EXAMPLES / example).parent))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / example), run_name="__main__")
    assert not ended.value.code
    assert said in capsys.readouterr().out
