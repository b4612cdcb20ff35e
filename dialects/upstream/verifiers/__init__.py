"""Checks of MLIR's verifiers that xDSL's lack, made in addition to them by our tools.

xDSL's classes are unchanged: `stepwell.dialects.verification` calls `check` after `verify` of the
op. There is one file for each dialect; `test_verifiers.py` mutates programs at random and compares
the result with mlir-opt. Rationale: docs/notes/028-what-verifies-is-safe.md.
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
