"""Contractions in blocks that fit the caches, one operand packed.

A block of rows by columns is one parallel iteration. Within it a sliver of the operand that
varies with the columns, as wide as the register tile, is copied so that the innermost loop reads
it from end to end (`packing`); then the tile walks down the rows. The other operand is read in
place. Where the sum is longer than the block is deep, partial sums wait in scratch, one row of
tiles of the block; the ops after the contraction see the registers of the last part.

Tiles at an edge are computed whole, from packed zeros and from the last row over again, and
only what is inside is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.nest import NAMES, Nest
from stepwell.lowering.linalg_to_loops.packing import STACK, Packing
from stepwell.lowering.linalg_to_loops.plan import NO_BLOCKS, Plan
from stepwell.lowering.linalg_to_loops.structured import Access, Structured, dims_of
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, element_of
from stepwell.transforms.passes import fail


class Blocked(Nest):
    """Writes the loops of a plan whose kernel has `kernel.block`."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        super().__init__(writer, plan)
        self.sum = _contraction(plan)
        shared = plan.schedule.shared
        self.row, self.column = shared - 2, shared - 1
        self.depth = self.sum.reduced[0]
        tile_rows, vectors = plan.schedule.tile
        self.rows, self.columns = tile_rows, vectors * self.sum.width
        self.part: tuple[Index, Index] = (Index(), Index())
        """The part of the sum at hand, from 0."""
        streamed, packed = _operands(self.sum, self.row, self.column)
        self.packing = Packing(self, self.sum, packed, self.column, self.depth, self.columns)
        self.micro = self._micro(streamed, packed)
        _check_sizes(self)

    def _micro(self, streamed: int, packed: int) -> Structured:
        """Return the contraction as the innermost loop sees it.

        Its column counts from the sliver's first, its place in the sum from the part's first;
        a further loop, which never runs, says where in the whole sum that part begins.
        """
        start = AffineDimExpr(len(self.sum.reductions))
        here = AffineDimExpr(self.depth)
        dims: list[AffineExpr] = [AffineDimExpr(k) for k in range(len(self.sum.reductions))]
        dims[self.depth] = here + start
        inputs = list(self.sum.inputs)
        access = inputs[streamed]
        moved = tuple(e.replace_dims_and_symbols(dims, ()) for e in access.exprs)
        inputs[streamed] = Access(access.buffer, moved)
        # where the packed operand lies is known once its scratch is there
        return replace(self.sum, inputs=tuple(inputs), body=self.packing.rest())

    # blocks

    def bounds(self, op: Structured, k: int) -> tuple[Index, Index]:
        """Return the range of a loop: of the sum, the part at hand."""
        if op is self.micro and k == self.depth:
            return self.part
        return super().bounds(op, k)

    def _block(self, k: int) -> int:
        rows, columns, _ = self.plan.schedule.blocks
        return {self.row: rows, self.column: columns}.get(k, 1)

    def _shared(
        self, k: int, ranges: dict[int, tuple[Index, Index]], at: list[tuple[Index, int]]
    ) -> None:
        if k < self.row:
            super()._shared(k, ranges, at)
        elif k > self.column:
            self._write_block([start for start, _ in at], ranges[self.row], ranges[self.column])
        elif k in ranges:
            self._shared(k + 1, ranges, at)
        else:

            def body(start: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                upper = self._within(start, self._block(k), self.extents[0][k])
                self._shared(k + 1, {**ranges, k: (start, upper)}, at)
                return ()

            self.writer.loop((Index(), self.extents[0][k]), self._block(k), (), body, NAMES[k % 6])

    def _within(self, start: Index, size: int, extent: Index) -> Index:
        """Return where ``size`` iterations from ``start`` end, which may be at the loop's end."""
        if extent.number is not None and extent.number % size == 0:
            return start + size
        return self.writer.minimum(start + size, extent)

    def _write_block(
        self, batch: list[Index], rows: tuple[Index, Index], columns: tuple[Index, Index]
    ) -> None:
        """Write one block: for each sliver, for each part of the sum, down the rows."""
        deep = self.plan.schedule.blocks[2]
        extent = self.extents[self.plan.ops.index(self.sum)][self.depth]
        whole = extent.number is not None and extent.number <= deep
        depth = extent.number or 1 if whole else deep
        self.packing.allocate(depth)
        inputs = list(self.micro.inputs)
        inputs[self.packing.operand] = self.packing.access
        self.micro.inputs = tuple(inputs)
        if not (whole and self._is_whole(self.row) and self._is_whole(self.column)):
            element = element_of(self.sum.outputs[0].buffer)
            waiting = self.rows if whole else self._block(self.row)
            sums = memref.AllocaOp.get(element, 64, [waiting, self.columns])
            self.sums = self.writer.result(sums, "sums")

        def sliver(j: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if whole:
                self.part = Index(), extent
                self.packing.write(batch, j, Index(), extent)
                self._down(batch, rows, j, Index(), None)
            else:
                self._fill_sums()
                self._parts(batch, rows, j, extent, deep)
            return ()

        self.writer.loop(columns, self.columns, (), sliver, "j")

    def _fill_sums(self) -> None:
        """Begin the sums of a sliver."""
        start = self.writer.broadcast(self.sum.initial[0], self.sum.width)

        def row(i: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for c in range(0, self.columns, self.sum.width):
                self.writer.store(start, self.sums, [i, Index.of(c)])
            return ()

        self.writer.loop((Index(), Index.of(self._block(self.row))), 1, (), row, "i")

    def _parts(
        self, batch: list[Index], rows: tuple[Index, Index], j: Index, extent: Index, deep: int
    ) -> None:
        """Write the loop over the parts of a sum, which runs once for an empty sum too."""
        if extent.number is None:
            value, one = self.writer.value(extent), self.writer.index(1)
            upper = Index.of(self.writer.binary(arith.MaxSIOp, value, one))
        else:
            upper = extent

        def part(k: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            count = self._within(k, deep, extent) - k
            self.part = Index(), count
            self.packing.write(batch, j, k, count)
            self._down(batch, rows, j, k, extent)
            return ()

        self.writer.loop((Index(), upper), deep, (), part, "k")

    # tiles

    def _down(
        self,
        batch: list[Index],
        rows: tuple[Index, Index],
        j: Index,
        k: Index,
        extent: Index | None,
    ) -> None:
        """Write the loop of tiles down the rows; ``extent`` of a sum that comes in parts."""

        def tile(i: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at = Index() if extent is None else i - rows[0]
            state: list[SSAValue] = []
            points = [
                Point((*batch, row, Index.of(c), None, k), self.column, self.sum.width)
                for row in self._clamped(i)
                for c in range(0, self.columns, self.sum.width)
            ]
            for n, point in enumerate(points):
                if extent is None:
                    state.append(self.start(self.sum, 0, point))
                else:
                    state.append(
                        self.writer.load(self.sums, self._place(at, n), point.width, "sum")
                    )
            done = self.run(self.micro, points, state)
            if extent is None:
                self._hand_on(batch, i, j, rows, done, at)
                return ()
            self._branch(
                (k + self.part[1], extent),
                lambda: self._hand_on(batch, i, j, rows, done, at),
                lambda: self._keep(done, at),
            )
            return ()

        self.writer.loop(rows, self.rows, (), tile, "i")

    def _place(self, at: Index, vector: int) -> list[Index]:
        """Return where the n-th vector of a tile waits that begins in row ``at``."""
        row, column = divmod(vector * self.sum.width, self.columns)
        return [at + row, Index.of(column)]

    def _clamped(self, i: Index) -> list[Index]:
        """Return the rows of a tile, those beyond the last one being the last one again."""
        extent = self.extents[0][self.row]
        rows = [i + r for r in range(self.rows)]
        if self._is_whole(self.row):
            return rows
        return [i, *(self.writer.minimum(row, extent + -1) for row in rows[1:])]

    def _is_whole(self, k: int) -> bool:
        """Whether every tile is known to be inside, along rows or columns."""
        extent = self.extents[0][k].number
        size = self.rows if k == self.row else self.columns
        return extent is not None and extent % size == 0

    def _keep(self, done: Sequence[SSAValue], at: Index) -> None:
        for n, value in enumerate(done):
            self.writer.store(value, self.sums, self._place(at, n))

    def _hand_on(
        self,
        batch: list[Index],
        i: Index,
        j: Index,
        rows: tuple[Index, Index],
        done: list[SSAValue],
        at: Index,
    ) -> None:
        """Write the ops after the contraction, on registers where the tile is inside."""
        width = self.sum.width

        def inside() -> None:
            points = [
                Point((*batch, i + r, j + c), self.column, width)
                for r in range(self.rows)
                for c in range(0, self.columns, width)
            ]
            self._finish([replace(p, slot=n) for n, p in enumerate(points)], done)

        def edge() -> None:
            self._keep(done, at)
            self._finish_edge(batch, i, j, rows, at)

        pairs: list[tuple[Index, Index]] = []
        if not self._is_whole(self.row):
            pairs.append((i + self.rows, rows[1]))
        if not self._is_whole(self.column):
            pairs.append((j + self.columns, self.extents[0][self.column]))
        self._when_all(pairs, inside, edge)

    def _when_all(
        self, pairs: list[tuple[Index, Index]], then: Callable[[], None], no: Callable[[], None]
    ) -> None:
        """Write ``then`` for where each first is at most its second."""
        if not pairs:
            then()
            return
        self._branch_on([self.writer.compare("sle", *pair) for pair in pairs], then, no)

    def _finish_edge(
        self, batch: list[Index], i: Index, j: Index, rows: tuple[Index, Index], at: Index
    ) -> None:
        """Write the ops after the contraction, vector by vector from where the sums wait."""
        last = self.writer.minimum(i + self.rows, rows[1])
        end = self.writer.minimum(j + self.columns, self.extents[0][self.column])
        width = self.sum.width

        def row(r: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def column(c: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                lanes = width if size > 1 or width == 1 else 0
                lanes = 0 if width == 1 else lanes
                value = self.writer.load(self.sums, [at + (r - i), c - j], lanes, "sum")
                self._finish([Point((*batch, r, c), self.column if lanes else -1, lanes)], [value])
                return ()

            return self.writer.sweep((j, end), _falling(width), (), column, "j")

        self.writer.loop((i, last), 1, (), row, "i")

    def _finish(self, points: list[Point], totals: Sequence[SSAValue]) -> None:
        """Write every op at ``points``, the contraction being its ``totals``."""
        self.memory.open(points)
        outer = self.writer.location
        for op in self.plan.ops:
            if op is self.sum:
                self.writer.location = op.op.location
                self.finish(op, points, totals)
            else:
                self.write_op(op, points)
        self.writer.location = outer

    # branches

    def _branch(
        self, equal: tuple[Index, Index], then: Callable[[], None], no: Callable[[], None]
    ) -> None:
        self._branch_on([self.writer.compare("sge", *equal)], then, no)

    def _branch_on(
        self, all_of: list[SSAValue], then: Callable[[], None], no: Callable[[], None]
    ) -> None:
        condition = all_of[0]
        for other in all_of[1:]:
            condition = self.writer.binary(arith.AndIOp, condition, other)
        self.writer.branch(condition, then, no)


def _falling(width: int) -> list[int]:
    return [width, 1] if width > 1 else [1]


def is_blocked(plan: Plan) -> bool:
    """Whether these ops are to be written in blocks."""
    return plan.schedule.blocks != NO_BLOCKS and any(op.reduced for op in plan.ops)


def _contraction(plan: Plan) -> Structured:
    """Return the op that sums, refusing kernels that are more than it and what comes after."""
    shared = plan.schedule.shared
    sums = [op for op in plan.ops if op.reduced]
    found = sums[0]
    for op in plan.ops:
        if len(op.reductions) > shared and (op is not found or len(op.reductions) != shared + 1):
            fail(
                op.op,
                "kernel.block needs one op with one loop besides the shared ones, a sum",
                "leave kernel.block out",
            )
    if plan.schedule.tile == (1, 1) or plan.axis != shared - 1:
        fail(
            found.op,
            "kernel.block needs kernel.tile, and vectors along the last shared loop",
            "give every op kernel.loops with that axis",
        )
    if len(found.outputs) != 1 or 0 not in found.initial or found.carried != [0]:
        fail(found.op, "kernel.block needs a sum of one output that a linalg.fill starts")
    written = {o.buffer for op in plan.ops for o in op.outputs}
    if any(a.buffer in written for a in found.inputs):
        fail(found.op, "kernel.block needs operands that the kernel does not write")
    return found


def _operands(op: Structured, row: int, column: int) -> tuple[int, int]:
    """Return which input is read in place, varying with rows, and which is packed."""
    body = op.body
    used = [k for k in range(len(op.inputs)) if body is None or body.args[k].first_use is not None]
    dims = {k: dims_of(op.inputs[k].exprs) for k in used}
    streamed = [k for k in used if row in dims[k] and column not in dims[k]]
    packed = [k for k in used if column in dims[k] and row not in dims[k]]
    if len(used) != 2 or len(streamed) != 1 or len(packed) != 1:
        fail(
            op.op,
            "kernel.block needs two operands, one varying with the last shared loop, "
            "the other with the one before",
        )
    return streamed[0], packed[0]


def _check_sizes(nest: Blocked) -> None:
    rows, columns, deep = nest.plan.schedule.blocks
    if rows % nest.rows or columns % nest.columns:
        fail(
            nest.sum.op,
            f"kernel.block = [{rows}, {columns}, {deep}] is not made of whole tiles of "
            f"{nest.rows} by {nest.columns}",
        )
    for count in (rows, deep):
        if (bytes := count * nest.columns * nest.packing.bytes) > STACK:
            fail(nest.sum.op, f"kernel.block needs {bytes} bytes of scratch, more than {STACK}")
