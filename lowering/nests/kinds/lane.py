"""lane d0 by 4: the work-items of a group take one step of a loop each."""

from __future__ import annotations

from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.kinds.kind import Kind, other_steps
from stepwell.lowering.nests.scope import Inner, Scope, State
from stepwell.lowering.nests.steps import Step


def check(op: Structured, step: Step) -> str:
    """Require a known number of lanes; for a sum, one that a reduction tree can combine."""
    if not step.span:
        return "how many lanes there are must be known: walk through the loop in steps before"
    if not op.reductions[step.loop]:
        return ""
    if not op.unordered:
        return "this op's iterations must run in order"
    if step.count & (step.count - 1):
        return "lanes that share a sum are a power of two"
    return ""


def emit(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Write the step of the current lane; the frame has opened all lanes at once."""
    begin = frame.lane_of(step, scope) * step.size
    here = scope.at(step.loop, begin, step.size)
    return inner(here, state)


KIND = Kind(check, emit, other_steps)
