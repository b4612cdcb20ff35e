"""Insert ops on tiles and their sixteen matrices, shared by convolutions and filter gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.structured import (
    PARALLEL,
    Index,
    array_of_maps,
    element,
    identity,
    shape,
)
from stepwell.dialects import kernel
from stepwell.dialects.types import UNKNOWN
from stepwell.transforms.structured.fuse.draft import located
from stepwell.transforms.structured.winograd.matching import SIZE

Grid = list[list[SSAValue]]
Matrix = tuple[tuple[float, ...], ...]

TILE = 2
PART = 4
"""The elements of the image along each axis that a tile of results depends on."""
PLACES = [(i, j) for i in range(PART) for j in range(PART)]
SPREAD = 64
"""Matrices are spaced an odd multiple of this many elements apart: sixteen spread over a page."""
WINDOW = [(r, s) for r in range(SIZE) for s in range(SIZE)]
REDUCTION = IteratorTypeAttr.reduction()


@dataclass
class Writer:
    """Creates ops with the location of the convolution that they replace."""

    location: LocationAttr
    new: list[Operation] = field(default_factory=list[Operation], kw_only=True)

    def lengthened(self, image: SSAValue, rows: int, columns: int) -> SSAValue:
        """Return the image padded with zeros at the end to ``rows`` and ``columns``."""
        n, *_, features = shape(image)
        sizes = (n, rows, columns, features)
        if sizes == shape(image):
            return image
        zeros = self.filled(sizes)
        return self.add(insert(image, zeros, [0] * 4, shape(image)))

    def parts(self, image: SSAValue, high: int, wide: int, size: int, matrix: Matrix) -> SSAValue:
        """Return ``matrix`` times each tile times ``matrix`` transposed.

        The result is sixteen matrices of tiles by features. A tile begins at every second row and
        column, and is ``size`` high and wide.
        """
        n, features = shape(image)[0], shape(image)[-1]
        sizes = (n, high, wide, features)
        read = [(i, j) for i in range(size) for j in range(size)]
        moved = [(AffineDimExpr(0), place(1, i), place(2, j), AffineDimExpr(3)) for i, j in read]
        parts = self.elementwise(
            [image] * len(read),
            moved,
            sizes,
            len(PLACES),
            lambda block: both(matrix, grid_of(block, size), block),
        )
        tiles = n * high * wide
        return self.matrices(self.in_a_row(parts), tiles, features)

    def in_a_row(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Return matrices stacked in one buffer, with gaps between them."""
        sizes = (len(parts), _spaced(prod(shape(parts[0]))))
        return self.add(kernel.StackOp(parts, TensorType(element(parts[0]), sizes)))

    def spread(self, products: SSAValue) -> SSAValue:
        """Return the products in a buffer in which each matrix begins at another cache set."""
        _, tiles, out = shape(products)
        joined = self.empty((len(PLACES), _spaced(tiles * out)))
        flat = self.add(collapse(products, (len(PLACES), tiles * out)))
        joined = self.add(insert(flat, joined, [0, 0], (len(PLACES), tiles * out)))
        return self.add(cut(joined, (len(PLACES), tiles * out)))

    def matrices(self, joined: SSAValue, rows: int, columns: int) -> SSAValue:
        """Return the sixteen matrices of ``joined`` without the gaps."""
        flat = self.add(cut(joined, (len(PLACES), rows * columns)))
        return self.add(expand(flat, (len(PLACES), rows, columns)))

    # ops

    def add(self, op: Operation) -> SSAValue:
        """Append ``op`` to the ops to insert; return its first result."""
        self.new.append(op)
        return op.results[0]

    def empty(self, sizes: Sequence[int], like: Any = None) -> SSAValue:
        """Return an empty tensor of f32, or of the element type of ``like``."""
        kind = f32 if like is None else like.get_element_type()
        return self.add(tensor.EmptyOp((), TensorType(kind, sizes)))

    def filled(self, sizes: Sequence[int]) -> SSAValue:
        """Return a tensor of zeros."""
        zero = self.add(arith.ConstantOp(FloatAttr(0.0, f32)))
        empty = self.empty(sizes)
        return self.add(linalg.FillOp([zero], [empty], [empty.type]))

    def sum(
        self, reads: list[SSAValue], maps: Sequence[Index], sizes: tuple[int, ...], summed: int
    ) -> SSAValue:
        """Return the sum of the products of ``reads`` over the last ``summed`` loops."""
        into = self.filled(sizes)
        block = Block(arg_types=[f32] * 3)
        product = arith.MulfOp(block.args[0], block.args[1])
        total = arith.AddfOp(block.args[2], product)
        block.add_ops([product, total, linalg.YieldOp(total)])
        kinds = [PARALLEL] * len(sizes) + [REDUCTION] * summed
        return self.generic(reads, [into], maps, kinds, block)[0]

    def elementwise(
        self,
        reads: list[SSAValue],
        where: Sequence[Index],
        sizes: tuple[int, ...],
        results: int,
        body: Callable[[Block], list[SSAValue]],
        like: Any = None,
    ) -> Sequence[SSAValue]:
        """Return the results of an elementwise op with this ``body``."""
        into = [self.empty(sizes, like) for _ in range(results)]
        kinds = [v.type.get_element_type() for v in (*reads, *into)]  # pyright: ignore
        block = Block(arg_types=kinds)
        block.add_op(linalg.YieldOp(*body(block)))
        maps = [*where, *([identity(len(sizes))] * results)]
        return self.generic(reads, into, maps, [PARALLEL] * len(sizes), block)

    def generic(
        self,
        reads: list[SSAValue],
        into: list[SSAValue],
        maps: Sequence[Index],
        kinds: list[IteratorTypeAttr],
        block: Block,
    ) -> Sequence[SSAValue]:
        """Return the results of a generic with this body and these ``maps``."""
        for each in block.ops:
            if each.location == UNKNOWN:
                located(each, self.location)
        types = [value.type for value in into]
        where = array_of_maps(len(kinds), maps)
        op = linalg.GenericOp(reads, into, Region(block), where, kinds, types)
        self.new.append(op)
        return op.results


