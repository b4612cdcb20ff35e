"""A kernel that copies an operand into panels, which contractions then read sequentially.

It is one copy whose destination is indexed by ``column floordiv width`` and, last, ``column mod
width``; a fill before it sets the padding beyond the last column. Each panel is written by one
parallel iteration, as `packing` writes one within a block.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import in_panels
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
    packing = _Copying(frame, copy, column, columns)
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
        super().__init__(frame, op, 0, column, range(column + 1, len(op.reductions)), columns)
        self.target = op.outputs[0]
        self.scratch = self.target.buffer

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


def _check(plan: Plan, copy: Structured, column: int, columns: int) -> None:
    shared = plan.levels.shared
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
