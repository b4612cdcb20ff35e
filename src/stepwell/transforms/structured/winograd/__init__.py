"""Winograd's convolution F(2x2, 3x3): four results of a window of 3x3 by 16 products, not 36.

Before:  %y = linalg.generic {n, row, column, k; window, c} ins(%x, %w)  // 3x3, one by one
         %z = linalg.generic {n, row, column, k} ins(%y, %bias) { addf }
After:   %u:16 = linalg.generic {c, k} ins(%w, ...)                      // G w G^T
         %v:16 = linalg.generic {n, tile, tile, c} ins(%x, ...)          // B^T x B
         %m = linalg.generic {16, n * tile * tile, k; c} ins(%v, %u)     // sixteen products
         %z:4 = linalg.generic {n, tile, tile, k} ins(%m, ..., %bias) { A^T m A, addf }

Afterwards convolutions of f32 images of known sizes that lie features last, over windows of 3x3
that move on by one, are cut into tiles of 2x2 results where that saves more than going there and
back costs. The 16 parts of the image lie one after the other, so that one batched product takes
them all. What follows a convolution element by element is taken along, for each place of a tile,
where tiles are whole; else the image is lengthened by zeros and the results cut. So are gradients
of such filters, sums over all places, nine numbers of which are made of 16 products for a tile of
2x2 places. Rounding differs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.constness import constants_of, entries
from stepwell.analysis.structured import erase_dead
from stepwell.transforms.passes import Numerics, Pass
from stepwell.transforms.structured.winograd.matching import (
    Convolution,
    FilterGradient,
    read_convolution,
    read_filter_gradient,
)
from stepwell.transforms.structured.winograd.tiles import Tiles
from stepwell.transforms.structured.winograd.weights import FilterTiles


@dataclass(frozen=True)
class Winograd(Pass):
    """Take convolutions over windows of 3x3 by Winograd's algorithm where that pays.

    always : take them also where it does not pay
    l2 : bytes of each core's second cache; 0 leaves everything as it is, for only products that
         run in blocks gain
    """

    name = "winograd"
    one_block = True
    numerics: ClassVar[Numerics] = "approximating"
    expects_work = False

    always: bool = False
    l2: int = 1 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the convolutions of each function."""
        if not self.l2:
            return
        constants: set[SSAValue] | None = None
        for function in op.ops:
            if not isinstance(function, func.FuncOp):
                continue
            found = [c for each in function.walk() if (c := _read(each))]
            if found and constants is None:
                constants = {v for entry in entries(op) for v in constants_of(entry)}
            taken = [c for c in found if self.always or _pays(c, constants or ())]
            for each in taken:
                if isinstance(each, Convolution):
                    Tiles(each.op.location, each).make()
                else:
                    FilterTiles(each.op.location, each).make()
            for block in dict.fromkeys(c.op.parent for c in taken):
                if block is not None:
                    erase_dead(block)


def _read(op: Operation) -> Convolution | FilterGradient | None:
    if not isinstance(op, linalg.GenericOp):
        return None
    return read_convolution(op) or read_filter_gradient(op)


def _pays(found: Convolution | FilterGradient, constants: Collection[SSAValue]) -> bool:
    if isinstance(found, Convolution):
        return found.pays(found.filter in constants)
    return found.pays
