"""Read an image with virtual padding: reads beyond the image yield the fill value.

Where the indices prove that a read is within the image it is a plain load; where they prove that it
is outside, nothing is loaded. Otherwise the loop tests the index. A vector that extends past a row
is loaded from the row's end and its lanes are shifted. The C compiler removes these tests from
unrolled loops whose first and last tiles are peeled. In rows of unknown length vectors are loaded
under a mask, which may disable all lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from stepwell.analysis.structured import coefficient, element, shape, stride
from stepwell.dialects.kernel.levels import MASK
from stepwell.dialects.kernel.sharing import is_border
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.first_lanes import all_or_none, between
from stepwell.lowering.linalg_to_loops.strides import load_strided
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, vector_type
from stepwell.transforms.kernels.schedule.vectors import STRIDES
from stepwell.transforms.passes import fail

COPIES = "kernel.border marks a copy of an image to some place in a larger tensor"


@dataclass
class VirtualPadding:
    """An image, its position within the padding, and the fill value."""

    image: SSAValue
    offsets: tuple[int, ...]
    filling: SSAValue
    bounded: tuple[bool, ...]
    """For each dimension, whether it is padded."""
    behind: int
    """Columns of padding after each row; -1 where they are known at run time only."""
    masked: bool = False
    """Whether masks disable the lanes that are padding, as the number of columns is not known."""


def take_padding(
    ops: Sequence[Structured],
) -> tuple[list[Structured], dict[SSAValue, VirtualPadding]]:
    """Return the ops that compute something, and the virtual padding that the others describe."""
    found: dict[SSAValue, VirtualPadding] = {}
    for op in ops:
        if is_border(op.op):
            image, there = _copied(op)
            offsets = tuple(_offset(op, e, d) for d, e in enumerate(there.exprs))
            filling = _filling(op, there.buffer, ops)
            sizes = [shape(a.buffer) for a in (image, there)]
            bounded = _bounded(op, offsets, sizes)
            columns = [size[-1] for size in sizes]
            behind = -1 if min(columns) < 0 else columns[1] - offsets[-1] - columns[0]
            masked = columns[0] < 0 and any(each.tail == MASK for each in ops)
            found[there.buffer] = VirtualPadding(
                image.buffer, offsets, filling, bounded, behind, masked
            )
    kept = [
        op
        for op in ops
        if not is_border(op.op) and not (op.value is not None and op.outputs[0].buffer in found)
    ]
    return kept, found


def _copied(op: Structured) -> tuple[Access, Access]:
    """Return the source and the destination of a copy."""
    image = op.inputs[0].exprs if len(op.inputs) == 1 else ()
    last = op.body.last_op if op.body is not None else None
    assert op.body is not None
    plain = all(isinstance(e, AffineDimExpr) and e.position == d for d, e in enumerate(image))
    if not image or not plain or last is None or last.operands[0] is not op.body.args[0]:
        fail(op.op, COPIES)
    return op.inputs[0], op.outputs[0]


def _bounded(
    op: Structured, offsets: Sequence[int], sizes: Sequence[tuple[int, ...]]
) -> tuple[bool, ...]:
    """Return for each dimension whether it is padded; all others must have equal sizes."""
    axes = op.op.attributes["kernel.border"]
    numbers = axes.get_values() if isinstance(axes, DenseArrayBase) else ()
    found = tuple(d in numbers for d in range(len(offsets)))
    for bounded, offset, m, n in zip(found, offsets, *sizes, strict=True):
        if not bounded and (offset or (m != n and min(m, n) >= 0)):
            fail(op.op, "kernel.border names each axis along which there is a border")
    return found


def _filling(op: Structured, buffer: SSAValue, ops: Sequence[Structured]) -> SSAValue:
    """Return the fill value of the padding; nothing else may write to it."""
    values = [o.value for o in ops if o is not op and any(a.buffer is buffer for a in o.outputs)]
    if len(values) != 1 or values[0] is None or not isinstance(buffer.owner, memref.AllocOp):
        fail(op.op, "kernel.border needs scratch of the kernel, which one fill writes before")
    return values[0]


def _offset(op: Structured, expr: AffineExpr, dim: int) -> int:
    """Return the image's offset from the beginning of the padded dimension."""
    match expr:
        case AffineDimExpr(position=position) if position == dim:
            return 0
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Add,
            lhs=AffineDimExpr(position=position),
            rhs=AffineConstantExpr(value=offset),
        ) if position == dim and offset >= 0:
            return offset
        case _:
            pass
    fail(op.op, COPIES)


