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

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from stepwell.analysis.levels.kernel_ops import prefetched_loop
from stepwell.analysis.structured import bytes_of, coefficient, dims_of
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.contraction_operands import Operands
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.packing import Packing
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, below

LINE_BYTES = 64
"""Bytes of a cache line."""


class PackPrefetch:
    """Prefetches the part of one operand of a block that is packed next."""

    def __init__(self, packing: Packing, deep: int) -> None:
        self.packing, self.deep = packing, deep
        self.each = elements_of_line(packing.source)
        """Elements of a line."""

    def begin(self, batch: list[Index], j: Index, k: Index, extent: Index, turn: Index) -> None:
        """Prepare for tile number ``turn`` of the part at ``k`` of the panel at ``j``."""
        packing = self.packing
        ends = packing.frame.ends[packing.column], extent
        self.batch, self.turn = batch, turn
        self.k, self.j = following(packing.frame.writer, (j, k), ends, (packing.columns, self.deep))

    def step(self, point: Point) -> None:
        """Prefetch one line in the step of the innermost loop at ``point``."""
        packing, writer = self.packing, self.packing.frame.writer
        indices = [index or Index() for index in point.indices]
        outer, k = [indices[loop] for loop in packing.sums], indices[packing.depth]
        start, column = self.k, Index()
        turns = -(-packing.columns // self.each)
        if lanes_at(packing.source, packing.column, packing.width) == packing.width:
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


class PanelPrefetch:
    """Prefetches the part of an operand in panels that the tiles read next."""

    def __init__(self, operands: Operands, end: Index, deep: int, tiles: int, every: int) -> None:
        """Prepare for parts of ``deep`` terms, which so many tiles read.

        every : steps from one prefetch to the next
        """
        self.operands, self.end, self.deep, self.every = operands, end, deep, every
        self.writer, self.columns = operands.frame.writer, operands.of.tile[1]
        access = operands.of.sum.inputs[operands.column_operand]
        self.each = elements_of_line(access)
        """Elements of a line."""
        self.lines = -(-self.columns // self.each)
        """Lines of a row of a panel."""
        self.count = -(-self.lines // tiles)
        """Lines that a step of a tile prefetches."""

    def begin(self, j: Index, k: Index, extent: Index, turn: Index) -> None:
        """Prepare for tile number ``turn`` of the part at ``k`` of the panel at ``j``."""
        writer = self.writer
        self.k, j = following(writer, (j, k), (self.end, extent), (self.columns, self.deep))
        self.panel = writer.divide(j, self.columns)
        turn = writer.divide(turn, -(-self.lines * self.every // self.count), arith.RemUIOp)
        self.since = turn * self.deep

    def step(self, point: Point) -> None:
        """Prefetch the next lines in the step of the innermost loop at ``point``.

        It is the first of the steps from one prefetch to the next.
        """
        of, indices, writer = self.operands.of, list(point.indices), self.writer
        begins, depth = len(of.sum.reductions), of.levels.depth
        first, k = indices[begins + 2] or Index(), indices[depth] or Index()
        indices[begins : begins + 2] = self.k, self.panel
        access = self.operands.micro.inputs[self.operands.column_operand]
        step = writer.divide(self.since + k, self.every)
        for number in range(self.count):
            line = step * self.count + number
            column = writer.divide(line, self.lines, arith.RemUIOp) * self.each
            indices[depth] = writer.divide(line, self.lines)
            indices[of.column] = first + column
            prefetch_line(writer, access, indices, {})


def prefetch_tiles(frame: Frame) -> None:
    """Prefetch what the tiles of a plan read as many steps later as their level states."""
    plan = frame.plan

    def loads(op: Structured, points: Sequence[Point]) -> dict[object, SSAValue]:
        if op.reduced and plan.axis >= 0 and points[0].width > 1:
            for k, access in enumerate(op.inputs):
                if op.body is not None and op.uses(k) and _is_walked_down(plan, op, access):
                    _prefetch_later_steps(frame, op, access, points)
        return {}

    def row(op: Structured, inner: Sequence[int], points: Sequence[Point]) -> None:
        for access in op.inputs if inner else ():
            if _slides_along_rows(plan, access, inner):
                _prefetch_later_images(frame, op, access, inner, points)

    frame.loads, frame.before_row = loads, row


def _is_walked_down(plan: Plan, op: Structured, access: Access) -> bool:
    """Whether tiles read an operand in memory, of which every row of a tile reads the same."""
    if access.buffer in plan.padding or plan.buffers[access.buffer].alloc is not None:
        return False
    alike = plan.axis - 1 not in dims_of(access.exprs)
    return alike and lies_in_rows(access, op.reduced[-1], plan.axis, op.width)


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


def _slides_along_rows(plan: Plan, access: Access, inner: Sequence[int]) -> bool:
    """Whether a window slides along the rows of an operand by just the loops ``inner`` of a sum.

    Every row of a tile reads the same.
    """
    alike = plan.axis - 1 not in dims_of(access.exprs)
    return alike and dims_of(access.exprs[-1:]) == {plan.axis, *inner}


def _prefetch_later_images(
    frame: Frame, op: Structured, access: Access, inner: Sequence[int], points: Sequence[Point]
) -> None:
    """Prefetch the part of a row that the window slides along, some images later."""
    writer, plan, column = frame.writer, frame.plan, frame.plan.axis
    first, last = (points[n].indices[column] or Index() for n in (0, -1))
    steps = [(last - first + points[0].width).number, *(frame.extents[op][k].number for k in inner)]
    assert isinstance(op.op, linalg.GenericOp)
    image = prefetched_loop(op.op, column)
    if image is None or None in steps:
        return
    moved = _later(frame, op, points[0], image)
    place = [moved.get(n, index or Index()) for n, index in enumerate(points[0].indices)]
    at = [writer.affine(e, place) for e in access.exprs]
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
    at = [writer.value(writer.affine(e, place)) for e in access.exprs]
    writer.insert(kernel.PrefetchOp(access.buffer, at))


def following(
    writer: Writer,
    at: tuple[Index, Index],
    ends: tuple[Index, Index],
    steps: tuple[int, int],
) -> tuple[Index, Index]:
    """Return the first term and the first column of the part after that of column and term ``at``.

    The next part is the one after it; after the last part, the first part of the next panel.

    ends, steps : of the columns and of the sum
    """
    (j, k), (end, extent), (columns, deep) = at, ends, steps
    zero, j_next, k_next = Index(), j + columns, k + deep
    turned = below(writer, j_next, end, j_next, zero)
    first = below(writer, k_next, extent, k_next, zero)
    return first, below(writer, k_next, extent, j, turned)


def elements_of_line(access: Access) -> int:
    """Return the elements of an operand in a cache line."""
    return max(LINE_BYTES // bytes_of(access.buffer), 1)
