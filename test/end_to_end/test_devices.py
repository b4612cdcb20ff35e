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
from stepwell.runtime.cache import Cache
from stepwell.runtime.opencl import device, machines
from stepwell.runtime.opencl import lanes as device_lanes
from stepwell.runtime.opencl.device import Device, best, devices, open_device
from stepwell.runtime.opencl.machines import file_of, machine_of
from stepwell.tools import devices as tools_devices
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
        "native_vector_width_float": 8,
    }
    handle: Any = SimpleNamespace(**told, **more)
    made = Device(cl, handle, f"{device.kind_of(cl, handle.type)}:0", os.getpid())
    made.__dict__["problem"] = ""
    return made


SLOW, QUICK = made_up("gpu", "Slow One", 8), made_up("gpu", "Acme Quick H100", 64, warp_size_nv=32)
CPU = made_up("cpu", "Processor", 128, 5000)


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two GPUs and a CPU, which comes first."""
    second = Device(cl, QUICK.handle, "gpu:1", os.getpid())
    second.__dict__["problem"] = ""
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


SAID = "error: unknown target CPU 'generic'; Device Processor failed to build the program"
LOG = f"""clBuildProgram failed: BUILD_PROGRAM_FAILURE - clBuildProgram failed

Build on <pyopencl.Device 'Processor' on 'Made Up' at 0x5593>:

{SAID.replace("; ", chr(10))}

(options: -cl-std=CL1.2)
"""


class BuildError(Exception):
    """A driver's."""


def broken(device: Device) -> Device:
    """Let the driver of a device know the device, but build no program for it."""

    def fail(*_: Any) -> Any:
        raise BuildError(LOG)

    opencl = SimpleNamespace(Error=BuildError, Context=lambda _: None, Program=fail)
    found = Device(opencl, device.handle, device.name, device.process)
    known = {"id": device.title, "flags": (), "shares_memory": True}
    found.__dict__.update(known)
    device.handle.driver_version = "3.0"
    device.handle.global_mem_size = 1 << 30
    device.handle.platform.version = "OpenCL 3.0"
    return found


def test_a_device_that_builds_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is chosen only if no other device can run programs."""
    gpu = broken(made_up("gpu", "Acme"))
    assert gpu.problem == SAID
    assert best([CPU, gpu]) is CPU
    assert best([gpu, broken(made_up("cpu", "Processor"))]) is gpu
    monkeypatch.setattr(device, "devices", lambda: (gpu, CPU))
    monkeypatch.delenv("STEPWELL_DEVICE", raising=False)
    assert open_device() is CPU
    assert open_device("gpu") is gpu
    with pytest.raises(sw.CompileError) as found:
        device.working_device("gpu")
    said = str(found.value)
    assert "gpu:0 (Acme) cannot run programs: its driver builds none" in said
    assert "the driver is Made Up 3.0 (OpenCL 3.0)" in said and f"it reports: {SAID}" in said
    assert "install another driver" in said


def test_commands_and_a_device_that_builds_no_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = broken(made_up("cpu", "Processor"))
    monkeypatch.setattr(device, "devices", lambda: (cpu,))
    monkeypatch.setattr(tools_devices, "devices", lambda: (cpu,))
    monkeypatch.delenv("STEPWELL_DEVICE", raising=False)
    for options in ([], ["--measure"]):
        assert main(["devices", *options]) == 0
        said = capsys.readouterr().out
        assert "cpu:0  Processor  (unusable)" in said
        assert f"  problem            the driver 3.0 builds no program: {SAID}" in said
        assert "no device can run programs; install another driver" in said
    assert main(["devices", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["problem"] == SAID
    module = str(tmp_path / "m.mlir")
    Path(module).write_text(PRODUCT)
    for command in (
        ["run", module, "--random"],
        ["profile", module],
        ["explain", module, "--measure"],
        ["compile", module, "--tune", "-o", str(tmp_path)],
    ):
        assert main([*command, "--target", "opencl"]) == 1
        assert "cpu:0 (Processor) cannot run programs" in capsys.readouterr().err, command
    assert not list(tmp_path.glob("*.json"))
    assert main(["compile", module, "--target", "opencl", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "program.cl").exists()


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


@pytest.mark.parametrize("answer, lanes", [("right", 16), ("wrong", 8), ("", 8)])
def test_vectors_have_the_lanes_that_a_driver_computes_right(
    answer: str, lanes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The answer is kept, one that did not come is asked for again."""
    asked: list[Device] = []
    kept = Cache(tmp_path)

    def ask(device: Device) -> str:
        asked.append(device)
        return answer

    monkeypatch.setattr(device_lanes, "disk_cache", lambda: kept)
    monkeypatch.setattr(device_lanes, "_asked", ask)
    host = Machine(vector_bits=512, vector_registers=32)
    for count in (1, 2):
        cpu = made_up("cpu", "Wide")
        cpu.__dict__["id"] = "wide"
        cpu.handle.native_vector_width_float = 16
        found = machine_of(cpu, host)
        assert (found.vector_lanes, found.vector_bits) == (lanes, 32 * lanes)
        assert machine_of(cpu, host) == found
        assert len(asked) == (1 if answer else count)


