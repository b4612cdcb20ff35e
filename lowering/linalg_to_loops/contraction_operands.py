"""The operands of a contraction in steps: packed, in panels already, or read in place.

The indices of a tile's sum count from the beginning of the current part. A tile reads packed
operands relative to the beginning of the packed part, and those in panels relative to its panel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.levels.matrix_units import for_matrix_unit
from stepwell.analysis.levels.queries import DOUBLE_BUFFERED
from stepwell.analysis.products import dot_elements
from stepwell.analysis.structured import bits_of, dims_of, element, in_panels, in_parts
from stepwell.lowering.linalg_to_loops.contraction_levels import ContractionLevels, Ranges
from stepwell.lowering.linalg_to_loops.dots import Words, dot_body
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.packing import Packing, biases
from stepwell.lowering.linalg_to_loops.structured import Access
from stepwell.lowering.linalg_to_loops.writer import Index

ROWS_WRITTEN_OUT = 32
"""Rows that are packed one element at a time, all of them written out: more are much code."""


@dataclass
class Packed:
    """One operand that is packed."""

    packing: Packing
    position: int
    """The level inside of which it is packed; -1 for the beginning of a block."""
    begin: tuple[Index, Index] = field(default=(Index(), Index()))
    """The first column, or row, of the packed part, and its first iteration of the sum."""


class Operands:
    """The operands of the sum as tiles read them."""

    def __init__(self, frame: Frame, of: ContractionLevels) -> None:
        self.frame, self.of, self.extents = frame, of, frame.ends
        self.row_operand, self.column_operand = of.roles()
        self.dims = [dims_of(access.exprs) for access in of.sum.inputs]
        self.biased = of.levels.packs.get(self.row_operand) == "biased_dot"
        self.dots = of.levels.packs.get(self.column_operand) == "dot"
        self.product = dot_body(of.sum, self.row_operand, self.biased) if self.dots else of.sum
        self.columns = self._packed(self.column_operand, of.column)
        self.rows = self._packed(self.row_operand, of.row)
        self.loops = {self.column_operand: of.column, self.row_operand: of.row}
        """The loop of the columns or rows of both operands."""
        self.panels = {k: found for k in self.loops if (found := self._panels(k)) is not None}
        """Axis and width of the panels in which an operand is stored."""
        along = of.column in self.dims[self.row_operand]
        packed = self.columns is not None or self.column_operand in self.panels
        self.in_place = along or not packed
        """Whether an operand that varies with the columns is read where it lies: tiles end with it.
        """
        self.micro = self.product
        self.offsets: SSAValue | None = None
        """Buffer of per-column corrections for the bias of 128 that is added to rows."""
        self.since = Index()
        """The beginning of the current part of the sum."""

    @property
    def all_packed(self) -> list[Packed]:
        """The packed operands, in the order in which they are packed."""
        return [each for each in (self.columns, self.rows) if each is not None]

    @property
    def copies_rows(self) -> bool:
        """Whether rows are read from a copy, which has whole tiles."""
        return self.rows is not None or self.row_operand in self.panels

    @property
    def for_matrix_unit(self) -> bool:
        """Whether tiles of words are for a matrix unit."""
        found = for_matrix_unit(self.of.levels, self.of.tile, self.of.row)
        return self.dots and not self.biased and found

    def _panels(self, operand: int) -> tuple[int, int] | None:
        """Return axis and width of an operand's panels: as wide as tiles, of rows whole tiles."""
        loop, (rows, columns) = self.loops[operand], self.of.tile
        found = in_panels(self.of.sum.inputs[operand].exprs, loop)
        if found is None or self.of.levels.action("pack", operand) is not None:
            return None
        fits = found[1] == columns if loop == self.of.column else found[1] % rows == 0
        return found if fits else None

    def _packed(self, operand: int, loop: int) -> Packed | None:
        """Return the packing of an operand, whose panels are as long as a step of ``loop``."""
        found = self.of.levels.action("pack", operand)
        if found is None:
            return None
        at = self._position(operand, found[0])
        around = self.of.levels.outer if at < 0 else at + 1
        size = self.of.sizes(around, self.extents)[loop]
        size = self.of.tile[1] if self.of.levels.packs[operand] == DOUBLE_BUFFERED else size
        op, rows, words = self.product, loop == self.of.row, None
        if self.dots:
            op, bits = self.of.sum, bits_of(element(self.of.sum.inputs[operand].buffer))
            words = Words(self.frame.writer, bits, rows and self.biased, rows, self.for_matrix_unit)
        elif rows and self.columns is None and size <= ROWS_WRITTEN_OUT:
            op = replace(op, width=1, interleave=1)
        packing = Packing(self.frame, op, operand, loop, op.reduced, size, words)
        steps = [x.step for x in self.of.levels.levels[:around] if x.loop == loop]
        packing.even = packing.columns == size and not any(step % size for step in steps)
        if words is None:
            self.product = replace(self.product, body=packing.widening.body_after())
        return Packed(packing, at)

    def _position(self, operand: int, level: int) -> int:
        """Return the outermost level, up to that which packs, that fixes the part to be packed."""
        levels = self.of.levels
        while level >= levels.outer and not self._fixes(operand, level):
            level -= 1
        return level if level >= levels.outer else -1

    def _fixes(self, operand: int, n: int) -> bool:
        """Whether an operand varies from one step of the ``n``-th level to the next."""
        level, depth = self.of.levels.levels[n], self.of.levels.depth
        whole = self.extents_of_sum().number
        one = level.loop == depth and whole is not None and whole <= level.step
        return level.loop in self.dims[operand] and not one

    def extents_of_sum(self) -> Index:
        """Return the extent of the loop that is split."""
        return self.frame.extents[self.of.sum][self.of.levels.depth]

    def allocate(self) -> None:
        """Allocate the scratch of packed operands."""
        levels, extent = self.of.levels, self.extents_of_sum().number
        for each in self.all_packed:
            packing, packs = each.packing, levels.action("pack", each.packing.operand)
            assert packs is not None
            deep = levels.step(levels.depth, packs[0] + 1) or extent or 1
            if each is self.columns and self.double_buffered:  # panel after panel, twice
                wide = self.of.sizes(packs[0], self.extents)[-1]
                packing.allocate(2 * deep * (wide // packing.columns))
            else:
                packing.allocate(deep if extent is None else min(extent or 1, deep))
        self.micro = replace(self.product)  # each tile sets its inputs
        if self.biased:
            op = memref.AllocaOp.get(i32, 64, [self.of.tile[1]])
            self.offsets = self.frame.writer.result(op, "offsets")

    def begin_tile(self, i: Index, j: Index) -> None:
        """Set how the tile at row ``i`` and column ``j`` reads the operands."""
        writer, depth = self.frame.writer, self.of.levels.depth
        begin = ((depth, self.since),)
        inputs = [replace(access, begin=begin) for access in self.product.inputs]
        for operand, (_, width) in self.panels.items():
            start = j if operand == self.column_operand else i
            number = writer.divide(start, width)
            whole = width == self.of.step(self.loops[operand])
            first = start if whole else writer.product(number, Index.of(width))
            inputs[operand] = self.in_panel(operand, number, first, self.since)
        for each in self.all_packed:
            packing, (column, part) = each.packing, each.begin
            begin = ((packing.column, column * -1), (depth, self.since - part))
            packing.access = inputs[packing.operand] = replace(packing.access, begin=begin)
        self.micro.inputs = tuple(inputs)

    def in_panel(self, operand: int, number: Index, first: Index, since: Index) -> Access:
        """Return the access to a panel, whose first column or row is ``first``."""
        access, loop = self.product.inputs[operand], self.loops[operand]
        after, exprs = len(self.of.sum.reductions), list(access.exprs)
        exprs[self.panels[operand][0]], exprs[-1] = AffineDimExpr(after), AffineDimExpr(loop)
        begin = [(loop, first * -1), (after, number)]
        depth, split = self.of.levels.depth, self.of.levels.levels[self.of.levels.splits[-1]]
        parts = in_parts(access.exprs, depth)
        if parts is not None and parts[-1] == split.step:
            axis, inner, _ = parts
            exprs[axis], exprs[inner] = AffineDimExpr(after + 1), AffineDimExpr(depth)
            begin.append((after + 1, self.frame.writer.divide(since, split.step)))
        else:
            begin.append((depth, since))
        return Access(access.buffer, tuple(exprs), tuple(begin))

    # packing

    def pack(self, n: int, at: Ranges) -> None:
        """Pack the operands whose part the ``n``-th level fixes."""
        for each in self.all_packed:
            if each.position != n or (each is self.columns and self.double_buffered):
                continue
            packing, loop, depth = each.packing, each.packing.column, self.of.levels.depth
            each.begin = at[loop].start, at[depth].start
            batch = [at[k].start for k in range(loop)]
            count = at[depth].end - at[depth].start
            write = packing.begin if packing is self.packed_by_tile else packing.write
            write(batch, *each.begin, count)
            if self.offsets is not None and each is self.columns:
                self._write_offsets(self.offsets)

    @property
    def double_buffered(self) -> bool:
        """Whether the tiles of a part pack the operand of the columns of the next part."""
        return self.of.levels.packs.get(self.column_operand) == DOUBLE_BUFFERED

    @property
    def packed_by_tile(self) -> Packing | None:
        """The packing of the columns that the first tile of a block writes while it computes."""
        first = self.of.levels.packs.get(self.column_operand) == "first"
        packing = self.columns.packing if self.columns is not None and first else None
        return packing if packing is not None and packing.in_rows else None

    def _write_offsets(self, offsets: SSAValue) -> None:
        """Write each column's correction for the bias of 128 in each byte of the rows."""
        body, columns = self.of.sum.body, self.columns
        elements = dot_elements(body) if body is not None else None
        assert elements is not None and columns is not None
        sums = biases(columns.packing, self.of.width, elements[self.column_operand])
        for n, value in enumerate(sums):
            self.frame.writer.store(value, offsets, [Index.of(n * self.of.width)])
