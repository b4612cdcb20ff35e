"""The operands of a contraction in steps: packed, in panels already, or read in place.

A tile reads packed operands relative to the beginning of the packed part. Additional loops, which
are never written, stand for these beginnings: for that of the current part of the sum, for the
number of the panel in an operand that is stored in panels, and for the first column, or row, and
the first iteration of the sum of each packed operand.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.levels.matrix_units import for_matrix_unit
from stepwell.analysis.levels.queries import DOUBLE_BUFFERED
from stepwell.analysis.products import dot_elements
from stepwell.analysis.structured import bits_of, dims_of, element, in_panels
from stepwell.lowering.linalg_to_loops.contraction_levels import ContractionLevels, Ranges
from stepwell.lowering.linalg_to_loops.dots import Words, dot_body
from stepwell.lowering.linalg_to_loops.f32_accumulation import accumulate_in_f32
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
        self.in_f32 = of.levels.action("sum") is not None
        self.product = accumulate_in_f32(of.sum) if self.in_f32 else of.sum
        if self.dots:
            self.product = dot_body(of.sum, self.row_operand, self.biased)
        self.columns = self._packed(self.column_operand, of.column)
        self.rows = self._packed(self.row_operand, of.row)
        self.panels = in_panels(of.sum.inputs[self.column_operand].exprs, of.column)
        if self.columns is not None or (self.panels and self.panels[1] != of.tile[1]):
            self.panels = None
        self.row_panels = in_panels(of.sum.inputs[self.row_operand].exprs, of.row)
        """Axis and width of the panels that rows are stored in, each of whole tiles."""
        if self.rows is not None or (self.row_panels and self.row_panels[1] % of.tile[0]):
            self.row_panels = None
        along = of.column in self.dims[self.row_operand]
        self.in_place = along or (self.columns is None and self.panels is None)
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
        return self.rows is not None or self.row_panels is not None

    @property
    def for_matrix_unit(self) -> bool:
        """Whether tiles of words are for a matrix unit."""
        found = for_matrix_unit(self.of.levels, self.of.tile, self.of.row)
        return self.dots and not self.biased and found

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
        """Allocate the scratch of packed operands, and set how tiles read all operands."""
        levels, inputs = self.of.levels, list(self.product.inputs)
        loops, depth = len(self.of.sum.reductions), levels.depth
        since, *panels = map(AffineDimExpr, range(loops, loops + 5))
        begins = list(map(AffineDimExpr, range(loops + 5, loops + 9)))
        dims: list[AffineExpr] = [AffineDimExpr(k) for k in range(loops)]
        dims[depth] = AffineDimExpr(depth) + since
        for n, access in enumerate(inputs):
            exprs = tuple(e.replace_dims_and_symbols(dims, ()) for e in access.exprs)
            inputs[n] = Access(access.buffer, exprs)
        for operand, loop, found in self._in_panels():
            number, first, *panels = panels
            if found is not None:
                access = inputs[operand]
                exprs = list(access.exprs)
                exprs[found[0]], exprs[-1] = number, AffineDimExpr(loop) - first
                inputs[operand] = Access(access.buffer, tuple(exprs))
        extent = self.extents_of_sum().number
        for each in self.all_packed:
            packing = each.packing
            packs = levels.action("pack", packing.operand)
            assert packs is not None
            deep = levels.step(depth, packs[0] + 1) or extent or 1
            if each is self.columns and self.double_buffered:  # panel after panel, twice
                wide = self.of.sizes(packs[0], self.extents)[-1]
                packing.allocate(2 * deep * (wide // packing.columns))
            else:
                packing.allocate(deep if extent is None else min(extent or 1, deep))
            column, part, *begins = begins
            dims[packing.column] = AffineDimExpr(packing.column) - column
            dims[depth] = AffineDimExpr(depth) + (since - part)
            exprs = tuple(e.replace_dims_and_symbols(dims, ()) for e in packing.access.exprs)
            inputs[packing.operand] = packing.access = Access(packing.access.buffer, exprs)
            dims[packing.column] = AffineDimExpr(packing.column)
        self.micro = replace(self.product, inputs=tuple(inputs))
        if self.biased:
            op = memref.AllocaOp.get(i32, 64, [self.of.tile[1]])
            self.offsets = self.frame.writer.result(op, "offsets")

    def _in_panels(self) -> list[tuple[int, int, tuple[int, int] | None]]:
        """Return for columns and rows: the operand, the loop, and axis and width of its panels."""
        columns = self.column_operand, self.of.column, self.panels
        return [columns, (self.row_operand, self.of.row, self.row_panels)]

    def begins(self, i: Index, j: Index) -> list[Index | None]:
        """Return the indices of the additional loops for a tile at row ``i`` and column ``j``."""
        found: list[Index | None] = [self.since]
        for start, (_, loop, panels) in zip((j, i), self._in_panels(), strict=True):
            number, first = None, start
            if panels is not None:
                number = self.frame.writer.divide(start, panels[1])
                whole = panels[1] == self.of.step(loop)
                first = start if whole else self.frame.writer.product(number, Index.of(panels[1]))
            found += number, first
        return [*found, *(index for each in self.all_packed for index in each.begin)]

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
            write = packing.begin if self.packs_first(each) else packing.write
            write(batch, *each.begin, count)
            if self.offsets is not None and each is self.columns:
                self._write_offsets(self.offsets)

    @property
    def double_buffered(self) -> bool:
        """Whether the tiles of a part pack the operand of the columns of the next part."""
        return self.of.levels.packs.get(self.column_operand) == DOUBLE_BUFFERED

    def packs_first(self, packed: Packed | None) -> bool:
        """Whether the first tile of a block packs this operand while it computes."""
        if packed is None or packed is not self.columns:
            return False
        return self.of.levels.packs[packed.packing.operand] == "first" and packed.packing.in_rows

    def _write_offsets(self, offsets: SSAValue) -> None:
        """Write each column's correction for the bias of 128 in each byte of the rows."""
        body, columns = self.of.sum.body, self.columns
        elements = dot_elements(body) if body is not None else None
        assert elements is not None and columns is not None
        sums = biases(columns.packing, self.of.width, elements[self.column_operand])
        for n, value in enumerate(sums):
            self.frame.writer.store(value, offsets, [Index.of(n * self.of.width)])