@pytest.mark.opencl("cpu")
def test_the_probe_of_wide_vectors_knows_wrong_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = open_device("cpu")
    assert device_lanes.computed(cpu) == 0
    wrong = device_lanes.PROBE.replace("(n.v >> 3)", "(n.v >> 2)")
    monkeypatch.setattr(device_lanes, "PROBE", wrong)
    assert device_lanes.computed(cpu) & 4


@pytest.mark.opencl
def test_a_target_and_a_device() -> None:
    found = machine_for("opencl", "", open_device().name)
    assert found.compute_units == open_device().handle.max_compute_units
    assert machine_for("opencl", "h100", "cpu").kind == "device"
    assert machine_for("opencl", found) is found
    with pytest.raises(sw.CompileError, match="target 'c' runs on the host, not on 'gpu'"):
        machine_for("c", "", "gpu")


@pytest.mark.opencl("cpu")
def test_a_device_is_named_wherever_a_target_is() -> None:
    name = str(open_device("cpu"))
    program = sw.jit(lambda x: x + 1, device=name).trace(np.ones(2)).compile()
    assert program.signature.target == "opencl"
    np.testing.assert_array_equal(program(np.ones(2)), [2, 2])
    text = program.module_text
    assert sw.compile(text, "lambda", device=open_device()).signature.target == "opencl"
    with pytest.raises(sw.CompileError, match="target 'c' runs on the host"):
        sw.compile(text, target="c", device="cpu")
    with pytest.raises(sw.CompileError, match="no OpenCL device is 'abacus'"):
        sw.compile(text, device="abacus")
    with pytest.raises(TypeError, match="device must be text or one of"):
        sw.compile(text, device=3)


@pytest.mark.opencl
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
    (here,) = (each for each in listed if each["default"])
    assert here["machine"]["transfer"] == {"value": 1000, "source": "measured"}
    monkeypatch.setattr(machines, "measure", None)  # it was kept
    assert main(["devices"]) == 0
    said = capsys.readouterr().out
    assert f"run on {open_device()} unless --device names another" in said
    assert "compute_units" in said


@pytest.mark.opencl("cpu")
def test_measuring_takes_half_a_second() -> None:
    found = machines.measure(open_device("cpu"))
    assert all(PROPERTIES[name].holds(found[name]) for name in machines.MEASURED)


PRODUCT = """func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = nd.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = nd.tanh %y : tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}
"""


@pytest.mark.opencl("cpu")
def test_events_are_the_clock_of_a_profile(tmp_path: Path) -> None:
    program = sw.compile(PRODUCT, device="cpu")
    x = np.ones((64, 64), np.float32)
    held = sw.device_put(x, "cpu")
    for given in (x, held):
        found = program.profile(given, given, repeat=3)
        assert [each.kernel.name for each in found.kernels] == ["main_matmul_tanh"]
        (kernel,) = found.kernels
        assert kernel.calls == 1 and 0 < kernel.seconds <= found.seconds
        assert f"on {open_device('cpu')}, " in str(found)
        (event,) = [e for e in json.loads(found.trace())["traceEvents"] if "args" in e]
        assert event["name"] == "main_matmul_tanh"
    copied = sw.jit(lambda x: (x * 2, x[0], snp.roll(x, 1)), device="cpu").profile(x, repeat=2)
    assert copied.kernels and "copy" not in {each.kernel.name for each in copied.kernels}


@pytest.mark.opencl("cpu")
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
