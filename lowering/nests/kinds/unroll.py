"""unroll d0: the steps of a loop are unrolled."""

from __future__ import annotations

from dataclasses import replace

from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.kinds.kind import Kind, other_steps
from stepwell.lowering.nests.scope import Inner, Scope, State, begin
from stepwell.lowering.nests.steps import Step

MAX_STEPS = 256
"""Steps of an unrolled loop; more accumulators than the registers of any machine."""


def check(op: Structured, step: Step) -> str:
    """Require a known, small number of steps, of a parallel loop."""
    if not step.span or step.count > MAX_STEPS:
        return f"only a known number of steps, {MAX_STEPS} at most, is written out"
    if op.reductions[step.loop]:
        return "the steps of a sum are not written out"
    return ""


def emit(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Replace each point by one point for each step."""
    del frame
    points = tuple(
        p.bind(step.loop, begin(p, step.loop) + Index.of(n * step.size))
        for p in scope.points
        for n in range(step.count)
    )
    points = tuple(replace(p, slot=n) for n, p in enumerate(points))
    return inner(scope.to(points, step.loop, step.size), state)


KIND = Kind(check, emit, other_steps)
