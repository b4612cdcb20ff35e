"""`stepwell.testing`: what it finds different, lit in one line, and what is said where an extra is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stepwell.testing import assert_same
from stepwell.testing.in_pytest import LIT

ONE = np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize(
    ("got", "want", "close", "said"),
    [
        (ONE, np.array([1, 2, 4], np.float32), {}, "1 of 3 elements differ; first at [2]: got 3.0"),
        (ONE, ONE.astype(np.float64), {}, "dtype float32, expected float64"),
        (ONE, ONE[None], {}, "shape (3,), expected (1, 3)"),
        ((ONE,), (ONE, ONE), {}, "the result: expected a tuple of 2, got a tuple"),
        ({"a": ONE}, {"b": ONE}, {}, "the result: expected a dict of ['b'], got a dict"),
        ({"a": [ONE]}, {"a": [ONE + 1]}, {}, "['a'][0]: 3 of 3"),
        (
            np.array([0.0], np.float32),
            np.array([-0.0], np.float32),
            {"bits": True},
            "got 0.0, expected -0.0",
        ),
        (
            np.array([np.nan], np.float32),
            np.array([1], np.float32),
            {"absolute": 9},
            "got nan, expected 1.0",
        ),
        (np.array([1], np.int8), np.array([2], np.int8), {"absolute": 9}, "got 1, expected 2"),
        (np.array([True]), np.array([False]), {}, "got True, expected False"),
        (
            ONE.astype(ml_dtypes.bfloat16),
            (ONE * 2).astype(ml_dtypes.bfloat16),
            {"ulps": 1},
            "3 of 3",
        ),
    ],
)
def test_what_differs_is_named(got: Any, want: Any, close: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_same(got, want, **close)
    assert said in str(caught.value)


def test_what_is_the_same() -> None:
    assert_same(np.array([0.0, np.nan], np.float32), np.array([-0.0, np.nan], np.float32))
    assert_same(np.array([np.nan], np.float32), np.array([np.nan], np.float32), bits=True)
    assert_same({"a": (ONE, [])}, {"a": (ONE.copy(), [])}, bits=True)
    above = np.nextafter(ONE, np.float32(9))
    assert_same(above, ONE, ulps=1)
    narrow = np.array([1, 1.0078125], ml_dtypes.bfloat16)
    assert_same(narrow[1:], narrow[:1], ulps=1)
    assert_same(np.float32(1.5), np.float32(1.25), absolute=0.5)
    assert_same(np.zeros((0, 3)), np.zeros((0, 3)))


PASSING = "// RUN: %stepwell-opt %s | filecheck %s\n// CHECK: func.func @f\nfunc.func @f() {\n  func.return\n}\n"
SHELL = "// RUN: stepwell-opt %s > %t\n// RUN: test -s %t\nfunc.func @f() {\n  func.return\n}\n"


def test_lit_in_one_line(tmp_path: Path) -> None:
    """RUN lines run in lit's processes, those of a shell in its shell; failures are failures."""
    (tmp_path / "lit.cfg").write_text(
        "import stepwell.testing.lit\nstepwell.testing.lit.configure(config)\n"
    )
    (tmp_path / "passing.mlir").write_text(PASSING)
    (tmp_path / "shell.mlir").write_text(SHELL)
    (tmp_path / "failing.mlir").write_text(PASSING.replace("CHECK: func.func @f", "CHECK: @g"))
    (tmp_path / "unsupported.mlir").write_text(f"// REQUIRES: no-such-thing\n{PASSING}")
    (tmp_path / "Inputs").mkdir()
    (tmp_path / "Inputs" / "read.mlir").write_text("no module")
    done = subprocess.run(
        [sys.executable, "-c", LIT, "-v", "-j1", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "FILECHECK_COLOR": ""},
    )
    assert done.returncode == 1, done.stdout
    for name, outcome in (
        ("passing", "PASS"),
        ("shell", "PASS"),
        ("failing", "FAIL"),
        ("unsupported", "UNSUPPORTED"),
    ):
        assert f"{outcome}: stepwell :: {name}.mlir" in done.stdout
    assert "filecheck" in done.stdout and "read.mlir" not in done.stdout


@pytest.mark.parametrize(
    ("module", "missing"),
    [
        ("stepwell.testing.random_programs.strategy", "hypothesis"),
        ("stepwell.testing.random_programs.program", "ml_dtypes"),
        ("stepwell.testing.in_pytest", "filecheck"),
    ],
)
def test_an_extra_that_is_missing(module: str, missing: str) -> None:
    code = f"import sys; sys.modules['{missing}'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"need {missing}: pip install 'stepwell[testing]'" in done.stderr
