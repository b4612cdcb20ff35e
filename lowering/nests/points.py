"""The code of one lane: levels from the outermost inwards, and the bodies of ops at points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from stepwell.analysis.structured import dims_of
from stepwell.dialects.kernel.levels import LANE
from stepwell.lowering.linalg_to_loops.body import BodyWriter, Point, arguments
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.kinds import KINDS
from stepwell.lowering.nests.scope import Inner, Scope, State, begin
from stepwell.lowering.nests.steps import Step, lanes_of
from stepwell.transforms.passes import fail


def walk(frame: Frame, steps: Sequence[Step], scope: Scope, state: State, leaf: Inner) -> State:
    """Write levels around the code that ``leaf`` writes; return the accumulators after them."""
    if not steps:
        return leaf(scope, state)
    step, *rest = steps
    kind = KINDS[step.kind]
    return kind.emit(frame, step, scope, state, lambda s, v: walk(frame, rest, s, v, leaf))


def in_lanes(
    frame: Frame, steps: Sequence[Step], scope: Scope, inside: Callable[[Scope], None]
) -> None:
    """Open the lanes of an op, unless they are open, and write the steps of each."""
    lanes = [step for step in steps if step.kind == LANE]
    if scope.lane is not None:
        inside(scope)
        return

    def body(lane: Index) -> None:
        here = replace(scope, lane=lane)
        walk(frame, lanes, here, (), lambda s, _: inside(s) or ())

    frame.open_lanes = lanes
    frame.over_lanes(lanes_of(lanes), body)


# points


def compute(frame: Frame, op: Structured, scope: Scope, state: State) -> State:
    """Write the body of an op at every point; store each result that is not accumulated."""
    carried, after = op.carried, list(state)
    body = BodyWriter(frame.writer, op)
    loaded: dict[object, SSAValue] = {}
    if any(k not in scope.exact for k in op.reduced):
        fail(op.op, "the levels of a sum go beyond its end: walk through it in single steps")
    for number, point in enumerate(scope.points):
        inside = clamped(frame, scope, point)
        here = list(state[number * len(carried) : (number + 1) * len(carried)])

        def read(access: Access, k: int, at: tuple[Point, Point] = (point, inside)) -> SSAValue:
            return frame.places.read(op, access, k, scope, at, loaded if k >= 0 else {})

        values = body.write(inside, arguments(op, here, read))
        for k, value in enumerate(values):
            if k in carried:
                wide = frame.writer.broadcast(value, point.width)
                after[number * len(carried) + carried.index(k)] = wide
            else:
                store(frame, op, k, scope, point, value)
    return after


def clamped(frame: Frame, scope: Scope, point: Point) -> Point:
    """Return a point with indices clamped to their loops: nothing beyond is stored."""
    for k in range(len(point.indices)):
        if k in scope.exact:
            continue
        if point.width and k == point.axis:
            fail(frame.plan.ops[0].op, "a vector of a group must not end beyond its loop")
        inside = frame.writer.minimum(begin(point, k), scope.ends[k] + -1)
        point = point.bind(k, inside)
    return point


def store(
    frame: Frame, op: Structured, output: int, scope: Scope, point: Point, value: SSAValue
) -> None:
    """Write a result, guarded by tests that the point is within all loops."""
    access, writer = op.outputs[output], frame.writer
    known = frame.plan.buffers[access.buffer]
    last = known.last_writer == frame.plan.ops.index(op)
    if frame.places.keep(access, scope, point, value) and (known.alloc or not last):
        return
    tests = [
        writer.compare("slt", begin(point, k), scope.ends[k])
        for k in sorted(dims_of(access.exprs))
        if k not in scope.exact and not writer.is_within(begin(point, k), scope.ends[k])
    ]
    writer.branch(writer.every(tests), lambda: frame.places.write(access, point, value))
