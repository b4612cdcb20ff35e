"""`--check` catches wrong passes and names the op; right ones it leaves alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from op_rows import ROWS, Row
from subtle_rewrites import SUBTLE
from wrong_rewrites import TABLE, Wrong

from stepwell.core.diagnostics import CompileError
from stepwell.dialects.parsing import parse_module
from stepwell.driver.pass_pipeline import parse
from stepwell.driver.pipeline import through
from stepwell.driver.registry import registry
from stepwell.testing.random_programs.program import Program
from stepwell.testing.random_programs.strategy import programs
from stepwell.tools.opt import main
from stepwell.tools.opt.check import Checker

HERE = Path(__file__).parent


@pytest.mark.parametrize("call", ["3x8,", "5x8,", "64x8,"])
def test_functions_are_called_with_sizes_that_they_serve(
    call: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Sizes of other calls once took the side of a branch that the pass had kept."""
    text, served = HERE.parent.parent / "lowering/take_branches.mlir", str(tmp_path / "m.mlir")
    passes = f'take-branches{{call="{call}"}}'
    assert main([str(text), "-p", passes, "--check", "-o", served]) == 0
    assert main([served, "-p", "bufferize,plan-memory", "--check", "-o", "/dev/null"]) == 0
    assert "not checked" not in capfd.readouterr().err


@pytest.mark.parametrize("row", (*TABLE, *SUBTLE), ids=lambda row: row.name)
def test_a_wrong_pass_is_caught_and_the_op_is_named(
    row: Wrong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.chdir(tmp_path)
    Path("p.mlir").write_text(row.text)
    passes = f"{row.before},{row.name}" if row.before else row.name
    arguments = ["p.mlir", "-p", passes, "--check", "--plugin", "wrong_passes:UNIVERSE"]
    code = main([*arguments, "--allow-unregistered-dialect"])
    said = capsys.readouterr().err
    assert code == 1, said
    assert row.said in said
    assert f"pass '{row.name}'" in said
    if "cannot be run" not in row.said:
        assert re.search(rf"^p\.mlir:{row.line}:\d+: error: pass", said), said
        assert f"the first op with another value is {row.op}" in said


def test_there_are_thirty() -> None:
    assert len(TABLE) >= 30
    names = [row.name for row in (*TABLE, *SUBTLE)]
    assert len(set(names)) == len(names) >= 50


def check(text: str, stage: str = "loops") -> None:
    """Run the module's passes under the check; what the check refuses to run is fine."""
    known = registry()
    context = known.context()
    module = parse_module(context, text, "p.mlir")
    checker = Checker(module, lambda said: None)
    for step in parse(through(stage), known.passes):
        step.run(context, module)
        checker.compare(module, step)


def check_row(row: Row, dtype: str) -> None:
    text = row.module(dtype)
    counted = "index" in row.arguments.values()  # no program takes what is no array
    try:
        check(text, "kernels" if counted else "loops")
    except CompileError as error:
        raise AssertionError(f"{error}\n{text}") from None


PAIRS = [(row, dtype) for row in ROWS for dtype in row.dtypes]


SHORT = [pair for pair in PAIRS if "long" not in pair[0].name]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row, dtype", SHORT[::173], ids=lambda v: getattr(v, "name", v))
def test_no_false_alarm_for_a_sample_of_ops(row: Row, dtype: str) -> None:
    check_row(row, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("row, dtype", PAIRS, ids=lambda v: getattr(v, "name", v))
def test_no_false_alarm_for_any_op(row: Row, dtype: str) -> None:
    check_row(row, dtype)


def settled(examples: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=checks,
    )


@settled(3)
@given(programs())
def test_no_false_alarm_for_a_few_random_programs(program: Program) -> None:
    check(program.text)


@pytest.mark.slow
@settled(300)
@given(programs())
def test_no_false_alarm_for_random_programs(program: Program) -> None:
    check(program.text)
