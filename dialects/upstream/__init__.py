"""Additions to xDSL's own dialects: reference rules, memory effects, syntax.

Importing this package changes classes of xDSL once: `changes` lists all changes with their reasons,
and with the test that detects when one is no longer needed. It also fills the interpreter's tables.
"""

from stepwell.dialects.upstream import (
    assembly_formats,
    control,
    effects,
    functions,
    headings,
    identities,
    linalg,
    literals,
    memory,
    missing,
    scalar,
    syntax,
    tensor,
    unchanged,
    vector,
    walking,
    widened,
    xdsl_patches,
)

__all__ = [
    "assembly_formats",
    "control",
    "effects",
    "functions",
    "headings",
    "identities",
    "linalg",
    "literals",
    "memory",
    "missing",
    "xdsl_patches",
    "scalar",
    "syntax",
    "tensor",
    "unchanged",
    "vector",
    "walking",
    "widened",
]
