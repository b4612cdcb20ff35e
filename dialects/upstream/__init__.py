"""What xDSL's own dialects lack for us: reference rules, memory effects, syntax.

Importing this package patches the upstream ops once (`effects`, `functions`, `quick`, `syntax`,
`unchanged`, `walking`, `widened`; each has a test) and fills the interpreter's tables for them.
"""

from stepwell.dialects.upstream import (
    control,
    effects,
    functions,
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
