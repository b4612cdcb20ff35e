"""The OpenCL devices of this process: which there are, and which of them is meant.

A device is called by its kind and number, as in ``gpu:0``, in the order in which platforms list
them. Where nobody says which, STEPWELL_DEVICE does, else the first of the best kind is taken: a GPU
before an accelerator before a CPU, and of one kind that with most compute units times clock.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.runtime.cache import digest

LOG = logging.getLogger("stepwell")
FLAGS = ("-cl-std=CL1.2",)
DIVIDE = "-cl-fp32-correctly-rounded-divide-sqrt"
GROUP = 64
"""How many work items of a device that is no CPU share a work group."""
VARIABLE = "STEPWELL_DEVICE"
KINDS = ("gpu", "accelerator", "cpu", "custom")
"""Kinds of devices, the best first."""


class OpenCLError(CompileError):
    """There is no OpenCL here, or its compiler failed."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(Diagnostic("error", message, help=help))


@dataclass(frozen=True, eq=False)
class Device:
    """One device; its queue, made when it is first used, runs what it is given in order."""

    cl: Any
    handle: Any
    name: str
    """Its kind and number, as in ``gpu:0``."""
    process: int
    """The process it was found in: no driver's threads survive a fork."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<device {self.name}: {self.title}>"

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return self.name.partition(":")[0]

    @property
    def title(self) -> str:
        """What the device calls itself."""
        return self.handle.name.strip()

    @property
    def platform(self) -> str:
        """What its platform calls itself."""
        return self.handle.platform.name.strip()

    @property
    def is_cpu(self) -> bool:
        """Whether work items run on the host's processor."""
        return self.kind == "cpu"

    @cached_property
    def shares_memory(self) -> bool:
        """Whether it works in the host's memory, so that arrays there need not be copied."""
        return bool(self.handle.host_unified_memory)

    @cached_property
    def context(self) -> Any:
        """What its buffers and programs belong to."""
        with OPENING:
            return self.__dict__.get("context") or self.cl.Context([self.handle])

    @cached_property
    def queue(self) -> Any:
        """What all programs enqueue their launches and copies in."""
        context = self.context
        with OPENING:
            if "queue" not in self.__dict__:
                LOG.info("OpenCL programs run on %s, %s (%s)", self.name, self.title, self.platform)
                return self.cl.CommandQueue(context)
            return self.__dict__["queue"]

    @cached_property
    def timed_queue(self) -> Any:
        """A queue whose events say when they began and ended, for programs that are profiled."""
        kinds = self.cl.command_queue_properties
        return self.cl.CommandQueue(self.context, properties=kinds.PROFILING_ENABLE)

    @cached_property
    def memory(self) -> Any:
        """Its `DeviceMemory`, for all programs and threads."""
        with OPENING:
            if "memory" not in self.__dict__:
                return import_module("stepwell.runtime.opencl.memory").DeviceMemory(self)
            return self.__dict__["memory"]

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """What programs are built with; division is rounded correctly where the device can."""
        can = self.handle.single_fp_config & self.cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return (*FLAGS, DIVIDE) if can else FLAGS

    @cached_property
    def id(self) -> str:
        """Return what makes its binaries what they are, for cache keys."""
        handle, platform = self.handle, self.handle.platform
        told = (platform.name, platform.version, handle.name, handle.driver_version, *self.flags)
        return digest(*(text.strip() for text in told))

    def lanes(self, step: Mapping[str, Any]) -> int:
        """Return how many lanes a group has: of a copy any number, and a processor has one."""
        return 1 if self.is_cpu and not step["of"] else step["lanes"]

    def groups(self, items: int, lanes: int = 0) -> list[tuple[int, int, int]]:
        """Cut ``items`` work items into launches of (first, count, size of a work group).

        lanes : so many work items for each of ``items``, which is a group; 0 where it is one item

        An item is a block of work already, so a CPU takes them one by one. Sizes of groups are
        few, because drivers compile a kernel anew for each.
        """
        if lanes:
            return [(0, items * lanes, lanes)]
        if self.is_cpu:
            return [(0, items, 1)]
        whole = items - items % GROUP
        cut = [(0, whole, GROUP), (whole, items - whole, 1)]
        return [each for each in cut if each[1]]


OPENING = threading.RLock()
"""Of two threads one opens a device; and one at a time has warnings ignored."""


def open_device(text: str = "") -> Device:
    """Return the device that is meant; `OpenCLError` where there is none such.

    text : a kind, as in ``gpu``, kind and number, or a part of what only one device or its platform
        is called; where it is "", STEPWELL_DEVICE says it, and else the best device is taken
    """
    with OPENING:
        found = devices()
    source = "" if text else VARIABLE
    text = (text or os.environ.get(VARIABLE, "")).strip().lower()
    if not text:
        return best(found)
    kind, _, number = text.partition(":")
    if kind in KINDS and (not number or number.isdecimal()):
        of_kind = [each for each in found if each.kind == kind]
        if not number and of_kind:
            return best(of_kind)
        meant = [each for each in of_kind if each.name == f"{kind}:{int(number or 0)}"]
    else:
        meant = [each for each in found if text in f"{each.title} {each.platform}".lower()]
    if len(meant) == 1:
        return meant[0]
    said = "several devices are" if meant else "no OpenCL device is"
    listed = ", ".join(f"{each.name} ({each.title})" for each in meant or found)
    near = "" if meant else did_you_mean(text, [each.name for each in found])
    prefix = f"{source}: " if source else ""
    raise OpenCLError(f"{prefix}{said} '{text[:60]}'", near or f"there are {listed}")


def best(found: Sequence[Device]) -> Device:
    """Return the device that is used where nobody says which: see the module."""

    def rank(device: Device) -> tuple[int, int]:
        units, clock = device.handle.max_compute_units, device.handle.max_clock_frequency
        return KINDS.index(device.kind), -units * max(clock, 1)

    return min(found, key=rank)


@cache
def devices() -> tuple[Device, ...]:
    """Return every device in the order of the platforms; `OpenCLError` where there is none."""
    try:
        cl = import_module("pyopencl")
    except ImportError as error:
        raise OpenCLError(
            f"OpenCL programs need pyopencl ({error})",
            help="install it, with a driver for the CPU: pip install 'stepwell[opencl]'",
        ) from None
    try:
        handles = [d for p in cl.get_platforms() for d in p.get_devices()]
    except cl.Error:
        handles = []
    if not handles:
        raise OpenCLError(
            "no OpenCL device found",
            help="install a driver, such as PoCL for the CPU: pip install 'stepwell[opencl]'",
        )
    found: list[Device] = []
    for handle in handles:
        kind = kind_of(cl, handle.type)
        number = sum(each.kind == kind for each in found)
        found.append(Device(cl, handle, f"{kind}:{number}", os.getpid()))
    return tuple(found)


def kind_of(cl: Any, bits: int) -> str:
    """Return the kind that a device says it is."""
    types = cl.device_type
    known = {"gpu": types.GPU, "accelerator": types.ACCELERATOR, "cpu": types.CPU}
    return next((kind for kind, bit in known.items() if bits & bit), "custom")
