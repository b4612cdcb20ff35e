"""The loops of a kernel: the shared ones once, around the loops and the body of each op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from stepwell.analysis.levels.tails import (
    PaddedRead,
    ends_apart,
    in_sizes,
    parts_of,
    tile_sizes,
)
from stepwell.analysis.structured import element
from stepwell.dialects.kernel.levels import BORDER, MASK, OVERLAP, REPEAT
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.border_rows import through_borders
from stepwell.lowering.linalg_to_loops.epilogue import is_in_rows
from stepwell.lowering.linalg_to_loops.frame import Bounds, Frame
from stepwell.lowering.linalg_to_loops.points import compute, finish, start
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.sum_loops import Sum, write_sum
from stepwell.lowering.linalg_to_loops.tails import (
    Loop,
    Taken,
    further,
    steps,
    walk_through,
)
from stepwell.lowering.linalg_to_loops.threads import Opened, in_threads
from stepwell.lowering.linalg_to_loops.within import rounded, shared_part
from stepwell.lowering.linalg_to_loops.writer import Index


def write_nest(frame: Frame) -> None:
    """Write the whole nest."""
    levels = frame.plan.levels
    for k in range(levels.shared):
        if (found := shared_part(frame.writer, frame.plan, k, frame.ends[k])) is not None:
            frame.begins[k] = found[0]
            for extents in frame.extents.values():
                extents[k] = found[1] - found[0]
    in_threads(frame, levels.steps[: levels.parallel], lambda opened: _shared(frame, opened, []))


# shared loops


def _shared(frame: Frame, opened: Opened, taken: Sequence[Taken]) -> None:
    """Walk through the shared loops after those with a step in ``taken``; write their contents."""
    k = len(taken)
    if k < frame.plan.levels.shared:

        def inside(some: Taken) -> None:
            _shared(frame, opened, [*taken, some])

        if frame.plan.levels.tail(k) == BORDER and frame.ends[k].number is None:
            through_borders(frame, k, _unit(frame, k), inside)
        else:
            walk_through(frame.writer, _shared_loop(frame, k, opened.get(k)), inside)
        return
    points = [Point((None,) * k)]
    for k, some in enumerate(taken):
        points = [q for p in points for q in some.points(frame.writer, p, k)]
    _iteration(frame, taken, [p._replace(slot=i) for i, p in enumerate(points)])


def _shared_loop(frame: Frame, k: int, opened: Bounds | None) -> Loop:
    """Return how a shared loop, or the part that a thread has, is walked through."""
    plan, levels, extent = frame.plan, frame.plan.levels, frame.ends[k]
    bounds = opened or (Index(), extent)
    known, vectors = extent.number is not None, k == plan.axis
    tail, width = levels.tail(k), plan.first.width if vectors else 1
    least, most = plan.lengths(plan.first, k)
    ends = "" if not vectors or (known and tail != MASK) else tail
    if ends == MASK and not frame.masks(plan.ops, k):
        ends = ""
    if opened or not known:
        parts: Sequence[tuple[Bounds, Sequence[int]]] = [(bounds, _sizes(frame, k))]
    else:
        tiled = _tiled(frame, k, extent.number or 0)
        parts = [((Index.of(low), Index.of(high)), [size]) for low, high, size in tiled]
    padded = any(padding.masked for padding in plan.padding.values())
    return Loop(
        *(k, bounds, parts, width, levels.step(k) // width),
        ends=ends,
        one_text=padded and levels.step(k) == width,
        extent=extent,
        least=least,
        most=most,
        overlaps=tail == OVERLAP and width > 1 and known,
        shifts=known and not opened and not vectors and tail == OVERLAP,
        last=_last(frame, k),
        begin=frame.begins.get(k, Index()),
    )


def _last(frame: Frame, k: int) -> Index | None:
    """Return the last row of a loop if tiles that extend past it repeat it."""
    return frame.ends[k] + -1 if frame.plan.levels.tail(k) == REPEAT else None


def _unit(frame: Frame, k: int) -> int:
    """Return the iterations of a shared loop that one tile takes."""
    levels = frame.plan.levels
    return 1 if levels.axis == k != frame.plan.axis else levels.step(k)


def _sizes(frame: Frame, k: int) -> list[int]:
    """Return the steps in which a shared loop is covered, by its tail policy."""
    extent, unit, tail = frame.ends[k].number, _unit(frame, k), frame.plan.levels.tail(k)
    if k == frame.plan.axis:
        if extent is not None and tail == OVERLAP:
            return [unit, extent % unit] if extent % unit else [unit]
        return steps(frame.plan.first.width, unit // frame.plan.first.width)
    if unit == 1 or tail == REPEAT:
        return [unit]
    return [unit, 1] if extent is None else tile_sizes(extent, unit, tail)


def _tiled(frame: Frame, k: int, extent: int) -> Sequence[tuple[int, int, int]]:
    """Return the parts of a shared loop of known extent, each of steps of one size."""
    plan, unit, tail = frame.plan, _unit(frame, k), frame.plan.levels.tail(k)
    if k == plan.axis or unit == 1:
        parts = in_sizes(extent, _sizes(frame, k))
    else:
        parts = parts_of(
            extent, unit, tail, list(_padded_reads(frame)) if tail == BORDER else (), k
        )
    apart = plan.padding and k >= plan.levels.shared - 2 and tail != BORDER
    return ends_apart(parts) if apart else parts


def _padded_reads(frame: Frame) -> Iterator[PaddedRead]:
    """Yield the reads of images with virtual padding."""
    for op, extents in frame.extents.items():
        for access in op.inputs:
            if (padding := frame.plan.padding.get(access.buffer)) is not None:
                image = range(len(padding.offsets))
                sizes = [frame.memory.dim(padding.image, d).number for d in image]
                known = [-1 if size is None else size for size in sizes]
                whole = [extent.number or 1 for extent in extents]
                yield PaddedRead(access.exprs, padding.offsets, known, whole)


# one iteration of the shared loops


def _iteration(frame: Frame, taken: Sequence[Taken], points: list[Point]) -> None:
    """Write every op at the points of one iteration of the shared loops."""
    if not is_in_rows(frame.plan, taken):
        write_ops(frame, points)
        return
    frame.memory.open(points)
    outer, writer = frame.writer.location, frame.writer
    op = frame.plan.first
    shared, width = frame.plan.levels.shared, points[0].width
    writer.location = op.op.location
    here = own_points(frame, op, points)
    (output,) = op.carried
    totals = Sum(frame, op).run(here, [start(frame, op, output, p) for p in here])
    kind, rows = element(op.outputs[output].buffer), taken[-2]
    count = len(points) // rows.size
    sums = writer.result(memref.AllocaOp.get(kind, 64, [rows.size, count * width]), "sums")
    for n, total in enumerate(totals):
        writer.store(total, sums, [Index.of(n // count), Index.of(n % count * width)])

    def row(r: Index) -> None:
        at = further(writer, rows.start, r, rows.last)
        some = [p.bind(shared - 2, at) for p in points[:count]]
        places = [[r, Index.of(n * width)] for n in range(count)]
        write_ops(frame, some, {op: [writer.load(sums, p, width, "sum") for p in places]})

    writer.each((Index(), Index.of(rows.size)), 1, row, "r")
    writer.location = outer


def write_ops(
    frame: Frame, points: Sequence[Point], done: Mapping[Structured, Sequence[SSAValue]] = {}
) -> None:
    """Write every op at points of the shared loops; ``done`` are sums with their results."""
    frame.memory.open(points)
    outer = frame.writer.location
    for op in frame.plan.ops:
        if op in done:
            frame.writer.location = op.op.location
            finish(frame, op, own_points(frame, op, points), done[op])
        else:
            write_op(frame, op, points)
    frame.writer.location = outer


# the loops of one op


def own_points(frame: Frame, op: Structured, points: Sequence[Point]) -> list[Point]:
    """Return points of the shared loops as points of an op whose own loops are not open."""
    rest = (None,) * (len(op.reductions) - frame.plan.levels.shared)
    return [p._replace(indices=(*p.indices, *rest)) for p in points]


def write_op(frame: Frame, op: Structured, points: Sequence[Point]) -> None:
    """Write one op at points of the shared loops."""
    frame.writer.location = op.op.location
    loops = op.parallel_after(frame.plan.levels.shared)
    _own(frame, op, loops, own_points(frame, op, points))


def _own(frame: Frame, op: Structured, loops: Sequence[int], points: list[Point]) -> None:
    """Walk through the parallel loops that only ``op`` has, then write its contents."""
    if not loops:
        if op.reduced:
            write_sum(frame, op, points)
        else:
            compute(frame, op, points, ())
        return
    k, *inner = loops

    def inside(some: Taken) -> None:
        here = [q for p in points for q in some.points(frame.writer, p, k)]
        _own(frame, op, inner, here)

    walk_through(frame.writer, _own_loop(frame, op, k), inside)


def _own_loop(frame: Frame, op: Structured, k: int) -> Loop:
    """Return how a loop of one op is walked through."""
    bounds = lower, upper = _own_bounds(frame, op, k)
    if k != op.axis:
        return Loop(k, bounds, [(bounds, [1])])
    extent, width, count = (upper - lower).number, op.width, op.interleave
    ends_together = op.tail == OVERLAP and width > 1
    least, most = frame.lengths(op, k) if extent is None else (extent, extent)
    known = extent is not None and extent >= width and extent % width > 0
    ends = MASK if frame.masks([op], k) else ""
    if ends_together and (known or (lower.number == 0 and upper.number is None)):
        ends = OVERLAP
    parts = [(bounds, steps(width, count, extent is not None))]
    return Loop(
        *(k, bounds, parts, width, count),
        ends=ends,
        extent=upper,
        least=least,
        most=most,
    )


def _own_bounds(frame: Frame, op: Structured, k: int) -> Bounds:
    """Return the range of a parallel loop to run: all of it, where a fill is folded in."""
    whole = frame.whole(op, k)
    if k not in op.within or op.initial:
        return whole
    step = op.width if k == op.axis else 1
    low, high = rounded(frame.writer, op, k, whole, step)
    if step > 1:
        high = frame.writer.maximum(low, frame.writer.minimum(high, whole[1]))
    return low, high
