"""What MLIR's verifiers refuse and xDSL's let pass: checked in addition to them, by our tools.

xDSL's classes are left as they are: `stepwell.dialects.verification` asks `check` after `verify`
of the op. One file for each dialect; `test_verifiers.py` alters programs at random and holds what
is taken against mlir-opt. Why so: docs/notes/028-what-verifies-is-safe.md.
"""

from stepwell.dialects.upstream.verifiers import (
    control,
    memory,
    numbers,
    structured,
    tensors,
    vectors,
    views,
)
from stepwell.dialects.upstream.verifiers.table import check, check_counts

__all__ = [
    "check",
    "check_counts",
    "control",
    "memory",
    "numbers",
    "structured",
    "tensors",
    "vectors",
    "views",
]
