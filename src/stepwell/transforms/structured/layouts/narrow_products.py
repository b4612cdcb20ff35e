"""Products with few columns: vectors run along the sum or along the rows instead.

Columns that fill no vector leave lanes idle, or have no vectors at all.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import (
    contracts,
    extents,
    indices,
    is_parallel,
    plain,
)
from stepwell.transforms.structured.fuse.placed import is_copy
from stepwell.transforms.structured.layouts.propagation import Plan, natural
from stepwell.transforms.structured.layouts.windows import LANES, Layout

MIN_ROWS = 4
"""The number of rows from which a product pays for the copy. The copy reads and writes each element
of the operand once; the product multiplies it once for each row."""
MIN_DEPTH = 8
"""The length of a sum below which vectors along it are as empty as those along the columns."""


def narrow_products(block: Block) -> Plan:
    """Return a plan for the products with few columns.

    Where the first operand has its elements side by side along the sum, the second one is read
    transposed; where along the rows, the result is computed transposed.
    """
    plan = Plan(block)
    for op in block.ops:
        if isinstance(op, linalg.GenericOp) and contracts(op):
            _plan(plan, op)
    return plan


def _plan(plan: Plan, op: linalg.GenericOp) -> None:
    where = [[plain(expr) for expr in index] for index in indices(op)]
    used = [k for k in range(len(op.inputs)) if op.body.block.args[k].first_use is not None]
    if len(used) != 2 or len(op.results) != 1 or any(None in where[k] for k in (*used, -1)):
        return
    parallel, sizes, written = is_parallel(op), extents(op), where[-1]
    by_columns = [k for k in used if written and written[-1] in where[k]]
    if len(by_columns) != 1 or not 0 < sizes[written[-1] or 0] < LANES // 2:
        return
    (second,) = by_columns
    (first,) = (k for k in used if k != second)
    rows = [d for d in where[first] if d is not None and parallel[d] and d not in where[second]]
    sums = [d for d in where[first] if d is not None and not parallel[d]]
    if _product(sizes, rows) < MIN_ROWS or _product(sizes, sums) < MIN_DEPTH:
        return
    last, other = (_stored(op.inputs[k], where[k])[-1] for k in (first, second))
    if last in sums and other != last:
        plan.reads[op, second] = _with_last(where[second], last)
    elif last in rows and sizes[last or 0] not in range(LANES // 2):
        _write_transposed(plan, op, _with_last(written, last))


def _stored(value: SSAValue, where: list[int | None]) -> list[int | None]:
    """Return the loops of a value's axes in memory's order: its reader fuses a transpose."""
    owner = value.owner
    if not isinstance(owner, linalg.GenericOp) or not is_copy(owner):
        return where
    read, written = ([plain(expr) for expr in index] for index in indices(owner))
    if None in read or sorted(map(str, read)) != sorted(map(str, written)):
        return where
    return _stored(owner.inputs[0], [where[written.index(loop)] for loop in read])


def _with_last(where: list[int | None], loop: int | None) -> Layout:
    """Return the layout in which the axis of a loop is the last."""
    axis = where.index(loop)
    return (*(k for k in range(len(where)) if k != axis), axis)


def _write_transposed(plan: Plan, op: linalg.GenericOp, layout: Layout) -> None:
    """Plan a result in another layout, with its loops in that order; users read it as before."""
    (result,) = op.results
    written = [plain(expr) or 0 for expr in indices(op)[-1]]
    loops = [written[axis] for axis in layout]
    plan.layouts[result] = plan.reads[op, len(op.inputs)] = layout
    plan.orders[op] = (*loops, *(d for d in range(len(op.iterator_types)) if d not in loops))
    plan.reads |= {(use.operation, use.index): natural(result) for use in result.uses}


def _product(sizes: list[int], loops: list[int]) -> int:
    """Return the iterations of some loops; an unknown extent counts as enough."""
    found = 1
    for loop in loops:
        found *= MIN_ROWS * MIN_DEPTH if sizes[loop] == DYNAMIC_INDEX else sizes[loop]
    return found
