"""The tiles that cover a loop of known extent, by the tail policy of its level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from xdsl.ir.affine import AffineExpr

from stepwell.dialects.kernel.levels import BORDER, OVERLAP, REPEAT

MIN_LANES = 4
"""Lanes below which a vector does not repay the shuffling."""
Part = tuple[int, int, int]
"""Begin and end of a part of a loop, and the size of the tiles that cover it."""


class PaddedRead(NamedTuple):
    """A read of an image with virtual padding.

    offsets : of the image within the padded one
    sizes : of the image, -1 where unknown
    extents : of the loops of the op that reads it; 1 where unknown
    """

    exprs: Sequence[AffineExpr]
    offsets: Sequence[int]
    sizes: Sequence[int]
    extents: Sequence[int]


def tile_sizes(extent: int, unit: int, tail: str) -> list[int]:
    """Return the sizes of tiles of at most ``unit`` that cover a loop, from the first to the last.

    >>> tile_sizes(17, 6, "peel"), tile_sizes(17, 6, "overlap")
    ([6, 5], [6])
    """
    if tail in (OVERLAP, REPEAT):
        return [unit]
    return [unit, extent % unit] if extent % unit else [unit]


def parts_of(
    extent: int, unit: int, tail: str, reads: Sequence[PaddedRead] = (), loop: int = -1
) -> list[Part]:
    """Return the parts of a loop, each of tiles of one size.

    reads : of images with virtual padding along the loop
    """
    if tail == BORDER:
        low, high = within_border(extent, unit, reads, loop)
        parts = [(0, low, low), (low, high, unit), (high, extent, extent - high)]
    else:
        parts = in_sizes(extent, tile_sizes(extent, unit, tail))
    return [(a, b, size) for a, b, size in parts if a < b]


def in_sizes(extent: int, sizes: Sequence[int]) -> list[Part]:
    """Return the parts of a loop that is covered by steps of each size while they fit."""
    parts: list[Part] = []
    at = 0
    for n, size in enumerate(sizes, 1):
        end = extent if n == len(sizes) else at + (extent - at) // size * size
        parts.append((at, end, size))
        at = end
    return [(a, b, size) for a, b, size in parts if a < b]


def ends_apart(parts: Sequence[Part]) -> list[Part]:
    """Peel the first and the last tile: with virtual padding, only these read padding.

    >>> ends_apart([(0, 24, 6), (24, 28, 4)])
    [(0, 6, 6), (6, 24, 6), (24, 28, 4)]
    """
    found: list[Part] = []
    for number, (at, end, size) in enumerate(parts):
        cuts = [at]
        if number == 0:
            cuts.append(min(at + size, end))
        if number == len(parts) - 1:
            cuts.append(max(at + (end - 1 - at) // size * size, cuts[-1]))
        cuts.append(end)
        found += [(a, b, size) for a, b in pairwise(cuts) if a < b]
    return found


def within_border(
    extent: int, unit: int, reads: Sequence[PaddedRead], loop: int
) -> tuple[int, int]:
    """Return the range of whole tiles, none of which reads padding; an empty one if there is none.

    The remainder of whole tiles is halved between both ends.
    """
    inside = [row for row in range(extent) if _reads_inside(row, reads, loop)]
    whole = len(inside) // unit * unit
    if not whole:
        return 0, 0
    low = inside[0] + (len(inside) - whole) // 2
    return low, low + whole


def emitted(parts: Sequence[Part]) -> int:
    """Return the total size of the tiles that are emitted for these parts."""
    return sum(size for _, _, size in parts)


def _reads_inside(row: int, reads: Sequence[PaddedRead], loop: int) -> bool:
    """Whether the windows of ``row`` read no padding of an image."""
    for exprs, offsets, sizes, extents in reads:
        first = [row if k == loop else 0 for k in range(len(extents))]
        last = [row if k == loop else n - 1 for k, n in enumerate(extents)]
        for expr, offset, size in zip(exprs, offsets, sizes, strict=True):
            if loop in expr.used_dims() and size >= 0:
                ends = [expr.eval(at, ()) - offset for at in (first, last)]
                if min(ends) < 0 or max(ends) >= size:
                    return False
    return True
