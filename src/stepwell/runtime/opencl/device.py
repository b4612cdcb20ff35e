"""The OpenCL devices of this process, and the choice of one by name.

The name of a device is its kind and number, as in ``gpu:0``, in the order of the platforms. The
default is the device that STEPWELL_DEVICE names, else the best one that can run programs: a GPU
before an accelerator before a CPU, and among devices of one kind the one with most compute units
times clock.

A driver may know a device and still fail to build any program for it, as when its compiler is older
than the processor. `Device.problem` is then the driver's message.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.runtime.cache import digest, disk_cache

LOG = logging.getLogger("stepwell")
FLAGS = ("-cl-std=CL1.2",)
DIVIDE = "-cl-fp32-correctly-rounded-divide-sqrt"
GROUP = 64
"""The size of a work group, in work items, on devices other than CPUs."""
VARIABLE = "STEPWELL_DEVICE"
KINDS = ("gpu", "accelerator", "cpu", "custom")
"""Kinds of devices, the best first."""
PROBE = "__kernel void nothing(__global int *x) {}\n"
"""A program that every working driver can build."""
FRAME = ("clBuildProgram failed", "Build on <pyopencl", "(options: ")
"""Beginnings of the lines that pyopencl writes around a driver's message."""
DRIVERS = (
    "install another driver: the package pocl-opencl-icd of Debian and Ubuntu, pocl of conda-forge,"
    " or that of the device's vendor"
)


class OpenCLError(CompileError):
    """There is no OpenCL device, or the OpenCL compiler failed."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(Diagnostic("error", message, help=help))


@dataclass(frozen=True, eq=False)
class Device:
    """One device; its in-order queue is made at the first use."""

    cl: Any
    handle: Any
    name: str
    """Kind and number, as in ``gpu:0``."""
    process: int
    """The process that opened it: the driver's threads do not survive a fork."""

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
        """The name that the driver reports for the device."""
        return self.handle.name.strip()

    @property
    def platform(self) -> str:
        """The name of the device's platform."""
        return self.handle.platform.name.strip()

    @property
    def is_cpu(self) -> bool:
        """Whether work items run on the host's processor."""
        return self.kind == "cpu"

    @cached_property
    def shares_memory(self) -> bool:
        """Whether it works in the host's memory, so that host arrays need no copies."""
        return bool(self.handle.host_unified_memory)

    @cached_property
    def context(self) -> Any:
        """The OpenCL context of its buffers and programs."""
        with OPENING:
            return self.__dict__.get("context") or self.cl.Context([self.handle])

    @cached_property
    def queue(self) -> Any:
        """The queue for launches and copies of all programs."""
        context = self.context
        with OPENING:
            if "queue" not in self.__dict__:
                LOG.info("OpenCL programs run on %s, %s (%s)", self.name, self.title, self.platform)
                return self.cl.CommandQueue(context)
            return self.__dict__["queue"]

    @cached_property
    def timed_queue(self) -> Any:
        """A queue whose events record their start and end, for profiled programs."""
        kinds = self.cl.command_queue_properties
        return self.cl.CommandQueue(self.context, properties=kinds.PROFILING_ENABLE)

    @cached_property
    def memory(self) -> Any:
        """The `DeviceMemory` of all programs and threads."""
        with OPENING:
            if "memory" not in self.__dict__:
                return import_module("stepwell.runtime.opencl.memory").DeviceMemory(self)
            return self.__dict__["memory"]

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """The compiler flags; division is correctly rounded if the device supports it."""
        can = self.handle.single_fp_config & self.cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return (*FLAGS, DIVIDE) if can else FLAGS

    def built(self, program: Any) -> Any:
        """Build a program of pyopencl; pyopencl's errors pass."""
        with OPENING, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyopencl warns of every remark of the compiler
            return program.build(list(self.flags), cache_dir=False)

    @cached_property
    def problem(self) -> str:
        """The driver's message if it cannot build even `PROBE`, else "".

        The disk cache remembers working drivers.
        """
        key = digest("probe", PROBE, self.id)
        if disk_cache().find("opencl", key) is not None:
            return ""
        try:
            self.built(self.cl.Program(self.context, PROBE))
        except self.cl.Error as error:
            return driver_message(str(error))
        disk_cache().offer("opencl", key, lambda _: None, 0)
        return ""

    def unusable(self) -> OpenCLError:
        """Return the error for a device that has a `problem`."""
        platform = self.handle.platform
        version = f"{platform.name.strip()} {self.handle.driver_version.strip()}"
        return OpenCLError(
            f"{self.name} ({self.title}) cannot run programs: its driver builds none\n"
            f"the driver is {version} ({platform.version.strip()})\n"
            f"it reports: {self.problem}",
            help=f"{DRIVERS}; `stepwell devices` shows which devices can run programs",
        )

    @cached_property
    def id(self) -> str:
        """A digest of everything that determines its binaries, for cache keys."""
        handle, platform = self.handle, self.handle.platform
        names = (platform.name, platform.version, handle.name, handle.driver_version)
        return digest(*(text.strip() for text in (*names, *self.flags)))

    def lanes(self, step: Mapping[str, Any]) -> int:
        """Return the lanes of a group: those of the step, but 1 for a copy kernel on a CPU."""
        return 1 if self.is_cpu and step["of"] is None else step["lanes"]

    def groups(self, items: int, lanes: int = 0) -> list[tuple[int, int, int]]:
        """Split ``items`` work items into launches (first, count, size of a work group).

        lanes : the work items of each of ``items``, if these are groups; 0 if they are work items

        An item is already a block of work, so groups have one item on a CPU. There are few sizes
        of groups, because drivers recompile a kernel for each.
        """
        if lanes:
            return [(0, items * lanes, lanes)]
        if self.is_cpu:
            return [(0, items, 1)]
        whole = items - items % GROUP
        cut = [(0, whole, GROUP), (whole, items - whole, 1)]
        return [each for each in cut if each[1]]


