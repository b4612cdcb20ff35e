"""The rules for nestings that depend on the kernel's ops, with an explanation of each refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NoReturn

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, IntegerType, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.levels.nesting import LoopedOp, Nesting, is_free
from stepwell.analysis.products import byte_products, dot_elements, exact_count
from stepwell.analysis.structured import CASTS, element, extents, in_panels, indices
from stepwell.dialects.kernel.sharing import is_border

MAX_SCRATCH_BYTES = 1 << 18
"""Bytes of a thread's stack that one block may use for scratch of each kind."""
WORD_BITS = 32
"""Bits of a word of elements that a dot product takes."""


def refuse(message: str) -> NoReturn:
    """Raise the explanation of a refusal."""
    raise VerifyException(message)


def check_nesting(ops: Sequence[LoopedOp], loops: Sequence[list[bool]], nesting: Nesting) -> None:
    """Check that a kernel with these ops may have this nesting."""
    if not ops:
        return
    _check_steps(nesting)
    inputs = [value.owner for op in ops if isinstance(op, linalg.GenericOp) for value in op.inputs]
    if nesting.whole_reads and any(isinstance(o, Operation) and is_border(o) for o in inputs):
        refuse("an image within a border is read by single elements or vectors alone")
    for op, each, (axis, width, many, _) in zip(ops, loops, nesting.lanes, strict=True):
        if 0 <= axis < len(each) and width * many > 1 and not each[axis] and not is_free(op, each):
            refuse(f"iterations of d{axis} run in order")
    if nesting.split:
        return _check_parts(ops, loops, nesting)
    _check_vectors(nesting)
    sums = [n for n, each in enumerate(loops) if not all(each)]
    if sums and (nesting.blocks or nesting.strip[0]):
        _Steps(ops, loops, nesting).check()


def _check_steps(nesting: Nesting) -> None:
    """Check that parallel iterations take whole inner steps, except in strips."""
    for loop, step in enumerate(() if nesting.strip[0] else nesting.steps):
        inner = nesting.step(loop)
        if step % inner or (not nesting.blocks and loop != nesting.axis and 1 < inner < step):
            said = f"a thread takes {step} iterations of d{loop}, inside of which {inner} stand"
            many = "a multiple of them" if loop == nesting.axis or nesting.blocks else "as many"
            refuse(f"{said} side by side: take {many}")


def _check_vectors(nesting: Nesting) -> None:
    """Check that ops agree on the vectorised shared loop, and that tiles fit it."""
    shared = {lanes if 0 <= lanes.axis < nesting.shared else None for lanes in nesting.lanes}
    if len(shared) > 1:
        refuse("ops of a kernel must agree on how the loops that they share are vectors")
    if nesting.tile != (1, 1) and 0 <= nesting.axis < nesting.shared - 1:
        refuse("tiles need vectors along the last shared loop or one of an op's own")


def _check_parts(ops: Sequence[LoopedOp], loops: Sequence[list[bool]], nesting: Nesting) -> None:
    """Check that sums may be split into parts."""
    pairs = list(zip(ops, loops, strict=True))
    sums = [(op, each) for op, each in pairs if not all(each)]
    known = all(is_free(op, each) and not _writes_along(op, each) for op, each in sums)
    if not nesting.shared:
        if not known or any(any(each) for _, each in sums):
            refuse("only full reductions by known combiners are cut into parts")
        return
    alone = len(sums) == 1 and not any(any(each[1:]) for each in loops)
    if nesting.shared > 1 or not known or not alone or nesting.lanes[0].axis > 0:
        refuse(
            "a sum over rows is cut into parts only where one op reduces, by known combiners, and "
            "none has further loops in parallel"
        )
    op, _ = sums[0]
    assert isinstance(op, linalg.GenericOp)
    columns = extents(op)[0]
    bytes = sum(_bytes(element(value)) for value in op.outputs) * nesting.split * columns
    if columns == DYNAMIC_INDEX or bytes > MAX_SCRATCH_BYTES:
        refuse(
            f"a sum over rows in {nesting.split} parts needs scratch for as many sums of each "
            f"column, at most {MAX_SCRATCH_BYTES} bytes: take fewer parts"
        )


