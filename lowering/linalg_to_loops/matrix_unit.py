"""Tiles of dot products that accumulate in memory, for units that multiply whole tiles.

Blocks, parts of a sum and packing are those of `blocked`; rows of packed words follow each other.
The accumulators of a tile are in scratch: `kernel.dot_tile` adds a whole part to them, and the
epilogue reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.ir import SSAValue

from stepwell.analysis.products import dot_elements
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.blocked import Blocked
from stepwell.lowering.linalg_to_loops.blocks import roles_of
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.tiles import Panel
from stepwell.lowering.linalg_to_loops.writer import Index, Writer


class MatrixUnit(Blocked):
    """Writes blocks of dot products, one tile of accumulators at a time."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        super().__init__(writer, plan)
        elements = dot_elements(self.sum.body) if self.sum.body is not None else None
        assert elements is not None
        row_operand, packed = roles_of(self.sum, self.first, self.column)
        self.elements = elements[row_operand], elements[packed]

    @cached_property
    def long(self) -> bool:
        """Return True: the epilogue always reads the sums from scratch."""
        return True

    def _whole_tile(self, at: Panel, start: list[Index], rows: int) -> None:
        scratch_row = Index() if at.extent is None else self._scratch_row(at, start)
        if at.extent is None:
            self._begin_tile()
        assert self.row_packing is not None and self.packing is not None
        value = self.writer.value
        self.writer.insert(
            kernel.DotTileOp(
                (self.sums, value(scratch_row)),
                (self.row_packing.scratch, value(start[-1] - at.ranges[self.row][0])),
                self.packing.scratch,
                value(self.part[1]),
                self.rows,
                self.elements,
            )
        )
        if at.extent is None:
            self._epilogue_of_edge(at, start, rows, scratch_row)
            return
        self._branch(
            (at.k + self.count, at.extent),
            lambda: self._epilogue_of_edge(at, start, rows, scratch_row),
            lambda: None,
        )

    def _begin_tile(self) -> None:
        """Initialise the accumulators of a tile whose sum has one part."""
        value = self.writer.broadcast(self.sum.initial[0], self.sum.width)

        def row(i: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for c in range(0, self.columns, self.sum.width):
                self.writer.store(value, self.sums, [i, Index.of(c)])
            return ()

        self.writer.loop((Index(), Index.of(self.rows)), 1, (), row, "i")
