"""Tiles of sums that a matrix unit computes: rows of words by words of columns.

The sums of a tile wait in scratch for the epilogue, which reads them there. Without an epilogue
they are written where they belong. The unit stays configured from tile to tile, until the end of a
thread's part.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType, NoneAttr, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.products import dot_elements
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.contraction_levels import Ranges
from stepwell.lowering.linalg_to_loops.contraction_operands import Operands
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.partial_sums import PartialSums
from stepwell.lowering.linalg_to_loops.writer import Index


class MatrixUnit:
    """Writes the tiles of a contraction for a matrix unit."""

    def __init__(self, frame: Frame, operands: Operands, sums: PartialSums, alone: bool) -> None:
        self.frame, self.writer = frame, frame.writer
        self.operands, self.of, self.sums = operands, operands.of, sums
        body = self.of.sum.body
        elements = dot_elements(body) if body is not None else None
        assert elements is not None
        self.elements = elements[operands.row_operand], elements[operands.column_operand]
        self.from_zero = _is_zero(self.of.sum.initial[0])
        self.into_result = alone and self.from_zero and self._are_rows_of_result()
        """Whether sums are written where they belong, without scratch."""

    def _are_rows_of_result(self) -> bool:
        """Whether the columns of a row are contiguous in the result, and next to nothing else."""
        output = self.of.sum.outputs[0]
        type, last = output.buffer.type, output.exprs[-2:]
        plain = isinstance(type, MemRefType) and isinstance(type.layout, NoneAttr)
        return plain and list(last) == [AffineDimExpr(k) for k in (self.of.row, self.of.column)]

    def begin(self) -> None:
        """Begin a thread's part: the unit is not configured."""
        op = memref.AllocaOp.get(i64, 64, [1])
        self.shapes = self.writer.result(op, "shapes")
        none = self.writer.result(arith.ConstantOp(IntegerAttr(0, i64)))
        self.writer.store(none, self.shapes, [Index()])

    def end(self) -> None:
        """End a thread's part."""
        self.writer.insert(kernel.ReleaseTilesOp(self.shapes))

    def tile(self, at: Ranges, since: Index, steps: Index, split: bool) -> None:
        """Write the products of one tile.

        since : the beginning of a part of the sum
        steps : the words in that part
        split : whether there are other parts, for all of which the sums are initialised
        """
        rows, height = at[self.of.row], self.of.tile[0]
        count = Index.of(rows.size)
        if self.frame.ends[self.of.row].number is None:
            count = self.writer.minimum(count, rows.end - rows.start)
        if not split and not self.from_zero:
            self.sums.fill()
        columns = self.operands.columns
        assert columns is not None
        self.writer.insert(
            kernel.DotTileOp(
                self._sums(at),
                self._rows(at, since),
                columns.packing.scratch,
                self.writer.value(steps),
                (self.writer.value(count), height),
                self.shapes,
                self.elements,
                from_zero=not split and self.from_zero,
            )
        )

    def _sums(self, at: Ranges) -> tuple[SSAValue, list[SSAValue]]:
        """Return the buffer of sums, and the indices of the first one."""
        if not self.into_result:
            return self.sums.scratch, self._values(self.sums.place(at, 0, 0))
        output = self.of.sum.outputs[0]
        here = [at[k].start for k in range(self.of.column + 1)]
        return output.buffer, self._values(output.at(self.writer, here))

    def _rows(self, at: Ranges, since: Index) -> tuple[SSAValue, list[SSAValue]]:
        """Return the buffer of rows, and the indices of the first element or word."""
        rows, start = self.operands.rows, at[self.of.row].start
        if rows is not None:
            return rows.packing.scratch, self._values([start - rows.begin[0], Index()])
        access = self.of.sum.inputs[self.operands.row_operand]
        here = [*(at[k].start for k in range(self.of.column)), None, since]
        return access.buffer, self._values(access.at(self.writer, here))

    def _values(self, indices: list[Index]) -> list[SSAValue]:
        return [self.writer.value(index) for index in indices]


def _is_zero(value: SSAValue) -> bool:
    """Whether a value is a constant zero."""
    op = value.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, IntegerAttr | FloatAttr):
        return False
    return op.value.value.data == 0
