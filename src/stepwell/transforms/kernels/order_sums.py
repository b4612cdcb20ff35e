"""Make the longest loop of a sum its last one, where blocks could not split the last one.

Before:  linalg.generic {loops (n, i, f, j), then sums over (c = 256, r = 7, s = 7), ...}
After:   linalg.generic {loops (n, i, f, j), then sums over (r = 7, s = 7, c = 256), ...}

A block splits the last loop of a sum into parts and packs all iterations of the others: 256
features times 7 rows of a window, for one column of it, exceed its scratch. Only the order of
additions changes. A kernel with any schedule attribute is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineBinaryOpExpr, AffineDimExpr, AffineExpr

from stepwell.analysis.structured import array_of_maps, combiner, extents, indices, is_parallel
from stepwell.dialects import kernel
from stepwell.transforms.kernels.kernel_signature import is_unscheduled
from stepwell.transforms.passes import Numerics, Pass

MAX_PACKED_ELEMENTS = 1 << 10
"""Elements of a column that the loops before the last one may have: times 64 columns of f32, the
scratch of a block."""


@dataclass(frozen=True)
class OrderSums(Pass):
    """Make the longest loop of a sum its last one, where blocks could not split the last one."""

    name = "order-sums"
    one_block = True
    expects_work = False
    numerics: ClassVar[Numerics] = "reassociating"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Order the sums of each kernel that is one sum."""
        for function in op.ops:
            if isinstance(function, kernel.FuncOp) and is_unscheduled(function):
                generics = [o for o in function.body.block.ops if isinstance(o, linalg.GenericOp)]
                sums = [o for o in generics if not all(is_parallel(o))]
                if len(sums) == 1:
                    _order(sums[0])


def _order(op: linalg.GenericOp) -> None:
    parallel, sizes = is_parallel(op), extents(op)
    first = parallel.index(False)
    reduced = sizes[first:]
    if (
        any(parallel[first:])
        or DYNAMIC_INDEX in reduced
        or prod(reduced[:-1]) <= MAX_PACKED_ELEMENTS
    ):
        return
    longest = first + max(range(len(reduced)), key=reduced.__getitem__)
    if prod(reduced) > MAX_PACKED_ELEMENTS * sizes[longest] or not _slides_over_others(op, longest):
        return
    if combiner(op, 0) is None or any(isinstance(o, linalg.IndexOp) for o in op.body.block.ops):
        return
    order = [k for k in range(len(sizes)) if k != longest] + [longest]
    places = [AffineDimExpr(order.index(k)) for k in range(len(sizes))]
    moved = [tuple(e.replace_dims_and_symbols(places, ()) for e in index) for index in indices(op)]
    op.properties["indexing_maps"] = array_of_maps(len(sizes), moved)


def _slides_over_others(op: linalg.GenericOp, features: int) -> bool:
    """Whether a strided window slides over an operand along loops other than ``features``.

    At stride one any number of rows is packed in place.
    """
    here = AffineDimExpr(features)
    read = [expr for index in indices(op)[: len(op.inputs)] for expr in index]
    sliding = [expr for expr in read if len(expr.used_dims()) > 1 and not _is_of_loops(expr)]
    alone = all(expr == here for expr in read if features in expr.used_dims())
    return len(op.outputs) == 1 and alone and bool(sliding)


def _is_of_loops(expr: AffineExpr) -> bool:
    """Whether ``expr`` is the sum of two loops."""
    return (
        isinstance(expr, AffineBinaryOpExpr)
        and isinstance(expr.lhs, AffineDimExpr)
        and isinstance(expr.rhs, AffineDimExpr)
    )
