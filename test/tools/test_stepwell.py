"""The stepwell command: what it prints, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepwell.tools.main import main

ADD = """\
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = nd.add %x, %y : tensor<?xf32>
  func.return %z : tensor<?xf32>
}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module to a file."""
    monkeypatch.setenv("STEPWELL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return str(path)


def test_run(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(3, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    file, out = str(tmp_path / "x.npy"), str(tmp_path / "z.npy")
    assert main(["run", module, "--input", file, "--input", f"y={file}", "-o", out]) == 0
    np.testing.assert_array_equal(np.load(out), x + x)
    assert main(["run", module, "--random", "--size", "5"]) == 0
    assert "z: float32[5]" in capsys.readouterr().out
    assert main(["run", module]) == 1
    assert "error: no --input for x, y" in capsys.readouterr().err


def test_compile(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", module, "-o", str(tmp_path / "out")]) == 0
    assert "main(x: float32[?], y: float32[?]) -> float32[?]" in capsys.readouterr().out
    assert (tmp_path / "out" / "program.so").exists()
    assert main(["compile", module, "--stage", "kernels"]) == 0
    assert "kernel.launch" in capsys.readouterr().out


@pytest.mark.opencl
def test_run_on_a_device(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", module, "--target", "opencl", "--random"]) == 0
    assert "z: float32[8]" in capsys.readouterr().out


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "softmax"]) == 0
    assert "nd.softmax" in capsys.readouterr().out
    assert main(["passes", "canonicalise"]) == 1
    assert "did you mean 'canonicalize'?" in capsys.readouterr().err


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.mlir").write_text(ADD.replace("nd.add", "nd.ad"))
    assert main(["run", str(tmp_path / "bad.mlir")]) == 1
    assert "bad.mlir:2:8: error: unknown op 'nd.ad'" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.mlir")]) == 1
    assert "cannot read" in capsys.readouterr().err
