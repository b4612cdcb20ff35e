"""Ask the cost model whether a contraction takes less time in one kernel with other ops, or alone.

A contraction keeps its register tile in a kernel if all loops of its result are shared, in the
order that it has alone. Otherwise the kernels are made of copies of the ops, scheduled for one
thread, and their predicted times are compared.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.analysis.loop_order import shared_order
from stepwell.analysis.structured import is_parallel
from stepwell.core.machine import Machine
from stepwell.core.remembering import Remembered
from stepwell.dialects import kernel
from stepwell.dialects.kernel.sharing import is_border
from stepwell.lowering.outline_kernels.build import Kernel, outer_values
from stepwell.lowering.outline_kernels.clusters import Cluster, heavy_contraction
from stepwell.lowering.outline_kernels.merge import merge_walks
from stepwell.lowering.outline_kernels.order import shared_loops
from stepwell.transforms.kernels.collapse_loops import CollapseLoops
from stepwell.transforms.kernels.order_sums import OrderSums
from stepwell.transforms.kernels.same_kernels import structure
from stepwell.transforms.kernels.schedule import predicted_seconds
from stepwell.transforms.kernels.schedule.searching import MODEL_ERROR
from stepwell.transforms.kernels.split_groups import SplitGroups


def slower_together(first: Cluster, last: Cluster, merged: Cluster, machine: Machine) -> str:
    """Return why ``merged`` is expected to take longer than its two parts, "" if it is not."""
    if machine.lanes > 1 or not machine.l2 or not _loses_tile(merged):
        return ""
    if not all(isinstance(op, linalg.GenericOp) and not is_border(op) for op in merged.members):
        return ""
    together = _seconds(merged, machine)
    apart = _seconds(first, machine) + _seconds(last, machine)
    if apart >= (1 - MODEL_ERROR) * together:
        return ""
    return f"the contraction would take {together / apart:.1f} times as long, by the cost model"


def _loses_tile(merged: Cluster) -> bool:
    """Whether a heavy contraction has another row or column loop in the kernel than alone."""
    op = heavy_contraction(merged)
    if op is None:
        return False
    own = [d for d, parallel in enumerate(is_parallel(op)) if parallel]
    alone = [own[j] for j in shared_order(op, own, False)]
    return shared_loops(merged)[op][-2:] != alone[-2:]


_known = Remembered[float](1 << 10)
"""Predictions by machine and by structure of the kernel."""


def _seconds(cluster: Cluster, machine: Machine) -> float:
    """Return the predicted seconds of a launch of a cluster's kernel on one thread."""
    function, module = _outlined(cluster)

    def seconds() -> float:
        for step in (SplitGroups(), CollapseLoops(), OrderSums()):
            step.apply(Context(), module)
        return predicted_seconds(function, machine)

    found = _known.get((machine, structure(function)), seconds)
    module.drop_all_references()  # bodies may use values of the program
    return found


def _outlined(cluster: Cluster) -> tuple[kernel.FuncOp, ModuleOp]:
    """Return the kernel of copies of a cluster's ops, and a module that launches it."""
    copies = _Copies()
    ops = {op: copies.of(op) for op in cluster.members}
    needed = [copies.values[v] for op in ops for v in op.results if _is_read_outside(v, ops)]
    copies.block.add_op(func.ReturnOp(*needed))
    members = list(ops.values())
    loops = {ops[op]: own for op, own in shared_loops(cluster).items()}
    function, _ = Kernel(Cluster(members, loops, 0), members[-1]).build()
    merge_walks(function.body.block, len(loops[members[0]]))
    types = [v.type for v in needed]
    kind = FunctionType.from_lists(list(copies.block.arg_types), types)
    return function, ModuleOp([function, func.FuncOp("main", kind, Region(copies.block))])


def _is_read_outside(value: SSAValue, members: Container[Operation]) -> bool:
    return any(use.operation not in members for use in value.uses)


@dataclass
class _Copies:
    """Copies of ops in a block of their own, whose arguments stand for all other values."""

    block: Block = field(default_factory=Block)
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def of(self, op: Operation) -> Operation:
        """Return the copy of ``op``, behind copies of the constants and fills that it reads."""
        for value in outer_values(op):
            if value in self.values:
                continue
            if isinstance(value.owner, tensor.EmptyOp | linalg.FillOp | arith.ConstantOp):
                self.of(value.owner)
            else:
                self.values[value] = self.block.insert_arg(value.type, len(self.block.args))
        copy = op.clone(self.values)
        self.block.add_op(copy)
        return copy
