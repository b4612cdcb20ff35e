"""Values that cannot be meant: each is one clear error."""

from __future__ import annotations

import errno
import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.diagnostics import CompileError, Diagnostic, Place
from stepwell.core.files import replacing
from stepwell.core.machine import Machine
from stepwell.tools.main import main
from stepwell.tools.opt.command import main as opt_main

TEXT = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
"""
BYTES = """\
func.func @main(%a: tensor<512x512xi8>, %b: tensor<512x512xi8>) -> tensor<512x512xi32> {
  %0 = nd.matmul %a, %b {dtype = i32} : (tensor<512x512xi8>, tensor<512x512xi8>) -> tensor<512x512xi32>
  func.return %0 : tensor<512x512xi32>
}
"""


@pytest.mark.parametrize(
    "asked", ["vector_bits=100", "vector_bits=0", "vector_lanes=3", "vector_registers=0"]
)
def test_machines_that_are_none(asked: str) -> None:
    with pytest.raises(sw.CompileError, match="cannot be compiled for"):
        Machine().override(asked)


@pytest.mark.parametrize("threads", [0, 257])
def test_threads_that_are_too_few_or_too_many(threads: int) -> None:
    with pytest.raises(sw.CompileError, match=f"threads={threads} cannot"):
        Machine().override(f"threads={threads}")


@pytest.mark.parametrize("option", [["--threads", "0"], ["--repeat", "0"], ["--repeat", "x"]])
def test_counts_of_nothing(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["profile", "m.mlir", *option])
    assert f"must be a number of 1 or more, got '{option[1]}'" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--repeat", "--size"])
def test_counts_that_never_end(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (str(10**23), "9" * 5000):
        with pytest.raises(SystemExit):
            main(["run", "m.mlir", option, number])
        assert f"must be at most {10**9 if option == '--repeat' else 2**63 - 1}" in (
            capsys.readouterr().err
        )


def wrong(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert main(list(command)) == 1
    return capsys.readouterr().err


def test_arrays_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, junk, one = tmp_path / "m.mlir", tmp_path / "junk.npy", tmp_path / "one.npy"
    file.write_text(TEXT)
    junk.write_text("junk")
    np.save(one, np.ones(4, np.float32))
    cut = tmp_path / "cut.npz"
    np.savez(cut, x=np.ones(400, np.float32))
    cut.write_bytes(cut.read_bytes()[:300])
    run = "run", str(file)
    assert "it is no .npy or .npz file" in wrong(capsys, *run, "--input", str(junk))
    assert "cannot read" in wrong(capsys, *run, "--input", str(cut))
    assert "No such file" in wrong(capsys, *run, "--input", str(tmp_path / "none.npy"))
    named = wrong(capsys, *run, "--random", "--weights", str(one))
    assert "it holds one array without a name" in named
    assert "cannot read the weights" in wrong(capsys, *run, "--random", "--weights", str(cut))
    for name in ("x.txt", "x"):
        place = tmp_path / name
        assert "name a .npy file" in wrong(capsys, *run, "--random", "-o", str(place))
        assert not list(tmp_path.glob(f"{name}*"))


def test_saved_programs_that_are_not_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "saved"
    sw.compile(TEXT).save(folder)
    library = folder / "program.so"
    whole = library.read_bytes()
    library.write_bytes(whole[: len(whole) // 2])
    assert "program.so is cut short" in wrong(capsys, "run", str(folder), "--random")
    library.write_bytes(whole)
    (folder / "program.c").unlink()
    assert main(["run", str(folder), "--random"]) == 0
    assert "there is no program.c in it" in wrong(capsys, "profile", str(folder))


def test_saving_over_a_program_that_is_loaded(tmp_path: Path) -> None:
    text = TEXT.replace("func.return %x", "%y = nd.exp %x : tensor<4xf32>\n  func.return %y")
    sw.compile(text).save(tmp_path)
    loaded, x = sw.load(tmp_path), np.ones(4, np.float32)
    sw.compile(TEXT).save(tmp_path)
    np.testing.assert_allclose(loaded(x), np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(sw.load(tmp_path)(x), x)


def test_a_budget_without_tuning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(TEXT)
    assert main(["compile", str(file), "--budget", "3"]) == 1
    assert "--budget is for --tune alone" in capsys.readouterr().err


def test_a_folder_for_what_is_only_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.mlir").write_text(TEXT)
    for option in (["--stage", "nd"], ["--print-pipeline"]):
        command = "compile", str(tmp_path / "m.mlir"), *option, "-o", str(tmp_path / "out")
        assert f"{option[0]} only prints, so that -o has no effect" in wrong(capsys, *command)


def test_files_without_an_end_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once /dev/zero filled the memory, a location in a text that names it did too."""
    monkeypatch.setattr("stepwell.core.files.LONGEST", 1 << 16)
    said = "cannot read /dev/zero: the device has no end"
    assert said in wrong(capsys, "run", "/dev/zero")
    assert opt_main(["/dev/zero"]) == 1
    assert said in capsys.readouterr().err
    (tmp_path / "m.mlir").write_text(TEXT)
    command = "run", str(tmp_path / "m.mlir"), "--random", "--lock", "/dev/zero"
    assert "cannot read the lock file /dev/zero: the device has no end" in wrong(capsys, *command)
    os.mkfifo(tmp_path / "pipe")
    for file in ("/dev/zero", str(tmp_path / "pipe")):
        bad = f'"a.b"() : () -> () loc("{file}":1:1)\n'
        (tmp_path / "m.mlir").write_text(bad)
        assert opt_main([str(tmp_path / "m.mlir")]) == 1
        assert str(CompileError(Diagnostic("error", "odd", Place(file, 1, 1)))).startswith(file)


def test_an_array_comes_through_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(TEXT)
    array, (read, write) = io.BytesIO(), os.pipe()
    np.save(array, np.ones(4, np.float32))
    with open(write, "wb") as file:
        file.write(array.getvalue())
    with open(read, "rb"):
        assert main(["run", str(tmp_path / "m.mlir"), "--input", f"/dev/fd/{read}"]) == 0


def test_a_disk_without_room_is_told_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once it was [Errno 28], or the file in the cache that was being copied."""
    target, other = tmp_path / "x.npy", str(tmp_path / "other")
    said = re.escape(f"No space left on device: '{target}'")
    with pytest.raises(OSError, match=said), replacing(target):
        raise OSError(errno.ENOSPC, "No space left on device", other)
    assert list(tmp_path.iterdir()) == []

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "m.mlir").write_text(TEXT)
    monkeypatch.setattr("sys.stdout", Full())
    file = str(tmp_path / "m.mlir")
    for tool in (lambda: main(["ops"]), lambda: opt_main([file]), lambda: opt_main(["--version"])):
        assert tool() == 1
        said = capsys.readouterr().err
        assert said == "error: cannot write the output: No space left on device\n"


def test_tune_is_a_number() -> None:
    yes: Any = "yes"
    with pytest.raises(TypeError, match="tune must be True, False or a number of seconds"):
        sw.compile(TEXT, tune=yes)


@pytest.mark.machine("halved")
def test_marks_are_explained_by_their_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(BYTES)
    assert main(["explain", str(file)]) == 0
    said = capsys.readouterr().out
    assert "pack 0 as biased_dot" in said
    assert "unit" not in said
