"""OpenCL C: native vectors, and built-in functions on vectors."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.names import FAULT
from stepwell.lowering.emit.opencl_spelling.functions import OpenCLFunctions
from stepwell.lowering.emit.opencl_spelling.memory import OpenCLMemory
from stepwell.lowering.emit.spelling import Spelling


class OpenCLSpelling(OpenCLMemory, OpenCLFunctions, Spelling):
    """OpenCL C 1.2."""

    def pinned(self, kind: Kind, x: str) -> str:
        """Return it unchanged: only this work-item writes the memory."""
        rows = [f"volatile {self.type(kind)} y = x;", "return y;"]
        return f"{self.helper(f'sw_pinned_{kind}', kind, [(kind, 'x')], rows)}({x})"

    def noting(self) -> tuple[str, Sequence[str]]:
        """Record the guard of the first work-item to fail."""
        swap = "atomic_cmpxchg((volatile __global int *)&fault->number, 0, number)"
        return "void sw_fault(__global struct sw_fault", (f"if ({swap}) return;",)

    def faulted(self) -> str:
        """Read the number of the recorded guard."""
        return f"{FAULT}->number"
