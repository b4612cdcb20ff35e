"""Batching of ops that combine or order elements along axes, whose numbers shift by one."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.dialects.nd.batching.walk import Batch, numbers
from stepwell.dialects.nd.reduction import (
    CUMULATIVES,
    REDUCTIONS,
    WINDOWS,
    ArgmaxOp,
    ArgminOp,
    ArgReduceOp,
    CumulativeOp,
    ReduceOp,
    WindowOp,
)
from stepwell.dialects.nd.sorting import ArgsortOp, OrderOp, OrderStatisticsOp, SortOp
from stepwell.dialects.nd.syntax import axes, axes_attr, int_attr
from stepwell.dialects.readings import batching


@batching(*REDUCTIONS)
def _reduce(b: Batch, op: ReduceOp) -> Sequence[SSAValue]:
    return b.again(op, [b.lead(op.x)], axes=axes_attr([*numbers(axes(op.axes))]))


@batching(ArgmaxOp, ArgminOp, *CUMULATIVES, SortOp, ArgsortOp)
def _along_axis(b: Batch, op: ArgReduceOp | CumulativeOp | OrderOp) -> Sequence[SSAValue]:
    return b.again(op, [b.lead(op.x)], axis=int_attr(op.axis.value.data + 1))


@batching(OrderStatisticsOp)
def _order_statistics(b: Batch, op: OrderStatisticsOp) -> Sequence[SSAValue]:
    operands = [b.lead(op.x), b.lead(op.ranks)]
    return b.again(op, operands, axis=int_attr(op.axis.value.data + 1))


@batching(*WINDOWS)
def _window(b: Batch, op: WindowOp) -> Sequence[SSAValue]:
    """Batch with a window of one element along the batch."""
    usual = {"window": 1, "strides": 1, "low": 0, "high": 0, "dilation": 1}
    longer = {
        name: axes_attr((n, *axes(op.properties[name])))  # pyright: ignore
        for name, n in usual.items()
        if name in op.properties
    }
    return b.again(op, [b.lead(op.x)], **longer)
