"""How long a kernel will take as it is scheduled: a model of one line for each of its ops.

A vector instruction does one operation on each lane, as many a second as the machine was measured
to fuse; memory gives what it was measured to give. The greater of the two is the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.structured import cost
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.kernels.schedule.block_sizes import NARROW_TILES, TILES
from stepwell.transforms.kernels.schedule.vectors import Loops, read

WAKING = 2e-6
"""Seconds until another thread has its part."""
WITHOUT_TILE = 0.25
"""The part of the peak that a sum of products reaches without a register tile."""
IN_BANDS = 0.9
"""The same of contractions that run in bands of rows."""
PACKED = 0.95
"""What is left of it where an operand is packed, for the packing."""


@dataclass(frozen=True)
class Rates:
    """What the machine does at most, all threads together."""

    threads: int
    lanes: int
    """Of f32 in a vector."""
    vectors: float
    """Vector instructions a second."""
    seconds: Callable[[int], float]
    """The least time to touch so many bytes."""


def predicted(
    function: kernel.FuncOp,
    bytes: int | None,
    rates: Rates,
    iterations: Callable[[linalg.GenericOp], int | None],
) -> float | None:
    """Return the seconds of one launch; None where only the run knows the sizes.

    iterations : tells how often the body of an op runs, where that is known
    """
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    counts = [iterations(op) for op in ops]
    if bytes is None or None in counts:
        return None
    parallel = any(f"kernel.{name}" in function.attributes for name in ("parallel", "split"))
    threads = rates.threads if parallel else 1
    instructions = sum(
        _instructions(function, read(op), count or 0) for op, count in zip(ops, counts, strict=True)
    )
    seconds = instructions / (rates.vectors / rates.threads * threads)
    waking = WAKING if threads > 1 else 0.0
    return max(seconds, rates.seconds(bytes)) + waking


def _instructions(function: kernel.FuncOp, loops: Loops, iterations: int) -> float:
    """Return how many vector instructions an op takes."""
    assert isinstance(loops.op, linalg.GenericOp)
    chosen = loops.op.attributes.get("kernel.loops")
    width = chosen.width.data if isinstance(chosen, kernel.LoopsAttr) else 1
    if loops.contracts:
        return iterations / width / _part_of_peak(function)
    return iterations * max(cost(loops.op.body.block), 1) / width


def _part_of_peak(function: kernel.FuncOp) -> float:
    if "kernel.band" in function.attributes:
        return IN_BANDS
    if not (tile := choices.numbers(function, "kernel.tile")):
        return WITHOUT_TILE
    rows, vectors = tile
    known = TILES.get((rows, vectors)) or NARROW_TILES.get((rows, vectors))
    reached = known or min(1.0, rows * vectors / 20)
    return reached * PACKED if "kernel.block" in function.attributes else reached
