"""Prefetch: a block requests the operand it packs next while it computes with the packed part.

Packing reads distant memory in short runs that hardware prefetchers do not predict: it waits for
memory, while computing does not. So each step of the innermost loop prefetches one line. The tiles
divide the lines among them: where columns are contiguous, a row of columns has few lines, and a
tile prefetches one line of each row; where a column's elements are contiguous, a tile prefetches
the lines of as many columns as a line has elements.

An operand that lies in panels already is read one line after another, which hardware prefetches,
but the first tile that reads a panel still waits for it. So the tiles of a part divide the lines of
the next part among them, each a run of them. A prefetch in each step takes longer than it saves
where many tiles read a part: then they prefetch in one of several steps, which are written out.

A tile that reads distant rows of an operand in place prefetches its reads of some steps later; in
its last steps these are the first reads of the next tile. So does a tile whose window slides along
the rows of images: each image is far from the one before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from stepwell.analysis.levels.kernel_ops import prefetched
from stepwell.analysis.structured import bytes_of, coefficient, dims_of
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.contraction_levels import Ranges
from stepwell.lowering.linalg_to_loops.contraction_operands import Operands
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.packing import Packing
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, below

LINE_BYTES = 64
"""Bytes of a cache line."""


class Prefetch(ABC):
    """Prefetches what the tiles of a contraction read in the next part of a sum."""

    every = 1
    """Steps of the innermost loop from one prefetch to the next."""

    def __init__(self, operands: Operands) -> None:
        self.operands, self.of, self.frame = operands, operands.of, operands.frame
        self.writer, self.extent = self.frame.writer, operands.extents_of_sum()
        self.access = self.of.sum.inputs[operands.column_operand]
        self.each = elements_of_line(self.access)
        self.deep = self.of.levels.levels[self.of.levels.splits[-1]].step
        """Terms of a part."""

    def begin_part(self, at: Ranges, start: Index) -> None:
        """Begin the part of the sum at ``start``."""
        self.since = start

    def begin_tile(self, at: Ranges, row_number: Callable[[], Index]) -> None:
        """Find the tile's number, and the next part: after the last one, that of the next panel.

        row_number : returns the number of the tile's first row within the part
        """
        writer, zero = self.writer, Index()
        self.turn = writer.divide(row_number(), self.of.tile[0])
        j = at[self.of.column].start
        j_next, k_next = j + self.of.tile[1], self.since + self.deep
        turned = below(writer, j_next, self.frame.ends[self.of.column], j_next, zero)
        self.k = below(writer, k_next, self.extent, k_next, zero)
        self.j = below(writer, k_next, self.extent, j, turned)
        self.batch = [at[loop].start for loop in range(self.of.row)]

    @abstractmethod
    def step(self, points: Sequence[Point]) -> None:
        """Prefetch in the steps of the innermost loop of which the first is at ``points``."""


class PackPrefetch(Prefetch):
    """Prefetches the part of one operand of a block that is packed next."""

    def __init__(self, operands: Operands, packing: Packing) -> None:
        super().__init__(operands)
        self.packing, self.each = packing, elements_of_line(packing.source)

    def step(self, points: Sequence[Point]) -> None:
        """Prefetch one line."""
        packing, writer = self.packing, self.writer
        indices = [index or Index() for index in points[0].indices]
        outer, k = [indices[loop] for loop in packing.sums], indices[packing.depth]
        start, column = self.k, Index()
        turns = -(-packing.columns // self.each)
        if packing.along:
            # one line more, as a row may begin in the middle of a line
            turn = writer.divide(self.turn, turns + 1, arith.RemUIOp) * self.each
            turn = writer.minimum(turn, Index.of(packing.columns - 1))
        else:
            if packing.run is not None:
                k = writer.affine(packing.run.place, indices) * self.deep + k
                start, outer = start * packing.run.size, []
            column = writer.divide(k, self.each, arith.RemUIOp)
            turn, k = writer.divide(self.turn, turns, arith.RemUIOp) * self.each, k - column
        place = packing.place(self.batch, self.j + turn + column, outer, start + k)
        prefetch_line(writer, packing.source, place, {})


class PanelPrefetch(Prefetch):
    """Prefetches the part of an operand in panels that the tiles read next."""

    def __init__(self, operands: Operands) -> None:
        super().__init__(operands)
        of, split = self.of, self.of.levels.splits[-1]
        actions = of.levels.levels[split].actions
        self.every = next(a.number or 1 for a in actions if a.name == "prefetch")
        self.lines = -(-of.tile[1] // self.each)
        """Lines of a row of a panel."""
        *batch, rows, _ = of.sizes(split, self.frame.ends)
        tiles = max(prod(batch) * -(-rows // of.tile[0]), 1)
        self.count = -(-self.lines // tiles)
        """Lines that a step of a tile prefetches."""

    def begin_tile(self, at: Ranges, row_number: Callable[[], Index]) -> None:
        """Find where the tile's lines of the next part begin."""
        super().begin_tile(at, row_number)
        self.panel = self.writer.divide(self.j, self.of.tile[1])
        tiles = -(-self.lines * self.every // self.count)
        self.first = self.writer.divide(self.turn, tiles, arith.RemUIOp) * self.deep

    def step(self, points: Sequence[Point]) -> None:
        """Prefetch the next lines."""
        indices, writer, depth = list(points[0].indices), self.writer, self.of.levels.depth
        operand = self.operands.column_operand
        access = self.operands.in_panel(operand, self.panel, Index(), self.k)
        step = writer.divide(self.first + (indices[depth] or Index()), self.every)
        for number in range(self.count):
            line = step * self.count + number
            column = writer.divide(line, self.lines, arith.RemUIOp) * self.each
            indices[depth] = writer.divide(line, self.lines)
            indices[self.of.column] = column
            prefetch_line(writer, access, indices, {})


class InPlacePrefetch(Prefetch):
    """Prefetches what the tiles of the next part read of an operand that lies in rows."""

    def begin_part(self, at: Ranges, start: Index) -> None:
        """Find the beginning of the next part, and its distance in columns."""
        after, columns = start + self.deep, Index.of(at[self.of.column].size)
        self.k = below(self.writer, after, self.extent, after, Index())
        self.further = below(self.writer, after, self.extent, Index(), columns)

    def begin_tile(self, at: Ranges, row_number: Callable[[], Index]) -> None:
        """Do nothing: all tiles of a part prefetch in the same way."""

    def step(self, points: Sequence[Point]) -> None:
        """Prefetch the vectors that the tile reads, one part later."""
        if points[0].width > 1:
            column, access = self.of.column, self.access
            access = replace(access, begin=((self.of.levels.depth, self.k),))
            begin = (points[0].indices[column] or Index()) + self.further
            prefetch_row(self.writer, access, points, column, {column: begin})


def prefetch_of(operands: Operands) -> Prefetch | None:
    """Return how tiles prefetch the operand of the columns, if a level says so."""
    if operands.of.levels.action("prefetch") is None:
        return None
    if operands.columns is not None:
        return PackPrefetch(operands, operands.columns.packing)
    packed = operands.column_operand in operands.panels
    return PanelPrefetch(operands) if packed else InPlacePrefetch(operands)


def prefetch_tiles(frame: Frame) -> None:
    """Prefetch what the tiles of a plan read as many steps later as their level states."""
    plan = frame.plan

    def loads(op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        if op.reduced and plan.axis >= 0 and points[0].width > 1:
            for access, depth in _prefetched(plan, op):
                if depth == op.reduced[-1] and _is_walked_down(plan, op, access):
                    _prefetch_later_steps(frame, op, access, points)
        return {}

    def row(op: Structured, inner: Sequence[int], points: Sequence[Point]) -> None:
        for access, image in _prefetched(plan, op) if inner else ():
            if dims_of(access.exprs[-1:]) == {plan.axis, *inner}:  # a window slides along a row
                _prefetch_later_images(frame, op, access, image, points)

    frame.loads, frame.before_row = loads, row


def _prefetched(plan: Plan, op: Structured) -> list[tuple[Access, int]]:
    """Return the inputs of which later steps are prefetched, and the loop of these steps."""
    assert isinstance(op.op, linalg.GenericOp)
    found = list(prefetched(op.op, plan.axis))
    loop = max((k for _, k in found), default=None)
    return [(op.inputs[n], k) for n, k in found if k == loop and op.uses(n)]


def _is_walked_down(plan: Plan, op: Structured, access: Access) -> bool:
    """Whether each step reads another row of an operand in memory, in vectors."""
    if access.buffer in plan.padding or plan.buffers[access.buffer].alloc is not None:
        return False
    return lies_in_rows(access, op.reduced[-1], plan.axis, op.width)


def lies_in_rows(access: Access, step: int, column: int, width: int) -> bool:
    """Whether each step of a loop reads another row of an operand, in vectors along ``column``."""
    across, along = dims_of(access.exprs[:-1]), dims_of(access.exprs[-1:])
    return step in across - along and lanes_at(access, column, width) == width


def _prefetch_later_steps(
    frame: Frame, op: Structured, access: Access, points: Sequence[Point]
) -> None:
    writer, column = frame.writer, frame.plan.axis
    first, last = (points[n].indices[column] or Index() for n in (0, -1))
    moved = _later(frame, op, points[0], op.reduced[-1])
    prefetch_row(writer, access, points, column, moved)
    # a row may begin in the middle of a line
    end = moved[column] + (last - first) + (op.width - 1)
    prefetch_line(writer, access, points[0].indices, {**moved, column: end})


def _later(frame: Frame, op: Structured, point: Point, depth: int) -> dict[int, Index]:
    """Return the column of a point, and its index of the sum's loop ``depth`` some steps later.

    Past the end of the sum these are the first ones of the next tile.
    """
    writer, levels, column = frame.writer, frame.plan.levels, frame.plan.axis
    first, k = (point.indices[loop] or Index() for loop in (column, depth))
    extent, k = frame.extents[op][depth], k + levels.prefetch
    return {
        column: below(writer, k, extent, first, first + levels.step(column)),
        depth: below(writer, k, extent, k, k - extent),
    }


def _prefetch_later_images(
    frame: Frame, op: Structured, access: Access, image: int, points: Sequence[Point]
) -> None:
    """Prefetch the part of a row that the window slides along, some images later."""
    writer, plan, column = frame.writer, frame.plan, frame.plan.axis
    inner = sorted(dims_of(access.exprs[-1:]) - {column})
    first, last = (points[n].indices[column] or Index() for n in (0, -1))
    steps = [(last - first + points[0].width).number, *(frame.extents[op][k].number for k in inner)]
    if None in steps:
        return
    moved = _later(frame, op, points[0], image)
    place = [moved.get(n, index or Index()) for n, index in enumerate(points[0].indices)]
    at = access.at(writer, place)
    if padding := plan.padding.get(access.buffer):
        at = [index + -offset for index, offset in zip(at, padding.offsets, strict=True)]
    strides = [coefficient(access.exprs[-1], n) or 0 for n in (column, *inner)]
    passed = sum(
        stride * (count - 1) for stride, count in zip(strides, steps, strict=True) if count
    )
    each = elements_of_line(access)
    for offset in range(0, passed + each, each):  # a row may begin in the middle of a line
        indices = [writer.value(index) for index in (*at[:-1], at[-1] + offset)]
        writer.insert(kernel.PrefetchOp(padding.image if padding else access.buffer, indices))


def prefetch_row(
    writer: Writer,
    access: Access,
    points: Sequence[Point],
    column: int,
    moved: Mapping[int, Index],
) -> None:
    """Prefetch what ``access`` reads at the columns of ``points``, other indices being ``moved``.

    points : in the order of their columns
    """
    first, last = (points[n].indices[column] or Index() for n in (0, -1))
    count = ((last - first).number or 0) + points[0].width
    begin = moved.get(column, first)
    for offset in range(0, count, elements_of_line(access)):
        prefetch_line(writer, access, points[0].indices, {**moved, column: begin + offset})


def prefetch_line(
    writer: Writer, access: Access, indices: Sequence[Index | None], moved: Mapping[int, Index]
) -> None:
    """Prefetch the line of one element, at ``indices`` of which some are ``moved``."""
    place = [moved.get(k, index or Index()) for k, index in enumerate(indices)]
    at = [writer.value(index) for index in access.at(writer, place)]
    writer.insert(kernel.PrefetchOp(access.buffer, at))


def elements_of_line(access: Access) -> int:
    """Return the elements of an operand in a cache line."""
    return max(LINE_BYTES // bytes_of(access.buffer), 1)
