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
"""

from __future__ import annotations

from stepwell.dialects.kernel.levels import Schedule
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.writer import Writer
from stepwell.lowering.nests.checking import check
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.nest import write_nest

__all__ = ["write_groups"]


def write_groups(writer: Writer, plan: Plan, schedule: Schedule) -> None:
    """Write the loops of a kernel on buffers whose schedule has groups."""
    check(plan.levels.function, plan.ops, schedule)
    write_nest(Frame(writer, plan, schedule))
