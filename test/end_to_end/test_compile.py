"""sw.compile and sw.load: from text to results, through the cache, and what is said if it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.api import building
from stepwell.api.building import PACKAGE
from stepwell.core.machine import Machine
from stepwell.runtime.toolchain import ToolchainError

ADD = """\
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %z = nd.add %x, %y : tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}
func.func @twice(%x: tensor<3xi32>) -> tensor<3xi32> {
  %z = nd.add %x, %x : tensor<3xi32>
  func.return %z : tensor<3xi32>
}
"""
WEIGHTS = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = nd.constant #nd.resource<"w", "HASH"> : tensor<4xf32>
  %y = nd.mul %x, %w : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.arange(4, dtype=np.float32)


def test_text_becomes_a_function() -> None:
    add = sw.compile(ADD)
    np.testing.assert_array_equal(add(X, X), X + X)
    assert str(add.signature) == "main(x: float32[?, 4], y: float32[?, 4]) -> float32[?, 4]"
    assert len(add.kernels) == 1
    assert "stepwell_main" in add.source
    assert "nd.add" in add.text("nd")
    assert "linalg.generic" in add.text("structured")
    assert "kernel.launch" in add.text("kernels")
    with pytest.raises(sw.CompileError, match="unknown stage 'kernel'"):
        add.text("kernel")


def test_an_entry_can_be_chosen() -> None:
    twice = sw.compile(ADD, "twice")
    np.testing.assert_array_equal(twice(np.arange(3, dtype=np.int32)), [0, 2, 4])
    with pytest.raises(sw.CompileError, match="no function @twise in the module") as caught:
        sw.compile(ADD, "twise")
    assert "did you mean 'twice'?" in str(caught.value)


def test_the_entry_takes_and_gives_tensors() -> None:
    text = ADD.replace("%y: tensor<?x4xf32>)", "%y: tensor<?x4xf32>, %n: index)")
    with pytest.raises(sw.CompileError, match="argument %n of @main is of type index"):
        sw.compile(text)


def test_sizes_that_must_agree_are_checked() -> None:
    with pytest.raises(ValueError, match="'x' and 'y' do not fit together"):
        sw.compile(ADD)(X, X[:2])


def test_a_saved_program_needs_nothing_else(tmp_path: Path) -> None:
    text = WEIGHTS.replace("HASH", sha256(W.tobytes()).hexdigest())
    compiled = sw.compile(text, resources={"w": W})
    np.testing.assert_array_equal(compiled(W), W * W)
    compiled.save(tmp_path / "saved")
    np.testing.assert_array_equal(sw.load(tmp_path / "saved")(W), W * W)
    names = sorted(p.name for p in (tmp_path / "saved").iterdir())
    assert names == ["constants.bin", "program.c", "program.h", "program.json", "program.so"]


def test_a_damaged_saved_program_is_refused(tmp_path: Path) -> None:
    compiled = sw.compile(WEIGHTS.replace("HASH", ""), resources={"w": W})
    for name, damage in (
        ("program.so", b"not a library"),
        ("program.json", b"{"),
        ("constants.bin", b"\0"),
    ):
        folder = tmp_path / name
        compiled.save(folder)
        (folder / name).unlink()  # the file itself may be mapped
        (folder / name).write_bytes(damage)
        with pytest.raises(sw.CompileError, match=f"cannot load the program in {folder}"):
            sw.load(folder)
    (tmp_path / "file.mlir").touch()
    for missing in ("nothing", "file.mlir"):
        with pytest.raises(sw.CompileError, match=r"there is no program.json in it"):
            sw.load(tmp_path / missing)


def test_weights_are_checked() -> None:
    text = WEIGHTS.replace("HASH", sha256(W.tobytes()).hexdigest())
    with pytest.raises(sw.CompileError, match="needs the weight 'w'"):
        sw.compile(text)
    with pytest.raises(sw.CompileError, match="is not the one the module was made with"):
        sw.compile(text, resources={"w": W + 1})
    with pytest.raises(sw.CompileError, match=r"expected float32\[4\], got float64\[4\]"):
        sw.compile(WEIGHTS.replace("HASH", ""), resources={"w": W.astype(np.float64)})


def test_weights_cannot_be_changed_afterwards() -> None:
    w = W.copy()
    compiled = sw.compile(WEIGHTS.replace("HASH", ""), resources={"w": w})
    w[:] = 7
    np.testing.assert_array_equal(compiled(W), W * W)


def test_mistakes_in_the_text_are_told_with_their_place() -> None:
    with pytest.raises(sw.CompileError) as caught:
        sw.compile(ADD.replace("nd.add", "nd.ad"), name="a.mlir")
    assert str(caught.value).startswith("a.mlir:2:8: error: unknown op 'nd.ad'")
    with pytest.raises(sw.CompileError, match=r"'a.mlir' is no module\n.*given as Path\(name\)"):
        sw.compile("a.mlir")


def test_another_machine_can_be_compiled_for() -> None:
    wide = sw.compile(ADD.replace("x4x", "x64x"), machine="vector_bits=128,threads=1")
    assert "x4" in wide.source
    assert "f32x16" not in wide.source
    with pytest.raises(sw.CompileError, match="cannot read 'vector=1' as a property"):
        sw.compile(ADD, machine="vector=1")


def run(code: str, **environment: str) -> str:
    """Run Python code in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


