"""The rules for nontemporal stores of an op's results."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, OpResult

from stepwell.analysis.levels.kernel_ops import LoopedOp
from stepwell.analysis.levels.legality import refuse
from stepwell.analysis.levels.queries import KernelLevels, Lanes
from stepwell.analysis.levels.repeats import Repeats, written
from stepwell.analysis.structured import in_panels, stride
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import OVERLAP


def why_not_nontemporal(levels: KernelLevels, op: LoopedOp, lanes: Lanes, output: int) -> str:
    """Return why a result of an op cannot have nontemporal stores; "" if it can."""
    if output >= len(op.outputs):
        return f"the op has {len(op.outputs)} results"
    if levels.parts:
        return "parts of a sum are kept in caches"
    if levels.mirrors:
        return "'mirror' reads it again"
    value, index = written(op)[output]
    if lanes.width == 1 or in_panels(index, lanes.axis) or stride(index, lanes.axis) != 1:
        return "its elements are not stored in vectors"
    if isinstance(value, OpResult):
        kept = all(isinstance(use.operation, kernel.ReturnOp) for use in value.uses)
    else:
        free = linalg.FillOp, memref.DimOp
        uses = [use.operation for use in value.uses if not isinstance(use.operation, free)]
        kept = isinstance(value, BlockArgument) and uses == [op]
    return "" if kept else "it is read again, or is no result of the kernel"


def check_stores(levels: KernelLevels) -> None:
    """Check the nontemporal stores of a kernel's levels."""
    for number, (op, lanes) in enumerate(zip(levels.ops, levels.lanes, strict=True)):
        for output in lanes.nontemporal:
            said = why_not_nontemporal(levels, op, lanes, output)
            if not said and op in Repeats(levels.function).keeping:
                said = "its old value is read"
            if not said and lanes.tail == OVERLAP and lanes.axis >= levels.shared:
                said = "lines would be written twice where vectors overlap"
            if said:
                refuse(f"'nontemporal {output}' of op {number}: {said}")
