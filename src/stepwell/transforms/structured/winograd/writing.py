"""Insert ops on tiles and their sixteen matrices, shared by convolutions and filter gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
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

from stepwell.analysis.sizes import Result, Shape, Size, Sizes, SizeWriter, product
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
from stepwell.transforms.structured.winograd.matching import SIZE, TILE, is_zero

Grid = list[list[SSAValue]]
Matrix = tuple[tuple[float, ...], ...]

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
    sizes: Sizes
    """The sizes of the function's values."""
    new: list[Operation] = field(default_factory=list[Operation], kw_only=True)
    numbers: list[Operation] = field(default_factory=list[Operation], kw_only=True)
    """The ops that compute sizes known at run time only; they come before all others."""

    def __post_init__(self) -> None:
        self.given: dict[int, SSAValue] = {}
        self.index = SizeWriter(self.sizes, self._argument_size, self._number)

    def shape(self, value: SSAValue) -> Shape:
        """Return the sizes of ``value``."""
        return self.sizes.shape(value)

    def lengthened(self, image: SSAValue, rows: Size, columns: Size) -> SSAValue:
        """Return the image padded with zeros at the end to ``rows`` and ``columns``.

        If the image is a tensor inserted into zeros, that tensor is inserted into more zeros.
        """
        n, *_, features = self.shape(image)
        sizes = (n, rows, columns, features)
        if sizes == self.shape(image):
            return image
        source, offsets = image, [0] * 4
        op = image.owner
        if isinstance(op, tensor.InsertSliceOp) and _is_padding(op):
            source, offsets = op.source, list(op.static_offsets.get_values())
        return self.insert(source, self.filled(sizes), offsets, self.shape(source))

    def parts(self, image: SSAValue, high: Size, wide: Size, size: int, matrix: Matrix) -> SSAValue:
        """Return ``matrix`` times each tile times ``matrix`` transposed.

        The result is sixteen matrices of tiles by features. A tile begins at every second row and
        column, and is ``size`` high and wide.
        """
        n, features = self.shape(image)[0], self.shape(image)[-1]
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
        return self.matrices(self.in_a_row(parts), n * high * wide, features)

    def in_a_row(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Return matrices stacked in one buffer, with gaps between them."""
        length = self._spaced(product(self.shape(parts[0])))
        type = TensorType(element(parts[0]), (len(parts), known(length)))
        given = self.index(length) if length.number is None else None
        return self.add(kernel.StackOp(parts, type, given))

    def spread(self, products: SSAValue) -> SSAValue:
        """Return the products in a buffer in which each matrix begins at another cache set."""
        number, tiles, out = self.shape(products)
        joined = self.empty((number, self._spaced(tiles * out)))
        sizes = (number, tiles * out)
        flat = self.collapse(products, sizes)
        return self.cut(self.insert(flat, joined, [0, 0], sizes), sizes)

    def matrices(self, joined: SSAValue, rows: Size, columns: Size) -> SSAValue:
        """Return the sixteen matrices of ``joined`` without the gaps."""
        number = Size.of(len(PLACES))
        flat = self.cut(joined, (number, rows * columns))
        return self.expand(flat, (number, rows, columns))

    def _spaced(self, size: Size) -> Size:
        """Return the distance between the beginnings of matrices of ``size`` elements.

        Addresses that differ by a multiple of a page map to the same cache set; sixteen matrices
        traversed together would evict each other.
        """
        if size.number is not None:
            return Size.of(size.number + (SPREAD - size.number) % (2 * SPREAD))
        left = Size.of(SPREAD) + size * Size.of(2 * SPREAD - 1)
        operands = left, Size.of(2 * SPREAD)
        return size + self.sizes.atom(Result(arith.RemUIOp, (), operands, IndexType()))

    # sizes

    def _argument_size(self, number: int) -> SSAValue:
        if number not in self.given:
            argument, axis = self.sizes.dims[number]
            whole = self.sizes.arguments[argument]
            self.given[number] = self._number(tensor.DimOp(whole, self.index(Size.of(axis))))
        return self.given[number]

    def _number(self, op: Operation) -> SSAValue:
        self.numbers.append(located(op, self.location))
        return op.results[0]

    def mixed(self, sizes: Shape) -> tuple[list[SSAValue], list[int]]:
        """Return the values of the sizes known at run time, and the sizes as in a type."""
        return [self.index(n) for n in sizes if n.number is None], [known(n) for n in sizes]

    # ops

    def add(self, op: Operation) -> SSAValue:
        """Append ``op`` to the ops to insert; return its first result."""
        self.new.append(op)
        return op.results[0]

    def empty(self, sizes: Shape, like: Any = None) -> SSAValue:
        """Return an empty tensor of f32, or of the element type of ``like``."""
        kind = f32 if like is None else like.get_element_type()
        given, static = self.mixed(sizes)
        return self.add(tensor.EmptyOp(given, TensorType(kind, static)))

    def insert(
        self,
        source: SSAValue,
        into: SSAValue,
        offsets: Sequence[int],
        sizes: Shape,
        strides: Sequence[int] | None = None,
    ) -> SSAValue:
        """Return ``into`` with ``source`` in a slice of it."""
        given, static = self.mixed(sizes)
        numbers = {"offsets": offsets, "sizes": static, "strides": strides or [1] * len(offsets)}
        op = tensor.InsertSliceOp.build(
            operands=[source, into, [], given, []],
            properties={
                f"static_{k}": DenseArrayBase.from_list(i64, v) for k, v in numbers.items()
            },
            result_types=[into.type],
        )
        return self.add(op)

    def cut(self, value: SSAValue, sizes: Shape) -> SSAValue:
        """Return the slice of the first ``sizes`` elements along each axis."""
        given, static = self.mixed(sizes)
        numbers = {"offsets": [0] * len(sizes), "sizes": static, "strides": [1] * len(sizes)}
        op = tensor.ExtractSliceOp.build(
            operands=[value, [], given, []],
            properties={
                f"static_{k}": DenseArrayBase.from_list(i64, v) for k, v in numbers.items()
            },
            result_types=[TensorType(element(value), static)],
        )
        return self.add(op)

    def collapse(self, value: SSAValue, sizes: Shape) -> SSAValue:
        """Collapse the last axes into one."""
        op = tensor.CollapseShapeOp.build(
            operands=[value],
            properties={"reassociation": _groups(len(sizes) - 1, len(shape(value)))},
            result_types=[TensorType(element(value), self.mixed(sizes)[1])],
        )
        return self.add(op)

    def expand(self, value: SSAValue, sizes: Shape) -> SSAValue:
        """Expand the last axis into several."""
        groups = _groups(len(shape(value)) - 1, len(sizes))
        given, static = self.mixed(sizes)
        kind = TensorType(element(value), static)
        return self.add(tensor.ExpandShapeOp(value, given, groups, static, kind))

    def filled(self, sizes: Shape) -> SSAValue:
        """Return a tensor of zeros."""
        zero = self.add(arith.ConstantOp(FloatAttr(0.0, f32)))
        empty = self.empty(sizes)
        return self.add(linalg.FillOp([zero], [empty], [empty.type]))

    def sum(
        self, reads: list[SSAValue], maps: Sequence[Index], sizes: Shape, summed: int
    ) -> SSAValue:
        """Return the sum of the products of ``reads`` over the last ``summed`` loops."""
        into = self.filled(sizes)
        block = Block(arg_types=[f32] * 3)
        term = arith.MulfOp(block.args[0], block.args[1])
        total = arith.AddfOp(block.args[2], term)
        block.add_ops([term, total, linalg.YieldOp(total)])
        kinds = [PARALLEL] * len(sizes) + [REDUCTION] * summed
        return self.generic(reads, [into], maps, kinds, block)[0]

    def elementwise(
        self,
        reads: list[SSAValue],
        where: Sequence[Index],
        sizes: Shape,
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


def _is_padding(op: tensor.InsertSliceOp) -> bool:
    """Whether an insertion surrounds an image by zeros, as many as are known."""
    whole = len(shape(op.source)) == len(shape(op.dest)) and not op.offsets
    return whole and is_zero(op.dest) and set(op.static_strides.get_values()) == {1}


def known(size: Size) -> int:
    """Return a size as in a type."""
    return DYNAMIC_INDEX if size.number is None else size.number


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


def _groups(before: int, behind: int) -> ArrayAttr[Any]:
    """Return reassociation groups: ``before`` single axes, then one group of ``behind`` axes."""
    groups = [*([k] for k in range(before)), range(before, behind)]
    return ArrayAttr(ArrayAttr(IntegerAttr(a, i64) for a in group) for group in groups)
