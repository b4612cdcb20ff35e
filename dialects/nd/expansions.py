"""Decompositions of derivatives and batches, in modules that are imported when one is first used.

Most programs have neither. The rules of all ops for them take a tenth of the time in which the
compiler is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from xdsl.builder import Builder
from xdsl.ir import Operation, SSAValue

from stepwell.dialects.nd.custom import CheckpointOp, CustomJvpOp, CustomVjpOp
from stepwell.dialects.nd.transformations import JvpOp, VjpOp, VmapOp
from stepwell.dialects.readings import decomposition

_MODULES: dict[type[Operation], str] = {
    VjpOp: "gradients.backward",
    JvpOp: "gradients.forward",
    VmapOp: "batching.walk",
    **dict.fromkeys((CustomVjpOp, CustomJvpOp, CheckpointOp), "gradients.custom"),
}
"""The module that has the decomposition of an op, a function with the name ``expanded``."""


@decomposition(*_MODULES)
def _expanded(builder: Builder, op: Operation) -> Sequence[SSAValue]:
    module = import_module(f"stepwell.dialects.nd.{_MODULES[type(op)]}")
    values: Sequence[SSAValue] = module.expanded(builder, op)
    return values
