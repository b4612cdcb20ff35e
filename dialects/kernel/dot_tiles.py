"""kernel.dot_tile: products of the elements of words, for a tile of sums in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, MemRefType, i32, i64
from xdsl.ir import SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
)
from xdsl.utils.exceptions import VerifyException

from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.kernel.dots import ELEMENTS, NAMES, add_products, check_elements

SIDE = 16
"""The numbers of rows and columns of a tile, and of words along the reduction."""


@irdl_op_definition
class DotTileOp(IRDLOperation):
    """Add products to rows of sums: ``sums[at + r, c] += x[row + r, k] . w[k, c]`` for k < words.

    Words are multiplied and added as by kernel.dot. Rows of x beyond the needed ones may have any
    contents: they affect only their own sums.

    * (C1) ``x_of``, ``w_of`` and the element type of the sums are valid for kernel.dot.
    * (C2) Sums, words of rows and words of columns are buffers of two axes and known sizes; sums
      have as many columns as ``w``, a multiple of 16; ``rows`` is a multiple of 16 too.
    """

    name = "kernel.dot_tile"
    sums = operand_def(MemRefType)
    at = operand_def(IndexType())
    x = operand_def(MemRefType)
    row = operand_def(IndexType())
    w = operand_def(MemRefType)
    words = operand_def(IndexType())
    rows = prop_def(IntegerAttr[I64])
    x_of = prop_def(TypeAttribute)
    w_of = prop_def(TypeAttribute)
    assembly_format = (
        "$sums `[` $at `]` `,` $x `[` $row `]` `of` $x_of `,` $w `of` $w_of `,` $words "
        "`rows` $rows attr-dict `:` type($sums) `,` type($x) `,` type($w)"
    )

    def __init__(
        self,
        sums: tuple[SSAValue, SSAValue],
        x: tuple[SSAValue, SSAValue],
        w: SSAValue,
        words: SSAValue,
        rows: int,
        elements: tuple[str, str],
    ) -> None:
        super().__init__(
            operands=[*sums, *x, w, words],
            properties={
                "rows": IntegerAttr(rows, i64),
                "x_of": ELEMENTS[elements[0]],
                "w_of": ELEMENTS[elements[1]],
            },
        )

    @property
    def elements(self) -> tuple[str, str]:
        """The names of the words' element types."""
        return NAMES[self.x_of], NAMES[self.w_of]

    def verify_(self) -> None:
        """Check C1 and C2."""
        shapes: list[tuple[int, ...]] = []
        for buffer in (self.sums, self.x, self.w):
            assert isinstance(buffer.type, MemRefType)
            shapes.append(buffer.type.get_shape())
        check_elements(self.x_of, self.w_of, self.sums.type)  # kernel_dot_tile_c1
        words = [b.type.element_type for b in (self.x, self.w) if isinstance(b.type, MemRefType)]
        known = all(len(shape) == 2 and min(shape) >= 0 for shape in shapes)
        if not known or words != [i32, i32]:
            said = "sums and words have two axes of known sizes, words being i32"
            raise VerifyException(said)  # kernel_dot_tile_c2
        rows, columns = self.rows.value.data, shapes[2][1]
        if rows <= 0 or rows % SIDE or columns % SIDE or shapes[0][1] != columns:
            said = f"a tile of {rows} rows and {columns} columns is not made of {SIDE} by {SIDE}"
            raise VerifyException(said)  # kernel_dot_tile_c2


@evaluate(DotTileOp)
def _dot_tile(interpreter: Interpreter, op: DotTileOp, operands: Sequence[Value]) -> tuple[()]:
    sums, at, x, row, w, words = operands
    at, row, words, rows = int(at), int(row), int(words), op.rows.value.data
    for k in range(words):
        left, right = (
            np.ascontiguousarray(np.broadcast_to(v, (rows, w.shape[1])))
            for v in (np.asarray(x)[row : row + rows, k : k + 1], np.asarray(w)[k])
        )
        sums[at : at + rows] = add_products(
            np.asarray(sums)[at : at + rows], left, right, op.elements
        )
    return ()
