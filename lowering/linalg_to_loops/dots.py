"""Words for dot-product instructions: groups of narrow elements become words of 32 bits.

The elements of a word are consecutive in the sum: four bytes, or two floats of 16 bits. In the
column operand, words of neighbouring columns are contiguous. Rows that are contiguous along the sum
are copied as they are; other rows are laid out as columns are. Beyond the end of the sum a word is
padded with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.utils.type import get_element_type_or_self

from stepwell.analysis.products import dot_elements
from stepwell.analysis.structured import element
from stepwell.core.dot_instructions import WORD
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.builder import lanes_of, vector_type
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer

BIAS = IntegerAttr(0x80808080 - (1 << 32), i32)
"""128 in each byte of a word: the sign bit of a signed byte, a number for an unsigned one."""


def dot_body(op: Structured, row_operand: int, biased: bool) -> Structured:
    """Return a sum of products with a body of words; input ``row_operand`` is that of the rows.

    biased : whether the bytes of rows are biased to unsigned by 128
    """
    elements = dot_elements(op.body) if op.body is not None else None
    total = element(op.outputs[0].buffer)
    assert elements is not None and op.body is not None
    if biased:
        elements = ("ui8", elements[1]) if row_operand == 0 else (elements[0], "ui8")
    body = Block(arg_types=[i32, i32, total])
    for new, old in zip(body.args, op.body.args, strict=True):
        new.name_hint = old.name_hint
    x, w, sum = body.args
    dot = kernel.DotOp(sum, x, w, elements)
    for new in (dot, linalg.YieldOp(dot.result)):
        new.location = op.op.location
        body.add_op(new)
    return replace(op, body=body)


@dataclass(frozen=True)
class Words:
    """How elements of one operand become words."""

    writer: Writer
    bits: int
    """Bits of an element."""
    biased: bool = False
    """Whether 128 is added to each byte."""
    of_rows: bool = False
    """Whether the operand is that of the rows."""
    of_tiles: bool = False
    """Whether a matrix unit reads it."""

    @property
    def terms(self) -> int:
        """The elements of a word."""
        return WORD // self.bits

    def keeps_rows(self, deep: bool) -> bool:
        """Whether packed words stay contiguous along the sum, where elements are if ``deep``."""
        return self.of_rows and (deep or self.of_tiles)

    def contiguous(self, elements: SSAValue) -> SSAValue:
        """Return words, a vector of them, of elements in the order of the sum."""
        type = vector_type(i32, lanes_of(elements) // self.terms)
        new = vector.BitcastOp.create(operands=[elements], result_types=[type])
        return self.writer.result(new, elements.name_hint)

    def assembled(self, elements: Sequence[SSAValue]) -> SSAValue:
        """Return the word of some elements, zeros after them; or a vector of words."""
        word: SSAValue | None = None
        lanes = lanes_of(elements[0])
        type = vector_type(i32, lanes) if lanes else i32
        for q, part in enumerate(map(self._bits_of, elements)):
            new = arith.ExtUIOp.create(operands=[part], result_types=[type])
            wide: SSAValue = self.writer.result(new, part.name_hint)
            if q:
                by = self.writer.splat(IntegerAttr(self.bits * q, i32), lanes)
                wide = self.writer.binary(arith.ShLIOp, wide, by, part.name_hint)
            if word is not None:
                wide = self.writer.binary(arith.OrIOp, word, wide, part.name_hint)
            word = wide
        assert word is not None
        return word

    def with_bias(self, word: SSAValue) -> SSAValue:
        """Return a word, or a vector of words, as it is stored."""
        if not self.biased:
            return word
        bias = self.writer.splat(BIAS, lanes_of(word))
        return self.writer.binary(arith.XOrIOp, word, bias, word.name_hint)

    def _bits_of(self, element: SSAValue) -> SSAValue:
        """Return the bits of a float, or of a vector of floats, as an integer."""
        if not isinstance(get_element_type_or_self(element.type), AnyFloat):
            return element
        to, lanes = IntegerType(self.bits), lanes_of(element)
        cast = vector.BitcastOp if lanes else arith.BitcastOp
        type = vector_type(to, lanes) if lanes else to
        return self.writer.result(
            cast.create(operands=[element], result_types=[type]), element.name_hint
        )


def without_bias(
    writer: Writer,
    offsets: SSAValue,
    points: Sequence[Point],
    at: tuple[int, Index],
    state: list[SSAValue],
) -> list[SSAValue]:
    """Subtract from sums the part that is due to the 128 added to each byte of the rows.

    at : the loop of the columns, and its index at the first of the ``offsets``
    """
    column, begin = at
    less: dict[object, SSAValue] = {}
    found: list[SSAValue] = []
    for point, total in zip(points, state, strict=True):
        here = point.indices[column]
        assert here is not None
        if here.key not in less:
            less[here.key] = writer.load(offsets, [here - begin], point.width, "offset")
        found.append(writer.binary(arith.SubiOp, total, less[here.key], total.name_hint))
    return found
