"""Batching of collectives: over the batch itself, and over an enclosing one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.batching.walk import Batch
from stepwell.dialects.nd.collectives import AllGatherOp, AllSumOp, CollectiveOp, ReduceScatterOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import batching
from stepwell.dialects.types import place_of


@batching(AllSumOp)
def _all_sum(b: Batch, op: AllSumOp) -> Sequence[SSAValue]:
    if op.over.data != b.name:
        return b.again(op, [b.lead(op.x)])
    if not b.has(op.x) and b.length != DYNAMIC:  # the length times the unbatched value
        return [b.mul(op.x, b.full(op.x, b.length))]
    return [b.sum_over(b.lead(op.x), [0])]


@batching(AllGatherOp)
def _all_gather(b: Batch, op: AllGatherOp) -> Sequence[SSAValue]:
    if op.over.data == b.name:
        if b.type(op.x) != op.y.type:  # all_gather_c2
            _refuse(b, op, op.y)
        return [b.lead(op.x)]
    rows, *rest = shape_of(op.y)
    type = TensorType(element(op.x), (rows, b.length, *rest))
    return [b.moved(b.of(AllGatherOp(b.lead(op.x), op.over.data, type)), 1, 0)]


@batching(ReduceScatterOp)
def _reduce_scatter(b: Batch, op: ReduceScatterOp) -> Sequence[SSAValue]:
    if op.over.data == b.name:
        if shape_of(op.x)[0] != b.length:  # reduce_scatter_c2
            _refuse(b, op, op.x)
        return [b.sum_over(b.lead(op.x), [0])]
    x = b.moved(b.lead(op.x), 0, 1)
    return [b.of(ReduceScatterOp(x, op.over.data, b.type(op.y)))]


def _refuse(b: Batch, op: CollectiveOp, value: SSAValue) -> NoReturn:
    said = f"the first axis of {value.type} must count the {b.length} examples of {op.over}"
    raise CompileError(Diagnostic("error", said, place_of(op)))
