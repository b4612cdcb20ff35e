"""group d0 by 64: groups of work-items, which share local memory, take a step of a loop each."""

from __future__ import annotations

from xdsl.dialects import arith

from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.kinds.kind import Kind, other_steps
from stepwell.lowering.nests.scope import Inner, Scope, State
from stepwell.lowering.nests.steps import Step


def check(op: Structured, step: Step) -> str:
    """Refuse a shared sum: groups do not synchronise."""
    if step.loop < len(op.reductions) and op.reductions[step.loop] and not step.level.parts:
        return "groups do not share a sum: cut it 'into' parts"
    return ""


def emit(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Write the step of the current group; the frame has opened all groups at once."""
    begin = frame.group_of(step) * step.size
    here = scope.at(step.loop, begin, step.size)
    if step.size == 1 or scope.divides(step.loop, step.size):
        here = here.exactly(step.loop)
    return frame.staged(step, here, lambda: inner(here, state))


def trips(frame: Frame, step: Step, scope: Scope) -> Index:
    """Return the number of groups along a loop."""
    end = scope.ends[step.loop]
    return frame.writer.divide(end + (step.size - 1), step.size, arith.DivUIOp)


KIND = Kind(check, emit, other_steps)
