"""Checks in a graph: what they raise, in every way a program can run, and what they leave alone."""

from __future__ import annotations

import io
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.driver.pipeline import STAGE_NAMES
from stepwell.driver.registry import registry
from stepwell.testing.machines import MACHINES
from stepwell.testing.opencl import TARGETS
from stepwell.tools.main import main

PROGRAM = """\
func.func @main(%x: tensor<8xf64>, %i: tensor<i64>, %n: tensor<i64>) -> (tensor<f64>, tensor<8xf64>) {
  %eight = nd.full 8 : tensor<i64>
  %one = nd.full 1 : tensor<i64>
  %zero = nd.full 0 : tensor<i64>
  %ok = nd.lt %i, %eight : tensor<i64> -> tensor<i1>
  nd.check %ok, %i : tensor<i64> {kind = "IndexError", words = ["index ", " is too large"]} loc("lookup.py":12:3)
  %y = nd.gather %x, indices(%i) {axes = [0]} : (tensor<8xf64>, tensor<i64>) -> tensor<f64>
  %k, %z = nd.while (%k = %zero, %z = %x) : tensor<i64>, tensor<8xf64> {
    %go = nd.lt %k, %n : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%k, %z) {
    %fine = nd.lt %k, %eight : tensor<i64> -> tensor<i1>
    nd.check %fine {kind = "AssertionError", words = ["too often"]} loc("lookup.py":14:3)
    %k1 = nd.add %k, %one : tensor<i64>
    %z1 = nd.add %z, %z : tensor<8xf64>
    nd.yield %k1, %z1 : tensor<i64>, tensor<8xf64>
  }
  %big = nd.gt %i, %one : tensor<i64> -> tensor<i1>
  nd.if %big {
    %odd = nd.eq %n, %one : tensor<i64> -> tensor<i1>
    nd.check %odd, %i, %n : tensor<i64>, tensor<i64> {kind = "ValueError", words = ["i is ", ", n is ", ""]}
    nd.yield
  } else {
    nd.yield
  }
  %r = nd.scan (%r = %zero) {length = 3} : (tensor<i64>) -> tensor<i64> {
    %small = nd.lt %r, %n : tensor<i64> -> tensor<i1>
    nd.check %small, %r : tensor<i64> {kind = "KeyError", words = ["step ", ""]}
    %r1 = nd.add %r, %one : tensor<i64>
    %r2 = nd.mul %r1, %i : tensor<i64>
    nd.yield %r2 : tensor<i64>
  }
  func.return %y, %z : tensor<f64>, tensor<8xf64>
}
"""
X = np.arange(8.0)
CALLS: tuple[tuple[int, int, str], ...] = (
    (0, 1, ""),
    (9, 2, "IndexError: index 9 is too large"),
    (1, 12, "AssertionError: too often"),
    (5, 0, "ValueError: i is 5, n is 0"),
    (9, 12, "IndexError: index 9 is too large"),
    (1, 2, "KeyError: 'step 2'"),
    (5, 1, "KeyError: 'step 5'"),
    (1, 8, ""),
)


def said(function: Any, i: int, n: int) -> str:
    """Call; return what is raised, after looking at results where nothing is."""
    try:
        y, z = function(X, np.int64(i), np.int64(n))
    except Exception as error:
        return traceback.format_exception_only(error)[-1].strip()
    assert y == X[i]
    np.testing.assert_array_equal(z, X * 2.0**n)
    return ""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_raised(target: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first check that fails ends the call; those of branches that do not run say nothing."""
    monkeypatch.setenv("STEPWELL_THREADS", str(threads))
    program = sw.compile(PROGRAM, target=target, name="m.mlir")
    module = parse_module(registry().context(), PROGRAM, "m.mlir")
    for i, n, wanted in CALLS:
        assert said(program, i, n) == wanted
        assert said(lambda *given: Interpreter(module).call("main", given), i, n) == wanted


@pytest.mark.parametrize("machine", MACHINES)
def test_machines(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_MACHINE", MACHINES[machine].text)
    program = sw.compile(PROGRAM)
    assert [said(program, i, n) for i, n, _ in CALLS] == [wanted for *_, wanted in CALLS]


def test_the_users_line(tmp_path: Path) -> None:
    """The traceback ends at the line that has the check, with its text."""
    source = tmp_path / "lookup.py"
    source.write_text("".join(f"line {n}\n" for n in range(1, 20)))
    program = sw.compile(PROGRAM.replace("lookup.py", str(source)))
    with pytest.raises(IndexError) as found:
        program(X, np.int64(9), np.int64(1))
    last = traceback.extract_tb(found.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == (str(source), 12, "line 12")


def test_saved(tmp_path: Path) -> None:
    """A saved program raises the same; C callers get a number and a text."""
    sw.compile(PROGRAM).save(tmp_path / "p")
    loaded = sw.load(tmp_path / "p")
    assert [said(loaded, i, n) for i, n, _ in CALLS] == [wanted for *_, wanted in CALLS]
    assert "stepwell_main_fault" in (tmp_path / "p" / "program.h").read_text()


@pytest.mark.parametrize("stage", STAGE_NAMES)
def test_floors(stage: str, tmp_path: Path) -> None:
    """The text of each floor is a program that raises the same."""
    (tmp_path / "m.mlir").write_text(PROGRAM)
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["compile", str(tmp_path / "m.mlir"), "--stage", stage]) == 0
    program = sw.compile(out.getvalue())
    assert [said(program, i, n) for i, n, _ in CALLS] == [wanted for *_, wanted in CALLS]


def test_no_checks_cost_nothing() -> None:
    """A program without checks knows nothing of them."""
    text = "\n".join(row for row in PROGRAM.splitlines() if "nd.check" not in row)
    assert "fault" not in str(sw.compile(text).source)


def test_the_tool_tells_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(
        "func.func @main(%c: tensor<i1>) -> tensor<i1> {\n"
        '  nd.check %c {kind = "ValueError", words = ["no"]}\n'
        "  func.return %c : tensor<i1>\n}\n"
    )
    np.save(tmp_path / "c.npy", np.False_)
    path = str(tmp_path / "m.mlir")
    assert main(["run", path, "--input", str(tmp_path / "c.npy")]) == 1
    assert f"{path}:2:3: error: no" in capsys.readouterr().err
