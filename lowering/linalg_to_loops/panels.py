"""A kernel that copies an operand into panels, which contractions then read sequentially.

It is one copy whose destination is indexed by ``column floordiv width`` and, last, ``column mod
width``; a fill before it sets the padding beyond the last column. Each panel is written by one
parallel iteration, as `packing` writes one within a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import in_panels
from stepwell.lowering.linalg_to_loops.nest import Nest
from stepwell.lowering.linalg_to_loops.packing import Packing
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, Writer
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


class Panels(Nest):
    """Writes the loops of such a kernel."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        super().__init__(writer, plan)
        (self.copy,) = plan.ops
        column = _column(self.copy)
        assert column is not None
        self.column = column
        found = in_panels(self.copy.outputs[0].exprs, column)
        assert found is not None
        _, self.columns = found
        _check(plan, self.copy, column, self.columns)
        self.packing = _Copying(self, self.copy, column, self.columns)

    def _block(self, k: int) -> int:
        return self.columns if k == self.column else 1

    def _shared(
        self, k: int, ranges: dict[int, tuple[Index, Index]], at: list[tuple[Index, int]]
    ) -> None:
        if k > self.column:
            self.packing.copy([start for start, _ in at])
            return

        def body(start: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._shared(k + 1, ranges, [*at, (start, 1)])
            return ()

        bounds = ranges.get(k, (Index(), self.extents[0][k]))
        self.writer.loop(bounds, self._block(k), (), body, NAMES[k % len(NAMES)])


class _Copying(Packing):
    """Packs into panels that outlive the kernel."""

    def __init__(self, nest: Panels, op: Structured, column: int, columns: int) -> None:
        super().__init__(nest, op, 0, column, range(column + 1, len(op.reductions)), columns)
        self.target = op.outputs[0]
        self.scratch = self.target.buffer

    def _run(self) -> None:
        """Return None: the kernel's own loops describe runs."""

    def copy(self, at: list[Index]) -> None:
        """Copy the panel whose first column is the last of the indices ``at``."""
        self.write(at[:-1], at[-1], Index(), self.nest.extents[0][self.depth])

    def _store(self, value: SSAValue, k: Index, column: Index) -> None:
        writer = self.nest.writer
        here = self._point(Index(), k).indices
        indices = [writer.affine(e, here) for e in self.target.exprs[:-1]]
        writer.store(value, self.scratch, [*indices, column])


def _check(plan: Plan, copy: Structured, column: int, columns: int) -> None:
    shared = plan.schedule.shared
    if column != shared - 1 or len(copy.reductions) <= shared or any(copy.reductions):
        fail(
            copy.op,
            "packing into panels needs parallel loops, the last shared one that of the panels "
            "and one more at least",
        )
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
