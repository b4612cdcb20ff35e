"""The whole compiler as a list: each stage, its passes, and what may be left after it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One step down: its passes, as `stepwell-opt -p` takes them, and the dialects left after."""

    name: str
    passes: str
    leaves: frozenset[str]


STAGES = (
    Stage("nd", "", frozenset({"builtin", "func", "nd", "arith"})),
    Stage(
        "structured",
        "nd-to-linalg",
        frozenset({"builtin", "func", "tensor", "linalg", "arith", "math", "scf"}),
    ),
)
