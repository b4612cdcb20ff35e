"""What a program is compiled from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepwell.core.machine import Machine

if TYPE_CHECKING:
    from stepwell.core.placement import Placement


@dataclass(frozen=True)
class Source:
    """The input of a compilation: a module's text, its entry function, and the machine."""

    text: str
    name: str
    entry: str
    machine: Machine
    lock: str = ""
    """Path of a lock file that fits the machine, or ""."""
    passes: tuple[Placement, ...] = ()
    """Passes in addition to those of the pipeline and of installed plug-ins."""
    check_bounds: bool = True
    """Whether accesses of a module of buffers or loops are compared with sizes at run time."""
    call: str = ""
    """Shapes of the arguments of a call, as "8x64,64x64", which limit the versions of kernels to
    those that run in it; "" for all versions."""
