"""Programs of OpenCL C, built for a device.

The device binary that a driver builds is kept in the disk cache; its key is a digest of the text,
the device and its driver.
"""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepwell.runtime.cache import digest, disk_cache
from stepwell.runtime.opencl.device import Device, OpenCLError

LOG = logging.getLogger("stepwell")
BINARY = "program.bin"
SHOWN_LINES = 12


@dataclass(eq=False)
class Build:
    """A program built for a device; `keep` stores its binary after the first run."""

    device: Device
    program: Any
    key: str
    is_new: bool

    def keep(self) -> None:
        """Store the binary, if it is new; call this after the first run, when drivers compile."""
        if not self.is_new:
            return
        self.is_new = False
        (binary,) = self.program.get_info(self.device.cl.program_info.BINARIES)
        if binary:
            disk_cache().fetch("opencl", self.key, lambda f: _write(f / BINARY, binary))


def build(source: Path, device: Device) -> Build:
    """Build the text of a program, or fetch its binary from the cache."""
    text = source.read_text(encoding="utf-8")
    key = digest(text, device.id)
    if (found := disk_cache().find("opencl", key)) is not None:
        binary = (found / BINARY).read_bytes()
        try:
            kept = device.cl.Program(device.context, [device.handle], [binary])
            return Build(device, device.built(kept), key, False)
        except device.cl.Error as error:
            LOG.info("the driver refuses a binary from the cache (%s): building it again", error)
    try:
        return Build(device, device.built(device.cl.Program(device.context, text)), key, True)
    except device.cl.Error as error:
        if device.problem:
            raise device.unusable() from None
        raise _failure(source, device, str(error)) from None


def _failure(source: Path, device: Device, log: str) -> OpenCLError:
    kept = Path(tempfile.mkdtemp(prefix="stepwell-failed-")) / source.name
    kept.write_bytes(source.read_bytes())
    lines = [line for line in log.splitlines() if line.strip()]
    return OpenCLError(
        f"the OpenCL compiler of {device.title} failed\n" + "\n".join(lines[:SHOWN_LINES]),
        help=f"the source is kept in {kept}; the flags were {' '.join(device.flags)}",
    )


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
