"""A kernel that copies an operand into panels, which contractions then read sequentially.

It is one copy whose destination is indexed by ``column floordiv width`` and, last, ``column mod
width``; a fill before it sets the padding beyond the last column. Its loops end with those of the
sum, and each panel is written by one parallel iteration, as `packing` writes one within a block; or
they end with the columns, and each iteration of the loop before copies one row into all panels.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import in_panels
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.packing import Packing
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.threads import Opened, in_threads
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index
from stepwell.transforms.passes import fail


def lays_out(run: Sequence[Structured]) -> bool:
    """Whether these ops only copy one operand into panels."""
    copy = run[-1]
    before = [op for op in run[:-1] if op.value is None or not _same(op, copy)]
    return not before and len(run) <= 2 and len(copy.outputs) == 1 and _column(copy) is not None


def _same(fill: Structured, copy: Structured) -> bool:
    return fill.outputs[0].buffer is copy.outputs[0].buffer


def _column(copy: Structured) -> int | None:
    """Return the loop whose neighbours are contiguous in the panels."""
    (target,) = copy.outputs
    loops = range(len(copy.reductions))
    return next((k for k in loops if in_panels(target.exprs, k) is not None), None)


def write_panels(frame: Frame) -> None:
    """Write the loops of such a kernel."""
    (copy,) = frame.plan.ops
    column = _column(copy)
    assert column is not None
    found = in_panels(copy.outputs[0].exprs, column)
    assert found is not None
    _, columns = found
    _check(frame.plan, copy, column, columns)
    packing = (_CopyingRows if _in_rows(copy, column) else _Copying)(frame, copy, column, columns)
    blocks = [columns if k == column else 1 for k in range(column + 1)]

    def walk(opened: Opened, at: list[Index]) -> None:
        if (k := len(at)) > column:
            packing.copy(at)
            return

        def body(start: Index) -> None:
            walk(opened, [*at, start])

        bounds = opened.get(k, (Index(), frame.ends[k]))
        frame.writer.each(bounds, blocks[k], body, NAMES[k % len(NAMES)])

    in_threads(frame, blocks[: frame.plan.levels.parallel], lambda opened: walk(opened, []))


class _Copying(Packing):
    """Packs into panels that outlive the kernel."""

    def __init__(self, frame: Frame, op: Structured, column: int, columns: int) -> None:
        super().__init__(frame, op, 0, column, self._sums(op, column), columns)
        self.target = op.outputs[0]
        self.scratch = self.target.buffer

    def _sums(self, op: Structured, column: int) -> range:
        """Return the loops of the rows of a panel."""
        return range(column + 1, len(op.reductions))

    def _run(self) -> None:
        """Return None: the kernel's own loops describe runs."""

    def copy(self, at: list[Index]) -> None:
        """Copy the panel whose first column is the last of the indices ``at``."""
        self.write(at[:-1], at[-1], Index(), self.frame.ends[self.depth])

    def _store(self, value: SSAValue, k: Index, column: Index) -> None:
        writer = self.frame.writer
        here = self._point(Index(), k).indices
        indices = [writer.affine(e, here) for e in self.target.exprs[:-1]]
        writer.store(value, self.scratch, [*indices, column])


class _CopyingRows(_Copying):
    """Copies rows of the operand, each into all panels: the loop before the columns counts them."""

    def __init__(self, frame: Frame, op: Structured, column: int, columns: int) -> None:
        super().__init__(frame, op, column, columns)
        extent, lanes = frame.ends[column].number, lanes_at(self.source, column, self.width)
        if extent is None or extent < self.width or lanes not in (self.width, 1):
            fail(op.op, "rows are packed into panels only if their columns fill vectors")

    def _sums(self, op: Structured, column: int) -> range:
        return range(column - 1, column)

    def copy(self, at: list[Index]) -> None:
        """Copy the part of a row that is in one panel: ``at`` ends with the row and the column."""
        *batch, row, column = at
        self.begin(batch, column, row, Index.of(1))
        self.copy_row(Index())

    def place(
        self, batch: Sequence[Index], column: Index, outer: Sequence[Index], k: Index
    ) -> tuple[Index | None, ...]:
        """Return the indices of all loops at an element of the operand."""
        return (*batch, k, column)


def _in_rows(copy: Structured, column: int) -> bool:
    """Whether the loops end with the columns."""
    return column == len(copy.reductions) - 1


def _check(plan: Plan, copy: Structured, column: int, columns: int) -> None:
    if column != plan.levels.shared - 1 or len(copy.reductions) < 2 or any(copy.reductions):
        said = "needs two parallel loops at least, the last shared one that of the panels"
        fail(copy.op, f"packing into panels {said}")
    if len(copy.inputs) != 1 or columns % copy.width or not _only_casts(copy.body):
        fail(copy.op, "packing into panels needs one operand, copied in whole vectors")


def _only_casts(body: Block | None) -> bool:
    """Whether a body yields its first argument, at most cast."""
    if body is None:
        return True
    value: SSAValue = body.args[0]
    for op in body.ops:
        if list(op.operands) != [value]:
            return False
        value = op.results[0] if op.results else value
    return True
