"""Tuning and lock files: what is tried, what is kept, and what happens with what does not fit."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import stepwell as sw
from stepwell.analysis.levels import KernelLevels, check_levels, schedule_of
from stepwell.core.diagnostics import CompileError, Diagnostic, listening
from stepwell.core.locks import Lock, Tuned, machine_key, parse_lock, write_lock
from stepwell.core.machine import Machine
from stepwell.core.source import Source
from stepwell.core.targets import machine_for
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Schedule as Levels
from stepwell.dialects.kernel.levels import schedule_from
from stepwell.driver import tuning
from stepwell.driver.lowering import Lowering
from stepwell.tools.main import main
from stepwell.transforms.kernels.schedule import Schedule
from stepwell.transforms.kernels.schedule.locked import kernel_key
from stepwell.transforms.kernels.schedule.variants import variants

PRODUCT = """
func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %y = nd.matmul %x, %w : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
  func.return %y : tensor<{m}x{n}xf32>
}}
"""
SMALL = PRODUCT.format(m=30, k=20, n=50)
MACHINE = Machine(vector_bits=512, vector_registers=32, features="a b c")
LEVELS = "[for d0 by 2, for d1 by 16, for d2, unroll d0, vector d1 by 16]"
TUNED = Tuned("main_matmul", LEVELS, 1e-6, 2e-6, 9)


def outlined(text: str) -> Lowering:
    descent = Lowering.of(Source(text, "<test>", "main", MACHINE))
    descent.kernels_outlined()
    return descent


def kernels(module: ModuleOp) -> list[kernel.FuncOp]:
    return [op for op in module.ops if isinstance(op, kernel.FuncOp)]


def locked(tmp_path: Path, tuned: Tuned = TUNED, text: str = SMALL) -> Path:
    (function,) = kernels(outlined(text).module)
    path = tmp_path / "m.lock.json"
    path.write_text(Lock(machine_key(MACHINE), {kernel_key(function): tuned}).to_json())
    return path


def scheduled(module: ModuleOp, lock: Path) -> tuple[Levels, list[Diagnostic]]:
    said: list[Diagnostic] = []
    with listening(said.append):
        Schedule(lock=str(lock)).apply(Context(), module)
    (function,) = kernels(module)
    levels = schedule_of(function)
    assert levels is not None
    return levels, said


def test_the_key_is_of_what_is_computed() -> None:
    def key(text: str) -> str:
        (function,) = kernels(outlined(text).module)
        return kernel_key(function)

    renamed = SMALL.replace("%y", "%result").replace("%w", "%weights").replace("@main", "@main")
    assert key(SMALL) == key(renamed)
    assert key(SMALL) != key(PRODUCT.format(m=31, k=20, n=50))


def test_a_lock_file_is_text_with_a_line_for_each_schedule() -> None:
    lock = Lock(machine_key(MACHINE), {"abc": TUNED})
    text = lock.to_json()
    assert f'   "schedule": "{LEVELS}",\n' in text
    assert parse_lock(text) == lock
    assert lock.misfit(MACHINE) == ""
    assert lock.misfit(replace(MACHINE, l2=4096)) == "l2 1048576 there, 4096 here"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "Expecting value"),
        ("{}", "it has no 'format'"),
        ("[]", r"it holds \[\], not an object"),
        ('{"format": 7}', "it has format 7, expected 2"),
        ('{"format": 2, "machine": {}, "kernels": 3}', "'kernels' must be an object"),
        ('{"format": 2, "machine": {}, "kernels": {"a": {}}}', "kernel a must have name, schedule"),
    ],
)
def test_what_is_no_lock_file(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_lock(text)


@pytest.mark.parametrize("schedule", [{"tile": [2, 1]}, None, 3])
def test_what_is_no_schedule(schedule: Any) -> None:
    text = Lock(machine_key(MACHINE), {"abc": replace(TUNED, schedule=schedule)}).to_json()
    with pytest.raises(ValueError, match="kernel abc: 'schedule' must be"):
        parse_lock(text)


def test_its_schedule_is_written_on_its_kernel(tmp_path: Path) -> None:
    found, said = scheduled(outlined(SMALL).module, locked(tmp_path))
    assert (str(found), said) == (LEVELS, [])


def test_a_kernel_that_has_changed_is_told(tmp_path: Path) -> None:
    other = outlined(PRODUCT.format(m=30, k=21, n=50)).module
    found, (said,) = scheduled(other, locked(tmp_path))
    assert str(found) != LEVELS
    assert said.severity == "warning" and "main_matmul" in said.message


def test_what_is_written_by_hand_wins(tmp_path: Path) -> None:
    module = outlined(SMALL).module
    (function,) = kernels(module)
    Schedule().apply(Context(), ModuleOp([hand := function.clone()]))
    function.attributes["kernel.schedule"] = hand.attributes["kernel.schedule"]
    found, said = scheduled(module, locked(tmp_path))
    assert found == schedule_of(hand) != schedule_from(LEVELS)
    assert len(said) == 1


@pytest.mark.parametrize(
    "schedule",
    [
        "[for d0 by 0]",
        "[for d0, for d9]",
        "[for d0, for d1, for d2] and more",
        "[for d0 by 2, for d1, for d2]",
        "[parallel d2]",
        "[vector d1 by 16, for d1 by 4]",
        "(",
    ],
)
def test_a_schedule_that_cannot_be(tmp_path: Path, schedule: str) -> None:
    path = locked(tmp_path, replace(TUNED, schedule=schedule))
    with pytest.raises(CompileError, match="'main_matmul' in the lock file cannot be"):
        scheduled(outlined(SMALL).module, path)


@pytest.mark.parametrize("m, k, n", [(30, 20, 50), (100, 301, 700), (1, 900, 800)])
def test_every_kind_of_variant_is_obeyed_and_right(m: int, k: int, n: int, tmp_path: Path) -> None:
    machine = machine_for("c")
    source = Source(PRODUCT.format(m=m, k=k, n=n), "<test>", "main", machine)
    (candidate,) = tuning.candidates_of(source)
    search = tuning.Search(candidate, source, tmp_path)
    levels = KernelLevels(candidate.function, candidate.schedule)
    groups = [[candidate.schedule], *variants(levels, machine)]
    for choices in groups:
        for schedule in (choices[0], choices[-1]):
            run = search.compiled(schedule)
            assert run() > 0
            (result,) = run.results
            # the arrays made up for the arguments, in the same order
            random = np.random.default_rng(0)
            x, w = (random.uniform(0.5, 1.5, s).astype(np.float32) for s in ((m, k), (k, n)))
            np.testing.assert_allclose(result, x.astype(np.float64) @ w, rtol=1e-5)
            search.tried += 1


SIZED = """
func.func @main(%x: tensor<?x?xf32>, %v: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %a = nd.matmul %x, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = nd.softmax %a {axis = 1} : tensor<?x?xf32>
  %b = nd.exp %v : tensor<?xf32>
  func.return %y, %b : tensor<?x?xf32>, tensor<?xf32>
}
"""


def test_sizes_that_only_a_call_tells_are_given(tmp_path: Path) -> None:
    source = Source(SIZED, "<test>", "main", machine_for("c"))
    assert all(each.sizes is None for each in tuning.candidates_of(source))
    candidates = tuning.candidates_of(source, [37, 5])
    assert len(candidates) >= 2
    for number, candidate in enumerate(candidates):
        search = tuning.Search(candidate, source, tmp_path / str(number))
        levels = KernelLevels(candidate.function, candidate.schedule)
        groups = variants(levels, source.machine)
        for schedule in [candidate.schedule, *(choices[-1] for choices in groups)]:
            launched: Any = search.compiled(schedule)
            for n, result in zip((37, 5), launched.results, strict=True):
                assert np.shape(result) in ((n,), (n, n)) and np.isfinite(result).all()
            assert launched() > 0
            search.tried += 1


def test_versions_stay_beside_a_schedule_from_a_lock_file(tmp_path: Path) -> None:
    text = PRODUCT.format(m="?", k=20, n=50)
    (function,) = kernels(outlined(text).module)
    module = ModuleOp([function.clone()])
    Schedule().apply(Context(), module)
    (chosen,) = kernels(module)
    path = locked(tmp_path, text=text)
    module = outlined(text).module
    found, said = scheduled(module, path)
    (tuned,) = kernels(module)
    assert found == schedule_from(LEVELS) and not said
    assert tuned.attributes["kernel.versions"] == chosen.attributes["kernel.versions"]


def test_sizes_that_are_not_given_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(SIZED)
    assert main(["compile", str(module), "--tune", "--budget", "0.1"]) == 0
    assert "warning: not tuned, for only a call tells their sizes: main_" in capsys.readouterr().err
    assert main(["compile", str(module), "--tune", "--budget", "0.5", "--size", "37"]) == 0
    said = capsys.readouterr()
    assert "tried" in said.out and "warning" not in said.err
    with caplog.at_level(logging.WARNING, "stepwell"):
        sw.compile(SIZED, tune=0.1, lock=tmp_path / "new" / "l.json")
    assert "not tuned, for only a call tells their sizes" in caplog.text
    assert main(["compile", str(module), "--size", "37"]) == 1
    assert "--size is for --tune alone" in capsys.readouterr().err


@pytest.mark.parametrize("budget", [0, -1, 0.0, float("nan")])
def test_budgets_that_are_none(budget: float, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="no schedule is found in"):
        sw.compile(SMALL, tune=budget, lock=locked(tmp_path))


def test_a_lock_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = locked(tmp_path)
    before = path.read_text()

    def fail(*_: Any) -> None:
        raise OSError("full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="full"):
        write_lock(path, Lock(machine_key(MACHINE)))
    assert path.read_text() == before and list(tmp_path.iterdir()) == [path]


def test_choices_of_every_kind_are_read_and_written() -> None:
    attention = """
    func.func @main(%q: tensor<40x64xf32>, %k: tensor<64x40xf32>, %v: tensor<40x64xf32>) -> tensor<40x64xf32> {
      %s = nd.matmul %q, %k : (tensor<40x64xf32>, tensor<64x40xf32>) -> tensor<40x40xf32>
      %p = nd.softmax %s {axis = 1} : tensor<40x40xf32>
      %y = nd.matmul %p, %v : (tensor<40x40xf32>, tensor<40x64xf32>) -> tensor<40x64xf32>
      func.return %y : tensor<40x64xf32>
    }"""
    bytes = PRODUCT.format(m=512, k=256, n=512).replace("f32>", "i8>")
    bytes = bytes.replace("%w :", "%w {dtype = i32} :").replace("<512x512xi8>", "<512x512xi32>")
    for text in (attention, SMALL, PRODUCT.format(m=2, k=900, n=8000), bytes):
        for candidate in tuning.candidates_of(Source(text, "<test>", "main", MACHINE)):
            levels = KernelLevels(candidate.function, candidate.schedule)
            assert text != bytes or {*levels.packs.values()} == {"dot", "biased_dot"}
            module = tuning.program_of(candidate, candidate.schedule)
            before = str(module)
            Schedule("vector_registers=32").apply(Context(), module)
            assert str(module) == before, "a lock file must leave nothing to be chosen"
            groups = variants(levels, MACHINE)
            for choices in (schedule for group in groups for schedule in group):
                (function,) = kernels(tuning.program_of(candidate, choices))
                found = schedule_of(function)
                assert found is not None and schedule_from(str(found)) == found
                check_levels(function, found)


class Model(tuning.Search):
    """A search in which the time of a schedule is a formula."""

    def compiled(self, schedule: Any) -> Any:
        rows, vectors = KernelLevels(self.candidate.function, schedule).tile
        if rows == 7:
            raise CompileError(Diagnostic("error", "cannot be"))
        return lambda: abs(rows - 5) + abs(vectors - 3) + 1.0


def test_the_search_finds_the_best_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "seconds_of", lambda run: run())
    source = Source(SMALL, "<test>", "main", MACHINE)
    (candidate,) = tuning.candidates_of(source)
    search = Model(candidate, source, tmp_path)
    found = search.run(float("inf"))
    assert found is not None
    assert found.schedule.startswith("[parallel d0 by 5, parallel d1 by 48 overlap {")
    assert found.seconds == 1.0 < found.before
    assert Model(candidate, source, tmp_path).run(0.0) is None


def test_jit_tunes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path))
    searched: list[str] = []

    def tune(source: Source, *_: Any, **__: Any) -> Lock:
        searched.append(source.entry)
        return Lock(machine_key(source.machine))

    monkeypatch.setattr(tuning, "tune", tune)
    x = np.ones((8, 8), np.float32)
    for _ in range(2):
        double = sw.jit(lambda x: x @ x, tune=True)
        np.testing.assert_array_equal(double(x), x @ x)
    assert len(searched) == 1
    (file,) = (tmp_path / "locks").iterdir()
    assert json.loads(file.read_text())["kernels"] == {}


def test_a_lock_for_another_machine_is_told_and_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = locked(tmp_path)
    with caplog.at_level(logging.WARNING, "stepwell"):
        compiled = sw.compile(SMALL, lock=path)
    assert "is for another machine and is not used" in caplog.text
    caplog.clear()
    said: list[Diagnostic] = []
    with caplog.at_level(logging.WARNING, "stepwell"), listening(said.append):
        sw.compile(SMALL, lock=path)
    assert (len(said), caplog.text) == (1, "")  # told once
    x = np.ones((30, 20), np.float32)
    np.testing.assert_allclose(compiled(x, np.ones((20, 50), np.float32)), 20)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(SMALL)
    command = ["compile", str(module), "--tune", "--budget", "0.5", "-o", str(tmp_path / "out")]
    assert main(command) == 0
    assert "lock file: " in capsys.readouterr().out
    lock = parse_lock((tmp_path / "m.lock.json").read_text())
    assert lock.misfit(machine_for("c")) == ""
    lock = Lock(machine_key(machine_for("c")), {})
    (function,) = kernels(outlined(SMALL).module)
    lock = replace(lock, kernels={kernel_key(function): TUNED})
    (tmp_path / "m.lock.json").write_text(lock.to_json())
    assert main(["compile", str(module), "--stage", "kernels"]) == 0
    assert f"#kernel.schedule<{LEVELS}>" in capsys.readouterr().out
    assert main(["explain", str(module)]) == 0
    assert "from the lock file, best of 9 timed" in capsys.readouterr().out
    assert main(["run", str(module), "--random", "--lock", str(tmp_path / "none.json")]) == 1
    assert "cannot read the lock file" in capsys.readouterr().err
    for budget in ("0", "-1", "nan"):
        assert main(["compile", str(module), "--tune", f"--budget={budget}"]) == 1
        assert f"no schedule is found in {budget} s" in capsys.readouterr().err
