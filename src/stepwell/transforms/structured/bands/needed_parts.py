"""The part of a tensor that one step of a band needs, from the indexing maps of its readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.structured import Index, extents, is_parallel, linear, plain


@dataclass(frozen=True)
class Begin:
    """The index at which a part begins: ``of * scale + shift``, clamped to 0 ... most.

    of : the counter of a loop of the band, by number, or another beginning
    most : None where it needs no limit
    """

    of: int | Begin
    scale: int = 1
    shift: int = 0
    most: int | None = None

    @property
    def root(self) -> int:
        """The number of the counter that it follows."""
        return self.of if isinstance(self.of, int) else self.of.root

    def times(self, scale: int) -> Begin:
        """Return this beginning in an axis that advances by ``scale``."""
        return self if scale == 1 else Begin(self, scale)


class Part(NamedTuple):
    """Consecutive indices of one axis or loop."""

    begin: Begin
    size: int


Tile: TypeAlias = "Mapping[int, Part]"
"""The part of each axis of a tensor, or loop of an op, that does not span it all."""


@dataclass(frozen=True)
class Padding:
    """How far an image lies within its padding, for each axis: before it and behind it."""

    before: tuple[int, ...]
    behind: tuple[int, ...]


def loops_of_results(op: linalg.GenericOp, tiles: Sequence[Tile]) -> Tile | None:
    """Return the part of each loop that computes ``tiles`` of the results, if they agree."""
    found: dict[int, Part] = {}
    parallel = is_parallel(op)
    for index, tile in zip(indices_of_results(op), tiles, strict=True):
        for axis, part in tile.items():
            loop = plain(index[axis])
            if loop is None or not parallel[loop] or found.setdefault(loop, part) != part:
                return None
        axes = {loop for expr in index for loop in expr.used_dims()}
        if any(loop not in axes for loop in found) or len(axes) < len(index):
            return None  # iterations of a band would write the same elements
    return found


def indices_of_results(op: linalg.GenericOp) -> list[Index]:
    """Return the index at which each result is written."""
    maps = [tuple(each.data.results) for each in op.indexing_maps]
    return maps[len(op.inputs) :]


def tile_read(op: linalg.GenericOp, loops: Tile, index: Index) -> Tile | None:
    """Return the part of an operand that is read in part of the loops; None if there is no rule.

    Its axes begin where the loops do, times the stride: so the op's maps hold for the part too.
    A window of 3 with stride 2 reads rows 2r to 2r + 10 for the results r to r + 4.
    """
    found: dict[int, Part] = {}
    sizes = extents(op)
    for axis, expr in enumerate(index):
        banded = [loop for loop in set(expr.used_dims()) if loop in loops]
        if not banded:
            continue
        form = linear(expr)
        if form is None or len(banded) > 1:
            return None
        (loop,) = banded
        terms, constant = form
        others = {k: f for k, f in terms.items() if k != loop}
        if min([constant, *terms.values()]) < 0 or any(sizes[k] == DYNAMIC_INDEX for k in others):
            return None
        begin, count = loops[loop]
        reach = sum(f * (sizes[k] - 1) for k, f in others.items()) + constant
        found[axis] = Part(begin.times(terms[loop]), terms[loop] * (count - 1) + reach + 1)
    return found


def tile_of_image(tile: Tile, padding: Padding, sizes: Sequence[int]) -> Tile | None:
    """Return the part of an image that is within ``tile`` of its padded form.

    At the edges the part is shifted inwards, so that it has the same size everywhere.
    """
    found: dict[int, Part] = {}
    for axis, (begin, count) in tile.items():
        before, behind, size = padding.before[axis], padding.behind[axis], sizes[axis]
        if not before and not behind:
            found[axis] = Part(begin, count)
        elif size == DYNAMIC_INDEX:
            return None
        else:
            count = min(count, size)
            found[axis] = Part(Begin(begin, 1, -before, size - count), count)
    return found


def whole_of(tile: Tile, padding: Padding) -> Tile:
    """Return the part of the padded form that holds ``tile`` of the image and the padding."""
    return {
        axis: Part(begin, count + padding.before[axis] + padding.behind[axis])
        for axis, (begin, count) in tile.items()
    }


def size_of(shape: Sequence[int], tile: Tile) -> tuple[int, ...]:
    """Return the sizes of a tile of a tensor."""
    return tuple(tile[k].size if k in tile else n for k, n in enumerate(shape))


def elements(shape: Sequence[int], tile: Tile) -> int:
    """Return the number of elements of a tile."""
    return prod(size_of(shape, tile))
