"""Check that a kernel can run in blocks: one sum of two operands, followed by elementwise ops."""

from __future__ import annotations

from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured, dims_of
from stepwell.transforms.passes import fail


def contraction_of(plan: Plan) -> Structured:
    """Return the op that sums; `check_levels` has checked that there is exactly one."""
    found = next(op for op in plan.ops if op.reduced)
    if 0 not in found.initial:
        fail(found.op, "a sum in steps has one output, which a linalg.fill starts")
    written = {o.buffer for op in plan.ops for o in op.outputs}
    if any(a.buffer in written for a in found.inputs):
        fail(found.op, "a sum in steps needs operands that the kernel does not write")
    return found


def roles_of(op: Structured, first: int, column: int) -> tuple[int, int]:
    """Return the input that varies with rows, read in place, and the input that is packed.

    The packed input varies with columns and is the same for all rows of a block, whose first row
    loop is ``first``.
    """
    body = op.body
    used = [k for k in range(len(op.inputs)) if body is None or body.args[k].first_use is not None]
    dims = {k: dims_of(op.inputs[k].exprs) for k in used}
    rows = set(range(first, column))
    row_operands = [k for k in used if column - 1 in dims[k]]
    packed = [k for k in used if column in dims[k] and not rows & dims[k]]
    return row_operands[0], packed[0]
