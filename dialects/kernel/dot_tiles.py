"""kernel.dot_tile: products of the elements of words, for a tile of sums in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, MemRefType, UnitAttr, i8, i32, i64
from xdsl.ir import Attribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dot_instructions import BITS, terms_of
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.kernel.dots import ELEMENTS, NAMES, add_products, check_elements
from stepwell.dialects.readings import Array

SIDE = 16
"""The numbers of rows and columns of a tile, and of words along the reduction."""
SHAPES = MemRefType(i64, [1])
"""The type of the buffer with the shapes for which the matrix unit is configured."""


@irdl_op_definition
class DotTileOp(IRDLOperation):
    """Add products to rows of sums: ``sums[i + r, j + c] += x[row + r, k] . w[k, c]``, k < words.

    Words are multiplied and added as by kernel.dot. The last two axes of the sums and of x are
    those of rows, and of columns or of the reduction; their indices, and those of the axes before,
    say where the tile begins. Of the ``rows`` rows the first ``count`` are read and written.
    ``from_zero``: the sums are overwritten, as if they had been zero. ``shapes`` is zero before the
    first tile. On a matrix unit, kernel.release_tiles must follow the last tile.

    * (C1) ``x_of``, ``w_of`` and the element type of the sums are valid for kernel.dot.
    * (C2) Words of columns are a buffer of two axes and known sizes; sums and rows have at least
      two axes, an index for each, and contiguous elements along the last one. Words are i32; those
      of rows may also be given as elements.
    * (C3) ``rows`` and the columns of ``w`` are multiples of 16.
    """

    name = "kernel.dot_tile"
    sums = operand_def(MemRefType)
    at = var_operand_def(IndexType())
    x = operand_def(MemRefType)
    row = var_operand_def(IndexType())
    w = operand_def(MemRefType)
    words = operand_def(IndexType())
    count = operand_def(IndexType())
    shapes = operand_def(SHAPES)
    rows = prop_def(IntegerAttr[I64])
    x_of = prop_def(TypeAttribute)
    w_of = prop_def(TypeAttribute)
    from_zero = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$sums `[` $at `]` `,` $x `[` $row `]` `of` $x_of `,` $w `of` $w_of `,` $words "
        "`rows` $count `of` $rows `shapes` $shapes (`from_zero` $from_zero^)? "
        "attr-dict `:` type($sums) `,` type($x) `,` type($w)"
    )

    def __init__(
        self,
        sums: tuple[SSAValue, Sequence[SSAValue]],
        x: tuple[SSAValue, Sequence[SSAValue]],
        w: SSAValue,
        words: SSAValue,
        rows: tuple[SSAValue, int],
        shapes: SSAValue,
        elements: tuple[str, str],
        from_zero: bool = False,
    ) -> None:
        super().__init__(
            operands=[sums[0], list(sums[1]), x[0], list(x[1]), w, words, rows[0], shapes],
            properties={
                "rows": IntegerAttr(rows[1], i64),
                "x_of": ELEMENTS[elements[0]],
                "w_of": ELEMENTS[elements[1]],
                "from_zero": UnitAttr() if from_zero else None,
            },
        )

    @property
    def elements(self) -> tuple[str, str]:
        """The names of the words' element types."""
        return NAMES[self.x_of], NAMES[self.w_of]

    @property
    def _in_place(self) -> tuple[Attribute, ...]:
        """The element types that rows may have in place: bytes may be of a signless type."""
        return self.x_of, *([i8] if BITS[self.elements[0]] == 8 else [])

    @property
    def in_place(self) -> bool:
        """Whether rows are given as elements, of which several are a word."""
        return isinstance(self.x.type, MemRefType) and self.x.type.element_type != i32

    def verify_(self) -> None:
        """Check C1 to C3."""
        types = [b.type for b in (self.sums, self.x, self.w) if isinstance(b.type, MemRefType)]
        check_elements(self.x_of, self.w_of, self.sums.type)  # kernel_dot_tile_c1
        ranks = [len(type.get_shape()) for type in types]
        last = [(type.get_strides() or [None])[-1] for type in types]
        elements = [type.element_type for type in types[1:]]
        words = elements[1] == i32 and elements[0] in (i32, *self._in_place)
        indexed = ranks == [len(self.at), len(self.row), 2] and min(ranks) > 1
        if not (indexed and words and last == [1, 1, 1]) or min(types[2].get_shape()) < 0:
            said = "a tile needs an index for each axis of sums and rows, and i32 words of columns"
            raise VerifyException(said)  # kernel_dot_tile_c2
        rows, columns = self.rows.value.data, types[2].get_shape()[1]
        if rows <= 0 or rows % SIDE or columns % SIDE:
            said = f"a tile of {rows} rows and {columns} columns is not made of {SIDE} by {SIDE}"
            raise VerifyException(said)  # kernel_dot_tile_c3


@evaluate(DotTileOp)
def _dot_tile(_: Interpreter, op: DotTileOp, operands: Sequence[Value]) -> tuple[()]:
    given = dict(zip(op.operands, operands, strict=True))
    sums, x, w = (np.asarray(given[buffer]) for buffer in (op.sums, op.x, op.w))
    words, count, columns = int(given[op.words]), int(given[op.count]), w.shape[1]

    def inside(array: Array, at: Sequence[SSAValue], length: int) -> Array:
        *before, row, first = (int(given[index]) for index in at)
        return array[(*before, slice(row, row + count), slice(first, first + length))]

    many = words * (terms_of(op.elements[0]) if op.in_place else 1)
    rows = np.ascontiguousarray(inside(x, op.row, many)).view(np.int32)
    here = inside(sums, op.at, columns)
    if op.from_zero is not None:
        here[...] = 0
    for k in range(words):
        left, right = (
            np.ascontiguousarray(np.broadcast_to(v, (count, columns)))
            for v in (rows[:, k : k + 1], w[k])
        )
        here[...] = add_products(here, left, right, op.elements)
    return ()


@irdl_op_definition
class ReleaseTilesOp(IRDLOperation):
    """Release the tiles of the matrix unit that kernel.dot_tile has configured, if any.

    ``shapes`` is the buffer that was passed to kernel.dot_tile.
    """

    name = "kernel.release_tiles"
    shapes = operand_def(SHAPES)
    assembly_format = "$shapes attr-dict"

    def __init__(self, shapes: SSAValue) -> None:
        super().__init__(operands=[shapes])


@evaluate(ReleaseTilesOp)
def _release(_: Interpreter, op: ReleaseTilesOp, operands: Sequence[Value]) -> tuple[()]:
    return ()
