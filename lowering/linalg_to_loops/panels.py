"""A kernel that copies an operand into panels, which contractions then read sequentially.

It is one copy whose destination is indexed by ``column floordiv width`` and, last, ``column mod
width``; a fill before it sets the padding beyond the last column. Its loops end with those of the
sum, and each panel is written by one parallel iteration, as `packing` writes one within a block; or
they end with the columns, and each iteration of the loop before copies one row into all panels.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import element, in_panels
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
    in_rows = column == len(copy.reductions) - 1
    sums = (column - 1,) if in_rows else range(column + 1, len(copy.reductions))
    packing = Packing(frame, copy, 0, column, sums, columns, target=copy.outputs[0])
    if in_rows and not _fills_vectors(packing):
        fail(copy.op, "rows are packed into panels only if their columns fill vectors")
    blocks = [columns if k == column else 1 for k in range(column + 1)]

    def walk(opened: Opened, at: list[Index]) -> None:
        if (k := len(at)) <= column:
            bounds = opened.get(k, (Index(), frame.ends[k]))
            names = NAMES[k % len(NAMES)]
            frame.writer.each(bounds, blocks[k], lambda start: walk(opened, [*at, start]), names)
        elif in_rows:
            packing.begin(at[:-2], at[-1], at[-2], Index.of(1))
            packing.copy_row(Index())
        else:
            packing.write(at[:-1], at[-1], Index(), frame.ends[packing.depth])

    in_threads(frame, blocks[: frame.plan.levels.parallel], lambda opened: walk(opened, []))


def _fills_vectors(packing: Packing) -> bool:
    """Whether the columns of an operand are contiguous, and so many as a vector has lanes."""
    extent = packing.frame.ends[packing.column].number
    return extent is not None and extent >= packing.width and (packing.along or packing.width == 1)


def _check(plan: Plan, copy: Structured, column: int, columns: int) -> None:
    if column != plan.levels.shared - 1 or len(copy.reductions) < 2 or any(copy.reductions):
        said = "needs two parallel loops at least, the last shared one that of the panels"
        fail(copy.op, f"packing into panels {said}")
    if len(copy.inputs) != 1 or columns % copy.width or not _only_casts(copy.body):
        fail(copy.op, "packing into panels needs one operand, copied in whole vectors")
    kind = element(copy.outputs[0].buffer)
    if not isinstance(kind, AnyFloat | IntegerType):
        fail(copy.op, f"elements of type {kind} are not packed into panels")


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
