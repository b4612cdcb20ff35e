"""Derivatives of sorting: each cotangent moves to the origin of its element.

Equal elements get the cotangents of their positions in the stable order, as in JAX.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.compare import MaxOp, MinOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.gradients.running import places
from stepwell.dialects.nd.indexing import ScatterAddOp
from stepwell.dialects.nd.shape import BroadcastOp
from stepwell.dialects.nd.sizes import FromIndexOp
from stepwell.dialects.nd.sorting import ArgsortOp, OrderStatisticsOp, SortOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.readings import gradient


@gradient(SortOp)
def _sort(r: Reverse, op: SortOp, cotangents: Sequence[SSAValue | None]) -> None:
    (g,) = cotangents
    assert g is not None
    r.accumulate(op.x, _unsorted(r, op.x, g, op.axis.value.data, op.descending is not None))


@gradient(OrderStatisticsOp)
def _order_statistics(
    r: Reverse, op: OrderStatisticsOp, cotangents: Sequence[SSAValue | None]
) -> None:
    """Scatter-add cotangents at their ranks, which may coincide, then undo the sorting."""
    (g,) = cotangents
    assert g is not None
    axis = op.axis.value.data
    ranks = r.of(MinOp(r.of(MaxOp(op.ranks, r.full(op.ranks, 0))), _last(r, op)))
    ranked = r.of(ScatterAddOp(r.full(op.x, 0), g, places(r, op.x, axis, ranks), _all(op.x)))
    r.accumulate(op.x, _unsorted(r, op.x, ranked, axis, False))


def _last(r: Reverse, op: OrderStatisticsOp) -> SSAValue:
    """Return the last rank, in the shape of ranks."""
    axis = op.axis.value.data
    n = shape_of(op.x)[axis]
    if n != DYNAMIC:
        return r.full(op.ranks, n - 1)
    size = r.of(FromIndexOp(r.size(op.x, axis)))
    last = r.sub(size, r.of(FullOp.of(1, TensorType(i64, []))))
    return r.of(BroadcastOp(last, [], shape_of(op.ranks), r.sizes(op.ranks)))


def _unsorted(r: Reverse, x: SSAValue, g: SSAValue, axis: int, descending: bool) -> SSAValue:
    """Return ``g``, in the order of the sorted ``x``, in the order of ``x``."""
    order = r.of(ArgsortOp(x, axis, descending=descending, dtype=i64))
    assert element(g) == element(x)
    return r.of(ScatterAddOp(r.full(x, 0), g, places(r, x, axis, order), _all(x)))


def _all(x: SSAValue) -> range:
    return range(len(shape_of(x)))
