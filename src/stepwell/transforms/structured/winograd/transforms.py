"""Rewrite a convolution in tiles: the transforms before and behind the sixteen products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    TensorType,
    UnitAttr,
    f32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from stepwell.analysis.sizes import Shape, Size
from stepwell.analysis.structured import (
    PARALLEL,
    Index,
    at,
    element,
    identity,
    indices,
    shape,
    yielded,
)
from stepwell.transforms.structured.fuse.draft import located
from stepwell.transforms.structured.winograd.matching import (
    SIZE,
    TILE,
    Convolution,
    epilogue,
    tiles_of,
)
from stepwell.transforms.structured.winograd.writing import (
    PART,
    PLACES,
    WINDOW,
    Matrix,
    Writer,
    both,
    grid_of,
    place,
)

IMAGE: Matrix = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
FILTER: Matrix = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
RESULT: Matrix = ((1, 1, 1, 0), (0, 1, -1, -1))


@dataclass
class Tiles(Writer):
    """Rewrites one convolution."""

    convolution: Convolution
    chosen: bool | None = True
    """Whether it pays; None where the launch decides that, by the sizes."""
    constant: bool = False
    """Whether the filters are."""

    def make(self) -> None:
        """Insert the replacement before the convolution, or before its epilogue."""
        op = self.convolution.op
        n, rows, columns, out = self.shape(op.results[0])
        high, wide = tiles_of(self.sizes, rows), tiles_of(self.sizes, columns)
        two, around = Size.of(TILE), Size.of(SIZE - 1)
        covered = (n, high * two, wide * two, out)
        whole = covered == (n, rows, columns, out)
        after = epilogue(op, whole)
        last = after or op
        rows_read, columns_read = high * two + around, wide * two + around
        image = self.lengthened(self.convolution.image, rows_read, columns_read)
        if self.chosen is None:
            result = self._either(image, covered, after)
        else:
            result = self._in_tiles(image, self._filters(), after)
        if not whole:
            result = self.cut(result, (n, rows, columns, out))
        for each in self.new:
            located(each, self.location)
        result.name_hint = last.results[0].name_hint
        assert last.parent is not None
        last.parent.insert_ops_before([*self.numbers, *self.new], last)
        last.results[0].replace_all_uses_with(result)

    def _in_tiles(
        self, image: SSAValue, filters: SSAValue, after: linalg.GenericOp | None
    ) -> SSAValue:
        """Return the results of all tiles of an image."""
        n, rows, columns, _ = self.shape(self.convolution.op.results[0])
        high, wide = tiles_of(self.sizes, rows), tiles_of(self.sizes, columns)
        parts = self.parts(image, high, wide, PART, IMAGE)
        products = self.spread(self._products(parts, filters))
        sizes = (Size.of(len(PLACES)), n, high, wide, Size.of(self.convolution.out))
        return self._results(self.expand(products, sizes), after)

    def _either(self, image: SSAValue, covered: Shape, after: linalg.GenericOp | None) -> SSAValue:
        """Return a branch to tiles where they pay, else to the convolution as it was."""
        gain = self.convolution.gain(self.sizes, self.constant)
        pays = arith.CmpiOp(self.index(gain), self.index(Size.of(0)), "sgt")
        filters = self._filters() if self.constant else None
        tiles = self._region(lambda: self._in_tiles(image, filters or self._filters(), after))
        direct = self._region(lambda: self._direct(image, covered, after))
        like = self.convolution.op if after is None else after
        type = TensorType(element(like.results[0]), self.mixed(covered)[1])
        return self.add(scf.IfOp(self._number(pays), [type], tiles, direct))

    def _region(self, write: Callable[[], SSAValue]) -> Region:
        """Return a region of the ops that ``write`` adds, which yields the value it returns."""
        before, self.new = self.new, []
        result = write()
        self.new.append(scf.YieldOp(result))
        inside, self.new = self.new, before
        return Region(Block([located(each, self.location) for each in inside]))

    def _direct(self, image: SSAValue, covered: Shape, after: linalg.GenericOp | None) -> SSAValue:
        """Return the convolution as it was, and its epilogue, at the beginning of whole tiles."""
        read = self.convolution
        sizes = self.shape(read.op.results[0])
        seen = image if image is read.image else self.cut(image, self.shape(read.image))
        known: dict[SSAValue, SSAValue] = {
            read.image: seen,
            read.op.outputs[0]: self.filled(sizes),
        }
        result = self.add(read.op.clone(known))
        if after is not None:
            into = self.empty(sizes, after.outputs[0].type)
            known = {read.op.results[0]: result, after.outputs[0]: into}
            result = self.add(after.clone(known))
        if covered == sizes:
            return result
        return self.insert(result, self.empty(covered, result.type), [0] * 4, sizes)

    def _filters(self) -> SSAValue:
        """Return G w G^T as sixteen matrices of features by features."""
        features, out = Size.of(self.convolution.features), Size.of(self.convolution.out)
        filters, moved = self._windows()
        created = self.elementwise(
            [filters] * len(WINDOW),
            moved,
            (features, out),
            len(PLACES),
            lambda block: both(FILTER, grid_of(block, SIZE), block),
        )
        return self.matrices(self.in_a_row(created), features, out)

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
        flat = (Size.of(sizes[0]), Size.of(prod(sizes[1:])))
        value = self.collapse(filter, flat)
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
        into = self.empty(tuple(self.shape(value)[axis] for axis in axes))
        (copy,) = self.generic([value], [into], [read, loops], [PARALLEL] * len(axes), block)
        self.new[-1].attributes["kernel.no_fuse"] = UnitAttr()
        return copy

    def _products(self, parts: SSAValue, filters: SSAValue) -> SSAValue:
        """Return the sixteen matrix products."""
        number, tile, out, features = (AffineDimExpr(d) for d in range(4))
        maps = [(number, tile, features), (number, features, out), (number, tile, out)]
        sizes = (*self.shape(parts)[:2], self.shape(filters)[-1])
        return self.sum([parts, filters], maps, sizes, 1)

    def _results(self, products: SSAValue, after: linalg.GenericOp | None) -> SSAValue:
        """Return A^T m A of every tile, with the epilogue ``after``, assembled to images."""
        n, high, wide, out = self.shape(products)[1:]
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
        joined = self.empty((n, high * Size.of(TILE), wide * Size.of(TILE), out), kind)
        sizes = (n, high, wide, out)
        for (i, j), tile in zip(places, tiles, strict=True):
            joined = self.insert(tile, joined, [0, i, j, 0], sizes, [1, TILE, TILE, 1])
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
