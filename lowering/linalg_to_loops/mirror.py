"""Copy the blocks below the diagonal of a symmetric result to their places beyond it.

A block is copied right after it was computed, while a cache holds it: squares of vectors are
transposed through registers.
"""

from __future__ import annotations

from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.contraction_levels import ContractionLevels, Ranges
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.register_transpose import transpose_block
from stepwell.lowering.linalg_to_loops.structured import Access
from stepwell.lowering.linalg_to_loops.tails import steps
from stepwell.lowering.linalg_to_loops.writer import Index


def mirror(frame: Frame, of: ContractionLevels, at: Ranges) -> None:
    """Copy the block at ``at`` to its place beyond the diagonal, if it is below the diagonal."""
    end = at[of.column].start + at[of.column].size  # whole, because rows follow it

    def copy() -> None:
        for access in _results(frame):
            _copy(frame, of, at, access)

    below = frame.writer.compare("sle", end, at[of.row].start)
    frame.writer.branch(below, copy)


def _results(frame: Frame) -> list[Access]:
    """Return the results that the ops of a kernel store, each once."""
    found = {
        access.buffer: access
        for op in frame.plan.ops
        for access in op.outputs
        if frame.plan.buffers[access.buffer].alloc is None
    }
    return list(found.values())


def _copy(frame: Frame, of: ContractionLevels, at: Ranges, access: Access) -> None:
    """Copy a part of one result, in squares of vectors and what is left."""
    writer, buffer = frame.writer, access.buffer
    rows, columns = at[of.row], at[of.column]
    batch = [at[k].start for k in range(of.row)]
    width = of.width if lanes_at(access, of.column, of.width) == of.width else 1

    def place(row: Index, column: Index) -> list[Index]:
        return access.at(writer, (*batch, row, column))

    def some(i: Index, size: int) -> None:
        def square(j: Index) -> None:
            lanes = size if size > 1 else 0
            found = [writer.load(buffer, place(i + n, j), lanes) for n in range(size)]
            for n, value in enumerate(transpose_block(writer, found)):
                writer.store(value, buffer, place(j + n, i))

        writer.each((columns.start, columns.start + columns.size), size, square, "j")

    writer.cover((rows.start, rows.end), steps(width, 1), some, "i")
