"""The elements of an operand that a part of the loops accesses."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import AffineExpr

from stepwell.analysis.structured import linear


def spans(index: Sequence[AffineExpr], sizes: Sequence[int]) -> list[int] | None:
    """Return the number of elements a step accesses along each dimension; None if it varies.

    index : of the operand's access
    sizes : of the step of each loop, 0 if known only at run time

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
