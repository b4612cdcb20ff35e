"""Rewrite the gradient of filters in tiles: 3x3 windows over products of whole images.

Each number of a window is a sum over all places of an image. The windows at a tile of 2x2 places
read 4x4 elements; 16 products of both, not 36, give all nine numbers (the transposed algorithm of
the convolution). Products are summed over all tiles before the output transform.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from stepwell.analysis.sizes import Size
from stepwell.analysis.structured import Index, identity
from stepwell.transforms.structured.fuse.draft import located
from stepwell.transforms.structured.winograd.matching import SIZE, TILE, FilterGradient, tiles_of
from stepwell.transforms.structured.winograd.writing import (
    PART,
    PLACES,
    WINDOW,
    Matrix,
    Writer,
    both,
    grid_of,
)

IMAGE: Matrix = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, -1, 0, 1))
PLACED: Matrix = ((1, 0), (0.5, 0.5), (0.5, -0.5), (0, 1))
"""The input transform of the gradient: four numbers from two places along an axis."""
RESULT: Matrix = ((1, 1, 1, 0), (0, 1, -1, 0), (0, 1, 1, 1))


@dataclass
class FilterTiles(Writer):
    """Rewrites one gradient of filters."""

    gradient: FilterGradient

    def make(self) -> None:
        """Insert the replacement before the op."""
        read = self.gradient
        _, rows, columns, _ = self.shape(read.places)
        high, wide, two = tiles_of(self.sizes, rows), tiles_of(self.sizes, columns), Size.of(TILE)
        around = Size.of(SIZE - 1)
        image = self.lengthened(read.image, high * two + around, wide * two + around)
        places = self.lengthened(read.places, high * two, wide * two)
        given = {
            read.features[0]: self.parts(image, high, wide, PART, IMAGE),
            read.features[1]: self.parts(places, high, wide, TILE, PLACED),
        }
        result = self._results(self._products([given[loop] for loop in sorted(given)]))
        for each in self.new:
            located(each, read.op.location)
        result.name_hint = read.op.results[0].name_hint
        assert read.op.parent is not None
        read.op.parent.insert_ops_before(self.new, read.op)
        read.op.results[0].replace_all_uses_with(result)

    def _products(self, parts: list[SSAValue]) -> SSAValue:
        """Return the sixteen matrix products, each a sum over all tiles."""
        number, i, j, tile = (AffineDimExpr(d) for d in range(4))
        maps: list[Index] = [(number, tile, i), (number, tile, j), (number, i, j)]
        sizes = (Size.of(len(PLACES)), *(self.shape(part)[-1] for part in parts))
        products = self.spread(self.sum(parts, maps, sizes, 1))
        return self.expand(products, sizes)

    def _results(self, products: SSAValue) -> SSAValue:
        """Return the nine numbers of each window in the layout of the op's result."""
        read = self.gradient
        sizes = self.shape(products)[1:]
        where: list[Index] = [(AffineConstantExpr(k), *identity(2)) for k in range(len(PLACES))]
        windows = self.elementwise(
            [products] * len(PLACES),
            where,
            sizes,
            len(WINDOW),
            lambda block: both(RESULT, grid_of(block, PART), block),
        )
        whole = self.shape(read.op.results[0])
        joined = self.empty(whole)
        for spot, window in zip(WINDOW, windows, strict=True):
            at = dict(zip(read.window, spot, strict=True))
            offsets = [at.get(loop, 0) for loop in range(len(whole))]
            here = [Size.of(1) if loop in at else size for loop, size in enumerate(whole)]
            joined = self.insert(window, joined, offsets, tuple(here))
        return joined
