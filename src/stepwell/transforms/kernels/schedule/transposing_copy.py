"""Choose the blocks of a copy that transposes through registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.vectors import (
    MIN_LANES,
    Loops,
    full_lanes,
    stride,
)


def transposing_copy(ops: Sequence[Loops], shared: int, machine: Machine) -> int | None:
    """Return the size of the blocks of a kernel that is one transposing copy.

    Its last loop is contiguous in the destination, the one before it in the source.
    """
    if len(ops) != 1 or shared < 2:
        return None
    (loops,) = ops
    where = loops.where
    if len(loops.parallel) != shared or len(where) != 2 or loops.gathers:
        return None
    read, written = where
    across = stride(read, shared - 1) is None and stride(written, shared - 2) is None
    if not across or stride(read, shared - 2) != 1 or stride(written, shared - 1) != 1:
        return None
    sizes = [loops.extents[k] for k in (shared - 2, shared - 1)]
    most = full_lanes(ops, machine)
    fitting: list[int] = []
    while most >= MIN_LANES:
        if all(n == DYNAMIC_INDEX or n >= most for n in sizes):
            fitting.append(most)
        most //= 2
    return min(fitting, key=lambda width: _cost(sizes, width), default=None)


def _cost(sizes: Sequence[int], width: int) -> float:
    """Return the cost of a copy whose tail outside of whole blocks is copied one by one."""
    inside = 1.0
    for n in sizes:
        inside *= 1.0 if n == DYNAMIC_INDEX else n // width * width / n
    return inside / width + (1 - inside)
