"""Cut every function into kernels and the host code that launches them.

Before:  %h = linalg.generic {m, n, k: contraction} ins(%x, %w) outs(%zero)
         %y = linalg.generic {m, n} ins(%h, %b) { addf, maximumf }
After:   kernel.func @main_matmul_add_relu(%x, %w, %b, %y) attributes {kernel.shared = 2} {
           linalg.fill, linalg.generic {m, n, k}, linalg.generic {m, n}, kernel.return }
         %e = tensor.empty()
         %y = kernel.launch @main_matmul_add_relu ins(%x, %w, %b) outs(%e)

Afterwards the host has no linalg op: every op that computes on tensors is in a kernel. A kernel
groups the ops that can share parallel loops with less memory traffic and no less parallelism. Where
a contraction would lose its register tile, the cost model decides. Each
generic iterates over the shared loops first; two generics with the same iteration space inside
those loops are merged into one with several results. Equal kernels are deduplicated.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult

from stepwell.analysis.structured import erase_dead
from stepwell.core.machine import Machine
from stepwell.lowering.outline_kernels.build import Kernel
from stepwell.lowering.outline_kernels.grow import Cut
from stepwell.lowering.outline_kernels.inserts import wrap_inserts
from stepwell.lowering.outline_kernels.merge import merge_walks
from stepwell.lowering.outline_kernels.names import kernel_name
from stepwell.lowering.outline_kernels.order import arrange
from stepwell.lowering.outline_kernels.outside import Outside
from stepwell.lowering.outline_kernels.soon import soon
from stepwell.lowering.outline_kernels.virtual_padding import read_beyond_edges
from stepwell.transforms.graph.outline_layers import named_after
from stepwell.transforms.kernels.same_kernels import Shared
from stepwell.transforms.kernels.schedule.searching import machine_of
from stepwell.transforms.kernels.schedule.vectors import MASKED_BITS
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class OutlineKernels(Pass):
    """Put every op that computes on tensors into a kernel.

    machine : the machine as NAME=VALUE with commas, or its name before them; without l2, kernels
        read and write whole tensors
    """

    name = "outline-kernels"
    one_block = True

    machine: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline the kernels of each function."""
        shared, outside, machine = Shared(), Outside(), machine_of(self.machine)
        for function in list(op.ops):
            if isinstance(function, func.FuncOp):
                for block in function.body.blocks:
                    _outline(block, function, shared, outside, machine)
        shared.unite()


def _outline(
    block: Block,
    function: func.FuncOp,
    shared: Shared,
    outside: Outside,
    machine: Machine,
) -> None:
    """Outline the kernels of ``block`` and of the control flow blocks nested in it."""
    module = function.parent
    assert module is not None
    cached = bool(machine.l2)
    if cached:
        read_beyond_edges(block, machine.vector_bits >= MASKED_BITS)
    wrap_inserts(block)
    erase_dead(block)
    sources: list[Operation] = []
    for cluster in Cut(block, outside, machine).grow(cached):
        arrange(cluster)
        name = kernel_name(named_after(function), cluster.members)
        sources += [
            v.owner for op in cluster.members for v in op.operands if isinstance(v, OpResult)
        ]
        kernel, launch = Kernel(cluster, cluster.members[-1]).build()
        merge_walks(kernel.body.block, len(cluster.loops[cluster.members[0]]))
        kernel, new = shared.add(kernel, name)
        if new:
            module.insert_op_before(kernel, function)
        launch.properties["callee"] = SymbolRefAttr(kernel.sym_name.data)
    _erase_unused(sources)
    roots = soon(block, function) if block is function.body.block else list(block.ops)
    _in_order(block, roots, outside)
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                _outline(inner, function, shared, outside, machine)


def _erase_unused(ops: list[Operation]) -> None:
    """Erase the destinations and constants of the host that kernels now define themselves."""
    while ops:
        op = ops.pop()
        known = isinstance(op, tensor.EmptyOp | linalg.FillOp | arith.ConstantOp)
        if op.parent is None or not known or op.results[0].first_use is not None:
            continue
        ops.extend(v.owner for v in op.operands if isinstance(v, OpResult))
        op.detach()
        op.erase()


def _in_order(block: Block, roots: list[Operation], outside: Outside) -> None:
    """Sort ``block`` so that definitions precede uses, otherwise in the order of ``roots``."""
    placed: dict[Operation, None] = {}
    for root in roots:
        waiting = [root]
        while waiting:
            op = waiting[-1]
            if op in placed:
                waiting.pop()
                continue
            missing = [
                made_by
                for v in outside.values(op)
                if isinstance(v, OpResult)
                and (made_by := v.op).parent is block
                and made_by not in placed
                and made_by is not op
            ]
            if missing:
                waiting.extend(reversed(missing))
            else:
                placed[waiting.pop()] = None
    if list(placed) != list(block.ops):
        for op in placed:
            op.detach()
        block.add_ops(placed)
