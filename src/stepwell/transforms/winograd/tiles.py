"""A convolution written as tiles: what is added up before and behind sixteen products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    TensorType,
    UnitAttr,
    f32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from stepwell.dialects.types import UNKNOWN, fuse_locations
from stepwell.transforms.fuse.draft import located
from stepwell.transforms.structured import (
    PARALLEL,
    Index,
    array_of_maps,
    at,
    element,
    identity,
    indices,
    shape,
    yielded,
)
from stepwell.transforms.winograd.matching import SIZE, Convolution, epilogue

OpT = TypeVar("OpT", bound=Operation)
Grid = list[list[SSAValue]]
Matrix = tuple[tuple[float, ...], ...]

TILE = 2
PART = 4
"""Elements of the image along each axis that a tile of results depends on."""
IMAGE: Matrix = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
FILTER: Matrix = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
RESULT: Matrix = ((1, 1, 1, 0), (0, 1, -1, -1))
PLACES = [(i, j) for i in range(PART) for j in range(PART)]
SPREAD = 64
"""Matrices begin an odd number of times so many elements apart: sixteen are spread over a page."""
WINDOW = [(r, s) for r in range(SIZE) for s in range(SIZE)]
REDUCTION = IteratorTypeAttr.reduction()


@dataclass
class Tiles:
    """Rewrites one convolution."""

    convolution: Convolution
    new: list[Operation] = field(default_factory=list[Operation])

    def make(self) -> None:
        """Put what gives the same before the convolution, or before what follows it."""
        op = self.convolution.op
        n, rows, columns, out = self.convolution.sizes
        whole = rows % TILE == 0 and columns % TILE == 0
        last = (epilogue(op) if whole else None) or op
        high, wide = -(-rows // TILE), -(-columns // TILE)
        filters = self._filters()
        parts = self._parts(self._lengthened(high, wide), high, wide)
        products = self._spread(self._products(parts, filters))
        grouped = self._add(_expand(products, (len(PLACES), n, high, wide, out)))
        before = len(self.new)
        result = self._results(grouped, last if last is not op else None)
        if not whole:
            result = self._add(_cut(result, (n, rows, columns, out)))
        both = op.location if last is op else fuse_locations((op.location, last.location))
        for k, each in enumerate(self.new):
            located(each, op.location if k < before else both)
        result.name_hint = last.results[0].name_hint
        assert last.parent is not None
        last.parent.insert_ops_before(self.new, last)
        last.results[0].replace_all_uses_with(result)

    def _filters(self) -> SSAValue:
        """Return G w G^T, one matrix of features after the other."""
        features, out = self.convolution.features, self.convolution.sizes[-1]
        filters, moved = self._windows()
        made = self._elementwise(
            [filters] * len(WINDOW),
            moved,
            (features, out),
            len(PLACES),
            lambda block: _both(FILTER, _grid(block, SIZE), block),
        )
        joined = self._empty((len(PLACES), _spaced(features * out)))
        for k, matrix in enumerate(made):
            flat = self._add(_collapse(matrix, (features * out,)))
            joined = self._add(_insert(flat, joined, [k, 0], (1, features * out)))
        return self._matrices(joined, features, out)

    def _windows(self) -> tuple[SSAValue, list[Index]]:
        """Return the filters and where, for two features, the numbers of a window are.

        What belongs to one feature of the result lies together in most filters. It is turned over
        then, so that vectors run along these features.
        """
        read = self.convolution
        (out, *others), filter = read.order, read.filter
        j, i = identity(2)
        if out:
            exprs = [
                {
                    out: i,
                    others[0]: j,
                    others[1]: AffineConstantExpr(r),
                    others[2]: AffineConstantExpr(s),
                }
                for r, s in WINDOW
            ]
            return filter, [tuple(place[axis] for axis in range(4)) for place in exprs]
        sizes = shape(filter)
        flat = (sizes[0], prod(sizes[1:]))
        value = self._add(_collapse(filter, flat))
        block = Block(arg_types=[f32] * 2)
        block.add_op(linalg.YieldOp(block.args[0]))
        into, maps = self._empty(flat[::-1]), [(i, j), (j, i)]
        (turned,) = self._generic([value], [into], maps, [PARALLEL] * 2, block)
        self.new[-1].attributes["kernel.apart"] = UnitAttr()
        steps = [prod(sizes[axis + 1 :]) for axis in others]
        return turned, [(j * steps[0] + (r * steps[1] + s * steps[2]), i) for r, s in WINDOW]

    def _lengthened(self, high: int, wide: int) -> SSAValue:
        """Return the image, zeros behind it where the last tiles are not full."""
        image = self.convolution.image
        n, rows, columns, features = shape(image)
        sizes = (n, high * TILE + 2, wide * TILE + 2, features)
        if sizes == (n, rows, columns, features):
            return image
        zeros = self._filled(sizes)
        return self._add(_insert(image, zeros, [0] * 4, shape(image)))

    def _parts(self, image: SSAValue, high: int, wide: int) -> SSAValue:
        """Return B^T x B of every tile, one matrix of tiles and features after the other."""
        n, features = shape(image)[0], shape(image)[-1]
        sizes = (n, high, wide, features)
        moved = [
            (AffineDimExpr(0), _place(1, i), _place(2, j), AffineDimExpr(3)) for i, j in PLACES
        ]
        parts = self._elementwise(
            [image] * len(PLACES),
            moved,
            sizes,
            len(PLACES),
            lambda block: _both(IMAGE, _grid(block, PART), block),
        )
        tiles = n * high * wide
        joined = self._empty((len(PLACES), _spaced(tiles * features)))
        for k, part in enumerate(parts):
            flat = self._add(_collapse(part, (tiles * features,)))
            joined = self._add(_insert(flat, joined, [k, 0], (1, tiles * features)))
        return self._matrices(joined, tiles, features)

    def _spread(self, products: SSAValue) -> SSAValue:
        """Return the products, written where each matrix begins at a line of its own of a cache."""
        _, tiles, out = shape(products)
        joined = self._empty((len(PLACES), _spaced(tiles * out)))
        flat = self._add(_collapse(products, (len(PLACES), tiles * out)))
        joined = self._add(_insert(flat, joined, [0, 0], (len(PLACES), tiles * out)))
        return self._add(_cut(joined, (len(PLACES), tiles * out)))

    def _matrices(self, joined: SSAValue, rows: int, columns: int) -> SSAValue:
        """Return the sixteen matrices that lie in ``joined``, what is between them left out."""
        flat = self._add(_cut(joined, (len(PLACES), rows * columns)))
        return self._add(_expand(flat, (len(PLACES), rows, columns)))

    def _products(self, parts: SSAValue, filters: SSAValue) -> SSAValue:
        """Return the sixteen matrix products."""
        number, tile, out, features = (AffineDimExpr(d) for d in range(4))
        maps = [(number, tile, features), (number, features, out), (number, tile, out)]
        sizes = (*shape(parts)[:2], shape(filters)[-1])
        return self._sum([parts, filters], maps, sizes, 1)

    def _results(self, products: SSAValue, after: linalg.GenericOp | None) -> SSAValue:
        """Return A^T m A of every tile, and what comes ``after``, put together to images."""
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
                moved = (loops[0], _place(1, i), _place(2, j), loops[3])
                reads += [after.inputs[k] for k in others]
                where += [at(indices(after)[k], moved) for k in others]

        def body(block: Block) -> list[SSAValue]:
            found = _both(RESULT, _grid(block, PART), block)
            if after is None:
                return found
            first = len(PLACES)
            ends: list[SSAValue] = []
            for k, value in enumerate(found):
                read = block.args[first + k * len(others) : first + (k + 1) * len(others)]
                ends.append(_again(after, value, others, read, block))
            return ends

        kind = TensorType(f32, []) if after is None else after.outputs[0].type
        tiles = self._elementwise(reads, where, (n, high, wide, out), len(places), body, kind)
        joined = self._empty((n, high * TILE, wide * TILE, out), kind)
        sizes = (n, high, wide, out)
        for (i, j), tile in zip(places, tiles, strict=True):
            joined = self._add(_insert(tile, joined, [0, i, j, 0], sizes, [1, TILE, TILE, 1]))
        return joined

    # ops

    def _add(self, op: Operation) -> SSAValue:
        self.new.append(op)
        return op.results[0]

    def _empty(self, sizes: Sequence[int], like: Any = None) -> SSAValue:
        kind = f32 if like is None else like.get_element_type()
        return self._add(tensor.EmptyOp((), TensorType(kind, sizes)))

    def _filled(self, sizes: Sequence[int]) -> SSAValue:
        zero = self._add(arith.ConstantOp(FloatAttr(0.0, f32)))
        empty = self._empty(sizes)
        return self._add(linalg.FillOp([zero], [empty], [empty.type]))

    def _sum(
        self, reads: list[SSAValue], maps: Sequence[Index], sizes: tuple[int, ...], summed: int
    ) -> SSAValue:
        """Return sums of products of ``reads`` over the last ``summed`` loops."""
        into = self._filled(sizes)
        block = Block(arg_types=[f32] * 3)
        product = arith.MulfOp(block.args[0], block.args[1])
        total = arith.AddfOp(block.args[2], product)
        block.add_ops([product, total, linalg.YieldOp(total)])
        kinds = [PARALLEL] * len(sizes) + [REDUCTION] * summed
        return self._generic(reads, [into], maps, kinds, block)[0]

    def _elementwise(
        self,
        reads: list[SSAValue],
        where: Sequence[Index],
        sizes: tuple[int, ...],
        results: int,
        body: Callable[[Block], list[SSAValue]],
        like: Any = None,
    ) -> Sequence[SSAValue]:
        """Return what ``body`` computes from ``reads`` at every place."""
        into = [self._empty(sizes, like) for _ in range(results)]
        kinds = [v.type.get_element_type() for v in (*reads, *into)]  # pyright: ignore
        block = Block(arg_types=kinds)
        block.add_op(linalg.YieldOp(*body(block)))
        maps = [*where, *([identity(len(sizes))] * results)]
        return self._generic(reads, into, maps, [PARALLEL] * len(sizes), block)

    def _generic(
        self,
        reads: list[SSAValue],
        into: list[SSAValue],
        maps: Sequence[Index],
        kinds: list[IteratorTypeAttr],
        block: Block,
    ) -> Sequence[SSAValue]:
        for each in block.ops:
            if each.location == UNKNOWN:
                located(each, self.convolution.op.location)
        types = [value.type for value in into]
        where = array_of_maps(len(kinds), maps)
        op = linalg.GenericOp(reads, into, Region(block), where, kinds, types)
        self.new.append(op)
        return op.results


def _place(loop: int, offset: int) -> AffineExpr:
    return AffineDimExpr(loop) * TILE + offset


def _grid(block: Block, size: int) -> Grid:
    return [[block.args[size * i + j] for j in range(size)] for i in range(size)]


def _both(matrix: Matrix, grid: Grid, block: Block) -> list[SSAValue]:
    """Return the elements of ``matrix`` times ``grid`` times ``matrix`` transposed."""
    half = _times(matrix, grid, block)
    turned = [list(column) for column in zip(*half, strict=True)]
    found = _times(matrix, turned, block)
    return [value for column in zip(*found, strict=True) for value in column]


def _times(matrix: Matrix, grid: Grid, block: Block) -> Grid:
    """Return the product, the factors of a row being alike but for their signs, or 0."""
    return [[_combined(row, column, block) for column in zip(*grid, strict=True)] for row in matrix]


def _combined(row: tuple[float, ...], values: Sequence[SSAValue], block: Block) -> SSAValue:
    plus = [v for f, v in zip(row, values, strict=True) if f > 0]
    minus = [v for f, v in zip(row, values, strict=True) if f < 0]
    total = plus[0]
    for value in plus[1:]:
        total = _put(arith.AddfOp(total, value), block)
    for value in minus:
        total = _put(arith.SubfOp(total, value), block)
    if (factor := max(row)) != 1:
        by = _put(arith.ConstantOp(FloatAttr(factor, f32)), block)
        total = _put(arith.MulfOp(total, by), block)
    return total


def _put(op: Operation, block: Block) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def _again(
    after: linalg.GenericOp,
    value: SSAValue,
    others: list[int],
    read: Sequence[SSAValue],
    block: Block,
) -> SSAValue:
    """Append the body of ``after`` to ``block``, for one place of a tile."""
    old = after.body.block
    known: dict[SSAValue, SSAValue] = {a: value for a in old.args}
    known |= {old.args[k]: v for k, v in zip(others, read, strict=True)}
    for each in old.ops:
        if each is not old.last_op:
            copy = each.clone(known)
            block.add_op(located(copy, each.location))
    end = yielded(old)[0]
    return known.get(end, end)


def _insert(
    source: SSAValue,
    into: SSAValue,
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Operation:
    numbers = {"offsets": offsets, "sizes": sizes, "strides": strides or [1] * len(offsets)}
    return tensor.InsertSliceOp.build(
        operands=[source, into, [], [], []],
        properties={f"static_{k}": DenseArrayBase.from_list(i64, v) for k, v in numbers.items()},
        result_types=[into.type],
    )


def _cut(value: SSAValue, sizes: Sequence[int]) -> Operation:
    return tensor.ExtractSliceOp.from_static_parameters(value, [0] * len(sizes), sizes)


def _groups(before: int, behind: int) -> ArrayAttr[Any]:
    """Return one group of all axes but ``before``, which stay as they are."""
    groups = [*([k] for k in range(before)), range(before, behind)]
    return ArrayAttr(ArrayAttr(IntegerAttr(a, i64) for a in group) for group in groups)


def _collapse(value: SSAValue, sizes: Sequence[int]) -> Operation:
    """Make one axis of the last ones."""
    return tensor.CollapseShapeOp.build(
        operands=[value],
        properties={"reassociation": _groups(len(sizes) - 1, len(shape(value)))},
        result_types=[TensorType(element(value), sizes)],
    )


def _expand(value: SSAValue, sizes: Sequence[int]) -> Operation:
    """Make the last axis several."""
    groups = _groups(len(shape(value)) - 1, len(sizes))
    kind = TensorType(element(value), sizes)
    return tensor.ExpandShapeOp(value, (), groups, list(sizes), kind)


def _spaced(size: int) -> int:
    """Return how far apart matrices of ``size`` elements are to begin.

    As many places of a cache begin where addresses differ by a page; sixteen matrices that are
    walked side by side would throw each other out of it.
    """
    return size + (SPREAD - size) % (2 * SPREAD)