def place(loop: int, offset: int) -> AffineExpr:
    """Return the image index of element ``offset`` of a tile, ``loop`` counting tiles."""
    return AffineDimExpr(loop) * TILE + offset


def grid_of(block: Block, size: int) -> Grid:
    """Return the first arguments of a block as rows of ``size``."""
    return [[block.args[size * i + j] for j in range(size)] for i in range(size)]


def both(matrix: Matrix, grid: Grid, block: Block) -> list[SSAValue]:
    """Return the elements of ``matrix`` times ``grid`` times ``matrix`` transposed."""
    half = _times(matrix, grid, block)
    turned = [list(column) for column in zip(*half, strict=True)]
    found = _times(matrix, turned, block)
    return [value for column in zip(*found, strict=True) for value in column]


def _times(matrix: Matrix, grid: Grid, block: Block) -> Grid:
    """Return the matrix product; the nonzero factors of a row differ only in sign."""
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


def insert(
    source: SSAValue,
    into: SSAValue,
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Operation:
    """Insert ``source`` into a slice of ``into``."""
    numbers = {"offsets": offsets, "sizes": sizes, "strides": strides or [1] * len(offsets)}
    return tensor.InsertSliceOp.build(
        operands=[source, into, [], [], []],
        properties={f"static_{k}": DenseArrayBase.from_list(i64, v) for k, v in numbers.items()},
        result_types=[into.type],
    )


def cut(value: SSAValue, sizes: Sequence[int]) -> Operation:
    """Return the slice of the first ``sizes`` elements along each axis."""
    return tensor.ExtractSliceOp.from_static_parameters(value, [0] * len(sizes), sizes)


def _groups(before: int, behind: int) -> ArrayAttr[Any]:
    """Return reassociation groups: ``before`` single axes, then one group of ``behind`` axes."""
    groups = [*([k] for k in range(before)), range(before, behind)]
    return ArrayAttr(ArrayAttr(IntegerAttr(a, i64) for a in group) for group in groups)


def collapse(value: SSAValue, sizes: Sequence[int]) -> Operation:
    """Collapse the last axes into one."""
    return tensor.CollapseShapeOp.build(
        operands=[value],
        properties={"reassociation": _groups(len(sizes) - 1, len(shape(value)))},
        result_types=[TensorType(element(value), sizes)],
    )


def expand(value: SSAValue, sizes: Sequence[int]) -> Operation:
    """Expand the last axis into several."""
    groups = _groups(len(shape(value)) - 1, len(sizes))
    kind = TensorType(element(value), sizes)
    return tensor.ExpandShapeOp(value, (), groups, list(sizes), kind)


def _spaced(size: int) -> int:
    """Return the distance between the beginnings of matrices of ``size`` elements.

    Addresses that differ by a multiple of a page map to the same cache set; sixteen matrices
    traversed together would evict each other.
    """
    return size + (SPREAD - size) % (2 * SPREAD)
