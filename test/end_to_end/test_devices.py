"""Devices: which there are, how one is named, which is taken where nobody names one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.locks import parse_lock
from stepwell.core.machine import PROPERTIES, Machine
from stepwell.core.targets import machine_for
from stepwell.runtime.opencl import device, machines
from stepwell.runtime.opencl.device import Device, best, devices, open_device
from stepwell.runtime.opencl.machines import file_of, machine_of
from stepwell.tools.main import main

cl = pytest.importorskip("pyopencl")


def made_up(kind: str, title: str, units: int = 8, clock: int = 1000, **more: Any) -> Device:
    """Return a device that tells of itself what a driver would."""
    told = {
        "type": getattr(cl.device_type, kind.upper()),
        "name": title,
        "platform": SimpleNamespace(name="Made Up"),
        "max_compute_units": units,
        "max_clock_frequency": clock,
        "local_mem_size": 48 << 10,
        "global_mem_cache_size": 3 << 20,
        "global_mem_cacheline_size": 128,
    }
    handle: Any = SimpleNamespace(**told, **more)
    return Device(cl, handle, f"{device.kind_of(cl, handle.type)}:0", os.getpid())


SLOW, QUICK = made_up("gpu", "Slow One", 8), made_up("gpu", "Acme Quick H100", 64, warp_size_nv=32)
CPU = made_up("cpu", "Processor", 128, 5000)


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two GPUs and a CPU, which comes first."""
    second = Device(cl, QUICK.handle, "gpu:1", os.getpid())
    monkeypatch.setattr(device, "devices", lambda: (CPU, SLOW, second))
    monkeypatch.delenv("STEPWELL_DEVICE", raising=False)


def test_the_best_device_is_a_gpu() -> None:
    assert best([CPU, SLOW, QUICK]) is QUICK
    assert best([CPU, made_up("accelerator", "Card")]).kind == "accelerator"
    assert best([made_up("custom", "Odd"), CPU]) is CPU


@pytest.mark.usefixtures("several")
def test_devices_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {
        "": "gpu:1",
        "gpu": "gpu:1",
        "gpu:0": "gpu:0",
        "GPU:1": "gpu:1",
        "cpu": "cpu:0",
        "quick h100": "gpu:1",
    }
    for text, name in named.items():
        assert open_device(text).name == name, text
    monkeypatch.setenv("STEPWELL_DEVICE", "slow")
    assert open_device().name == "gpu:0"
    assert open_device("cpu").name == "cpu:0"


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("text", ["gpu:2", "accelerator", "none such", "made up", "gpu:1x"])
def test_a_device_that_is_not_there(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "several devices are" if text == "made up" else "no OpenCL device is"
    with pytest.raises(sw.CompileError, match=f"{said} '{text}'"):
        open_device(text)
    monkeypatch.setenv("STEPWELL_DEVICE", text)
    with pytest.raises(sw.CompileError, match=f"STEPWELL_DEVICE: {said} '{text}'"):
        open_device()


def test_the_machine_of_a_device() -> None:
    host = Machine()
    found = machine_of(QUICK, host)
    assert (found.name, found.kind, found.lanes) == ("h100", "device", 32)
    assert (found.compute_units, found.local_memory, found.l2) == (64, 48 << 10, 3 << 20)
    assert (file_of(SLOW), machine_of(SLOW, host).lanes) == ("gpu", 32)
    assert machine_of(CPU, host).kind == "cpu"
    silent = made_up("gpu", "Silent", 0, 0)
    for name, known in PROPERTIES.items():
        assert known.holds(getattr(machine_of(silent, host), name)), name


def test_a_target_and_a_device() -> None:
    found = machine_for("opencl", "", open_device().name)
    assert found.compute_units == open_device().handle.max_compute_units
    assert machine_for("opencl", "h100", "cpu").kind == "device"
    assert machine_for("opencl", found) is found
    with pytest.raises(sw.CompileError, match="target 'c' runs on the host, not on 'gpu'"):
        machine_for("c", "", "gpu")


def test_a_device_is_named_wherever_a_target_is() -> None:
    name = open_device("cpu").name
    program = sw.jit(lambda x: x + 1, device=name).trace(np.ones(2)).compile()
    assert program.signature.target == "opencl"
    np.testing.assert_array_equal(program(np.ones(2)), [2, 2])
    text = program.module_text
    assert sw.compile(text, "lambda", device=devices()[0]).signature.target == "opencl"
    with pytest.raises(sw.CompileError, match="target 'c' runs on the host"):
        sw.compile(text, target="c", device="cpu")
    with pytest.raises(sw.CompileError, match="no OpenCL device is 'abacus'"):
        sw.compile(text, device="abacus")
    with pytest.raises(TypeError, match="device must be text or one of"):
        sw.compile(text, device=3)


def test_devices_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = dict.fromkeys(machines.MEASURED, 1000)
    monkeypatch.setattr(machines, "measure", lambda _: figures)  # pyright: ignore
    monkeypatch.delenv("STEPWELL_DEVICE", raising=False)
    assert main(["devices", "--measure", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == [each.name for each in devices()]
    assert sum(each["default"] for each in listed) == 1
    assert listed[0]["machine"]["transfer"] == {"value": 1000, "source": "measured"}
    monkeypatch.setattr(machines, "measure", None)  # it was kept
    assert main(["devices"]) == 0
    said = capsys.readouterr().out
    assert f"run on {open_device()} unless told otherwise" in said
    assert "compute_units" in said


def test_measuring_takes_half_a_second() -> None:
    found = machines.measure(open_device("cpu"))
    assert all(PROPERTIES[name].holds(found[name]) for name in machines.MEASURED)


PRODUCT = """func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = nd.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = nd.tanh %y : tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}
"""


def test_events_are_the_clock_of_a_profile(tmp_path: Path) -> None:
    program = sw.compile(PRODUCT, device="cpu")
    x = np.ones((64, 64), np.float32)
    held = sw.device_put(x, "cpu")
    for given in (x, held):
        found = program.profile(given, given, repeat=3)
        assert [each.kernel.name for each in found.kernels] == ["main_matmul_tanh"]
        (kernel,) = found.kernels
        assert kernel.calls == 1 and 0 < kernel.seconds <= found.seconds
        assert "on cpu:0, " in str(found)
        (event,) = [e for e in json.loads(found.trace())["traceEvents"] if "args" in e]
        assert event["name"] == "main_matmul_tanh"
    copied = sw.jit(lambda x: (x * 2, x[0], snp.roll(x, 1)), device="cpu").profile(x, repeat=2)
    assert copied.kernels and "copy" not in {each.kernel.name for each in copied.kernels}


def test_commands_measure_and_tune_on_a_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(PRODUCT)
    given = [str(module), "--device", "cpu"]
    assert main(["explain", *given, "--measure"]) == 0
    assert "measured   " in capsys.readouterr().out
    assert main(["profile", *given, "--repeat", "2"]) == 0
    assert "main_matmul_tanh" in capsys.readouterr().out
    assert main(["compile", *given, "--tune", "--budget", "1", "-o", str(tmp_path / "out")]) == 0
    assert "m.opencl.lock.json" in capsys.readouterr().out
    assert parse_lock((tmp_path / "m.opencl.lock.json").read_text()).kernels is not None
    assert main(["run", *given, "--random"]) == 0
    assert main(["run", str(tmp_path / "out"), "--device", "cpu", "--random"]) == 0
    assert main(["run", str(module), "--target", "c", "--device", "cpu", "--random"]) == 1
    assert "runs on the host, not on 'cpu'" in capsys.readouterr().err
