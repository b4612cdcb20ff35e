"""Packing for dot-product instructions: groups of narrow elements become words of 32 bits.

The elements of a word are consecutive in the sum: four bytes, or two floats of 16 bits. In the
column operand, words of neighbouring columns are contiguous. Rows that are contiguous along the sum
are copied as they are; other rows are laid out as columns are. Beyond the end of the sum a word is
padded with zeros. Words beyond the last row or column may hold any value: their sums are never
stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.type import get_element_type_or_self

from stepwell.analysis.products import dot_elements
from stepwell.analysis.structured import bits_of, element
from stepwell.core.dot_instructions import WORD
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.builder import lanes_of, vector_type
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.packing import Packing, size_of
from stepwell.lowering.linalg_to_loops.plan import Buffer
from stepwell.lowering.linalg_to_loops.register_transpose import transpose_block
from stepwell.lowering.linalg_to_loops.runs import Run
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, element_of

BIAS = IntegerAttr(0x80808080 - (1 << 32), i32)
"""128 in each byte of a word: the sign bit of a signed byte, a number for an unsigned one."""
ROW_PADDING_WORDS = 16
"""Words of padding between packed rows, so that the rows of a tile map to different cache sets."""
NARROW_LANES = 4
"""Columns copied at once where they do not fill a vector."""


def dot_body(op: Structured, row_operand: int, biased: bool) -> Structured:
    """Return a sum of products with a body of words; input ``row_operand`` is that of the rows.

    biased : whether the bytes of rows are biased to unsigned by 128
    """
    elements = dot_elements(op.body) if op.body is not None else None
    total = element_of(op.outputs[0].buffer)
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


def words(writer: Writer, count: Index, terms: int) -> Index:
    """Return the number of words that ``count`` elements fill, ``terms`` each."""
    return writer.divide(count + (terms - 1), terms, arith.DivUIOp)


class DotPacking(Packing):
    """Writes the packing of one operand as words of 32 bits."""

    def __init__(
        self,
        frame: Frame,
        op: Structured,
        operand: int,
        column: int,
        sums: Sequence[int],
        columns: int,
        rows: bool = False,
        biased: bool = False,
        by_rows: bool = False,
    ) -> None:
        super().__init__(frame, op, operand, column, sums, columns)
        self.widening.casts = []  # a word holds elements as they are
        self.bits = bits_of(element(self.source.buffer))
        self.terms = WORD // self.bits
        """Elements of a word."""
        self.biased = biased
        """Whether 128 is added to each byte."""
        wide = self.terms * self.width
        self.deep = self.width > 1 and lanes_at(self.source, self.depth, wide) == wide
        """Whether elements that are consecutive in the sum are contiguous."""
        self.keeps_rows = rows and (self.deep or by_rows)
        """Whether the packed rows stay contiguous along the sum."""
        if not self.keeps_rows:
            self.columns = -(-columns // self.width) * self.width

    def _run(self) -> Run | None:
        """Return None: words are formed within the last loop of the sum."""

    def _shape(self, depth: int) -> list[int]:
        """Return the number of words for each loop of the sum."""
        count = max(-(-depth // self.terms), 1)
        apart = ROW_PADDING_WORDS if self.keeps_rows and not self.sums else 0
        return [*(max(size_of(self.op, k), 1) for k in self.sums), count + apart]

    def allocate(self, depth: int) -> None:
        """Allocate the scratch and set ``access`` to the innermost loop's read of it."""
        sums, loops = self._shape(depth), [*self.sums, self.depth]
        shape, loops = [*sums, self.columns], [*loops, self.column]
        if self.keeps_rows:
            shape, loops = [self.columns, *sums], [loops[-1], *loops[:-1]]
        op = memref.AllocaOp.get(i32, 64, shape)
        self.scratch = self.frame.writer.result(op, "packed")
        self.frame.plan.buffers[self.scratch] = Buffer()
        self.access = Access(self.scratch, tuple(map(AffineDimExpr, loops)))

    def begin(self, batch: list[Index], j: Index, k: Index, count: Index) -> None:
        """Set the part that is packed next, and how many of its columns exist."""
        super().begin(batch, j, k, count)
        extent = self.frame.ends[self.column]
        self.inside = self.frame.writer.minimum(Index.of(self.columns), extent - j)

    def _copy(self) -> None:
        """Pack at one iteration of the loops of the sum before the last."""
        writer, inside = self.frame.writer, self.inside
        if self.deep:
            self._along_sum(inside)
        elif self.keeps_rows:
            self._by_elements(inside)
        elif self.width > 1 and lanes_at(self.source, self.column, self.width) == self.width:
            all = Index.of(self.columns)
            whole = None if inside == all else writer.compare("eq", inside, all)
            across = self._across_columns
            writer.branch(whole, lambda: across(all), lambda: across(inside))
        else:
            self._by_elements(inside)

    def biases(self, width: int, element: str) -> list[SSAValue]:
        """Return, for each vector of columns, 128 times the sum of the last packed part."""
        writer = self.frame.writer
        starts = range(0, self.columns, width)
        zero, bias = (writer.splat(n, width) for n in (IntegerAttr(0, i32), BIAS))

        def word(outer: list[Index], totals: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if len(outer) <= len(self.sums):
                sizes = [Index.of(size_of(self.op, k)) for k in self.sums]
                size = [*sizes, words(writer, self.count, self.terms)][len(outer)]

                def inner(n: Index, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
                    return word([*outer, n], args)

                return writer.loop((Index(), size), 1, totals, inner, "k")
            reads = [writer.load(self.scratch, [*outer, Index.of(c)], width) for c in starts]
            return [
                writer.result(kernel.DotOp(total, bias, read, ("ui8", element)))
                for read, total in zip(reads, totals, strict=True)
            ]

        return list(word([], [zero for _ in starts]))

    # words

    def _each_word(self, write: Callable[[Index, int], None], first: Index | None = None) -> None:
        """Call ``write`` with each word from ``first`` on and its number of elements."""
        writer = self.frame.writer
        whole = writer.divide(self.count, self.terms, arith.DivUIOp)

        writer.each((first or Index(), whole), 1, lambda n: write(n, self.terms), "k")
        left = self.count - whole * self.terms
        if left.number is not None:
            if left.number:
                write(whole, left.number)
            return
        for size in range(1, self.terms):
            some = writer.compare("eq", left, Index.of(size))
            writer.branch(some, lambda size=size: write(whole, size))

    def _store_word(self, word: SSAValue, n: Index, column: Index) -> None:
        """Store a word, or a vector of words."""
        writer = self.frame.writer
        if self.biased:
            bias = writer.splat(BIAS, lanes_of(word))
            word = writer.binary(arith.XOrIOp, word, bias, word.name_hint)
        at = [column, *self.outer, n] if self.keeps_rows else [*self.outer, n, column]
        writer.store(word, self.scratch, at)

    def _assembled_word(self, column: Index, n: Index, size: int, lanes: int = 0) -> SSAValue:
        """Return word ``n``, assembled from ``size`` elements; or a vector of ``lanes`` words."""
        writer, type = self.frame.writer, vector_type(i32, lanes) if lanes else i32
        axis = self.column if lanes else -1
        word: SSAValue | None = None
        for q in range(size):
            part = self._bits(self._element(self._point(column, n * self.terms + q, axis, lanes)))
            new = arith.ExtUIOp.create(operands=[part], result_types=[type])
            wide: SSAValue = writer.result(new, part.name_hint)
            if q:
                by = writer.splat(IntegerAttr(self.bits * q, i32), lanes)
                wide = writer.binary(arith.ShLIOp, wide, by, part.name_hint)
            word = wide if word is None else writer.binary(arith.OrIOp, word, wide, part.name_hint)
        assert word is not None
        return word

    def _bits(self, element: SSAValue) -> SSAValue:
        """Return the bits of a float, or of a vector of floats, as an integer."""
        if not isinstance(get_element_type_or_self(element.type), AnyFloat):
            return element
        to, lanes = IntegerType(self.bits), lanes_of(element)
        cast = vector.BitcastOp if lanes else arith.BitcastOp
        new = cast.create(
            operands=[element], result_types=[vector_type(to, lanes) if lanes else to]
        )
        return self.frame.writer.result(new, element.name_hint)

    def _vector_of_words(self, column: Index, n: Index, lanes: int) -> SSAValue:
        """Return ``lanes`` words from ``n`` on, whose elements are contiguous."""
        writer = self.frame.writer
        found = self._element(self._point(column, n * self.terms, self.depth, self.terms * lanes))
        type = vector_type(i32, lanes)
        new = vector.BitcastOp.create(operands=[found], result_types=[type])
        return writer.result(new, found.name_hint)

    # operands

    def _across_columns(self, inside: Index) -> None:
        """Pack contiguous columns, in vectors where whole ones fit."""
        writer = self.frame.writer

        def line(n: Index, size: int) -> None:
            def some(c: Index, lanes: int) -> None:
                wide = lanes if lanes > 1 else 0
                self._store_word(self._assembled_word(c, n, size, wide), n, c)

            if inside.number == self.columns:
                for c in range(0, self.columns, self.width):
                    some(Index.of(c), self.width)
                return
            steps = list(dict.fromkeys([self.width, min(self.width, NARROW_LANES), 1]))
            writer.cover((Index(), inside), steps, some, "j")

        self._each_word(line)

    def _along_sum(self, inside: Index) -> None:
        """Pack rows, or columns that are contiguous along the sum."""
        writer, width = self.frame.writer, self.width
        step = 1 if self.keeps_rows else width

        def columns(c: Index) -> None:
            here = [writer.minimum(c + n, inside + -1) for n in range(step)]

            def vectors(n: Index) -> None:
                read = [self._vector_of_words(column, n, width) for column in here]
                if self.keeps_rows:
                    self._store_word(read[0], n, c)
                    return
                for q, lanes in enumerate(transpose_block(writer, read)):
                    self._store_word(lanes, n + q, c)

            def single(n: Index, size: int) -> None:
                for q, column in enumerate(here):
                    whole = size == self.terms
                    word = (
                        writer.lane(self._vector_of_words(column, n, 1), 0)
                        if whole
                        else self._assembled_word(column, n, size)
                    )
                    self._store_word(word, n, c + q)

            self._each_word(single, self._vectors(vectors))

        writer.each((Index(), inside), step, columns, "j")

    def _vectors(self, write: Callable[[Index], None]) -> Index:
        """Call ``write`` for each vector of whole words; return where the tail of words begins."""
        writer = self.frame.writer
        whole = writer.divide(self.count, self.terms, arith.DivUIOp)
        end = writer.last_whole(Index(), whole, self.width)

        writer.each((Index(), end), self.width, write, "k")
        known = whole.number
        if known is None or known < self.width or known == end.number:
            return end
        write(Index.of(known - self.width))
        return whole

    def _by_elements(self, inside: Index) -> None:
        """Pack element by element."""

        def column(c: Index) -> None:
            self._each_word(
                lambda n, size: self._store_word(self._assembled_word(c, n, size), n, c)
            )

        self.frame.writer.each((Index(), inside), 1, column, "j")


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