def _writes_along(op: LoopedOp, loops: list[bool]) -> bool:
    """Whether some result varies with the loops that are summed over."""
    written = indices(op)[len(op.inputs) :] if isinstance(op, linalg.GenericOp) else []
    return any(not loops[d] for index in written for expr in index for d in expr.used_dims())


def _bytes(kind: Attribute) -> int:
    bits = kind.bitwidth if isinstance(kind, AnyFloat | IntegerType) else 64
    return max(bits // 8, 1)


@dataclass
class _Steps:
    """Checks a kernel whose sum is taken in parts: blocks, or strips."""

    ops: Sequence[LoopedOp]
    loops: Sequence[list[bool]]
    nesting: Nesting

    def check(self) -> None:
        shared = self.nesting.shared
        inner = [n for n, each in enumerate(self.loops) if len(each) > shared]
        number = inner[0] if inner else 0
        if len(inner) != 1 or any(self.loops[number][shared:]):
            refuse(
                "a sum is taken in steps only where one op has loops besides the shared ones, a "
                "sum over them all"
            )
        op = self.ops[number]
        assert isinstance(op, linalg.GenericOp)
        self.op, self.column = op, shared - 1
        if self.nesting.tile == (1, 1) or self.nesting.axis != self.column:
            refuse(
                "a sum in steps needs several results side by side, and vectors along the last "
                "shared loop"
            )
        self._check_op()
        if self.nesting.blocks:
            self._check_block()
        else:
            self._check_strip()

    def _check_op(self) -> None:
        op = self.op
        known = is_free(op, self.loops[list(self.ops).index(op)])
        start = op.outputs[0].owner
        started = isinstance(start, linalg.FillOp) or not op.results
        if len(op.outputs) != 1 or not known or not started:
            refuse("a sum in steps has one output, which a linalg.fill starts")
        if any(isinstance(value.owner, linalg.GenericOp | linalg.FillOp) for value in op.inputs):
            refuse("a sum in steps needs operands that the kernel does not write")
        self.dims = [
            {d for expr in index for d in expr.used_dims()}
            for index in indices(op)[: len(op.inputs)]
        ]

    @property
    def _used(self) -> list[int]:
        arguments = self.op.body.block.args[: len(self.op.inputs)]
        return [k for k, arg in enumerate(arguments) if arg.first_use is not None]

    def _roles(self, first: int) -> tuple[int, int]:
        """Return the input that varies with the rows, and the one that is packed."""
        rows = set(range(first, self.column))
        by_rows = [k for k in self._used if self.column - 1 in self.dims[k]]
        packed = [k for k in self._used if self.column in self.dims[k] and not rows & self.dims[k]]
        if len(self._used) != 2 or len(by_rows) != 1 or len(packed) != 1:
            refuse(
                "a block needs two operands: one varies with the last shared loop but not with "
                "those before it that are cut, the other with the last of these"
            )
        return by_rows[0], packed[0]

    def _check_strip(self) -> None:
        op, shared = self.op, self.nesting.shared
        high = extents(op)[shared - 2]
        self._roles(shared - 2)
        if high == DYNAMIC_INDEX or len(self.loops[list(self.ops).index(op)]) != shared + 1:
            refuse("a strip needs rows of known number and a sum of one loop")
        self._check_scratch(high * self.nesting.strip[0] * _bytes(element(op.outputs[0])))

    def _check_scratch(self, bytes: int) -> None:
        if bytes > MAX_SCRATCH_BYTES:
            refuse(
                f"{bytes} bytes of scratch are needed, more than {MAX_SCRATCH_BYTES}: take less at "
                "a time"
            )

    def _check_block(self) -> None:
        nesting, op = self.nesting, self.op
        *sizes, deep = nesting.blocks
        first, lanes = nesting.shared - len(sizes), nesting.lanes[0]
        columns = nesting.tile[1] * lanes.width
        if sizes[-2] % nesting.tile[0] or sizes[-1] % columns:
            refuse(
                f"a block of {sizes[-2]} by {sizes[-1]} is not made of whole tiles of "
                f"{nesting.tile[0]} by {columns}"
            )
        by_rows, packed = self._roles(first)
        sizes_of = extents(op)
        *before, last = range(nesting.shared, len(sizes_of))
        along = self.column in self.dims[by_rows]
        whole = 0 <= sizes_of[last] <= deep
        if along and not whole:
            refuse("where both operands vary with the columns, a step of the sum must be its whole")
        if any(sizes_of[k] == DYNAMIC_INDEX for k in before):
            refuse("an operand is packed only where the sum's first loops are of known length")
        self._check_kinds(by_rows, packed, deep, along, first, bool(before))
        outer = prod(sizes_of[k] for k in before)
        waiting = nesting.tile[0] if whole else prod(sizes[:-1])
        self._check_scratch(waiting * _bytes(element(op.outputs[0])) * columns)
        if in_panels(indices(op)[packed], self.column) is None:  # else it is packed already
            self._check_scratch(outer * self._packed_bytes(packed, deep) * columns)
        if nesting.pack_rows:
            width = lanes.width
            rows = sizes[-2] if nesting.dots else -(-sizes[-2] // width) * width
            self._check_scratch(outer * self._packed_bytes(by_rows, deep) * rows)

    def _packed_bytes(self, operand: int, deep: int) -> int:
        """Return the bytes of a packed column, for words without the padding between rows."""
        kind = element(self.op.inputs[operand])
        if self.nesting.dots:
            return -(-deep * 8 * _bytes(kind) // WORD_BITS) * (WORD_BITS // 8)
        if self.nesting.accumulate_in_f32:
            return 4 * deep
        return _bytes(_widened(self.op.body.block.args[operand])) * deep

    def _check_kinds(
        self, by_rows: int, packed: int, deep: int, along: bool, first: int, several: bool
    ) -> None:
        """Check the element types and the way they are packed."""
        nesting, body = self.nesting, self.op.body.block
        for operand in (packed, *((by_rows,) if nesting.pack_rows else ())):
            kind = _widened(body.args[operand])
            if not isinstance(kind, AnyFloat) and not (
                isinstance(kind, IntegerType) and kind.bitwidth >= 8
            ):
                refuse(f"elements of type {kind} are not packed")
        rows = first != self.column - 1 or several
        if nesting.pack_rows and ((rows and not nesting.dots) or along):
            refuse(
                "rows are packed only where blocks cut the last two shared loops, the sum has one "
                "loop and the operand varies with the rows alone"
            )
        if nesting.accumulate_in_f32:
            signs = byte_products(body)
            if signs is None:
                refuse("only products of bytes are summed as f32")
            if deep > (most := exact_count(signs)):
                refuse(f"'sum as f32' is exact for at most {most} products, not {deep}")
        if nesting.dots:
            self._check_dots(by_rows)

    def _check_dots(self, by_rows: int) -> None:
        """Check that the packed words are operands of dot products."""
        nesting, total = self.nesting, element(self.op.outputs[0])
        elements = dot_elements(self.op.body.block)
        if elements is None or (total == i32) != (elements[0] in ("i8", "ui8")):
            refuse("only products of bytes summed in i32, and of halves in f32, are packed as dot")
        if (
            not nesting.pack_rows
            or nesting.accumulate_in_f32
            or nesting.pack_first
            or nesting.prefetch
        ):
            refuse("both operands are packed as dot, without 'sum as f32' and 'prefetch'")
        if nesting.bias_to_unsigned and elements[by_rows] != "i8":
            refuse("only signed bytes are packed as biased_dot")


def _widened(value: SSAValue) -> Attribute:
    """Return the type of an operand after the casts at the beginning of a body."""
    while (use := value.get_user_of_unique_use()) is not None and isinstance(use, CASTS):
        value = use.results[0]
    return value.type
