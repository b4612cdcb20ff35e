"""Batching of composite ops that are not decomposed, as kernels exist for them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.dialects.nd.batching.walk import Batch, numbers
from stepwell.dialects.nd.composite import (
    AlongAxisOp,
    GeluOp,
    LogSoftmaxOp,
    LogsumexpOp,
    MeanOp,
    OverAxesOp,
    SoftmaxOp,
)
from stepwell.dialects.nd.normalization import BatchNormOp, LayerNormOp, NormOp, RmsNormOp
from stepwell.dialects.nd.pooling import AvgPoolOp, MaxPoolOp, PoolOp
from stepwell.dialects.nd.syntax import axes, axes_attr, int_attr
from stepwell.dialects.readings import batching


@batching(GeluOp, MaxPoolOp, AvgPoolOp)
def _last_axes(b: Batch, op: GeluOp | PoolOp) -> Sequence[SSAValue]:
    """Batch unchanged: the op's axes are counted from the last."""
    return b.again(op, [b.lead(op.x)])


@batching(SoftmaxOp, LogSoftmaxOp)
def _along_axis(b: Batch, op: AlongAxisOp) -> Sequence[SSAValue]:
    return b.again(op, [b.lead(op.x)], axis=int_attr(op.axis.value.data + 1))


@batching(MeanOp, LogsumexpOp)
def _over_axes(b: Batch, op: OverAxesOp) -> Sequence[SSAValue]:
    return b.again(op, [b.lead(op.x)], axes=axes_attr([*numbers(axes(op.axes))]))


@batching(LayerNormOp, RmsNormOp, BatchNormOp)
def _norm(b: Batch, op: NormOp) -> Sequence[SSAValue] | None:
    """Batch a norm; None if parameters are batched, which the op does not support."""
    parameters = op.operands[1:]
    if any(b.has(each) for each in parameters):
        return None
    return b.again(op, [b.lead(op.x), *parameters], axis=int_attr(op.axis.value.data + 1))
