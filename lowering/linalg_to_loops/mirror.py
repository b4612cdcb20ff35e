"""Copy the blocks below the diagonal of a symmetric result to their places beyond it.

A block is copied right after it was computed, while a cache holds it: squares of vectors are
transposed through registers.
"""

from __future__ import annotations

from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.contraction_levels import ContractionLevels, Range, Ranges
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.register_transpose import transpose_block
from stepwell.lowering.linalg_to_loops.structured import Access
from stepwell.lowering.linalg_to_loops.writer import Index


def mirror(frame: Frame, of: ContractionLevels, at: Ranges) -> None:
    """Copy the block at ``at`` to its place beyond the diagonal, if it is below the diagonal."""
    rows, columns = at[of.row], at[of.column]
    end = columns.start + columns.size  # whole, because rows follow it

    def copy() -> None:
        for access in _results(frame):
            _Copy(frame, of, at, access).write(rows, (columns.start, end))

    below = frame.writer.compare("sle", end, rows.start)
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


class _Copy:
    """Copies a part of one result."""

    def __init__(self, frame: Frame, of: ContractionLevels, at: Ranges, access: Access) -> None:
        self.writer, self.access = frame.writer, access
        self.batch = [at[k].start for k in range(of.row)]
        vectors = lanes_at(access, of.column, of.width) == of.width
        self.width = of.width if vectors else 1

    def write(self, rows: Range, columns: tuple[Index, Index]) -> None:
        """Copy these rows and columns, in squares of vectors and what is left."""
        sizes = [self.width, 1] if self.width > 1 else [1]

        def some(i: Index, size: int) -> None:
            def element(j: Index) -> None:
                self._element(i, j)

            if size == 1:
                self.writer.each(columns, 1, element, "j")
            else:
                self.writer.each(columns, size, lambda j: self._square(i, j), "j")

        self.writer.cover((rows.start, rows.end), sizes, some, "i")

    def _place(self, row: Index, column: Index) -> list[Index]:
        return [self.writer.affine(e, (*self.batch, row, column)) for e in self.access.exprs]

    def _element(self, i: Index, j: Index) -> None:
        value = self.writer.load(self.access.buffer, self._place(i, j))
        self.writer.store(value, self.access.buffer, self._place(j, i))

    def _square(self, i: Index, j: Index) -> None:
        buffer, width = self.access.buffer, self.width
        found = [self.writer.load(buffer, self._place(i + n, j), width) for n in range(width)]
        for n, value in enumerate(transpose_block(self.writer, found)):
            self.writer.store(value, buffer, self._place(j + n, i))
