"""Print loops on buffers as OpenCL C, and the host's part as a schedule.

Before:  kernels, host functions and private functions on buffers (docs/floors/loops.md)
After:   an `OpenCLText`: kernels as text, and a signature that holds the host's schedule
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from stepwell.core.escape import quoted
from stepwell.core.signature import Signature
from stepwell.lowering.emit.device import OpenCLUnit, OpenCLWriter
from stepwell.lowering.emit.entry import entries, guarded
from stepwell.lowering.emit.host import Host
from stepwell.lowering.emit.opencl_spelling import OpenCLSpelling


@dataclass(frozen=True)
class OpenCLText:
    """A compiled program as text."""

    source: str
    signature: Signature
    header: str = ""
    """Always empty: OpenCL needs no header."""


def emit_opencl(module: ModuleOp, name: str = "main") -> OpenCLText:
    """Return the OpenCL text of a module on the loops floor and its host schedule.

    name : the public function that the schedule is for
    """
    unit = OpenCLUnit(module, OpenCLSpelling(), OpenCLWriter)
    found = entries(module, "opencl")
    entry = next((e for e in found if e.name == name), found[0])
    host = Host(unit).schedule(entry)
    signature = replace(entry.signature, host=tuple(host))
    if unit.faults is not None:
        signature = guarded(signature, unit.faults.found)
    return OpenCLText(unit.text(quoted(name)), signature)
