"""The default pipeline: each stage, its passes, and the dialects allowed after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean


@dataclass(frozen=True)
class Stage:
    """One stage: its passes, as `stepwell-opt -p` takes them, and the dialects left after it."""

    name: str
    passes: str
    leaves: frozenset[str]
    converts: str = ""
    """The pass that lowers the floor above; an op of that floor that it leaves is an error."""


_GRAPH = frozenset({"builtin", "func", "nd", "arith"})
_TENSORS = frozenset({"builtin", "func", "tensor", "linalg", "arith", "math", "scf"})
_BUFFERS = frozenset({"builtin", "func", "kernel", "memref", "linalg", "arith", "math", "scf"})
_LOOPS = frozenset({"builtin", "func", "kernel", "memref", "vector", "arith", "math", "scf"})

STAGES = (
    Stage(
        "nd",
        "inline-calls,expand-transformations,split-derivatives,check-sizes,canonicalize,cse,"
        "decompose,cse,sum-after-loops,fold-scales,outline-layers",
        _GRAPH,
    ),
    Stage(
        "structured",
        "nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,winograd,scalar-loops,"
        "fuse-bands",
        _TENSORS,
        "nd-to-linalg",
    ),
    Stage(
        "kernels",
        "outline-kernels,inline-layers,split-groups,collapse-loops,order-sums,schedule,"
        "pack-operands,compute-once,take-branches",
        _TENSORS | {"kernel"},
        "outline-kernels",
    ),
    Stage("buffers", "bufferize,run-together,plan-memory", _BUFFERS, "bufferize"),
    Stage(
        "loops",
        "narrow-loops,linalg-to-loops,expand-math,canonicalize,cse",
        _LOOPS,
        "linalg-to-loops",
    ),
)

SCHEDULING = "schedule"
"""The pass that makes the choices that tuning varies."""

STAGE_NAMES = tuple(stage.name for stage in STAGES)


def default_stages() -> tuple[Stage, ...]:
    """Return the current `STAGES`: part of the cache key of every program."""
    return STAGES


def stages_through(name: str, stages: Sequence[Stage]) -> Sequence[Stage]:
    """Return every stage up to and including ``name``; `CompileError` if it does not exist."""
    if name not in STAGE_NAMES:
        help = did_you_mean(name, STAGE_NAMES) or f"the stages are {', '.join(STAGE_NAMES)}"
        raise CompileError(Diagnostic("error", f"unknown stage '{name}'", help=help))
    return stages[: STAGE_NAMES.index(name) + 1]


def through(name: str) -> str:
    """Return the passes of every stage up to and including ``name``, as a pipeline."""
    return ",".join(stage.passes for stage in stages_through(name, STAGES))
