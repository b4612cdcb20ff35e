"""Every dialect and pass of ours by name, loaded on first use; also what xdsl-opt finds of us."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from xdsl.universe import Universe


class Extension(Universe):
    """What a package gives: dialects, passes, targets, and where its passes stand by default.

    It is a `Universe` of xDSL's, so xdsl-opt has the dialects and passes too.

    pipeline : placements as in ``--pass``: ``"acme-fuse@before:nd-to-linalg"``. These passes run
        in every compilation where the package is installed
    """

    def __init__(self, *, pipeline: Sequence[str] = (), **kinds: Any) -> None:
        super().__init__(**kinds)
        self.pipeline = tuple(pipeline)


DIALECTS: dict[str, str] = {
    "nd": "stepwell.dialects.nd:ND",
    "kernel": "stepwell.dialects.kernel:KERNEL",
}

PASSES: dict[str, str] = {
    "check-accesses": "stepwell.transforms.check_accesses:CheckAccesses",
    "check-sizes": "stepwell.transforms.check_sizes:CheckSizes",
    "inline-calls": "stepwell.transforms.inline_calls:InlineCalls",
    "expand-transformations": "stepwell.transforms.expand_transformations:ExpandTransformations",
    "split-derivatives": "stepwell.transforms.split_derivatives:SplitDerivatives",
    "vjp": "stepwell.transforms.derive:Vjp",
    "jvp": "stepwell.transforms.derive:Jvp",
    "vmap": "stepwell.transforms.batch:Vmap",
    "decompose": "stepwell.transforms.decompose:Decompose",
    "sum-after-loops": "stepwell.transforms.sum_after_loops:SumAfterLoops",
    "fold-scales": "stepwell.transforms.fold_scales:FoldScales",
    "narrow-loops": "stepwell.lowering.narrow_loops:NarrowLoops",
    "linalg-to-loops": "stepwell.lowering.linalg_to_loops:LinalgToLoops",
    "expand-math": "stepwell.lowering.expand_math:ExpandMath",
    "nd-to-linalg": "stepwell.lowering.nd_to_linalg:NdToLinalg",
    "propagate-layouts": "stepwell.transforms.layouts:PropagateLayouts",
    "winograd": "stepwell.transforms.winograd:Winograd",
    "scalar-loops": "stepwell.transforms.scalar_loops:ScalarLoops",
    "fuse-elementwise": "stepwell.transforms.fuse:FuseElementwise",
    "outline-kernels": "stepwell.lowering.outline_kernels:OutlineKernels",
    "collapse-loops": "stepwell.lowering.collapse_loops:CollapseLoops",
    "order-sums": "stepwell.lowering.order_sums:OrderSums",
    "split-groups": "stepwell.lowering.split_groups:SplitGroups",
    "schedule": "stepwell.lowering.schedule:Schedule",
    "pack-operands": "stepwell.lowering.pack_operands:PackOperands",
    "compute-once": "stepwell.lowering.compute_once:ComputeOnce",
    "nontemporal-stores": "stepwell.lowering.nontemporal:NontemporalStores",
    "bufferize": "stepwell.lowering.bufferize:Bufferize",
    "run-together": "stepwell.lowering.run_together:RunTogether",
    "plan-memory": "stepwell.lowering.plan_memory:PlanMemory",
    "report-traffic": "stepwell.lowering.traffic:ReportTraffic",
}

TARGETS = {"c": "stepwell.targets:c", "opencl": "stepwell.targets:opencl"}
"""Functions that return what `-t NAME` prints by."""

WIDER: dict[str, str] = {
    "arith": "stepwell.dialects.upstream.missing:ARITH",
    "math": "stepwell.dialects.upstream.missing:MATH",
}
"""Dialects of xDSL that our tools know with more ops than it."""

OVERRIDES: dict[str, str] = {
    "canonicalize": "stepwell.transforms.canonicalize:Canonicalize",
    "cse": "stepwell.transforms.cse:CommonSubexpressions",
    "dce": "stepwell.transforms.dce:DeadCode",
}
"""Passes that our tools run instead of xDSL's of the same name; xdsl-opt refuses a name twice."""


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
