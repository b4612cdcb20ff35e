"""The OpenCL device of this process, and building programs for it.

The device is the first CPU of any platform, else the first device there is. What it builds is kept
in the disk cache as the device's own binary, under the text, the device and its driver.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.runtime.cache import digest, disk_cache

LOG = logging.getLogger("stepwell")
FLAGS = ("-cl-std=CL1.2",)
DIVIDE = "-cl-fp32-correctly-rounded-divide-sqrt"
BINARY = "program.bin"
SHOWN_LINES = 12
GROUP = 64
"""How many work items of a device that is no CPU share a work group."""


class OpenCLError(CompileError):
    """There is no OpenCL here, or its compiler failed."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(Diagnostic("error", message, help=help))


@dataclass(frozen=True, eq=False)
class Device:
    """One device with its queue, which runs what it is given in order."""

    cl: Any
    handle: Any
    context: Any
    queue: Any
    process: int
    """The process it was opened in: no driver's threads survive a fork."""

    @property
    def is_cpu(self) -> bool:
        """Whether work items run on the host's processor."""
        return bool(self.handle.type & self.cl.device_type.CPU)

    @property
    def flags(self) -> tuple[str, ...]:
        """What programs are built with; division is rounded correctly where the device can."""
        can = self.handle.single_fp_config & self.cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return (*FLAGS, DIVIDE) if can else FLAGS

    @property
    def id(self) -> str:
        """Return what makes its binaries what they are, for cache keys."""
        handle, platform = self.handle, self.handle.platform
        told = (platform.name, platform.version, handle.name, handle.driver_version, *self.flags)
        return digest(*(text.strip() for text in told))

    def groups(self, items: int) -> list[tuple[int, int, int]]:
        """Cut ``items`` work items into launches of (first, count, size of a work group).

        An item is a block of work already, so a CPU takes them one by one. Sizes of groups are
        few, because drivers compile a kernel anew for each.
        """
        if self.is_cpu:
            return [(0, items, 1)]
        whole = items - items % GROUP
        cut = [(0, whole, GROUP), (whole, items - whole, 1)]
        return [each for each in cut if each[1]]


_OPENING = threading.RLock()
"""Of two threads one opens the device; and one at a time has warnings ignored."""


def open_device() -> Device:
    """Return the device of this process; `OpenCLError` where there is none."""
    with _OPENING:
        return first_device()


@cache
def first_device() -> Device:
    """Open the first CPU, else the first device; see `open_device`."""
    try:
        cl = import_module("pyopencl")
    except ImportError as error:
        raise OpenCLError(
            f"OpenCL programs need pyopencl ({error})",
            help="install it, with a driver for the CPU: pip install 'stepwell[opencl]'",
        ) from None
    try:
        devices = [d for p in cl.get_platforms() for d in p.get_devices()]
    except cl.Error:
        devices = []
    if not devices:
        raise OpenCLError(
            "no OpenCL device found",
            help="install a driver, such as PoCL for the CPU: pip install 'stepwell[opencl]'",
        )
    handle = next((d for d in devices if d.type & cl.device_type.CPU), devices[0])
    context = cl.Context([handle])
    LOG.info("OpenCL programs run on %s (%s)", handle.name, handle.platform.name)
    return Device(cl, handle, context, cl.CommandQueue(context), os.getpid())


@dataclass(eq=False)
class Build:
    """A program built for the device; `keep` its binary once it has run."""

    program: Any
    key: str
    is_new: bool

    def keep(self) -> None:
        """Store the binary, after a first run: drivers compile much of it only then."""
        if not self.is_new:
            return
        self.is_new = False
        device = open_device()
        (binary,) = self.program.get_info(device.cl.program_info.BINARIES)
        if binary:
            disk_cache().fetch("opencl", self.key, lambda f: _write(f / BINARY, binary))


def build(source: Path) -> Build:
    """Build the text of a program, or fetch its binary from the cache."""
    device = open_device()
    text = source.read_text(encoding="utf-8")
    key = digest(text, device.id)
    if (found := disk_cache().find("opencl", key)) is not None:
        binary = (found / BINARY).read_bytes()
        try:
            kept = device.cl.Program(device.context, [device.handle], [binary])
            return Build(_built(device, kept), key, False)
        except device.cl.Error as error:
            LOG.info("the driver refuses a binary from the cache (%s): building it again", error)
    try:
        return Build(_built(device, device.cl.Program(device.context, text)), key, True)
    except device.cl.Error as error:
        raise _failure(source, device, str(error)) from None


def _built(device: Device, program: Any) -> Any:
    with (
        _OPENING,
        warnings.catch_warnings(),
    ):  # pyopencl warns of every remark of the driver's compiler
        warnings.simplefilter("ignore")
        return program.build(list(device.flags), cache_dir=False)


def _failure(source: Path, device: Device, log: str) -> OpenCLError:
    kept = Path(tempfile.mkdtemp(prefix="stepwell-failed-")) / source.name
    kept.write_bytes(source.read_bytes())
    lines = [line for line in log.splitlines() if line.strip()]
    return OpenCLError(
        f"the OpenCL compiler of {device.handle.name} failed\n" + "\n".join(lines[:SHOWN_LINES]),
        help=f"the source is kept in {kept}; the flags were {' '.join(device.flags)}",
    )


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
