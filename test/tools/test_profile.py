"""`stepwell profile`, `Compiled.profile`, and what kernels are known to do at least."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.analysis.costs import kernel_costs
from stepwell.core.diagnostics import CompileError
from stepwell.core.machine import Machine
from stepwell.core.signature import Kernel, Signature
from stepwell.core.source import Source
from stepwell.core.targets import Target
from stepwell.driver.lowering import Lowering
from stepwell.driver.pipeline import STAGES
from stepwell.runtime import profiling
from stepwell.runtime.limits import Limits
from stepwell.tools.main import main

LIMITS = Limits(1, 100.0, 50.0, 40.0, 10.0, 12.0, 11.0, 1 << 20, 8 << 20)
MODULE = """
func.func @main(%x: tensor<32x48xf32>, %w: tensor<48x64xf32>) -> tensor<32x64xf32> {
  %h = nd.matmul %x, %w : (tensor<32x48xf32>, tensor<48x64xf32>) -> tensor<32x64xf32>
  %y = nd.softmax %h {axis = 1} : tensor<32x64xf32>
  func.return %y : tensor<32x64xf32>
}
"""


@pytest.fixture(autouse=True)
def known_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("machine_limits", "measure_again"):
        monkeypatch.setattr(profiling, name, lambda threads: LIMITS)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "net.mlir"
    path.write_text(MODULE)
    return path


def costs(text: str) -> list[tuple[int | None, int | None, int]]:
    descent = Lowering.of(Source(text, "<test>", "main", Machine(vector_bits=512)))
    descent.to("kernels")
    return [(c.flops, c.bytes, c.bits) for c in descent.costs.values()]


def test_a_product_and_a_softmax() -> None:
    product, softmax = costs(MODULE)
    assert product == (2 * 32 * 48 * 64, 4 * (32 * 48 + 48 * 64 + 32 * 64), 32)
    assert softmax[1] == 4 * 2 * 32 * 64
    assert softmax[0] is not None and 4 * 32 * 64 <= softmax[0] <= 6 * 32 * 64


def test_what_is_not_read_does_not_count() -> None:
    text = """
    func.func @main(%x: tensor<1000x8xf64>) -> tensor<10x8xf64> {
      %y = nd.slice %x[::100, :] : tensor<1000x8xf64> -> tensor<10x8xf64>
      %z = nd.exp %y : tensor<10x8xf64>
      func.return %z : tensor<10x8xf64>
    }"""
    assert costs(text) == [(80, 2 * 8 * 80, 64)]


SIZED = """
func.func @main(%x: tensor<?x?xf32>, %v: tensor<?xf64>) -> (tensor<?x?xf32>, tensor<?xf64>) {
  %a = nd.exp %x : tensor<?x?xf32>
  %y = nd.matmul %a, %x : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %b = nd.exp %v : tensor<?xf64>
  func.return %y, %b : tensor<?x?xf32>, tensor<?xf64>
}
"""


def in_call(text: str, *sizes: int) -> list[tuple[int | None, int | None, int]]:
    descent = Lowering.of(Source(text, "<test>", "main", Machine(vector_bits=512)))
    descent.to("kernels")
    found = [cost.at(sizes) for cost in descent.costs.values()]
    return [(c.flops, c.bytes, c.bits) for c in found]


def test_sizes_known_only_at_run_time() -> None:
    exp, product, other = in_call(SIZED, 30, 30, 7)
    assert exp == (900, 4 * 2 * 900, 32) and other == (7, 8 * 2 * 7, 64)
    assert product == (2 * 30**3, 4 * 3 * 900, 32)


def test_sizes_that_are_computed() -> None:
    text = """
    func.func @main(%x: tensor<?x8x?xf32>, %w: tensor<16x8x3xf32>) -> tensor<?x16x?xf32> {
      %y = nd.convolution %x, %w {low = [1], high = [1], strides = [2]}
        : (tensor<?x8x?xf32>, tensor<16x8x3xf32>) -> tensor<?x16x?xf32>
      func.return %y : tensor<?x16x?xf32>
    }"""
    assert (2 * 3 * 16 * 28 * 3 * 8) in [flops for flops, _, _ in in_call(text, 3, 56)]


def test_launches_of_different_sizes_count_as_their_mean() -> None:
    text = """
    func.func @main(%x: tensor<?xf32>, %v: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
      %a = nd.exp %x : tensor<?xf32>
      %b = nd.exp %v : tensor<?xf32>
      func.return %a, %b : tensor<?xf32>, tensor<?xf32>
    }"""
    descent = Lowering.of(Source(text, "<test>", "main", Machine(vector_bits=512)))
    descent.kernels_outlined()
    (cost,) = kernel_costs(descent.module).values()
    assert cost.at([10, 30]).flops == 20 and cost.at([10, 30]).bytes == 4 * 2 * 20


def test_sizes_of_a_call_in_the_table(tmp_path: Path) -> None:
    x, v = np.ones((40, 40), np.float32), np.ones(5)
    compiled = sw.compile(SIZED)
    compiled.save(tmp_path / "saved")
    for each in (compiled, sw.load(tmp_path / "saved")):
        assert each.signature == compiled.signature
        found = each.profile(x, v, repeat=2)
        flops = {k.kernel.name: k.kernel.flops for k in found.kernels}
        assert flops["main_matmul"] == 2 * 40**3
        assert all(k.of_limit is not None for k in found.kernels)


def test_kernels_that_bufferize_makes_are_known_too() -> None:
    descent = Lowering.of(Source(MODULE, "<test>", "main", Machine(vector_bits=512)))
    descent.to("kernels")
    known = dict(descent.costs)
    descent.run_stage(next(stage for stage in STAGES if stage.name == "buffers"))
    assert kernel_costs(descent.module) == known == descent.costs


def test_kernels_of_a_loop_are_counted() -> None:
    def steps(x):  # pyright: ignore
        return sw.lax.fori_loop(0, 5, lambda _, h: snp.tanh(h @ x), x)

    x = np.eye(64, dtype=np.float32)
    compiled = sw.jit(steps).trace(x).compile()
    found = compiled.profile(x, repeat=3)
    assert found.calls == 3
    assert sum(kernel.calls for kernel in found.kernels) >= 5
    assert all(kernel.seconds > 0 for kernel in found.kernels)
    assert sum(k.seconds for k in found.kernels) + found.outside <= found.seconds * 1.5
    assert "tanh" in str(found)


def test_rates_and_the_part_of_the_limit() -> None:
    each = profiling.KernelTime(Kernel("k", (), 1000, 4000, 32), 2, 1e-6, 4e-7)
    assert (each.flops, each.bytes, each.of_limit) == (2.0, 8.0, 0.4)
    unknown = profiling.KernelTime(Kernel("k"), 2, 1e-6, None)
    assert (unknown.flops, unknown.bytes, unknown.of_limit) == (None, None, None)


def test_the_roofline() -> None:
    assert LIMITS.seconds(1e9, 1000) == pytest.approx(0.01)
    assert LIMITS.seconds(1e9, 1000, bits=64) == pytest.approx(0.02)
    assert LIMITS.seconds(0, 1 << 30) == pytest.approx((1 << 30) / 12e9)
    assert LIMITS.seconds(0, 1 << 19) == pytest.approx((1 << 19) / 50e9)


def test_a_module(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    assert main(["profile", str(module), "--repeat", "3", "--trace", str(trace)]) == 0
    said = capsys.readouterr().out
    assert "3 calls of" in said and "main_matmul" in said and "net.mlir:3" in said
    events = json.loads(trace.read_text())["traceEvents"]
    assert [e["ph"] for e in events] == ["X"] * 3
    assert events[1]["args"]["flops"] == 2 * 32 * 48 * 64
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events)
    nowhere = tmp_path / "nowhere" / "t.json"
    assert main(["profile", str(module), "--repeat", "3", "--trace", str(nowhere)]) == 1
    assert f"error: {nowhere}: No such file or directory" in capsys.readouterr().err


def test_a_saved_program(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sw.compile(module).save(tmp_path / "saved")
    assert main(["profile", str(tmp_path / "saved"), "--repeat", "2"]) == 0
    said = capsys.readouterr().out
    assert "main_matmul" in said and "of limit" in said
    for option in ("--entry=f", "--target=c", "--machine=l2=4", "--lock=l", "--weights=w.npz"):
        assert main(["profile", str(tmp_path / "saved"), option]) == 1
        name = option.split("=")[0]
        assert f"is compiled already: {name} does nothing" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "saved"), "--random"]) == 0
    assert "float32[32, 64]" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "saved")]) == 1
    assert "is a folder, not a module" in capsys.readouterr().err


def test_a_program_without_kernels() -> None:
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    found = sw.compile(text).profile(np.ones(4, np.float32), repeat=2)
    assert found.kernels == () and found.outside == found.seconds
    with pytest.raises(ValueError, match="repeat must be 0 or more, got -1"):
        sw.compile(text).profile(np.ones(4, np.float32), repeat=-1)


def test_other_targets_are_refused() -> None:
    class Elsewhere:
        signature = Signature("main", (), (), target="acme")
        target = Target("acme", "")

    with pytest.raises(CompileError, match="programs of acme cannot be profiled"):
        profiling.profile(Elsewhere(), ())  # pyright: ignore


def test_the_instrumented_text_wraps_each_kernel_once() -> None:
    text = sw.compile(MODULE).source
    kernels = sw.compile(MODULE).kernels
    timed, copies = profiling.instrumented(text, kernels)
    assert copies == ()
    assert timed.count("#define kernel_") == len(kernels) == 2
    assert profiling.instrumented("int x;\n", kernels)[0].endswith("int x;\n")


def test_what_is_outside_of_kernels_has_a_name() -> None:
    def row(table: Any, i: Any) -> Any:
        return table[i]

    table, i = np.ones((1000, 64)), np.array(3)
    found = sw.jit(row).trace(table, i).compile().profile(table, i, repeat=3)
    (copy,) = found.copies
    assert (copy.kernel.name, copy.calls, copy.kernel.bytes) == ("copy of 512 bytes", 1, 1024)
    assert copy.kernel.lines[0].startswith("test_profile.py:")
    assert 0 < found.inside <= found.seconds and found.call > 0
    said = str(found)
    for name in ("outside of kernels", "  copy of 512 bytes", "  between them", "  the call"):
        assert name in said
    assert "copy of 512 bytes" in found.trace()


def test_rows_that_are_taken_count_not_the_table() -> None:
    def rows(table: Any, i: Any) -> Any:
        return snp.take(table, i, axis=0) * 2

    def window(table: Any, i: Any) -> Any:
        return sw.lax.dynamic_slice(table, (i, 0), (4, 64)) * 2

    table = np.ones((1000, 64))
    for function, i in ((rows, np.arange(4)), (window, np.array(3))):
        found = sw.jit(function).trace(table, i).compile().profile(table, i, repeat=2)
        assert max(k.kernel.bytes or 0 for k in found.kernels) <= 8 * (4 + 4 * 64 + 4 * 64)


def test_small_copies_are_counted_not_timed() -> None:
    def columns(x: Any, y: Any) -> None:
        for k in range(20):
            y[:, k] = x[k, ::3]

    x, y = np.ones((20, 30)), np.zeros((10, 20))
    source = """
/* function f, from a.py:1 */
static void f(void) {
  __builtin_memcpy(a, b, 8);  // a.py:2
  __builtin_memcpy(a, b, 4096);  // a.py:3
  __builtin_memmove(a, b, n * 8);  // a.py:4
}
"""
    text, copies = profiling.instrumented(source, ())
    assert [c.name for c in copies] == ["copy of 8 bytes", "copy of 4,096 bytes", "copy"]
    assert [c.bytes for c in copies] == [16, 8192, None]
    assert text.count("sw_count(0)") == text.count("sw_note(1, ") == text.count("sw_note(2, ") == 1
    found = sw.jit(columns).profile(x, y, repeat=2)
    assert str(found) and not y.any()
