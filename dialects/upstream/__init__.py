"""What xDSL's own dialects lack for us: reference rules, memory effects, syntax.

Importing this package changes classes of xDSL once: all that is changed stands in `changes`, with
why, and the test that tells when it is needed no more. It also fills the interpreter's tables.
"""

from stepwell.dialects.upstream import (
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
