"""Write the loops of a kernel from the levels of its schedule, one level after the other.

Before:  kernel.func @k(...) attributes {kernel.shared = 2, kernel.schedule =
             #kernel.schedule<[group d0 by 64, group d1 by 64], op 0 [...], op 1 [...]>} {
           linalg.generic ops on buffers
         }
After:   scf.parallel (%p) = 0 to groups {kernel.lanes = 256} {
           memref.alloca in local memory and in registers of lanes
           scf.parallel (%l) = 0 to 256 {kernel.lane} { ... }
           scf.for ... { scf.parallel (%l) = ... {kernel.lane} { ... } ... }
         }

The work of a group is a sequence of loops over its lanes; each begins after all lanes have finished
the one before. So there is no barrier op: a device target emits a barrier between two such loops. A
CPU runs the loops as they are.

``kinds`` has a file for each kind of level (`Kind`: check, emit, neighbours).
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import Operation

from stepwell.analysis.levels import kernel_levels
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import ScheduleAttr
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.lowering.linalg_to_loops.plan import Schedule as Choices
from stepwell.lowering.linalg_to_loops.plan import make_plan
from stepwell.lowering.linalg_to_loops.structured import Structured, read
from stepwell.lowering.linalg_to_loops.writer import Writer
from stepwell.lowering.nests.checking import check
from stepwell.lowering.nests.nest import Nest

__all__ = ["has_groups", "lower"]


def has_groups(function: kernel.FuncOp) -> bool:
    """Whether the schedule of a kernel distributes its loops over groups of work-items."""
    found = function.attributes.get(SCHEDULE)
    return isinstance(found, ScheduleAttr) and found.data.has_groups


def lower(function: kernel.FuncOp) -> None:
    """Write the loops of a kernel on buffers whose schedule has groups."""
    attribute = function.attributes.pop(SCHEDULE)
    assert isinstance(attribute, ScheduleAttr)
    entry = function.body.block
    ops: list[Operation] = list(entry.ops)
    found = {op: loops for op in ops if (loops := read(op)) is not None}
    for op in ops:
        op.detach()
    run: list[Structured] = []
    end: Operation | None = None
    for op in ops:
        if op in found:
            run.append(found[op])
        elif isinstance(op, kernel.ReturnOp):
            end = op
        else:
            entry.add_op(op)
    plan = make_plan(run, Choices(kernel_levels(function)), set())
    check(function, plan.ops, attribute.data)
    writer = Writer(entry, entry)
    nest = Nest(writer, plan, attribute.data)
    nest.write()
    assert end is not None
    entry.add_op(end)
    for op in found:
        op.erase()
    for op in ops:
        if isinstance(op, memref.AllocOp) and op.memref.first_use is None:
            op.detach()
            op.erase()
    function.attributes.pop("kernel.shared", None)
