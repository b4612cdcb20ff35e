"""Choose the tiles of copies: into panels, as blocks read them, and across rows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels import Lanes
from stepwell.analysis.structured import in_panels, stride
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import MIN_LANES, Loops, full_lanes


def transposes(nest: Nest, machine: Machine) -> bool:
    """Choose tiles for a kernel that only copies, transposed in registers; False for others."""
    if len(nest.ops) > 1 or not nest.shared:
        return False
    (loops,) = nest.ops
    if columns := _panel_columns(loops, nest.shared):
        width = full_lanes([loops], machine)
        while columns % width:
            width //= 2
        nest.panels = columns
        said = f"an operand packed into panels of {columns}, in tiles of {width} by {width}"
    elif machine.l2 and (found := _width(loops, nest.shared, machine)) is not None:
        width = nest.steps[nest.shared - 2] = found
        said = f"a copy across rows, in tiles of {width} by {width} transposed in registers"
    else:
        return False
    loops.lanes = Lanes(nest.shared - 1, width)
    explain_choice(nest.function, lambda: said)
    return True


def _panel_columns(loops: Loops, shared: int) -> int:
    """Return the columns of a panel, where an op only copies an operand into panels; else 0."""
    if len(loops.op.inputs) != 1 or len(loops.where) != 2 or len(loops.extents) == shared:
        return 0
    found = in_panels(loops.where[-1], shared - 1)
    return found[1] if found else 0


def _width(loops: Loops, shared: int, machine: Machine) -> int | None:
    """Return the size of the blocks of a transposing copy; None for other ops.

    Its last loop is contiguous in the destination, the one before it in the source.
    """
    where = loops.where
    if shared < 2 or len(loops.parallel) != shared or len(where) != 2 or loops.gathers:
        return None
    read, written = where
    across = stride(read, shared - 1) is None and stride(written, shared - 2) is None
    if not across or stride(read, shared - 2) != 1 or stride(written, shared - 1) != 1:
        return None
    sizes = [loops.extents[k] for k in (shared - 2, shared - 1)]
    most = full_lanes([loops], machine)
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
