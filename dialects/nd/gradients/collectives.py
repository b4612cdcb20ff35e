"""Derivatives of collectives: of the sum of all examples' results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.dialects.nd.collectives import AllGatherOp, AllSumOp, CollectiveOp, ReduceScatterOp
from stepwell.dialects.nd.gradients.forward import Forward
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.readings import gradient, tangent

Tangents = Sequence[SSAValue | None]

_TRANSPOSED: dict[type[CollectiveOp], type[CollectiveOp]] = {
    AllSumOp: AllSumOp,
    AllGatherOp: ReduceScatterOp,
    ReduceScatterOp: AllGatherOp,
}


@gradient(*_TRANSPOSED)
def _transposed(r: Reverse, op: CollectiveOp, cotangents: Tangents) -> None:
    (g,) = cotangents
    assert g is not None
    r.accumulate(op.x, r.of(_TRANSPOSED[type(op)](g, op.over.data, op.x.type)))


@tangent(*_TRANSPOSED)
def _linear(f: Forward, op: CollectiveOp, tangents: Tangents) -> Tangents:
    (given,) = tangents
    return [None if given is None else f.of(type(op)(given, op.over.data, op.y.type))]
