"""Choose how many steps of a sum before their use register tiles prefetch distant operands."""

from __future__ import annotations

from math import ceil, prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels.kernel_ops import prefetched_loop
from stepwell.analysis.structured import bits_of, element, stride, tensor_bytes
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.beyond import is_hidden, stays
from stepwell.transforms.kernels.schedule.block_sizes import MEMORY_BOUND_ROWS
from stepwell.transforms.kernels.schedule.blocking_reasons import ASKED
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.tiles import PREFETCH_STEPS
from stepwell.transforms.kernels.schedule.vectors import Loops

MIN_STEPS = 128
"""Steps of a tile from which prefetching its later reads pays."""


def steps_before_use(found: Loops, shared: int, tile: int, machine: Machine) -> int:
    """Return how many steps before their use a contraction prefetches operands, 0 for none.

    tile : vectors of a register tile
    """
    steps = PREFETCH_STEPS if _waits_for_rows(found, shared, machine) else 0
    steps = steps or _images_before_use(found, shared, tile, machine)
    if steps:
        explain_choice(found.op, lambda: ASKED)
    return steps


def _waits_for_rows(found: Loops, shared: int, machine: Machine) -> bool:
    """Whether tiles wait for distant rows of an operand beyond the L2 cache."""
    if len(found.parallel) != shared + 1 or not machine.l2:
        return False
    if found.size(shared - 2) <= MEMORY_BOUND_ROWS:  # they read the next row soon anyway
        return False
    for _, operand, index, loops in found.operands:
        if shared - 2 in loops or not {shared - 1, shared} <= loops:
            continue
        size = found.size(shared - 1) * found.size(shared) * bits_of(element(operand)) // 8
        if (
            stride(index, shared - 1) == 1
            and size >= machine.l2
            and found.size(shared) >= MIN_STEPS
            and not is_hidden(size, machine)
        ):
            return True
    return False


def _images_before_use(found: Loops, shared: int, tile: int, machine: Machine) -> int:
    """Return how many images pass before a line arrives from beyond the L2 cache.

    A window slides along rows of one image after another: hardware prefetches no line of the next.
    """
    sums = range(shared, len(found.extents))
    if not isinstance(found.op, linalg.GenericOp) or not machine.l2:
        return 0
    loop = prefetched_loop(found.op, shared - 1)
    if loop is None or DYNAMIC_INDEX in found.extents or loop == sums[-1]:
        return 0
    bytes = max(
        (
            tensor_bytes(operand)
            for _, operand, _, loops in found.operands
            if {loop, shared - 1} <= loops and shared - 2 not in loops
        ),
        default=0,
    )
    if bytes < machine.l2 or is_hidden(bytes, machine):
        return 0
    latency = machine.l3_latency if bytes < stays(machine) else machine.memory_latency
    cycles = tile * prod(found.size(k) for k in sums if k > loop) / machine.fma_rate
    steps = ceil(latency / cycles)
    return steps if steps < found.size(loop) else 0
