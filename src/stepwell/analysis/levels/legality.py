"""The rules for levels that depend on the kernel's ops, with an explanation of each refusal."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NoReturn

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, IntegerType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.levels.in_steps import InSteps
from stepwell.analysis.levels.kernel_ops import is_free, writes_along
from stepwell.analysis.levels.matrix_units import are_rows_of_words, for_matrix_unit
from stepwell.analysis.levels.queries import DOTS, DOUBLE_BUFFERED, KernelLevels
from stepwell.analysis.levels.symmetry import is_symmetric
from stepwell.analysis.products import dot_elements
from stepwell.analysis.structured import (
    bits_of,
    bytes_of,
    dims_of,
    element,
    extents,
    in_panels,
    indices,
    widening,
)
from stepwell.core.dot_instructions import WORD
from stepwell.dialects.kernel.levels import PARALLEL, PEEL, Level
from stepwell.dialects.kernel.sharing import is_border

MAX_SCRATCH_BYTES = 1 << 18
"""Bytes of a thread's stack that one block may use for scratch of each kind."""
WORD_BYTES = WORD // 8
"""Bytes of a word of elements that a dot product takes."""


def refuse(message: str) -> NoReturn:
    """Raise the explanation of a refusal."""
    raise VerifyException(message)


def check_nest(levels: KernelLevels) -> None:
    """Check that a kernel with these ops may have these levels."""
    ops, loops = levels.ops, levels.loops
    if not ops:
        return
    if not levels.in_steps:
        _check_steps(levels)
    inputs = [value.owner for op in ops if isinstance(op, linalg.GenericOp) for value in op.inputs]
    if levels.whole_reads and any(isinstance(o, Operation) and is_border(o) for o in inputs):
        refuse("an image within a border is read by single elements or vectors alone")
    for op, each, (axis, width, many, *_) in zip(ops, loops, levels.lanes, strict=True):
        if 0 <= axis < len(each) and width * many > 1 and not each[axis] and not is_free(op, each):
            refuse(f"iterations of d{axis} run in order")
    if levels.parts:
        return _check_parts(levels)
    _check_vectors(levels)
    for number, found in levels.sums.items():
        _Steps(levels, number, found).check()


def _check_steps(levels: KernelLevels) -> None:
    """Check that parallel iterations take whole inner steps."""
    for loop, step in enumerate(levels.steps):
        inner = levels.step(loop)
        if step % inner or (loop != levels.axis and 1 < inner < step):
            said = f"a thread takes {step} iterations of d{loop}, inside of which {inner} stand"
            many = "a multiple of them" if loop == levels.axis else "as many"
            refuse(f"{said} side by side: take {many}")


def _check_vectors(levels: KernelLevels) -> None:
    """Check that ops agree on the vectorised shared loop, and that tiles fit it."""
    shared = {
        lanes._replace(nontemporal=()) if 0 <= lanes.axis < levels.shared else None
        for lanes in levels.lanes
    }
    if len(shared) > 1:
        refuse("ops of a kernel must agree on how the loops that they share are vectors")
    if levels.tile != (1, 1) and 0 <= levels.axis < levels.shared - 1:
        refuse("tiles need vectors along the last shared loop or one of an op's own")


def _check_parts(levels: KernelLevels) -> None:
    """Check that sums may be split into parts."""
    loops, split = levels.loops, levels.parts.parts if levels.parts else 0
    pairs = list(zip(levels.ops, loops, strict=True))
    sums = [(op, each) for op, each in pairs if not all(each)]
    known = all(is_free(op, each) and not writes_along(op, each) for op, each in sums)
    if not levels.shared:
        if not known or any(any(each) for _, each in sums):
            refuse("only full reductions by known combiners are cut into parts")
        return
    alone = len(sums) == 1 and not any(any(each[1:]) for each in loops)
    if levels.shared > 1 or not known or not alone or levels.lanes[0].axis > 0:
        refuse(
            "a sum over rows is cut into parts only where one op reduces, by known combiners, and "
            "none has further loops in parallel"
        )
    op, _ = sums[0]
    assert isinstance(op, linalg.GenericOp)
    columns = extents(op)[0]
    bytes = sum(map(bytes_of, op.outputs)) * split * columns
    if columns == DYNAMIC_INDEX or bytes > MAX_SCRATCH_BYTES:
        refuse(
            f"a sum over rows in {split} parts needs scratch for as many sums of each "
            f"column, at most {MAX_SCRATCH_BYTES} bytes: take fewer parts"
        )


