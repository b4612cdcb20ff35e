"""stepwell devices: list the devices that programs can run on, and the Machine of each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stepwell.core.machine import Machine, described_machine
from stepwell.runtime.opencl.device import DRIVERS, Device, devices, open_device
from stepwell.runtime.opencl.machines import file_of, machine_of, measured, reported_by
from stepwell.tools.machines import spelled

SHOWN = (
    *("compute_units", "clock", "lanes", "vector_lanes", "local_memory", "l2"),
    *("memory_rate_all", "transfer", "launch", "wake"),
)
"""Properties of a Machine that are printed for a device."""
ABOUT = {
    "memory_rate_all": "its memory, read and written",
    "transfer": "from the host's memory to its own",
    "launch": "a kernel that is enqueued behind another",
    "wake": "a kernel on a device that waits, until the host knows that it has ended",
}


@dataclass(frozen=True)
class Described:
    """A device, its machine with measured values, and the source of each property."""

    device: Device
    machine: Machine
    sources: Mapping[str, str]
    is_default: bool


def devices_command(options: argparse.Namespace) -> int:
    """List every device; measure again if requested."""
    default = open_device()
    found = [described(each, each is default, options.measure) for each in devices()]
    if options.json:
        print(json.dumps([_as_json(each) for each in found], indent=1))
        return 0
    for each in found:
        print("\n".join(_lines(each)))
    if default.problem:
        print(f"no device can run programs; {DRIVERS}")
    else:
        print(f"programs of target opencl run on {default} unless --device names another")
    return 0


def described(device: Device, is_default: bool, again: bool = False) -> Described:
    """Return the properties of a device; nothing is measured on one that cannot run programs."""
    machine = machine_of(device, described_machine())
    reported = reported_by(device)
    assumed = "assumed" if device.is_cpu else f"assumed, as {file_of(device)}"
    sources = {name: "reported by the driver" if reported.get(name) else assumed for name in SHOWN}
    if device.is_cpu:
        sources["vector_lanes"] = "tried with this driver"
    figures = {} if device.problem else measured(device, again)
    sources |= dict.fromkeys(figures, "measured")
    shown = {name: reported[name] for name in ("clock", "lanes", "l2") if reported[name]}
    return Described(device, replace(machine, **shown, **figures), sources, is_default)


def _lines(found: Described) -> list[str]:
    device, handle = found.device, found.device.handle
    shares = "the host's memory" if device.shares_memory else "memory of its own"
    size = spelled("l2", int(handle.global_mem_size) >> 20 << 20)
    lines = [
        f"{device.name}  {device.title}{_mark(found)}",
        f"  platform           {device.platform}, {handle.platform.version.strip()}",
        f"  memory             {size}, {shares}",
    ]
    if device.problem:
        problem = f"the driver {handle.driver_version.strip()} builds no program: {device.problem}"
        return [*lines, f"  problem            {problem}", ""]
    for name in SHOWN:
        about = f"{ABOUT[name]}, " if name in ABOUT else ""
        value = spelled(name, getattr(found.machine, name))
        lines.append(f"  {name:<18} {value} ({about}{found.sources[name]})")
    return [*lines, ""]


def _mark(found: Described) -> str:
    if found.device.problem:
        return "  (unusable)"
    return "  (default)" if found.is_default else ""


def _as_json(found: Described) -> dict[str, Any]:
    device, handle = found.device, found.device.handle
    return {
        "name": device.name,
        "title": device.title,
        "kind": device.kind,
        "platform": device.platform,
        "version": handle.platform.version.strip(),
        "default": found.is_default,
        "problem": device.problem,
        "memory": int(handle.global_mem_size),
        "shares_memory": device.shares_memory,
        "machine": {
            name: {"value": getattr(found.machine, name), "source": found.sources[name]}
            for name in SHOWN
        },
    }
