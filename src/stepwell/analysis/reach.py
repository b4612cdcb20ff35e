"""How much of an operand a part of the loops touches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import AffineExpr

from stepwell.analysis.structured import linear


def spans(index: Sequence[AffineExpr], sizes: Sequence[int]) -> list[int] | None:
    """Return how many elements of each dimension a step touches; None where that varies.

    index : where an operand is read or written
    sizes : of the step of each loop, 0 where only the run knows

    >>> from xdsl.ir.affine import AffineMap
    >>> spans(AffineMap.from_callable(lambda d0, d1: (d0 * 2 + d1, d0)).results, [16, 3])
    [33, 16]
    """
    found: list[int] = []
    for expr in index:
        form = linear(expr)
        if form is None or any(factor < 0 or not sizes[k] for k, factor in form[0].items()):
            return None
        found.append(1 + sum(factor * (sizes[k] - 1) for k, factor in form[0].items()))
    return found
