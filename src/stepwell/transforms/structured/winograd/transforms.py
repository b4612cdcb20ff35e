"""Rewrite a convolution in tiles: the transforms before and behind the sixteen products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import (
    TensorType,
    UnitAttr,
    f32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from stepwell.analysis.structured import (
    PARALLEL,
    Index,
    at,
    identity,
    indices,
    shape,
    yielded,
)
from stepwell.dialects.types import fuse_locations
from stepwell.transforms.structured.fuse.draft import located
from stepwell.transforms.structured.winograd.matching import SIZE, Convolution, epilogue
from stepwell.transforms.structured.winograd.writing import (
    PART,
    PLACES,
    TILE,
    WINDOW,
    Matrix,
    Writer,
    both,
    collapse,
    cut,
    expand,
    grid_of,
    insert,
    place,
)

IMAGE: Matrix = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
FILTER: Matrix = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
RESULT: Matrix = ((1, 1, 1, 0), (0, 1, -1, -1))


@dataclass
class Tiles(Writer):
    """Rewrites one convolution."""

    convolution: Convolution

    def make(self) -> None:
        """Insert the replacement before the convolution, or before its epilogue."""
        read = self.convolution
        op, (n, rows, columns, out) = read.op, read.sizes
        whole = rows % TILE == 0 and columns % TILE == 0
        last = (epilogue(op) if whole else None) or op
        high, wide = -(-rows // TILE), -(-columns // TILE)
        filters = self._filters()
        around = SIZE - 1
        image = self.lengthened(read.image, high * TILE + around, wide * TILE + around)
        parts = self.parts(image, high, wide, PART, IMAGE)
        products = self.spread(self._products(parts, filters))
        grouped = self.add(expand(products, (len(PLACES), n, high, wide, out)))
        before = len(self.new)
        result = self._results(grouped, last if last is not op else None)
        if not whole:
            result = self.add(cut(result, (n, rows, columns, out)))
        spot = op.location if last is op else fuse_locations((op.location, last.location))
        for k, each in enumerate(self.new):
            located(each, op.location if k < before else spot)
        result.name_hint = last.results[0].name_hint
        assert last.parent is not None
        last.parent.insert_ops_before(self.new, last)
        last.results[0].replace_all_uses_with(result)

    def _filters(self) -> SSAValue:
        """Return G w G^T as sixteen matrices of features by features."""
        features, out = self.convolution.features, self.convolution.sizes[-1]
        filters, moved = self._windows()
        made = self.elementwise(
            [filters] * len(WINDOW),
            moved,
            (features, out),
            len(PLACES),
            lambda block: both(FILTER, grid_of(block, SIZE), block),
        )
        return self.matrices(self.in_a_row(made), features, out)

    def _windows(self) -> tuple[SSAValue, list[Index]]:
        """Return the filters and, for two features, the indices of a window's numbers.

        In most filters the numbers of one result feature are contiguous. They are transposed then,
        so that vectors run along the result features.
        """
        read = self.convolution
        (out, *others), filter = read.order, read.filter
        j, i = identity(2)
        window = [
            (SIZE - 1 - r if read.flipped[0] else r, SIZE - 1 - s if read.flipped[1] else s)
            for r, s in WINDOW
        ]
        if out:
            exprs = [
                {
                    out: i,
                    others[0]: j,
                    others[1]: AffineConstantExpr(r),
                    others[2]: AffineConstantExpr(s),
                }
                for r, s in window
            ]
            return filter, [tuple(place[axis] for axis in range(4)) for place in exprs]
        if others[0] == 3:  # a flattened index would bound a loop by a longer axis than its own
            turned = self._copied(filter, (others[1], others[2], others[0], out))
            rows = [tuple(map(AffineConstantExpr, spot)) for spot in window]
            return turned, [(*row, j, i) for row in rows]
        sizes = shape(filter)
        flat = (sizes[0], prod(sizes[1:]))
        value = self.add(collapse(filter, flat))
        block = Block(arg_types=[f32] * 2)
        block.add_op(linalg.YieldOp(block.args[0]))
        into, maps = self.empty(flat[::-1]), [(i, j), (j, i)]
        (turned,) = self.generic([value], [into], maps, [PARALLEL] * 2, block)
        self.new[-1].attributes["kernel.no_fuse"] = UnitAttr()
        steps = [prod(sizes[axis + 1 :]) for axis in others]
        return turned, [(j * steps[0] + (r * steps[1] + s * steps[2]), i) for r, s in window]

    def _copied(self, value: SSAValue, axes: tuple[int, ...]) -> SSAValue:
        """Return ``value`` with its ``axes`` permuted, copied by a kernel of its own."""
        loops = identity(len(axes))
        read = tuple(loops[axes.index(axis)] for axis in range(len(axes)))
        block = Block(arg_types=[f32] * 2)
        block.add_op(linalg.YieldOp(block.args[0]))
        into = self.empty([shape(value)[axis] for axis in axes])
        (copy,) = self.generic([value], [into], [read, loops], [PARALLEL] * len(axes), block)
        self.new[-1].attributes["kernel.no_fuse"] = UnitAttr()
        return copy

    def _products(self, parts: SSAValue, filters: SSAValue) -> SSAValue:
        """Return the sixteen matrix products."""
        number, tile, out, features = (AffineDimExpr(d) for d in range(4))
        maps = [(number, tile, features), (number, features, out), (number, tile, out)]
        sizes = (*shape(parts)[:2], shape(filters)[-1])
        return self.sum([parts, filters], maps, sizes, 1)

    def _results(self, products: SSAValue, after: linalg.GenericOp | None) -> SSAValue:
        """Return A^T m A of every tile, with the epilogue ``after``, assembled to images."""
        n, high, wide, out = shape(products)[1:]
        loops = identity(4)
        reads = [products] * len(PLACES)
        where: list[Index] = [(AffineConstantExpr(k), *loops) for k in range(len(PLACES))]
        places = [(i, j) for i in range(TILE) for j in range(TILE)]
        others: list[int] = []
        if after is not None:
            conv = self.convolution.op.results[0]
            others = [k for k, v in enumerate(after.inputs) if v is not conv]
            for i, j in places:
                moved = (loops[0], place(1, i), place(2, j), loops[3])
                reads += [after.inputs[k] for k in others]
                where += [at(indices(after)[k], moved) for k in others]

        def body(block: Block) -> list[SSAValue]:
            found = both(RESULT, grid_of(block, PART), block)
            if after is None:
                return found
            first = len(PLACES)
            ends: list[SSAValue] = []
            for k, value in enumerate(found):
                read = block.args[first + k * len(others) : first + (k + 1) * len(others)]
                ends.append(_append_epilogue(after, value, others, read, block))
            return ends

        kind = TensorType(f32, []) if after is None else after.outputs[0].type
        tiles = self.elementwise(reads, where, (n, high, wide, out), len(places), body, kind)
        joined = self.empty((n, high * TILE, wide * TILE, out), kind)
        sizes = (n, high, wide, out)
        for (i, j), tile in zip(places, tiles, strict=True):
            joined = self.add(insert(tile, joined, [0, i, j, 0], sizes, [1, TILE, TILE, 1]))
        return joined


def _append_epilogue(
    after: linalg.GenericOp,
    value: SSAValue,
    others: list[int],
    read: Sequence[SSAValue],
    block: Block,
) -> SSAValue:
    """Append the body of the epilogue ``after`` to ``block``, for one place of a tile."""
    old = after.body.block
    known: dict[SSAValue, SSAValue] = {a: value for a in old.args}
    known |= {old.args[k]: v for k, v in zip(others, read, strict=True)}
    for each in old.ops:
        if each is not old.last_op:
            copy = each.clone(known)
            block.add_op(located(copy, each.location))
    end = yielded(old)[0]
    return known.get(end, end)
