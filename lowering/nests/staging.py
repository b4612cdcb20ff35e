"""{stage 0}: the lanes of a group copy the operand of a step into local memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeVar

from xdsl.dialects import arith

from stepwell.analysis.reach import spans
from stepwell.analysis.structured import dims_of, element
from stepwell.dialects.kernel.levels import LANE
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.places import LOCAL, Tile
from stepwell.lowering.nests.scope import Scope
from stepwell.lowering.nests.steps import Step
from stepwell.transforms.passes import fail

Found = TypeVar("Found")


def staged(frame: Frame, step: Step, scope: Scope, inner: Callable[[], Found]) -> Found:
    """Copy the part of each staged input that a step reads, then write the step's contents."""
    numbers = [a.number or 0 for a in step.level.actions if a.name == "stage"]
    if not numbers:
        return inner()
    op, here = frame.plan.ops[frame.number], frame.of_op(scope, frame.extents[frame.number])
    for number in numbers:
        frame.places.staged[op, number] = _copied(frame, op, number, here)
    found = inner()
    for number in numbers:
        del frame.places.staged[op, number]
    return found


def _is_walked_down(frame: Frame, access: Access, shape: Sequence[int]) -> bool:
    """Whether neighbouring lanes read different rows of a copy.

    Rows are then padded by one element, so that lanes access different banks of local memory. Where
    lanes walk along rows, rows stay aligned, and a lane reads its elements as one vector.
    """
    lanes = [step.loop for step in frame.steps(frame.number) if step.kind == LANE]
    along = bool(lanes) and lanes[-1] in dims_of(access.exprs[-1:])
    return len(shape) > 1 and shape[-1] > 1 and not along


def _copied(frame: Frame, op: Structured, number: int, scope: Scope) -> Tile:
    access, writer = op.inputs[number], frame.writer
    shape = spans(access.exprs, scope.step_sizes())
    if shape is None:
        fail(op.op, f"operand {number} cannot be staged: how much a step reads is not known")
    begins = [writer.affine(e, scope.points[0].indices) for e in access.exprs]
    key = (op, number)
    if key not in frame.local:
        padded = [*shape[:-1], shape[-1] + 1] if _is_walked_down(frame, access, shape) else shape
        hint = f"{access.buffer.name_hint or 'x'}_local"
        frame.local[key] = frame.places.allocate(padded, element(access.buffer), LOCAL, hint)
    memory = frame.local[key]
    ends = [frame.dim(access.buffer, d) for d in range(len(shape))]

    def copy(lane: Index) -> None:
        def one(at: Index) -> None:
            where: list[Index] = []
            rest = at
            for size in reversed(shape):
                where.insert(0, writer.divide(rest, size, arith.RemUIOp))
                rest = writer.divide(rest, size)
            there = [
                writer.minimum(b + w, end + -1)
                for b, w, end in zip(begins, where, ends, strict=True)
            ]
            writer.store(writer.load(access.buffer, there), memory, where)

        writer.each((lane, Index.of(prod(shape))), frame.lanes, one, "i")

    frame.over_lanes(min(frame.lanes, prod(shape)), copy)
    return Tile(memory, tuple(begins))
