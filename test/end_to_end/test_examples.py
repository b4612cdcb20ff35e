"""The worked examples run: each compares the compiled function with NumPy itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "programs"
NAMES = sorted(p.stem for p in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    assert "in NumPy" in capsys.readouterr().out
