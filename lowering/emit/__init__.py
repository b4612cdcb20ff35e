"""Print loops on buffers as text, without any decisions.

`emit_c` prints a module as C, `PartedProgram` does so in parts, `opencl.emit_opencl`, loaded only
for that target, prints OpenCL C and a host schedule; `emit` is the table of rules, to which
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
"""The modules that register rules in the table."""

__all__ = [
    "RULES",
    "CText",
    "PartedProgram",
    "Writer",
    "emit",
    "emit_c",
]
