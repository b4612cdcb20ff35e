"""Schedule kernels that copy an operand into panels, as blocks read it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels import Lanes
from stepwell.analysis.structured import in_panels, indices
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import Loops, full_lanes


def panel_columns_of(ops: Sequence[Loops], shared: int) -> int | None:
    """Return the columns of a panel, where a kernel only copies an operand into panels."""
    op = ops[0].op
    if len(ops) > 1 or not shared or not isinstance(op, linalg.GenericOp):
        return None
    if len(op.inputs) != 1 or len(op.outputs) != 1 or len(op.iterator_types) == shared:
        return None
    found = in_panels(indices(op)[-1], shared - 1)
    return found[1] if found else None


def vectorise_panels(nest: Nest, columns: int, machine: Machine) -> None:
    """Transpose blocks of lanes through registers."""
    (loops,) = nest.ops
    width = full_lanes([loops], machine)
    while columns % width:
        width //= 2
    loops.lanes, nest.panels = Lanes(nest.shared - 1, width), columns
    explain_choice(
        nest.function,
        lambda: f"an operand packed into panels of {columns}, in tiles of {width} by {width}",
    )
