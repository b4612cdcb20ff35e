"""target="opencl": built, cached, saved, called; what is said where it cannot be."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.host_schedule import evaluate
from stepwell.runtime.entry import numpy_dtype
from stepwell.runtime.opencl import device
from stepwell.runtime.opencl.building import build
from stepwell.tools.main import main

SCALED = """\
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = nd.constant #nd.resource<"w", ""> : tensor<4xf32>
  %n = nd.dim %x {axis = 0} : tensor<?x4xf32>
  %b = nd.broadcast %w, sizes(%n) {dims = [1]} : tensor<4xf32> -> tensor<?x4xf32>
  %s = nd.add %x, %y : tensor<?x4xf32>
  %z = nd.mul %s, %b : tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}
"""
W = np.arange(4, dtype=np.float32)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def scaled() -> sw.Compiled:
    return sw.compile(SCALED, target="opencl", resources={"w": W})


@pytest.mark.opencl
def test_a_program_is_called_like_one_of_c(scaled: sw.Compiled) -> None:
    np.testing.assert_array_equal(scaled(X, X), 2 * X * W)
    assert scaled(X[:0], X[:0]).shape == (0, 4)
    out = np.empty((3, 4), np.float32)
    assert scaled(X, X[::-1], out=out) is out
    np.testing.assert_array_equal(out, (X + X[::-1]) * W)
    with pytest.raises(TypeError, match=r"argument 'x': expected float32\[\?, 4\], got float64"):
        scaled(X.astype(np.float64), X)
    with pytest.raises(ValueError, match="'x' and 'y' do not fit together"):
        scaled(X, X[:2])
    assert "__kernel void" in scaled.source


@pytest.mark.opencl
def test_a_saved_program_is_loaded(scaled: sw.Compiled, tmp_path: Path) -> None:
    scaled.save(tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["constants.bin", "program.cl", "program.json"]
    np.testing.assert_array_equal(sw.load(tmp_path)(X, X), 2 * X * W)
    (tmp_path / "program.cl").unlink()
    with pytest.raises(sw.CompileError, match=r"there is no program.cl in it"):
        sw.load(tmp_path)


@pytest.mark.opencl
def test_a_binary_is_kept_after_the_first_call(tmp_path: Path) -> None:
    source = tmp_path / "program.cl"
    source.write_text("__kernel void k(__global char *x) { x[get_global_id(0)] = 1; }\n")
    made = build(source, device.open_device())
    assert made.is_new
    made.keep()
    again = build(source, device.open_device())
    assert not again.is_new
    assert device.open_device().cl.Kernel(again.program, "k").num_args == 1


@pytest.mark.opencl
def test_a_build_that_fails_shows_the_log_and_keeps_the_source(tmp_path: Path) -> None:
    source = tmp_path / "program.cl"
    source.write_text("__kernel void k(void) { oops; }\n")
    with pytest.raises(device.OpenCLError, match="oops") as caught:
        build(source, device.open_device())
    kept = caught.value.diagnostic.help.split("kept in ")[1].split(";")[0]
    assert "oops" in Path(kept).read_text()


@pytest.mark.opencl
def test_jit() -> None:
    @sw.jit(target="opencl")
    def halves(x: Any) -> Any:
        return x * 0.5, snp.sum(x)

    for _ in range(2):
        half, total = halves(X)
        np.testing.assert_array_equal(half, X / 2)
        assert total == X.sum()


@pytest.mark.opencl
def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, given = tmp_path / "a.mlir", tmp_path / "x.npy"
    text.write_text(SCALED)
    np.savez(tmp_path / "a.npz", w=W)
    np.save(given, X)
    folder = tmp_path / "out"
    assert main(["compile", str(text), "--target", "opencl", "-o", str(folder)]) == 0
    np.testing.assert_array_equal(sw.load(folder)(X, X), 2 * X * W)
    results = tmp_path / "y.npy"
    inputs = ["--input", str(given), "--input", str(given)]
    assert main(["run", str(text), "--target", "opencl", *inputs, "-o", str(results)]) == 0
    np.testing.assert_array_equal(np.load(results), 2 * X * W)
    assert "program.cl" in capsys.readouterr().out


def test_without_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    device.devices.cache_clear()
    try:
        with pytest.raises(device.OpenCLError, match="need pyopencl") as caught:
            device.open_device()
        assert "pip install 'stepwell[opencl]'" in str(caught.value)
    finally:
        device.devices.cache_clear()


@pytest.mark.opencl
def test_a_forked_child_is_told(scaled: sw.Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="do not survive a fork"):
        scaled(X, X)


def test_trees_of_unsigned_numbers() -> None:
    assert evaluate(["u/", 7, 2], {}) == 3
    assert evaluate(["u/", -1, 2], {}) == (1 << 63) - 1
    assert evaluate(["u%", -1, 10], {}) == ((1 << 64) - 1) % 10
    assert evaluate(["u/", 7, 0], {}) == 0
    assert evaluate(["umin", -1, 3], {}) == 3
    assert evaluate(["u<", 3, -1], {}) is True


@pytest.mark.opencl
@pytest.mark.parametrize("dtype", ["i8", "ui16"])
def test_vectors_of_narrow_integers_are_shifted(dtype: str) -> None:
    kind = f"tensor<?x{dtype}>"
    text = f"""\
func.func @main(%x: {kind}, %n: {kind}) -> ({kind}, {kind}) {{
  %l = nd.shift_left %x, %n : {kind}
  %r = nd.shift_right %x, %n : {kind}
  func.return %l, %r : {kind}, {kind}
}}
"""
    x = np.arange(37).astype(numpy_dtype(dtype))
    n = (x % 7).astype(x.dtype)
    left, right = sw.compile(text, target="opencl")(x, n)
    np.testing.assert_array_equal(left, np.left_shift(x, n))
    np.testing.assert_array_equal(right, np.right_shift(x, n))