COMPILE = f"""
import sys, numpy as np, stepwell as sw
f = sw.compile({ADD!r})
x = np.ones((3, 4), np.float32)
assert (f(x, x) == 2).all()
print(sorted(m for m in sys.modules if m.split('.')[0] == 'xdsl' or m == 'stepwell.driver.lowering'))
"""


def test_a_warm_start_imports_no_compiler() -> None:
    sw.compile(ADD)
    assert run(COMPILE) == "[]\n"


def test_two_processes_compile_the_same_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "STEPWELL_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", COMPILE]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        process.communicate()
        assert process.returncode == 0
    assert len(list((tmp_path / "program").iterdir())) == 1


def test_a_forked_child_has_threads_of_its_own() -> None:
    code = (
        COMPILE
        + """
import os
x = np.ones((200_000, 4), np.float32)
assert (f(x, x) == 2).all()
child = os.fork()
if child == 0:
    os._exit(0 if all((f(x, x) == 2).all() for _ in range(20)) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    )
    run(code, STEPWELL_THREADS="3")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepwell.runtime import toolchain

    monkeypatch.setenv("STEPWELL_CC", "/no/such/compiler")
    toolchain.find_compiler.cache_clear()
    try:
        with pytest.raises(ToolchainError, match="STEPWELL_CC does not work"):
            sw.compile(ADD)
    finally:
        toolchain.find_compiler.cache_clear()


def test_a_crash_is_blamed_on_the_stage_that_left_invalid_ir(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    descent = import_module("stepwell.driver.lowering")
    decompose = import_module("stepwell.transforms.graph.decompose").Decompose

    def break_types(self: Any, ctx: Any, module: Any) -> None:
        add = next(op for op in module.walk() if op.name == "nd.add")
        add.results[0]._type = import_module("xdsl.dialects.builtin").f32

    monkeypatch.setenv("STEPWELL_VERIFY", "0")
    monkeypatch.setattr(decompose, "apply", break_types)
    with pytest.raises(sw.CompileError, match=r"invalid IR after stage 'nd': 'nd\.add'"):
        descent.translate(descent.Source(ADD, "add.mlir", "main", Machine()), "c")


def test_any_file_of_the_compiler_is_part_of_the_key() -> None:
    """An edited pass must not be served what it made before."""
    assert all((PACKAGE / room).is_dir() for room in ("lowering", "dialects", "driver"))


def test_a_program_to_be_checked_is_not_one_made_without_the_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def fetch(kind: str, key: str, build: Any) -> Path:
        asked.append(key)
        raise LookupError

    cache = SimpleNamespace(fetch=fetch, lacks=lambda kind: False)
    monkeypatch.setattr(building, "disk_cache", lambda: cache)
    for level in ("0", "buffers", "1", "0"):
        monkeypatch.setenv("STEPWELL_VERIFY", level)
        with pytest.raises(LookupError):
            sw.compile(ADD)
    assert len(set(asked[:3])) == 3 and asked[3] == asked[0]