@dataclass
class _Steps:
    """Checks the levels of a kernel whose sum is taken in steps."""

    all: KernelLevels
    number: int
    """Of the op that sums."""
    levels: InSteps

    def check(self) -> None:
        shared, number = self.all.shared, self.number
        inner = [n for n, each in enumerate(self.all.loops) if len(each) > shared]
        if inner != [number] or any(self.all.loops[number][shared:]):
            refuse(
                "a sum is taken in steps only where one op has loops besides the shared ones, a "
                "sum over them all"
            )
        op = self.all.ops[number]
        assert isinstance(op, linalg.GenericOp)
        self.op, self.column, self.row = op, shared - 1, shared - 2
        if self.all.tile == (1, 1) or self.all.axis != self.column:
            refuse(
                "a sum in steps needs several results side by side, and vectors along the last "
                "shared loop"
            )
        self.tile = {self.row: self.all.tile[0], self.column: self.all.step(self.column)}
        self.sizes = extents(op)
        self._check_op()
        self._check_order()
        self._check_tiles()
        for operand in (self.by_rows, self.by_columns):
            self._check_packed(operand)
        self._check_actions()
        self._check_sums()

    def _check_op(self) -> None:
        op, body = self.op, self.op.body.block
        known = is_free(op, self.all.loops[self.number])
        start = op.outputs[0].owner
        started = isinstance(start, linalg.FillOp) or not op.results
        if len(op.outputs) != 1 or not known or not started:
            refuse("a sum in steps has one output, which a linalg.fill starts")
        if any(isinstance(value.owner, linalg.GenericOp | linalg.FillOp) for value in op.inputs):
            refuse("a sum in steps needs operands that the kernel does not write")
        where = indices(op)[: len(op.inputs)]
        self.dims = list(map(dims_of, where))
        used = [k for k in range(len(where)) if body.args[k].first_use is not None]
        by_rows = [k for k in used if self.row in self.dims[k]]
        others = [k for k in used if self.column in self.dims[k] and k not in by_rows]
        if len(used) != 2 or len(by_rows) != 1 or len(others) != 1:
            refuse(
                "a sum in steps needs two operands: one varies with the last but one shared loop, "
                "the other with the last"
            )
        self.by_rows, self.by_columns = by_rows[0], others[0]
        found = in_panels(where[self.by_columns], self.column)
        self.panels = found is not None and found[1] == self.tile[self.column]

    def _check_order(self) -> None:
        """Check that threads and the sum within a tile take loops in order."""
        levels, steps = self.levels.levels, self.levels
        first = [level.loop for level in levels if level.kind == PARALLEL]
        missing = [k for k in range(max(first, default=0)) if k not in first]
        if first != sorted(set(first)) or any(self.sizes[k] == DYNAMIC_INDEX for k in missing):
            refuse("threads take loops in order, and leave out only those of known length")
        inside = [
            level for level in levels[steps.walked :] if not self.all.loops[self.number][level.loop]
        ]
        split = levels[steps.splits[-1]].step == 1
        wanted = [
            k for k in range(self.column + 1, len(self.sizes)) if k != steps.depth or not split
        ]
        if [level.loop for level in inside] != wanted or len({each.kind for each in inside}) > 1:
            refuse("the loops of a sum run in order within a tile, all of them written out or none")

    def _check_tiles(self) -> None:
        """Check that every step has whole tiles."""
        levels = self.levels.levels[: self.levels.walked]
        for n, level in enumerate(levels):
            if level.tail != PEEL:
                refuse(f"'{level}': sums in steps have tails of their own")
            unit = self.tile.get(level.loop, 1)
            packed = self.panels or self.levels.action("pack", self.by_columns) is not None
            outside = n < self.levels.splits[0]  # partial sums are kept tile by tile
            ragged = level.loop == self.column and outside and not packed
            if level.loop <= self.column and level.step % unit and not ragged:
                refuse(f"'{level}' is not made of whole tiles of {unit}")
        for k in range(self.column + 1):
            if self.levels.step(k, self.levels.walked) != (unit := self.tile.get(k, 1)):
                refuse(f"the levels around a tile end in steps of {unit} of d{k}")

    def _check_packed(self, operand: int) -> None:
        """Check the part of an operand that is packed, its element type and its size."""
        found = self.levels.action("pack", operand)
        if found is None:
            return
        n, _ = found
        loop = self.row if operand == self.by_rows else self.column
        kind = _widened(self.op.body.block.args[operand])
        if not isinstance(kind, AnyFloat) and not (
            isinstance(kind, IntegerType) and kind.bitwidth >= 8
        ):
            refuse(f"elements of type {kind} are not packed")
        fixed = [k for k in self.dims[operand] if k <= self.column and k != loop]
        if any(self.levels.step(k, n + 1) != 1 for k in fixed):
            refuse(f"'pack {operand}' needs levels around it that fix the operand's other loops")
        deep = self._inside(self.levels.depth, n)
        before = [self.sizes[k] for k in range(self.column + 1, self.levels.depth)]
        if deep is None or DYNAMIC_INDEX in before:
            refuse("an operand is packed only where the sum's first loops are of known length")
        width = self.all.lanes[0].width
        unit = {self.column: self.tile[self.column]}.get(loop, 1 if self.dots else width)
        begins = [x.step for x in self.levels.levels[: n + 1] if x.loop == loop]
        if in_panels(indices(self.op)[operand], loop) and any(x % width for x in begins):
            refuse(f"'pack {operand}' reads panels in whole vectors: take steps of {width} d{loop}")
        if (inside := self._inside(loop, n)) is None:
            refuse(f"'pack {operand}' needs a level around it that splits d{loop}")
        if self.levels.packs[operand] == DOUBLE_BUFFERED:
            self._check_double_buffered(operand, n)
            inside *= 2
        columns = -(-inside // unit) * unit
        self._check_scratch(prod(before) * self._packed_bytes(operand, deep) * columns)

    def _check_double_buffered(self, operand: int, n: int) -> None:
        """Check that the tiles of a part can pack the next part."""
        rows, deep = self.sizes[self.row], self._inside(self.levels.depth, n)
        width = self.all.lanes[0].width
        place = indices(self.op)[operand]
        along = place[-1] == AffineDimExpr(self.column) and width > 1
        if operand != self.by_columns or self.dots or not along:
            refuse("'as double_buffered' is for an operand of the columns whose rows are vectors")
        if self.column in self.dims[self.by_rows] or len(self.sizes) > self.column + 2:
            refuse("'as double_buffered' is for a sum over one loop, of rows by columns")
        if self.levels.action("prefetch"):
            refuse("'as double_buffered' prefetches by itself")
        if len(self.levels.splits) > 1 or n != self.levels.splits[0]:
            refuse("'as double_buffered' is for the only level that splits the sum")
        loops = {level.loop for level in self.levels.levels[n + 1 : self.levels.walked]}
        whole = rows < 0 or self._inside(self.row, n) == rows
        if not whole or self.sizes[self.column] < width or not loops <= {self.row, self.column}:
            refuse("'as double_buffered' needs a block of all rows, and a known number of columns")
        if deep is None or not 0 < deep < self.sizes[self.levels.depth]:
            refuse("'as double_buffered' needs a sum of several parts, of known length")

    def _inside(self, k: int, n: int) -> int | None:
        """Return the iterations of a loop inside of the ``n``-th level; None if not known."""
        step, size = self.levels.step(k, n + 1), self.sizes[k]
        if size < 0:
            return step or None
        return min(step, size) if step else size

    def _is_one_tile(self, n: int) -> bool:
        """Whether the ``n``-th level takes the columns of one tile at most."""
        columns = self._inside(self.column, n)
        return columns is not None and columns <= self.tile[self.column]

    def _check_scratch(self, bytes: int) -> None:
        if bytes > MAX_SCRATCH_BYTES:
            refuse(
                f"{bytes} bytes of scratch are needed, more than {MAX_SCRATCH_BYTES}: take less at "
                "a time"
            )

    @property
    def dots(self) -> bool:
        """Whether operands are packed as words."""
        return any(how in DOTS for how in self.levels.packs.values())

    def _check_sums(self) -> None:
        """Check the scratch of partial sums."""
        steps, levels, whole = self.levels, self.levels.levels, self.sizes[self.levels.depth]
        several = (n for n in steps.splits if not 0 <= whole <= levels[n].step)
        if (cut := next(several, None)) is None:
            return
        inside = [steps.step(k, cut) or self._inside(k, cut) for k in range(self.column + 1)]
        sizes = [size for size in inside if size is not None]  # whole tiles, beyond the end too
        if len(sizes) < len(inside):
            refuse("partial sums need rows and columns of known number, or levels that split them")
        columns = -(-sizes[-1] // self.tile[self.column]) * self.tile[self.column]
        self._check_scratch(prod(sizes[:-1]) * columns * bytes_of(self.op.outputs[0]))

    def _packed_bytes(self, operand: int, deep: int) -> int:
        """Return the bytes of a packed column, for words without the padding between rows."""
        if self.dots:
            return -(-deep * bytes_of(self.op.inputs[operand]) // WORD_BYTES) * WORD_BYTES
        return bits_of(_widened(self.op.body.block.args[operand])) // 8 * deep

    def _check_actions(self) -> None:
        """Check the actions of levels, and where they are."""
        last, walked = self.levels.splits[-1], self.levels.walked
        found = [(n, level, a) for n, level in enumerate(self.levels.levels) for a in level.actions]
        if len({(a.name, a.number) for _, _, a in found}) < len(found):
            refuse("an action is given twice")
        for n, level, action in found:
            known = action.number in (self.by_rows, self.by_columns)
            numbered = action.number and not (action.name == "prefetch" and self.panels)
            elsewhere = action.name == "prefetch" and (n != last or numbered)
            if elsewhere or (action.name == "pack" and (not known or n >= walked)):
                refuse(f"'{action}' is not for '{level}'")
        packed = self.levels.action("pack", self.by_columns)
        near = packed is not None and packed[0] == last
        if self.levels.action("prefetch") and packed and not near:
            refuse("'prefetch' is for operands that are not packed, or packed by the same level")
        if self.levels.packs.get(self.by_rows) == "first":
            refuse("only the operand of the columns is packed as first")
        one = self._is_one_tile(last)
        if self.levels.packs.get(self.by_columns) == "first" and not (near and one):
            refuse("'as first' is for one panel of columns, packed where the sum is split")
        if self.dots:
            self._check_dots()
        if (mirror := self.levels.action("mirror")) is not None:
            self._check_mirror(mirror[1])

    def _check_mirror(self, level: Level) -> None:
        """Check that blocks beyond the diagonal are equal to blocks before it."""
        levels, size = self.levels.levels, self.sizes[self.row]
        rows = next((x for x in levels if x.kind == PARALLEL and x.loop == self.row), None)
        if level.kind != PARALLEL or level.loop != self.column or rows is None:
            refuse(
                f"'mirror' is for a parallel level of d{self.column} inside of one of d{self.row}"
            )
        if rows.step % level.step:
            refuse(f"'mirror' needs blocks of whole steps of {level.step} rows, not of {rows.step}")
        if 0 <= size <= rows.step:
            refuse("'mirror' needs several blocks of rows: leave it out")
        if not is_symmetric(self.all.ops, self.all.shared):
            refuse("'mirror' is for a product of an operand with itself, and ops that keep it so")

    def _check_dots(self) -> None:
        """Check that the packed words are operands of dot products."""
        total, details = element(self.op.outputs[0]), self.levels.packs
        elements = dot_elements(self.op.body.block)
        if elements is None or (total == i32) != (elements[0] in ("i8", "ui8")):
            refuse("only products of bytes summed in i32, and of halves in f32, are packed as dot")
        dots = [details.get(k, "") for k in (self.by_rows, self.by_columns)]
        plain = not self.levels.action("prefetch")
        if dots[0] not in ("dot", "biased_dot", "") or dots[1] != "dot" or not plain:
            refuse("both operands are packed as dot, without 'prefetch'")
        if not dots[0] and not self._reads_words_in_place():
            refuse(
                "both operands are packed as dot, but for rows of whole words that a matrix unit "
                "reads in place"
            )
        last = self.levels.splits[-1]
        found = [self.levels.action("pack", k) for k in (self.by_rows, self.by_columns)]
        if any(each is not None and each[0] < last for each in found):
            refuse("operands are packed as dot inside of the levels that split the sum")
        if dots[0] == "biased_dot":
            if elements[self.by_rows] != "i8":
                refuse("only signed bytes are packed as biased_dot")
            assert found[1] is not None
            if not self._is_one_tile(found[1][0]):
                refuse("'biased_dot' is for one panel of columns")

    def _reads_words_in_place(self) -> bool:
        """Whether a matrix unit may read the rows in place, in whole steps of words."""
        depth, bytes = self.levels.depth, bytes_of(self.op.inputs[self.by_rows])
        sizes = self.sizes[depth], self.levels.levels[self.levels.splits[-1]].step
        tile = self.tile[self.row], self.tile[self.column]
        return for_matrix_unit(self.levels, tile, self.row) and are_rows_of_words(
            indices(self.op)[self.by_rows], (self.row, depth), sizes, bytes
        )


def _widened(value: SSAValue) -> Attribute:
    """Return the type of an operand after the casts at the beginning of a body."""
    casts = widening(value)
    return casts[-1].results[0].type if casts else value.type
