"""Full reductions split into equal runs, so that several threads can work on one result.

The number of runs is an attribute of the kernel and the partial results are combined in order, so
the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from stepwell.analysis.levels.writing import ASSUMED_LOOP_EXTENT
from stepwell.dialects.types import fuse_locations
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.nest import Nest
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer

ELEMENTS_PER_RUN = 1 << 14
"""Elements that make a run of their own worthwhile."""


def write_split(writer: Writer, plan: Plan) -> None:
    """Write every op of a kernel whose sums are split into runs; ops without loops run once."""
    nest = Nest(writer, plan)
    nest.prepare()
    nest.memory.open([Point(())])
    for op in plan.ops:
        writer.location = op.op.location
        if op.reduced:
            _write_runs(nest, op)
        else:
            nest.write_op(op, [Point(())])
    writer.location = fuse_locations(o.op.location for o in plan.ops)


def _write_runs(nest: Nest, op: Structured) -> None:
    """Write one full reduction: the runs in parallel, then their results in order."""
    writer, most = nest.writer, nest.plan.schedule.split
    point = Point((None,) * len(op.reductions))
    combiners = [nest.combiner(op, k) for k in op.carried]
    starts = [nest.start(op, k, point) for k in op.carried]
    partials = [writer.result(memref.AllocaOp.get(v.type, 64, [most]), "partial") for v in starts]
    extents = [nest.whole(op, k)[1] for k in op.reduced]
    units = [op.width * op.interleave if op.axis == k else 1 for k in range(len(extents))]
    cut, runs = _longest(extents, units), _runs(writer, extents, most)
    extent, unit = extents[cut], units[cut]
    per = runs * unit
    blocks = writer.divide(extent + per + -1, per.number or writer.value(per), arith.DivUIOp)
    length = blocks * unit

    def run(p: Index) -> None:
        lower = writer.minimum(_times(writer, p, length), extent)
        nest.narrowed[cut] = (lower, writer.minimum(lower + length, extent))
        state = [
            writer.splat(c.identity(v.type), 0) for c, v in zip(combiners, starts, strict=True)
        ]
        for value, partial in zip(nest.run(op, [point], state), partials, strict=True):
            writer.store(value, partial, [p])
        del nest.narrowed[cut]

    writer.parallel(runs, Index.of(1), run)

    def combine(r: Index, totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [
            nest.combine(c, t, writer.load(partial, [r]))
            for c, t, partial in zip(combiners, totals, partials, strict=True)
        ]

    names = [op.name(k) for k in op.carried]
    totals = writer.loop((Index(), runs), 1, starts, combine, "r", names)
    nest.finish(op, [point], totals)


def _longest(extents: Sequence[Index], units: Sequence[int]) -> int:
    """Return the loop to split: the one with the most parts that fill its vectors."""
    sizes = [ASSUMED_LOOP_EXTENT if extent.number is None else extent.number for extent in extents]
    parts = [size // unit for size, unit in zip(sizes, units, strict=True)]
    return parts.index(max(parts))


def _runs(writer: Writer, extents: Sequence[Index], most: int) -> Index:
    """Return the number of runs: fewer where the launch finds that there is little work."""
    if all(extent.number is not None for extent in extents):
        return Index.of(most)
    total = Index.of(1)
    for extent in extents:
        total = _times(writer, total, extent)
    return writer.minimum(writer.divide(total, ELEMENTS_PER_RUN, arith.DivUIOp) + 1, Index.of(most))


def _times(writer: Writer, a: Index, b: Index) -> Index:
    if b.number is not None:
        return a * b.number
    if a.number is not None:
        return b * a.number
    return Index.of(writer.binary(arith.MuliOp, writer.value(a), writer.value(b)))
