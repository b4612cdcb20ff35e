"""Write the groups of a kernel and, within each, its ops, from the outermost level inwards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects import arith

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.buffers import place_buffers
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.parts import write_parts
from stepwell.lowering.nests.points import compute, in_lanes, walk
from stepwell.lowering.nests.scope import Scope
from stepwell.lowering.nests.steps import Step, steps_of, without_lanes
from stepwell.lowering.nests.sums import Sum


def write_nest(frame: Frame) -> None:
    """Write all of the kernel."""
    if frame.groups[0].parts:
        write_parts(frame)
        return
    ends = tuple(frame.extents[0][: frame.shared])
    first = Scope((Point(tuple(Index() for _ in ends)),), ends)
    groups = [Step(level, 0) for level in frame.groups]
    counts = [frame.writer.divide_up(first.ends[step.loop], step.size) for step in groups]

    def body(number: Index) -> None:
        _number(frame, groups, counts, number)
        walk(frame, groups, first, (), lambda scope, _: _within(frame, scope) or ())

    frame.over_groups(reduce(frame.writer.product, counts, Index.of(1)), body)


def _number(frame: Frame, groups: Sequence[Step], counts: Sequence[Index], number: Index) -> None:
    """Split the number of a group into its number along each loop."""
    for step, count in reversed(list(zip(groups, counts, strict=True))):
        last = step is groups[0]
        at = number if last else frame.writer.divide(number, count, arith.RemUIOp)
        if count.number is not None:
            frame.writer.bound(at, 0, count.number - 1)
        frame.group_numbers[step.loop] = at
        number = number if last else frame.writer.divide(number, count)


# within a group


def _within(frame: Frame, scope: Scope) -> None:
    """Write every op; all in one loop over lanes if they share the lanes."""
    place_buffers(frame, scope)
    if not frame.together:
        for number, op in enumerate(frame.plan.ops):
            _write_op(frame, op, frame.steps(number), frame.of_op(scope, frame.extents[number]))
        return
    shared = steps_of(frame.inner, scope.sizes)

    def each(here: Scope) -> None:
        frame.places.registers.clear()
        walk(frame, without_lanes(shared), here, (), lambda inner, _: _each(frame, inner) or ())

    in_lanes(frame, shared, scope, each)


def _each(frame: Frame, scope: Scope) -> None:
    for number, op in enumerate(frame.plan.ops):
        own = steps_of(frame.own_levels(number), scope.sizes)
        _write_op(frame, op, own, frame.of_op(scope, frame.extents[number]))


def _write_op(frame: Frame, op: Structured, steps: Sequence[Step], scope: Scope) -> None:
    """Write one op."""
    frame.writer.location = op.op.location
    frame.number = frame.plan.ops.index(op)
    if op.carried:
        Sum(frame, op).write(steps, scope)
        return

    def inside(here: Scope) -> None:
        walk(frame, without_lanes(steps), here, (), lambda s, _: compute(frame, op, s, ()))

    in_lanes(frame, steps, scope, inside)
