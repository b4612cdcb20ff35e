"""group d0 into 64: a full reduction is split into parts, whose results are combined in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from stepwell.analysis.structured import element
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.combining import combiner_of
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.points import compute
from stepwell.lowering.nests.scope import Scope
from stepwell.lowering.nests.sums import Sum


def write_parts(frame: Frame) -> None:
    """Write every op of a kernel whose sums are split; ops without loops run once."""
    for number, (op, ends) in enumerate(zip(frame.plan.ops, frame.extents, strict=True)):
        frame.writer.location, frame.number = op.op.location, number
        if op.carried:
            _in_parts(frame, number, op, ends)
        else:
            compute(frame, op, Scope((Point(()),), ()), ())


def _in_parts(frame: Frame, number: int, op: Structured, ends: Sequence[Index]) -> None:
    writer, level = frame.writer, frame.groups[0]
    cut, many = level.loop, level.parts
    whole = Scope((Point(tuple(Index() for _ in ends)),), tuple(ends))
    partials = [
        writer.result(memref.AllocaOp.get(element(op.outputs[k].buffer), 64, [many]), "partial")
        for k in op.carried
    ]
    length = writer.divide_up(ends[cut], many)

    def group(part: Index) -> None:
        low = writer.product(part, length)
        high = writer.minimum(low + length, ends[cut])
        here = replace(whole, ends=(*ends[:cut], high, *ends[cut + 1 :]))
        here = replace(here, points=tuple(p.bind(cut, low) for p in here.points))

        def keep(output: int, scope: Scope, point: Point, value: SSAValue) -> None:
            del scope, point
            writer.store(value, partials[op.carried.index(output)], [part])

        Sum(frame, op, keep).write(frame.steps(number), here)

    frame.over_groups(Index.of(many), group)
    point = whole.points[0]
    starts = [
        op.initial.get(k) or frame.places.read(op, op.outputs[k], -1, whole, (point, point), {})
        for k in op.carried
    ]

    def add(at: Index, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
        found: list[SSAValue] = []
        for total, partial, k in zip(totals, partials, op.carried, strict=True):
            part = writer.load(partial, [at])
            found.append(writer.binary(combiner_of(op, k).op, total, part))
        return found

    names = [op.name(k) for k in op.carried]
    totals = writer.loop((Index(), Index.of(many)), 1, starts, add, "r", names)
    for k, total in zip(op.carried, totals, strict=True):
        frame.places.write(op.outputs[k], point, total)
