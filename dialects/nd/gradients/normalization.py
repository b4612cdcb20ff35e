"""Derivatives of norms, softmax and related ops, in the form with the least work.

From the forward pass they need one or two numbers per row. The ops that compute these are written
as in the op's decomposition, so that `cse` merges both; all else is recomputed from the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.dialects.nd.compare import EqOp, SelectOp
from stepwell.dialects.nd.composing import Composer, others
from stepwell.dialects.nd.composite import LogSoftmaxOp, LogsumexpOp, SoftmaxOp, shifted
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.normalization import BatchNormOp, LayerNormOp, RmsNormOp
from stepwell.dialects.nd.syntax import axes, element
from stepwell.dialects.nd.transcendental import ExpOp, LogOp, RsqrtOp
from stepwell.dialects.readings import gradient

Cotangents = Sequence[SSAValue | None]


@gradient(SoftmaxOp)
def _softmax(r: Reverse, op: SoftmaxOp, cotangents: Cotangents) -> None:
    """y (g - sum(g y))."""
    (g,) = cotangents
    assert g is not None
    gone, y = [op.axis.value.data], r.wide(op.y)
    g = r.wide(g)
    total = r.sum_over(r.mul(g, y), gone)
    found = r.mul(y, r.sub(g, r.along(total, y, others(y, gone))))
    r.accumulate(op.x, r.cast(found, element(op.x)))


@gradient(LogSoftmaxOp)
def _log_softmax(r: Reverse, op: LogSoftmaxOp, cotangents: Cotangents) -> None:
    """g - e^y sum(g)."""
    (g,) = cotangents
    assert g is not None
    gone, x, g = [op.axis.value.data], r.wide(op.x), r.wide(g)
    kept = others(x, gone)
    moved, _, total = shifted(r, x, gone[0])
    part = r.of(ExpOp(r.sub(moved, r.along(r.of(LogOp(total)), x, kept))))
    found = r.sub(g, r.mul(part, r.along(r.sum_over(g, gone), x, kept)))
    r.accumulate(op.x, r.cast(found, element(op.x)))


@gradient(LogsumexpOp)
def _logsumexp(r: Reverse, op: LogsumexpOp, cotangents: Cotangents) -> None:
    """g e^(x - y), which is 0 if all of x is -inf."""
    (g,) = cotangents
    assert g is not None
    x, y, g = r.wide(op.x), r.wide(op.y), r.wide(g)
    kept = others(x, axes(op.axes))
    nothing = r.of(EqOp(y, r.full(y, float("-inf"))))
    y = r.of(SelectOp(nothing, r.full(y, 0), y))
    found = r.mul(r.along(g, x, kept), r.of(ExpOp(r.sub(x, r.along(y, x, kept)))))
    r.accumulate(op.x, r.cast(found, element(op.x)))


def _root(c: Composer, variance: SSAValue, op: LayerNormOp | RmsNormOp | BatchNormOp) -> SSAValue:
    return c.of(RsqrtOp(c.add(variance, c.full(variance, op.eps.value.data))))


def _parameters(r: Reverse, op: LayerNormOp | RmsNormOp, g: SSAValue, normal: SSAValue) -> SSAValue:
    """Accumulate the cotangents of scale and bias; return that of the normalized x."""
    gone = op.belongs()
    rows = others(op.x, gone)
    scale, bias = (*op.parameters, None, None)[:2]
    if bias is not None and r.wants(bias):
        r.accumulate(bias, r.cast(r.sum_over(g, rows), element(bias)))
    if scale is None:
        return g
    if r.wants(scale):
        r.accumulate(scale, r.cast(r.sum_over(r.mul(g, normal), rows), element(scale)))
    return r.mul(g, r.along(r.wide(scale), g, gone))


@gradient(LayerNormOp)
def _layer_norm(r: Reverse, op: LayerNormOp, cotangents: Cotangents) -> None:
    """With c the centred x and h the cotangent of the normalized: root (h - mean(h) - c tilt)."""
    (g,) = cotangents
    assert g is not None
    gone, x, g = op.belongs(), r.wide(op.x), r.wide(g)
    kept = range(gone[0])
    centred = r.sub(x, r.along(r.mean(x, gone), x, kept))
    root = _root(r, r.mean(r.mul(centred, centred), gone), op)
    h = _parameters(r, op, g, r.mul(centred, r.along(root, x, kept)))
    if r.wants(op.x):
        moved = r.sub(h, r.along(r.mean(h, gone), x, kept))
        _along_rows(r, op, moved, h, centred, root)


@gradient(RmsNormOp)
def _rms_norm(r: Reverse, op: RmsNormOp, cotangents: Cotangents) -> None:
    """The derivative of a layer norm without the mean."""
    (g,) = cotangents
    assert g is not None
    gone, x, g = op.belongs(), r.wide(op.x), r.wide(g)
    kept = range(gone[0])
    root = _root(r, r.mean(r.mul(x, x), gone), op)
    h = _parameters(r, op, g, r.mul(x, r.along(root, x, kept)))
    if r.wants(op.x):
        _along_rows(r, op, h, h, x, root)


def _along_rows(
    r: Reverse,
    op: LayerNormOp | RmsNormOp,
    moved: SSAValue,
    h: SSAValue,
    x: SSAValue,
    root: SSAValue,
) -> None:
    """Accumulate root (moved - x tilt), with tilt the mean of h x, over the variance.

    That mean needs only x and h, so that one loop computes it together with the variance.
    """
    gone = op.belongs()
    kept = range(gone[0])
    tilt = r.mul(r.mul(r.mean(r.mul(h, x), gone), root), root)
    rest = r.sub(moved, r.mul(x, r.along(tilt, x, kept)))
    r.accumulate(op.x, r.cast(r.mul(r.along(root, x, kept), rest), element(op.x)))


@gradient(BatchNormOp)
def _batch_norm(r: Reverse, op: BatchNormOp, cotangents: Cotangents) -> None:
    """Compute all parameters' cotangents from the sums of g and of g (x - mean) per channel."""
    (g,) = cotangents
    assert g is not None
    own, x, g = op.belongs(), r.wide(op.x), r.wide(g)
    kind, gone = element(op.x), others(x, op.belongs())
    scale, mean, variance = (r.wide(v) for v in (op.scale, op.mean, op.variance))
    root = _root(r, variance, op)
    factor = r.mul(scale, root)
    if r.wants(op.x):
        r.accumulate(op.x, r.cast(r.mul(g, r.along(factor, x, own)), kind))
    if r.wants(op.bias) or r.wants(op.mean):
        total = r.sum_over(g, gone)
        r.accumulate(op.bias, r.cast(total, kind))
        negative = r.mul(factor, r.full(factor, -1))
        r.accumulate(op.mean, r.cast(r.mul(total, negative), kind))
    if r.wants(op.scale) or r.wants(op.variance):
        moved = r.sub(x, r.along(mean, x, own))
        moment = r.sum_over(r.mul(g, moved), gone)
        r.accumulate(op.scale, r.cast(r.mul(moment, root), kind))
        cube = r.mul(r.mul(root, root), factor)
        slope = r.mul(moment, r.mul(cube, r.full(cube, -0.5)))
        r.accumulate(op.variance, r.cast(slope, kind))