OPENING = threading.RLock()
"""Guards the opening of devices, and the process-wide filter of warnings."""


def open_device(text: str = "") -> Device:
    """Return the device that ``text`` names, or raise `OpenCLError`.

    text : a kind, as in ``gpu``, a kind and number, or a part of the names of exactly one device
        and its platform; "" means the device of STEPWELL_DEVICE, or else the best one
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


def working_device(text: str = "") -> Device:
    """Return the device that ``text`` names, or raise `OpenCLError` if it can run no programs."""
    device = open_device(text)
    if device.problem:
        raise device.unusable()
    return device


def driver_message(log: str) -> str:
    """Return a driver's message on one line, without the lines that pyopencl adds.

    >>> driver_message("clBuildProgram failed: X\\n\\nBuild on <pyopencl.Device>:\\n\\nno room\\n")
    'no room'
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return "; ".join([line for line in lines if not line.startswith(FRAME)] or lines)


def best(found: Sequence[Device]) -> Device:
    """Return the default device, by the order in the module's docstring."""

    def rank(device: Device) -> tuple[int, int]:
        units, clock = device.handle.max_compute_units, device.handle.max_clock_frequency
        return KINDS.index(device.kind), -units * max(clock, 1)

    ranked = sorted(found, key=rank)
    if len(ranked) == 1:
        return ranked[0]
    return next((device for device in ranked if not device.problem), ranked[0])


@cache
def devices() -> tuple[Device, ...]:
    """Return all devices in the order of the platforms, or raise `OpenCLError` if there is none."""
    try:
        cl = import_module("pyopencl")
    except ImportError as error:
        raise OpenCLError(
            f"OpenCL programs need pyopencl ({error})",
            help="install it, with a driver for the CPU: pip install 'stepwell[opencl]'",
        ) from None
    handles = _handles(cl)
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


def _handles(cl: Any) -> list[Any]:
    """Return the devices of all platforms; platforms that fail have none."""
    handles: list[Any] = []
    with suppress(cl.Error):  # the loader fails if there is no platform
        for platform in cl.get_platforms():
            with suppress(cl.Error):
                handles += platform.get_devices()
    return handles


def kind_of(cl: Any, bits: int) -> str:
    """Return the kind of a device by the bits of its OpenCL type."""
    types = cl.device_type
    known = {"gpu": types.GPU, "accelerator": types.ACCELERATOR, "cpu": types.CPU}
    return next((kind for kind, bit in known.items() if bits & bit), "custom")
