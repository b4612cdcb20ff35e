"""The whole compiler as a list: each stage, its passes, and what may be left after it."""

from __future__ import annotations

from dataclasses import dataclass

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean


@dataclass(frozen=True)
class Stage:
    """One step down: its passes, as `stepwell-opt -p` takes them, and the dialects left after."""

    name: str
    passes: str
    leaves: frozenset[str]


_GRAPH = frozenset({"builtin", "func", "nd", "arith"})
_TENSORS = frozenset({"builtin", "func", "tensor", "linalg", "arith", "math", "scf"})
_BUFFERS = frozenset({"builtin", "func", "kernel", "memref", "linalg", "arith", "math", "scf"})
_LOOPS = frozenset({"builtin", "func", "kernel", "memref", "vector", "arith", "math", "scf"})

STAGES = (
    Stage("nd", "inline-calls,check-sizes,canonicalize,cse,decompose,fold-scales", _GRAPH),
    Stage(
        "structured",
        "nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,winograd",
        _TENSORS,
    ),
    Stage(
        "kernels",
        "outline-kernels,split-groups,collapse-loops,schedule,pack-operands,compute-once,"
        "nontemporal-stores",
        _TENSORS | {"kernel"},
    ),
    Stage("buffers", "bufferize,run-together,plan-memory", _BUFFERS),
    Stage("loops", "linalg-to-loops,expand-math,canonicalize,cse", _LOOPS),
)

SCHEDULING = "schedule"
"""The pass that makes the choices that tuning makes too."""

STAGE_NAMES = tuple(stage.name for stage in STAGES)

EMITTERS = {
    "c": "stepwell.lowering.emit:emit_c",
    "opencl": "stepwell.lowering.emit.opencl:emit_opencl",
}
"""For each target what prints a module: ``(module, entry)`` -> text, header and signature."""


def through(stage: str) -> str:
    """Return the pipeline of every stage up to and including ``stage``."""
    if stage not in STAGE_NAMES:
        help = did_you_mean(stage, STAGE_NAMES) or f"the stages are {', '.join(STAGE_NAMES)}"
        raise CompileError(Diagnostic("error", f"unknown stage '{stage}'", help=help))
    reached = STAGES[: STAGE_NAMES.index(stage) + 1]
    return ",".join(s.passes for s in reached if s.passes)


def stages() -> dict[str, str]:
    """Return for each stage the pipeline that leads there; `through(STAGE)` in a pipeline."""
    return {name: through(name) for name in STAGE_NAMES}
