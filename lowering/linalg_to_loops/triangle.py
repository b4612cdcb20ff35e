"""The blocks on and below the diagonal of two loops, as steps of one loop."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.writer import Index, Writer, select


class Triangle:
    """The blocks on and below the diagonal of the last two parallel loops, as steps of one loop.

    Each of the first half of the rows of blocks is numbered behind one of the last half, so that
    equal runs of steps have equally many blocks. A few steps have none: those behind the last
    column, and those of the row in the middle if the number of rows is odd.
    """

    def __init__(self, writer: Writer, counts: Sequence[Index], lengths: Sequence[Index]) -> None:
        self.writer, (self.rows, self.columns) = writer, counts
        self.each = writer.divide(lengths[0], lengths[1])
        """Blocks of columns as wide as one of rows is high."""
        self.pairs = writer.divide(self.rows + 1, 2)
        self.steps = writer.product(self.rows + 1, self.each)
        """Steps of two rows of blocks."""
        self.trips = writer.product(self.pairs, self.steps)

    def place(self, p: Index) -> tuple[Index, Index, Index, SSAValue]:
        """Return the step of the loops before, row and column of a block, and if it is none."""
        writer = self.writer
        remainder = arith.RemUIOp
        pair, rest = writer.divide(p, self.steps), writer.divide(p, self.steps, remainder)
        before, short = writer.divide(pair, self.pairs), writer.divide(pair, self.pairs, remainder)
        long = self.rows + -1 - short
        first = writer.product(long + 1, self.each)
        begins = writer.compare("slt", rest, first)
        row = select(writer, begins, long, short)
        column = select(writer, begins, rest, rest - first)
        again = writer.compare("sge", rest, first)
        middle = writer.compare("sge", short, long)
        twice = writer.binary(arith.AndIOp, again, middle)
        beyond = writer.compare("sge", column, self.columns)
        return before, row, column, writer.binary(arith.OrIOp, twice, beyond)
