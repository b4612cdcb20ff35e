"""vector d0 by 4: neighbouring iterations of a loop form one vector."""

from __future__ import annotations

from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.kinds.kind import Kind, other_steps
from stepwell.lowering.nests.scope import Inner, Scope, State, begin
from stepwell.lowering.nests.steps import Step


def check(op: Structured, step: Step) -> str:
    """Accept whole vectors only: no lane may exceed the loop."""
    if op.reductions[step.loop]:
        return "a sum in vectors is not known inside of groups"
    if step.span != step.size:
        return "write the steps around a vector as another level"
    return ""


def emit(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Turn every point into a vector."""
    del frame
    points = tuple(p.bind(step.loop, begin(p, step.loop), step.size) for p in scope.points)
    return inner(scope.to(points, step.loop, step.size), state)


KIND = Kind(check, emit, other_steps)
