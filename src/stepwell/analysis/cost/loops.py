"""Kernels of plain loops: the instructions of their bodies, times the iterations."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import memref, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block

from stepwell.analysis.cost.accesses import ASSUMED
from stepwell.analysis.cost.compute import LOOP_INSTRUCTIONS, Ports
from stepwell.analysis.cost.work import chain_from, count_op
from stepwell.analysis.structured import constant_of, shape
from stepwell.core.machine import Machine
from stepwell.dialects import kernel

LOADS = (memref.LoadOp, tensor.ExtractOp)
STORES = (memref.StoreOp, tensor.InsertOp)


def ports_of(function: kernel.FuncOp, machine: Machine) -> Ports:
    """Return the port cycles of the plain loops of a kernel."""
    if not any(isinstance(op, scf.ForOp | scf.WhileOp) for op in function.body.block.ops):
        return Ports()
    return _of(function.body.block, machine)


def _of(block: Block, machine: Machine) -> Ports:
    total = Ports()
    for op in block.ops:
        if isinstance(op, linalg.GenericOp | linalg.FillOp):
            continue  # counted with the nests
        if isinstance(op, scf.ForOp):
            total += _loop(op.body.block, _trips(op), machine)
            continue
        if isinstance(op, scf.WhileOp):
            total += _loop(op.after_region.block, ASSUMED, machine)
            continue
        for region in op.regions:
            for inner in region.blocks:
                total += _of(inner, machine)
        found = count_op(op)
        total += Ports(
            multiply_adds=found.products / machine.fma_ports,
            vectors=(found.products + found.others) / machine.vector_ports,
            loads=isinstance(op, LOADS) / machine.load_ports,
            stores=isinstance(op, STORES) / machine.store_ports,
            instructions=(found.products + found.others + found.lookups) / machine.issue,
            divisions=found.divisions * machine.divide,
        )
    return total


def _loop(body: Block, trips: float, machine: Machine) -> Ports:
    each = _of(body, machine) + Ports(instructions=LOOP_INSTRUCTIONS / machine.issue)
    carried = [chain_from(body, argument) for argument in body.args[1:]]
    waiting = max([each.waiting, max(carried, default=0.0) * machine.fma_latency])
    found = Ports(*(n * trips for n in each.all()))
    return replace(found, waiting=waiting * trips, starts=found.starts + machine.mispredict)


def _trips(op: scf.ForOp) -> float:
    low, high, step = (constant_of(value) for value in (op.lb, op.ub, op.step))
    if high is None and isinstance(op.ub.owner, tensor.DimOp | memref.DimOp):
        high = max((n for n in shape(op.ub.owner.source) if n != DYNAMIC_INDEX), default=None)
    if low is None or high is None or not step:
        return ASSUMED
    return max((high - low) / step, 0.0)
