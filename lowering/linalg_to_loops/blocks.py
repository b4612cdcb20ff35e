"""What a kernel must be to run in blocks: one sum of two operands, and what comes after."""

from __future__ import annotations

from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured, dims_of
from stepwell.transforms.passes import fail


def contraction_of(plan: Plan) -> Structured:
    """Return the op that sums, refusing kernels that are more than it and what comes after."""
    shared = plan.schedule.shared
    sums = [op for op in plan.ops if op.reduced]
    found = sums[0]
    for op in plan.ops:
        if len(op.reductions) > shared and (op is not found or not all(op.reductions[shared:])):
            fail(
                op.op,
                "a sum is taken in steps only where one op has loops besides the shared ones, a "
                "sum over them all",
                "leave out the outer of the two levels of its loop",
            )
    if plan.schedule.tile == (1, 1) or plan.axis != shared - 1:
        fail(
            found.op,
            "a sum in steps needs several results side by side, and vectors along the last shared "
            "loop",
        )
    if len(found.outputs) != 1 or 0 not in found.initial or found.carried != [0]:
        fail(found.op, "a sum in steps has one output, which a linalg.fill starts")
    written = {o.buffer for op in plan.ops for o in op.outputs}
    if any(a.buffer in written for a in found.inputs):
        fail(found.op, "a sum in steps needs operands that the kernel does not write")
    return found


def roles_of(op: Structured, first: int, column: int) -> tuple[int, int]:
    """Return which input is read in place, varying with rows, and which is packed.

    The packed one varies with columns and is the same for all rows of a block, which begin with
    the loop ``first``.
    """
    body = op.body
    used = [k for k in range(len(op.inputs)) if body is None or body.args[k].first_use is not None]
    dims = {k: dims_of(op.inputs[k].exprs) for k in used}
    rows = set(range(first, column))
    streamed = [k for k in used if column - 1 in dims[k]]
    packed = [k for k in used if column in dims[k] and not rows & dims[k]]
    if len(used) != 2 or len(streamed) != 1 or len(packed) != 1:
        fail(
            op.op,
            "a block needs two operands: one varies with the last shared loop but not with those "
            "before it that are cut, the other with the last of these",
        )
    return streamed[0], packed[0]
