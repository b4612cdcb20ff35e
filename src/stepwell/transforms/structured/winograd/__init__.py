"""Winograd's convolution F(2x2, 3x3): four results of a window of 3x3 by 16 products, not 36.

Before:  %y = linalg.generic {n, row, column, k; window, c} ins(%x, %w)  // 3x3, one by one
         %z = linalg.generic {n, row, column, k} ins(%y, %bias) { addf }
After:   %u:16 = linalg.generic {c, k} ins(%w, ...)                      // G w G^T
         %v:16 = linalg.generic {n, tile, tile, c} ins(%x, ...)          // B^T x B
         %m = linalg.generic {16, n * tile * tile, k; c} ins(%v, %u)     // sixteen products
         %z:4 = linalg.generic {n, tile, tile, k} ins(%m, ..., %bias) { A^T m A, addf }

Afterwards convolutions of f32 images in features-last layout, with 3x3 windows and stride 1, are
computed in tiles of 2x2 results where that saves more than the transforms cost; where that depends
on a size known at run time only, a branch compares, and its other side is the convolution. The 16
transformed matrices are stacked, so that one batched product computes all. An elementwise op after
the convolution is merged into the output transform where tiles are whole or it reads nothing else
by row or column; otherwise the image is padded with zeros and the results are cropped. Gradients of
such filters, which are sums over all places, of known sizes, compute nine numbers from 16 products
for a tile of 2x2 places in the same way. Rounding differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.constness import constants_of, entries
from stepwell.analysis.sizes import Sizes
from stepwell.analysis.structured import erase_dead
from stepwell.transforms.passes import Numerics, Pass
from stepwell.transforms.structured.winograd.matching import (
    Convolution,
    FilterGradient,
    read_convolution,
    read_filter_gradient,
)
from stepwell.transforms.structured.winograd.transforms import Tiles
from stepwell.transforms.structured.winograd.weights import FilterTiles


@dataclass(frozen=True)
class Winograd(Pass):
    """Compute convolutions with 3x3 windows by Winograd's algorithm where that pays.

    always : use it also where it does not pay
    l2 : bytes of each core's second-level cache; 0 turns the pass off, because only products that
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
            if not isinstance(function, func.FuncOp) or not function.body.blocks:
                continue
            sizes = Sizes(function.body.block.args)
            found = [c for each in function.walk() if (c := _read(each, sizes))]
            if found and constants is None:
                constants = {v for entry in entries(op) for v in constants_of(entry)}
            taken: list[Convolution | FilterGradient] = []
            for each in found:
                constant = isinstance(each, Convolution) and each.filter in (constants or ())
                pays = self.always or _pays(each, sizes, constant)
                if pays is False:
                    continue
                taken.append(each)
                if isinstance(each, Convolution):
                    Tiles(each.op.location, sizes, each, pays, constant).make()
                else:
                    FilterTiles(each.op.location, sizes, each).make()
            for block in dict.fromkeys(c.op.parent for c in taken):
                if block is not None:
                    erase_dead(block)


def _read(op: Operation, sizes: Sizes) -> Convolution | FilterGradient | None:
    if not isinstance(op, linalg.GenericOp):
        return None
    return read_convolution(op, sizes) or read_filter_gradient(op)


def _pays(found: Convolution | FilterGradient, sizes: Sizes, constant: bool) -> bool | None:
    return found.pays(sizes, constant) if isinstance(found, Convolution) else found.pays
