"""From loops on buffers to text: print only, decide nothing.

`emit_c` prints a module as C, `PartedProgram` does so in parts, `opencl.emit_opencl`, loaded only
where that is the target, as OpenCL C and a host schedule; `emit` is the table of rules, to which
third parties add theirs.
"""

from stepwell.lowering.emit import (
    arith,
    callbacks,
    conditions,
    dot_tiles,
    dots,
    functions,
    math,
    memref,
    scf,
    vector,
)
from stepwell.lowering.emit.c import CText, emit_c
from stepwell.lowering.emit.parts import PartedProgram
from stepwell.lowering.emit.writer import Writer, emit

RULES = (arith, callbacks, conditions, dot_tiles, dots, functions, math, memref, scf, vector)
"""The files whose rules fill the table."""

__all__ = [
    "RULES",
    "CText",
    "PartedProgram",
    "Writer",
    "emit",
    "emit_c",
]
