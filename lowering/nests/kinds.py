"""The kinds of levels within a group: the conditions on an op, and the loop that is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from xdsl.ir import SSAValue

from stepwell.dialects.kernel.levels import FOR, GROUP, LANE, UNROLL, VECTOR
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.scope import Inner, Scope, State, begin
from stepwell.lowering.nests.staging import staged
from stepwell.lowering.nests.steps import Step

MAX_STEPS = 256
"""Steps of an unrolled loop; more accumulators than the registers of any machine."""


class Kind(NamedTuple):
    """One kind of level.

    check : returns why an op cannot have a level, "" where it can
    emit : writes one level around the code that ``inner`` writes
    """

    check: Callable[[Structured, Step], str]
    emit: Callable[[Frame, Step, Scope, State, Inner], State]


# group d0 by 64: groups of work-items, which share local memory, take a step of a loop each


def _check_group(op: Structured, step: Step) -> str:
    """Refuse a shared sum: groups do not synchronise."""
    if step.loop < len(op.reductions) and op.reductions[step.loop] and not step.level.parts:
        return "groups do not share a sum: cut it 'into' parts"
    return ""


def _group(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Write the step of the current group; the frame has opened all groups at once."""
    here = scope.at(step.loop, frame.group_numbers[step.loop] * step.size, step.size)
    if step.size == 1 or scope.divides(step.loop, step.size):
        here = here.exactly(step.loop)
    return staged(frame, step, here, lambda: inner(here, state))


# lane d0 by 4: the work-items of a group take one step of a loop each


def _check_lane(op: Structured, step: Step) -> str:
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


def _lane(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Write the step of the current lane; the frame has opened all lanes at once."""
    return inner(scope.at(step.loop, frame.lane_of(step, scope) * step.size, step.size), state)


# for d0 by 16: a sequential loop in steps of 16, each of which may stage operands


def _check_loop(op: Structured, step: Step) -> str:
    """Return "": every loop may run in order."""
    del op, step
    return ""


def _loop(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
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
        return staged(frame, step, here, lambda: inner(here, args))

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


# unroll d0: the steps of a loop are unrolled


def _check_unroll(op: Structured, step: Step) -> str:
    """Require a known, small number of steps, of a parallel loop."""
    if not step.span or step.count > MAX_STEPS:
        return f"only a known number of steps, {MAX_STEPS} at most, is written out"
    if op.reductions[step.loop]:
        return "the steps of a sum are not written out"
    return ""


def _unroll(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Replace each point by one point for each step."""
    del frame
    points = tuple(
        p.bind(step.loop, begin(p, step.loop) + Index.of(n * step.size))
        for p in scope.points
        for n in range(step.count)
    )
    points = tuple(p._replace(slot=n) for n, p in enumerate(points))
    return inner(scope.to(points, step.loop, step.size), state)


# vector d0 by 4: neighbouring iterations of a loop form one vector


def _check_vector(op: Structured, step: Step) -> str:
    """Accept whole vectors only: no lane may exceed the loop."""
    if op.reductions[step.loop]:
        return "a sum in vectors is not known inside of groups"
    if step.span != step.size:
        return "write the steps around a vector as another level"
    return ""


def _vector(frame: Frame, step: Step, scope: Scope, state: State, inner: Inner) -> State:
    """Turn every point into a vector."""
    del frame
    points = tuple(p.bind(step.loop, begin(p, step.loop), step.size) for p in scope.points)
    return inner(scope.to(points, step.loop, step.size), state)


KINDS = {
    GROUP: Kind(_check_group, _group),
    LANE: Kind(_check_lane, _lane),
    FOR: Kind(_check_loop, _loop),
    UNROLL: Kind(_check_unroll, _unroll),
    VECTOR: Kind(_check_vector, _vector),
}
"""Each kind by its keyword in a schedule."""
