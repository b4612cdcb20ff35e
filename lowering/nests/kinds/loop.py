"""for d0 by 16: a sequential loop in steps of 16, each of which may stage operands."""

from __future__ import annotations

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.kinds.kind import Kind, other_steps
from stepwell.lowering.nests.scope import Inner, Scope, State, begin
from stepwell.lowering.nests.steps import Step


def check(op: Structured, step: Step) -> str:
    """Return "": every loop may run in order."""
    del op, step
    return ""


def emit(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Write a loop up to the end of the enclosing step or of the whole loop, whichever is first."""
    k, writer = step.loop, frame.writer
    first = begin(scope.points[0], k)
    upper = scope.ends[k]
    if step.span and not (k in scope.exact and scope.divides(k, step.span)):
        upper = writer.minimum(first + step.span, upper)
    elif step.span:
        upper = first + step.span

    def body(at: Index, args: State) -> State:
        here = scope.at(k, at - first, step.size)
        if _is_exact(step, scope):
            here = here.exactly(k)
        return frame.staged(step, here, lambda: inner(here, args))

    names: list[str | None] = [value.name_hint for value in state]
    values: list[SSAValue] = list(state)
    return writer.loop(
        (first, upper), max(step.size, 1), values, body, NAMES[k % len(NAMES)], names
    )


def _is_exact(step: Step, scope: Scope) -> bool:
    """Whether no iteration of a step exceeds the loop, all points being at the same index."""
    alone = len({begin(p, step.loop).key for p in scope.points}) == 1
    taken = scope.sizes.get(step.loop, step.size)
    return alone and (min(step.size, taken) == 1 or scope.divides(step.loop, step.size))


KIND = Kind(check, emit, other_steps)
