"""Constants, fills, iota and random bits on the structured floor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap

from stepwell.core.dtypes import DTYPES, DType
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.creation import (
    PARITY,
    ROTATIONS,
    ConstantOp,
    FullOp,
    IotaOp,
    RandomBitsOp,
    ResourceAttr,
    number,
)
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import Body, signless_element
from stepwell.lowering.nd_to_linalg.convert import from_index
from stepwell.lowering.nd_to_linalg.generic import (
    constant,
    empty,
    filled,
    generic,
    index,
    parallel,
)
from stepwell.lowering.nd_to_linalg.table import Lowering, lower, signless

UI32, UI64 = DTYPES["ui32"], DTYPES["ui64"]


@lower(ConstantOp)
def _constant(
    lowering: Lowering, op: ConstantOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    type = signless(op.y.type)
    if isinstance(op.value, ResourceAttr):
        return (lowering.resource(op.value, op.y.type),)
    value = DenseIntOrFPElementsAttr(type, op.value.data)  # pyright: ignore
    return lowering.insert(arith.ConstantOp(value)).results


@lower(FullOp)
def _full(lowering: Lowering, op: FullOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    scalar = constant(lowering, number(op.value), _dtype(op))
    return (filled(lowering, scalar, _empty(lowering, op, operands)),)


@lower(IotaOp)
def _iota(lowering: Lowering, op: IotaOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    kind, rank = _dtype(op), tensor_type(op.y).get_num_dims()
    return generic(
        lowering,
        [],
        [_empty(lowering, op, operands)],
        [AffineMap.identity(rank)],
        parallel(rank),
        lambda b, _: from_index(b, b.index(op.axis.value.data), kind),
        kind,
    )


@lower(RandomBitsOp)
def _random_bits(
    lowering: Lowering, op: RandomBitsOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Generate all bits in one row, whose index is the counter, and reshape the row."""
    key, start, *sizes = operands
    shape, kind = tensor_type(op.y).get_shape(), _dtype(op)
    element = signless_element(kind)
    total = prod(shape) if DYNAMIC not in shape else DYNAMIC
    dynamic = [_product(lowering, shape, sizes)] if total == DYNAMIC else []
    row = generic(
        lowering,
        [key, key, start],
        [empty(lowering, [total], element, dynamic)],
        [_at(0), _at(1), AffineMap(1, 0, ()), AffineMap.identity(1)],
        parallel(1),
        lambda b, k0, k1, first, _: _bits(b, (k0, k1), first, kind),
        UI32,
    )[0]
    return (row,) if len(shape) == 1 else (_shaped(lowering, row, shape, sizes),)


def _at(i: int) -> AffineMap:
    return AffineMap(1, 0, (AffineConstantExpr(i),))


def _product(lowering: Lowering, shape: Sequence[int], sizes: Sequence[SSAValue]) -> SSAValue:
    total = index(lowering, prod(n for n in shape if n != DYNAMIC))
    for size in sizes:
        total = lowering.insert(arith.MuliOp(total, size)).result
    return total


def _shaped(
    lowering: Lowering, row: SSAValue, shape: Sequence[int], sizes: Sequence[SSAValue]
) -> SSAValue:
    """Return a row of elements in another shape."""
    element = tensor_type(row).element_type
    if not shape:
        collapse = tensor.CollapseShapeOp.build(
            operands=[row],
            properties={"reassociation": ArrayAttr([])},
            result_types=[TensorType(element, [])],
        )
        return lowering.insert(collapse).result
    every = ArrayAttr([ArrayAttr(IntegerAttr(i, i64) for i in range(len(shape)))])
    return lowering.insert(
        tensor.ExpandShapeOp(row, sizes, every, shape, TensorType(element, shape))
    ).result


def _bits(b: Body, key: tuple[SSAValue, SSAValue], first: SSAValue, kind: DType) -> SSAValue:
    """Encrypt ``first`` plus the current index."""
    wide = b.of(UI64)
    counter = wide.add(first, b.emit(arith.IndexCastOp(b.index(0), wide.type)))
    high = b.emit(arith.ShRUIOp(counter, wide.number(32)))
    words = (b.emit(arith.TruncIOp(counter, b.type)), b.emit(arith.TruncIOp(high, b.type)))
    low, high = _threefry(b, key, *words)
    if kind.bytes == 4:
        return low
    low, high = (b.emit(arith.ExtUIOp(word, wide.type)) for word in (low, high))
    return b.either(low, b.emit(arith.ShLIOp(high, wide.number(32))))


def _threefry(
    b: Body, key: tuple[SSAValue, SSAValue], low: SSAValue, high: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Write the rounds of `stepwell.dialects.nd.creation.threefry`."""
    keys = (*key, b.differ(b.differ(*key), b.number(PARITY)))
    low, high = b.add(low, keys[0]), b.add(high, keys[1])
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            low = b.add(low, high)
            left = b.emit(arith.ShLIOp(high, b.number(turn)))
            right = b.emit(arith.ShRUIOp(high, b.number(32 - turn)))
            high = b.differ(b.either(left, right), low)
        low = b.add(low, keys[(group + 1) % 3])
        high = b.add(b.add(high, keys[(group + 2) % 3]), b.number(group + 1))
    return low, high


def _dtype(op: FullOp | IotaOp | RandomBitsOp) -> DType:
    return dtype(tensor_type(op.y).element_type)


def _empty(lowering: Lowering, op: FullOp | IotaOp, sizes: Sequence[SSAValue]) -> SSAValue:
    type = tensor_type(op.y)
    return empty(lowering, type.get_shape(), signless(type.element_type), sizes)
