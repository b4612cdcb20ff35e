"""The parallel levels of a kernel: one loop over all steps of the parallel loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith

from stepwell.analysis.structured import cost
from stepwell.dialects.kernel.levels import OVERLAP
from stepwell.lowering.linalg_to_loops.frame import Bounds, Frame
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.triangle import Triangle
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.transforms.kernels.schedule.block_sizes import MIN_BLOCK_TILES, MIN_FAR_BLOCKS
from stepwell.transforms.kernels.schedule.vectors import CHUNK

Opened: TypeAlias = dict[int, Bounds]
"""The range of each loop of which a parallel iteration takes a step."""


def in_threads(
    frame: Frame,
    blocks: Sequence[int],
    inside: Callable[[Opened], None],
    evened: tuple[int, int] = (-1, 0),
) -> None:
    """Write the parallel levels; ``inside`` writes their contents.

    blocks : the iterations of each parallel loop that one parallel iteration takes; 0 for all
    evened : a loop whose number of blocks is computed at launch, and the rows of its tiles
    """
    writer, levels = frame.writer, frame.plan.levels
    if not levels.parallel:
        inside({})
        return
    counts = [
        writer.divide_up(frame.ends[k], b) if b else Index.of(1) for k, b in enumerate(blocks)
    ]
    lengths = [Index.of(b) for b in blocks]
    if (k := evened[0]) >= 0 and (each := _evened(frame, k, blocks[k], evened[1], counts)):
        lengths[k] = each
    triangle = Triangle(writer, counts[-2:], lengths[-2:]) if levels.mirrors else None
    trips = Index.of(1) if triangle is None else triangle.trips
    for count in counts if triangle is None else counts[:-2]:
        trips = writer.product(trips, count)
    some = levels.grain
    for k, b in enumerate(blocks):
        number = frame.ends[k].number
        some = max(1, some // min(b or number or 1, number or b or 1))
    grain = Index.of(some) if levels.grain else _grain_at_launch(frame, blocks)

    def body(p: Index) -> None:
        if triangle is None:
            return inside(_opened(frame, p, counts, lengths))
        before, *last, missing = triangle.place(p)

        def block() -> None:
            opened = _opened(frame, before, counts[:-2], lengths)
            for at in last:
                opened[len(opened)] = _block(frame, len(opened), at, lengths[len(opened)])
            inside(opened)

        writer.branch(missing, lambda: None, block)

    writer.parallel(trips, grain, body)


def _opened(frame: Frame, p: Index, counts: Sequence[Index], lengths: Sequence[Index]) -> Opened:
    """Return the ranges of the first loops, of which step ``p`` of them all takes a block each."""
    writer, opened = frame.writer, dict[int, Bounds]()
    for k in reversed(range(len(counts))):
        at = p
        if k:
            at = writer.divide(p, counts[k], arith.RemUIOp)
            p = writer.divide(p, counts[k])
        opened[k] = _block(frame, k, at, lengths[k])
    return opened


def _block(frame: Frame, k: int, at: Index, length: Index) -> Bounds:
    """Return the range of block ``at`` of a loop."""
    writer, extent, tail = frame.writer, frame.ends[k], frame.plan.levels.tail(k)
    lower, block = writer.product(at, length), length.number
    if block == 0:
        return Index(), extent
    if block is None:
        return lower, writer.minimum(lower + length, extent)
    if extent.number is not None and tail == OVERLAP and k != frame.plan.axis:
        lower = writer.minimum(lower, extent - length)
        return lower, lower + length
    if block == 1 or (extent.number is not None and extent.number % block == 0):
        return lower, lower + length
    return lower, writer.minimum(lower + length, extent)


def _evened(frame: Frame, k: int, block: int, tile: int, counts: list[Index]) -> Index | None:
    """Return the length of blocks of rows whose number is known at launch only.

    The number of row blocks is the smallest that keeps the threads busy together with the blocks of
    other loops, whose numbers ``counts`` has.
    """
    writer, extent = frame.writer, frame.ends[k]
    _, high = frame.plan.lengths(frame.plan.first, k)
    if extent.number is not None or 0 < high <= block:
        return None

    others = Index.of(1)
    for n, count in enumerate(counts):
        others = writer.product(others, count) if n != k else others
    wanted = writer.divide_up(Index.of(MIN_FAR_BLOCKS), others)
    least = MIN_BLOCK_TILES * tile
    most = writer.divide_up(extent, least)
    runs = writer.maximum(counts[k], writer.minimum(wanted, most))
    runs = writer.maximum(runs, Index.of(1))
    each = writer.divide_up(extent, runs)
    each = writer.divide_up(each, tile) * tile
    each = writer.maximum(each, Index.of(tile))
    counts[k] = writer.divide_up(extent, each)
    return each


def _grain_at_launch(frame: Frame, blocks: Sequence[int]) -> Index:
    """Return how many parallel iterations have as much work as is worth handing to a thread."""
    writer, each = frame.writer, Index.of(1)
    for op, loops in frame.extents.items():
        one = Index.of(_work(op))
        for k, extent in enumerate(loops):
            block = blocks[k] if k < len(blocks) else 0
            if block != 1:
                one = writer.product(
                    one, writer.minimum(Index.of(block), extent) if block else extent
                )
        each = each + one
    return writer.divide(Index.of(CHUNK), each)


def _work(op: Structured) -> int:
    """Return the cost of one iteration, in additions and memory accesses, as `schedule` counts."""
    if op.body is None:
        return 1
    touched = sum(op.uses(k) for k in range(len(op.inputs)))
    return max(cost(op.body), 1) + touched + len(op.outputs)
