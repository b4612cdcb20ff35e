"""All our dialects and passes by name, loaded on first use, and registered for xdsl-opt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from xdsl.universe import Universe


class Extension(Universe):
    """The dialects, passes and targets of a package, and the default placement of its passes.

    It is one of xDSL's `Universe`, so xdsl-opt has the dialects and passes too.

    pipeline : placements as in ``--pass``: ``"acme-fuse@before:nd-to-linalg"``. These passes run
        in every compilation where the package is installed
    """

    def __init__(self, *, pipeline: Sequence[str] = (), **kinds: Any) -> None:
        super().__init__(**kinds)
        self.pipeline = tuple(pipeline)


_GRAPH = "stepwell.transforms.graph"

DIALECTS: dict[str, str] = {
    "nd": "stepwell.dialects.nd:ND",
    "kernel": "stepwell.dialects.kernel:KERNEL",
}

PASSES: dict[str, str] = {
    "check-accesses": f"{_GRAPH}.check_accesses:CheckAccesses",
    "check-sizes": f"{_GRAPH}.check_sizes:CheckSizes",
    "inline-calls": f"{_GRAPH}.inline_calls:InlineCalls",
    "expand-transformations": f"{_GRAPH}.expand_transformations:ExpandTransformations",
    "split-derivatives": f"{_GRAPH}.split_derivatives:SplitDerivatives",
    "vjp": f"{_GRAPH}.derive:Vjp",
    "jvp": f"{_GRAPH}.derive:Jvp",
    "vmap": f"{_GRAPH}.batch:Vmap",
    "decompose": f"{_GRAPH}.decompose:Decompose",
    "sum-after-loops": f"{_GRAPH}.sum_after_loops:SumAfterLoops",
    "fold-scales": f"{_GRAPH}.fold_scales:FoldScales",
    "outline-layers": f"{_GRAPH}.outline_layers:OutlineLayers",
    "inline-layers": "stepwell.transforms.kernels.inline_layers:InlineLayers",
    "narrow-loops": "stepwell.transforms.buffers.narrow_loops:NarrowLoops",
    "linalg-to-loops": "stepwell.lowering.linalg_to_loops:LinalgToLoops",
    "expand-math": "stepwell.transforms.loops.expand_math:ExpandMath",
    "nd-to-linalg": "stepwell.lowering.nd_to_linalg:NdToLinalg",
    "propagate-layouts": "stepwell.transforms.structured.layouts:PropagateLayouts",
    "winograd": "stepwell.transforms.structured.winograd:Winograd",
    "scalar-loops": "stepwell.transforms.structured.scalar_loops:ScalarLoops",
    "fuse-elementwise": "stepwell.transforms.structured.fuse:FuseElementwise",
    "fuse-bands": "stepwell.transforms.structured.bands:FuseBands",
    "outline-kernels": "stepwell.lowering.outline_kernels:OutlineKernels",
    "collapse-loops": "stepwell.transforms.kernels.collapse_loops:CollapseLoops",
    "order-sums": "stepwell.transforms.kernels.order_sums:OrderSums",
    "split-groups": "stepwell.transforms.kernels.split_groups:SplitGroups",
    "schedule": "stepwell.transforms.kernels.schedule:Schedule",
    "pack-operands": "stepwell.transforms.kernels.pack_operands:PackOperands",
    "compute-once": "stepwell.transforms.kernels.compute_once:ComputeOnce",
    "take-branches": "stepwell.transforms.kernels.take_branches:TakeBranches",
    "bufferize": "stepwell.lowering.bufferize:Bufferize",
    "run-together": "stepwell.transforms.buffers.run_together:RunTogether",
    "plan-memory": "stepwell.transforms.buffers.plan_memory:PlanMemory",
    "report-traffic": "stepwell.transforms.kernels.traffic:ReportTraffic",
}

TARGETS = {"c": "stepwell.driver.targets:c", "opencl": "stepwell.driver.targets:opencl"}
"""Functions that return the printing class of `-t NAME`."""

WIDER: dict[str, str] = {
    "arith": "stepwell.dialects.upstream.missing:ARITH",
    "math": "stepwell.dialects.upstream.missing:MATH",
}
"""Dialects of xDSL to which our tools add ops."""

OVERRIDES: dict[str, str] = {
    "canonicalize": "stepwell.transforms.canonicalize:Canonicalize",
    "cse": "stepwell.transforms.cse:CommonSubexpressions",
    "dce": "stepwell.transforms.dce:DeadCode",
}
"""Passes that replace xDSL's of the same name in our tools; xdsl-opt refuses duplicate names."""


def _load(path: str) -> Callable[[], Any]:
    def load() -> Any:
        module, name = path.split(":")
        return getattr(import_module(module), name)

    return load


def _called(path: str) -> Callable[[], Any]:
    return lambda: _load(path)()()


STEPWELL_UNIVERSE = Universe(
    all_dialects={name: _load(path) for name, path in DIALECTS.items()},
    all_passes={name: _load(path) for name, path in PASSES.items()},
    all_targets={name: _called(path) for name, path in TARGETS.items()},
)
STEPWELL_OVERRIDES = Universe(
    all_dialects={name: _load(path) for name, path in WIDER.items()},
    all_passes={name: _load(path) for name, path in OVERRIDES.items()},
)
