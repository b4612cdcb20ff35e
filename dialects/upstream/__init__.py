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
    quick,
    scalar,
    syntax,
    tensor,
    unchanged,
    vector,
    walking,
    widened,
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
    "quick",
    "scalar",
    "syntax",
    "tensor",
    "unchanged",
    "vector",
    "walking",
    "widened",
]
