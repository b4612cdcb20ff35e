"""Choose the storage of the buffers between the ops of a group."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from stepwell.analysis.reach import spans
from stepwell.analysis.structured import bytes_of, dims_of, element
from stepwell.dialects.kernel.levels import LANE, UNROLL
from stepwell.lowering.linalg_to_loops.structured import Access
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.places import LANES, LOCAL, Tile
from stepwell.lowering.nests.scope import Scope
from stepwell.lowering.nests.steps import Step

MAX_LOCAL_BYTES = 32 << 10
"""Bytes of local memory of a group for buffers between ops: the least that a device has."""


def place_buffers(frame: Frame, scope: Scope) -> None:
    """Place each buffer between ops in registers, local memory, or memory."""
    steps = [frame.steps(n) for n in range(len(frame.plan.ops))]
    left = MAX_LOCAL_BYTES
    passing: set[SSAValue] = set()
    for buffer, known in frame.plan.buffers.items():
        found = [
            (n, access)
            for n, op in enumerate(frame.plan.ops)
            for access in (*op.inputs, *op.outputs)
            if access.buffer is buffer
        ]
        if not found or not _begins_written(frame, found[0][0], buffer):
            continue
        if frame.together:
            if known.in_registers:
                passing.add(buffer)
            continue
        if known.alloc is None and len(found) == 1:
            continue
        if (slots := _slots(frame, found, steps)) is not None:
            shape = [frame.lanes, slots]
            hint = buffer.name_hint
            memory = frame.places.allocate(shape, element(buffer), LANES, hint)
            frame.places.owned[buffer] = memory
            continue
        if known.alloc is None:
            continue
        number, access = found[0]
        shape = _tile(frame, number, access, scope)
        if shape is None or prod(shape) * bytes_of(buffer) > left:
            continue
        left -= prod(shape) * bytes_of(buffer)
        memory = frame.places.allocate(shape, element(buffer), LOCAL, buffer.name_hint)
        points = frame.of_op(scope, frame.extents[number]).points
        begins = [frame.writer.affine(e, points[0].indices) for e in access.exprs]
        frame.places.tiles[buffer] = Tile(memory, tuple(begins))
    frame.places.passing = frozenset(passing)


def _begins_written(frame: Frame, number: int, buffer: SSAValue) -> bool:
    """Whether the first op that touches a buffer, ``number``, writes it without reading it."""
    op = frame.plan.ops[number]
    outputs = [k for k, access in enumerate(op.outputs) if access.buffer is buffer]
    return not any(access.buffer is buffer for access in op.inputs) and all(
        op.argument(k) is None or k in op.initial for k in outputs
    )


def _slots(
    frame: Frame, found: Sequence[tuple[int, Access]], steps: Sequence[Sequence[Step]]
) -> int | None:
    """Return the number of points of a buffer that a lane owns, where no lane reads another's."""
    first = _own_steps(frame, found[0][0], steps)
    exprs = {access.exprs for _, access in found}
    if len(exprs) > 1 or any(_own_steps(frame, n, steps) != first for n, _ in found):
        return None
    loops = {step.loop for step in first}
    (expr,) = exprs
    if any(k >= frame.shared for k in loops) or not loops or dims_of(expr) < loops:
        return None
    if any(step.kind not in (LANE, UNROLL) for step in first):
        return None
    return prod(step.count for step in first if step.kind != LANE)


def _own_steps(frame: Frame, number: int, steps: Sequence[Sequence[Step]]) -> list[Step]:
    op = frame.plan.ops[number]
    return [step for step in steps[number] if not op.reductions[step.loop]]


def _tile(frame: Frame, number: int, access: Access, scope: Scope) -> list[int] | None:
    return spans(access.exprs, frame.of_op(scope, frame.extents[number]).step_sizes())
