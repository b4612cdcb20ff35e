"""The body of an op at points: the iterations that one step of the innermost loops computes.

The points are the register tile, or the interleaved vectors, side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.body import BodyWriter, Point, arguments
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.register_transpose import read_transposed
from stepwell.lowering.linalg_to_loops.structured import Access, Structured


def compute(
    frame: Frame, op: Structured, points: Sequence[Point], state: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Write the body at every point; store results that are not carried; return the next state."""
    carried, cache = op.carried, frame.loads(op, points)
    for k, access in enumerate(op.inputs):
        if op.body is not None and op.uses(k):
            read_transposed(frame.memory, access, points, frame.plan.levels.shared - 2, cache)
    body = BodyWriter(frame.writer, op)

    def given(point: Point) -> list[SSAValue | None]:
        def read(access: Access, k: int) -> SSAValue:
            hint = op.body.args[k].name_hint if op.body is not None and k >= 0 else None
            return frame.memory.read(access, point, cache, hint)

        return arguments(op, state[point.carried : point.carried + len(carried)], read)

    found = [given(p) for p in points]
    results = [body.write(p, a) for p, a in zip(points, found, strict=True)]
    after = list(state)
    for point, values in zip(points, results, strict=True):
        for i, k in enumerate(carried):
            after[point.carried + i] = frame.writer.broadcast(values[k], point.width)
        for k, value in enumerate(values):
            if k not in carried:
                write(frame, op, k, point, value)
    return after


def start(frame: Frame, op: Structured, output: int, point: Point) -> SSAValue:
    """Return the initial value of an output's reduction."""
    value = op.initial.get(output)
    if value is None:
        value = frame.memory.read(op.outputs[output], point, {})
    return frame.writer.broadcast(value, point.width)


def finish(
    frame: Frame, op: Structured, points: Sequence[Point], totals: Sequence[SSAValue]
) -> None:
    """Write the final accumulators to the outputs."""
    carried = op.carried
    for i, point in enumerate(points):
        for j, k in enumerate(carried):
            write(frame, op, k, point, totals[i * len(carried) + j])


def write(frame: Frame, op: Structured, output: int, point: Point, value: SSAValue) -> None:
    """Write one result at a point."""
    access = op.outputs[output]
    last = frame.plan.ops[frame.plan.buffers[access.buffer].last_writer] is op
    frame.memory.write(access, point, value, last)
