"""The ops of a kernel that have loops, and which of these loops may run in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from stepwell.analysis.structured import (
    Index,
    combiner,
    dims_of,
    extents,
    indices,
    inverse,
    is_parallel,
    plain,
    shape,
    yielded,
)
from stepwell.dialects import kernel
from stepwell.dialects.kernel.sharing import is_border

LoopedOp = linalg.GenericOp | linalg.FillOp


def loop_ops(function: kernel.FuncOp) -> list[LoopedOp]:
    """Return the ops of a kernel that have loops.

    A fill that initialises a sum is part of the sum; one of scalar code is part of that code.
    """
    scalar = "kernel.scalar" in function.attributes
    return [op for op in function.body.block.ops if _has_loops(op, scalar)]


def loops_of(op: LoopedOp) -> list[bool]:
    """Return for each loop of an op whether its iterations are independent."""
    if isinstance(op, linalg.FillOp):
        return [True] * len(shape(op.outputs[0]))
    return is_parallel(op)


def op_extents(op: LoopedOp) -> list[int]:
    """Return the extent of each loop of an op."""
    return list(shape(op.outputs[0])) if isinstance(op, linalg.FillOp) else extents(op)


def first_of_rows(packed: Index, shared: int) -> int:
    """Return the first shared loop after the last one that the packed operand varies with.

    packed : the access to an operand that varies with the columns and not with the rows
    """
    used = dims_of(packed)
    first = shared - 2
    while first and first - 1 not in used:
        first -= 1
    return first


def prefetched_loop(op: LoopedOp, axis: int) -> int | None:
    """Return the loop of a sum whose later steps can be prefetched, or None."""
    return max((loop for _, loop in prefetched(op, axis)), default=None)


def prefetched(op: LoopedOp, axis: int) -> Iterator[tuple[int, int]]:
    """Yield the inputs of which later steps of a sum can be prefetched, and the loop of the steps.

    Either each step of the innermost loop reads another row of a matrix, along which loop ``axis``
    runs; or a window slides along the rows of an image, and each step of the loop reads another
    image. All rows of a tile, which are along the loop before ``axis``, read the same.
    """
    if isinstance(op, linalg.FillOp) or all(is_parallel(op)):
        return
    sums = [k for k, parallel in enumerate(is_parallel(op)) if not parallel]
    for number, index in enumerate(indices(op)[: len(op.inputs)]):
        used, along = dims_of(index), dims_of(index[-1:])
        if axis not in along or axis - 1 in used:
            continue
        if not along.isdisjoint(sums):
            yield from ((number, k) for k in map(plain, index[:-1]) if k in sums)
        elif sums[-1] in used:
            yield number, sums[-1]


def is_free(op: LoopedOp, parallel: list[bool]) -> bool:
    """Whether every result is a reduction by a known combiner over all the reduction loops.

    Results written at every iteration that do not read an accumulator are allowed too.
    """
    if isinstance(op, linalg.FillOp):
        return True
    arguments, results = op.body.block.args[len(op.inputs) :], yielded(op.body.block)
    for k, index in enumerate(indices(op)[len(op.inputs) :]):
        if inverse(index, len(parallel)) is not None and not all(parallel):
            if arguments[k].first_use is not None:
                return False
            continue
        if any(not parallel[d] for d in dims_of(index)):
            return False
        if combiner(op, k) is None or not results[k].has_one_use():
            return False
    return True


def writes_along(op: LoopedOp, parallel: list[bool]) -> bool:
    """Whether some result is written while the reductions run, not after them."""
    written = indices(op)[len(op.inputs) :] if isinstance(op, linalg.GenericOp) else []
    return any(not parallel[d] for index in written for d in dims_of(index))


def _has_loops(op: Operation, scalar: bool) -> TypeGuard[LoopedOp]:
    if isinstance(op, linalg.FillOp):
        values = op.results or op.outputs
        uses = [use for use in values[0].uses if use.operation is not op]
        return not scalar and not any(isinstance(use.operation, linalg.GenericOp) for use in uses)
    return isinstance(op, linalg.GenericOp) and not is_border(op)
