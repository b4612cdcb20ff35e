"""Products with few columns: vectors run along the sum or along the rows instead.

Columns that fill no vector leave lanes idle, or have no vectors at all.
"""

from __future__ import annotations

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import (
    bits_of,
    contracts,
    element,
    extents,
    indices,
    is_parallel,
    plain,
)
from stepwell.transforms.structured.fuse.placed import is_copy
from stepwell.transforms.structured.layouts.propagation import Plan, natural
from stepwell.transforms.structured.seconds import Layout, Seconds


def narrow_products(block: Block, seconds: Seconds) -> Plan:
    """Return a plan for the products with few columns.

    Where the first operand has its elements side by side along the sum, the second one is read
    transposed; where along the rows, the result is computed transposed.
    """
    plan = Plan(block, seconds)
    for op in block.ops:
        if isinstance(op, linalg.GenericOp) and contracts(op):
            _plan(plan, op)
    return plan


def _plan(plan: Plan, op: linalg.GenericOp) -> None:
    where = [[plain(expr) for expr in index] for index in indices(op)]
    used = [k for k in range(len(op.inputs)) if op.body.block.args[k].first_use is not None]
    if len(used) != 2 or len(op.results) != 1 or any(None in where[k] for k in (*used, -1)):
        return
    parallel, written = is_parallel(op), where[-1]
    by_columns = [k for k in used if written and written[-1] in where[k]]
    lanes = plan.seconds.machine.full_lanes(bits_of(element(op.results[0])))
    if len(by_columns) != 1 or not 1 < extents(op)[written[-1] or 0] < lanes:
        return
    (second,) = by_columns
    (first,) = (k for k in used if k != second)
    rows = [d for d in where[first] if d is not None and parallel[d] and d not in where[second]]
    sums = [d for d in where[first] if d is not None and not parallel[d]]
    stored = {k: _stored(op.inputs[k], where[k]) for k in used}
    last, other = stored[first][-1], stored[second][-1]
    if last in sums and other != last:
        layout = _with_last(where[second], last)
        if _pays(plan, op, stored, {second: layout}, natural(op.results[0])):
            plan.reads[op, second] = layout
    elif last in rows:
        layout = _with_last(written, last)
        if _pays(plan, op, stored, {}, layout):
            _write_transposed(plan, op, layout)


def _pays(
    plan: Plan,
    op: linalg.GenericOp,
    stored: dict[int, list[int | None]],
    copied: dict[int, Layout],
    result: Layout,
) -> bool:
    """Whether an op takes less time with an operand and the result copied to other layouts."""
    where = [[plain(expr) for expr in index] for index in indices(op)]
    lie = {k: tuple(map(where[k].index, loops)) for k, loops in stored.items()}
    numbers, value = range(len(op.inputs)), op.results[0]
    before = [*(lie.get(k) for k in numbers), None]
    after = [*((lie | copied).get(k) for k in numbers), result]
    order = _loops(op, result)
    found = plan.seconds.of(op, after, order)
    for k, layout in copied.items():
        found += plan.seconds.of_copy(op.inputs[k], lie[k], layout)
    if result != natural(value):
        found += plan.seconds.of_copy(value, result, natural(value))
    return found < plan.seconds.of(op, before, _loops(op, natural(value)))


def _loops(op: linalg.GenericOp, result: Layout) -> tuple[int, ...]:
    """Return the loops of an op in the order of the axes of its result."""
    written = [plain(expr) or 0 for expr in indices(op)[-1]]
    loops = [written[axis] for axis in result]
    return (*loops, *(d for d in range(len(op.iterator_types)) if d not in loops))


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
    plan.layouts[result] = plan.reads[op, len(op.inputs)] = layout
    plan.orders[op] = _loops(op, layout)
    plan.reads |= {(use.operation, use.index): natural(result) for use in result.uses}