@dataclass
class PaddedReader:
    """Reads an image with virtual padding."""

    writer: Writer
    padding: VirtualPadding
    size: Callable[[SSAValue, int], Index]
    hint: str | None
    proven: Container[int] = ()
    """The axes along which the present iteration reads no padding."""

    def read(self, access: Access, point: Point) -> SSAValue:
        """Return the element, or the vector, that ``access`` reads at ``point``."""
        pairs = zip(access.at(self.writer, point.indices), self.padding.offsets, strict=True)
        at = [index + -offset for index, offset in pairs]
        step = stride(access.exprs, point.axis) if point.width else 0
        if step == 0:
            return self._rows(at, 0)
        narrow = self._narrow(point.width)
        if step in STRIDES and not narrow:
            return self._strided(at, point.width, step)
        if step == 1 and not narrow:
            return self._rows(at, point.width)
        lanes = [self.read(access, point.lane(k)) for k in range(point.width)]
        return self.writer.assemble(lanes)

    def _strided(self, at: list[Index], width: int, step: int) -> SSAValue:
        """Read lanes at a stride: those of the step before, if it is written, moved by one."""
        *rows, column = at

        def key(column: Index) -> object:
            return "strided", self.padding.image, width, step, *(i.key for i in (*rows, column))

        def load(start: int) -> SSAValue:
            return self._rows([*rows, column + start], width)

        before = self.writer.find(key(column + -step))
        return self.writer.shared(
            key(column), lambda: load_strided(self.writer, width, step, load, self.hint, before)
        )

    def exceeds_row(self, access: Access, point: Point) -> bool:
        """Whether the bounds of the index allow a vector to extend past its row."""
        column = access.at(self.writer, point.indices)[-1] + -self.padding.offsets[-1]
        columns = self.size(self.padding.image, len(self.padding.offsets) - 1).number
        found = self.writer.interval(column)
        if columns is None or found is None or not point.width:
            return False
        step = coefficient(access.exprs[-1], point.axis) or 1
        return found[0] < 0 or found[1] >= columns - abs(step) * (point.width - 1)

    def _narrow(self, width: int) -> bool:
        """Whether a row may be shorter than a vector, which is then read lane by lane."""
        if self.padding.masked:
            return False
        columns = self.size(self.padding.image, len(self.padding.offsets) - 1).number
        return columns is None or columns < width or self.padding.behind < 0

    def _rows(self, at: list[Index], width: int) -> SSAValue:
        """Read the image, once for all results of a step that share an element or a vector."""
        key = "padded", self.padding.image, width, *(index.key for index in at)
        return self.writer.shared(key, lambda: self._within(at, width))

    def _within(self, at: list[Index], width: int) -> SSAValue:
        """Read the image only where every index, except that of a vector, is within it."""
        tests: list[tuple[Index, Index]] = []
        masked = bool(width) and self.padding.masked
        for dim, (index, bounded) in enumerate(zip(at, self.padding.bounded, strict=True)):
            if not bounded or dim in self.proven or (width and dim == len(at) - 1):
                continue
            size = self.size(self.padding.image, dim)
            inside = self.writer.is_within(index, size)
            if inside is False:
                return self._filling(width)
            if inside is None:
                tests.append((index, size))
        return self._masked(tests, at, width) if masked else self._tested(tests, at, width)

    def _masked(
        self, tests: Sequence[tuple[Index, Index]], at: list[Index], width: int
    ) -> SSAValue:
        """Load the lanes that are columns of the image, none where a test fails."""
        column, columns = at[-1], self.size(self.padding.image, len(at) - 1)
        low, high = self.writer.value(column * -1), self.writer.value(columns - column)
        lanes = between(self.writer, width, high, low)
        for index, size in tests:
            lanes = all_or_none(self.writer, self._is_within(index, size), lanes)
        operands = [*map(self.writer.value, at), lanes]
        load = vector.MaskedLoadOp.create(
            operands=[self.padding.image, *operands, self._filling(width)],
            result_types=[vector_type(element(self.padding.image), width)],
        )
        return self.writer.result(load, self.hint)

    def _is_within(self, index: Index, size: Index) -> SSAValue:
        key = "within", index.key, size.key
        return self.writer.shared(key, lambda: self.writer.compare("ult", index, size))

    def _tested(self, tests: list[tuple[Index, Index]], at: list[Index], width: int) -> SSAValue:
        if not tests:
            return self._columns(at, width)
        (index, size), *others = tests
        within = self.writer.compare("ult", index, size)
        return self._choose(
            within, lambda: self._tested(others, at, width), lambda: self._filling(width)
        )

    def _columns(self, at: list[Index], width: int) -> SSAValue:
        """Read a vector that may extend past its row; each such overlap is a case."""
        *rows, column = at
        if not width or not self.padding.bounded[-1]:  # a single element was tested with the rows
            return self.writer.load(self.padding.image, at, width, self.hint)
        columns = self.size(self.padding.image, len(at) - 1).number
        assert columns is not None
        end = columns - width
        low, high = self.writer.interval(column) or self._widest(columns, width)
        cases = [n for n in range(low, high + 1) if n < 0 or n > end]
        inside = low <= end and high >= 0
        if not inside and len(cases) == 1:
            return self._moved(rows, cases[0], end, width)

        def rest(cases: list[int]) -> SSAValue:
            if not cases:
                return self.writer.load(self.padding.image, at, width, self.hint)
            if len(cases) == 1 and not inside:
                return self._moved(rows, cases[0], end, width)
            here = self.writer.compare("eq", column, Index.of(cases[0]))
            return self._choose(
                here,
                lambda: self._moved(rows, cases[0], end, width),
                lambda: rest(cases[1:]),
            )

        return rest(cases)

    def _widest(self, columns: int, width: int) -> tuple[int, int]:
        """Return the first and the last column at which a vector can begin."""
        return -self.padding.offsets[-1], columns + self.padding.behind - width

    def _moved(self, rows: list[Index], column: int, end: int, width: int) -> SSAValue:
        """Read the end of a row for a vector that begins at ``column`` and extends past the row."""
        by = -column if column < 0 else end - column
        if abs(by) >= width:
            return self._filling(width)
        start = Index.of(0 if column < 0 else end)
        row = self.writer.load(self.padding.image, [*rows, start], width, self.hint)
        lanes = [k - by if 0 <= k - by < width else width for k in range(width)]
        op = vector.ShuffleOp.create(
            operands=[row, self._filling(width)],
            result_types=[row.type],
            properties={"mask": DenseArrayBase.from_list(i64, lanes)},
        )
        return self.writer.result(op, self.hint)

    def _filling(self, width: int) -> SSAValue:
        return self.writer.broadcast(self.padding.filling, width)

    def _choose(
        self,
        condition: SSAValue,
        then: Callable[[], SSAValue],
        otherwise: Callable[[], SSAValue],
    ) -> SSAValue:
        """Write an scf.if with a result."""
        (result,) = self.writer.either(condition, lambda: (then(),), lambda: (otherwise(),))
        result.name_hint = self.hint
        return result
