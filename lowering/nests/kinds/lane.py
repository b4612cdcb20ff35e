"""lane d0 by 4: steps of a loop are given to the work-items of a group."""

from __future__ import annotations

from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.kinds.kind import Kind, other_steps
from stepwell.lowering.nests.scope import Inner, Scope, State
from stepwell.lowering.nests.steps import Step


def check(op: Structured, step: Step) -> str:
    """How many lanes there are must be known; of a sum they must be addable in a tree."""
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
    """Go to the step of which this lane is; The frame has opened all lanes at once."""
    begin = frame.lane_of(step, scope) * step.size
    here = scope.at(step.loop, begin, step.size)
    return inner(here, state)


KIND = Kind(check, emit, other_steps)
