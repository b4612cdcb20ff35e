"""OpenCL programs with launches timed by their events, on the device's clock."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stepwell.core.host_schedule import Step
from stepwell.core.machine import Machine, described_machine
from stepwell.core.signature import Kernel
from stepwell.runtime.entry import Entry
from stepwell.runtime.limits import Limits
from stepwell.runtime.opencl.call_state import COPY, copy_name
from stepwell.runtime.opencl.calls import OpenCLProgram
from stepwell.runtime.opencl.device import Device
from stepwell.runtime.opencl.machines import machine_of, measured
from stepwell.runtime.timing import KEPT, LAUNCH, Run


class TimedOpenCL:
    """A second load of a program, with a queue that records times."""

    def __init__(self, program: Any, updating: bool) -> None:
        signature, device = program.signature, program.device
        self.device: Device = device
        self.where = f"on {device.name}, {device.title}"
        self._entry = Entry(signature, in_place=program.target.in_place)
        source = program.folder / program.target.source
        self._program = OpenCLProgram(
            source, self._entry, program.constants, device.name, timed=True
        )
        self._entry.callee = self._program
        self._call = program.updating.update if updating else lambda given: program.call(*given)
        self._updating = updating
        self.copies = tuple(_copies(signature.host))
        first = len(signature.kernels)
        self._numbers = {each.name: n for n, each in enumerate(self.copies, first)}

    def plain(self, arguments: Sequence[Any]) -> None:
        """Call the untimed program, and wait for the device."""
        self._call(arguments)
        self.device.memory.finish()

    def call(self, arguments: Sequence[Any]) -> None:
        """Call the timed program."""
        if self._updating:
            self._entry.update(arguments)
        else:
            self._program(*arguments)

    def run(self, arguments: Sequence[Any]) -> Run:
        """Call once; shift the device's clock so that its last event ends with the call."""
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.call(arguments)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        noted = self._program.noted[:KEPT]
        launches = np.zeros(len(noted), LAUNCH)
        for row, each in zip(launches, noted, strict=True):
            times = each.event.profile
            row["begin"], row["end"] = times.start, times.end
            row["kernel"] = each.of if isinstance(each.of, int) else self._numbers[each.of]
        if noted:
            shift = end - int(launches["end"].max())
            launches["begin"] += shift
            launches["end"] += shift
        return Run(begin, end, launches, np.zeros(len(self.copies), np.int64))

    def limits(self, again: bool = False) -> Limits:
        """Return the peak rates of the device, reported and measured."""
        return limits_of(self.device, again)


def limits_of(device: Device, again: bool = False) -> Limits:
    """Return the limits of a device according to its Machine."""
    machine: Machine = machine_of(device, described_machine())
    if not device.is_cpu:
        machine = replace(machine, **measured(device, again))
    last = machine.l3_rate_all if machine.l3 else machine.memory_rate_all
    memory = machine.memory_rate_all / 1e3
    return Limits(
        threads=int(device.handle.max_compute_units),
        fma=machine.peak(threads=machine.cores) / 1e9,
        read_l2=machine.l2_rate_all / 1e3,
        read_l3=last / 1e3,
        **{"read": memory, "copy": memory, "triad": memory},
        l2=machine.l2,
        l3=max(machine.l3, machine.l2),
    )


def _copies(steps: Sequence[Step]) -> Iterator[Kernel]:
    """Yield a kernel for each distinct size of copies in a schedule."""
    found: dict[str, Kernel] = {}
    for step in _all(steps):
        if step["do"] == "copy":
            bytes = step["bytes"] if isinstance(step["bytes"], int) else None
            name = copy_name(step["bytes"])
            found[name] = Kernel(name, (), None, None if bytes is None else 2 * bytes)
        elif step["do"] == "launch" and step["of"] is None:
            found[COPY] = Kernel(COPY, (), None, None)
    yield from found.values()


def _all(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield every step, including those nested in loops and branches."""
    for step in steps:
        yield step
        for inner in ("body", "test", "then", "else"):
            yield from _all(step.get(inner, ()))
