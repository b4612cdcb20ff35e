"""Helpers of all families: destinations, fills, linalg.generic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    TensorType,
    i32,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from stepwell.core.dtypes import DType
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import INDEX, Body, computed_in
from stepwell.lowering.nd_to_linalg.table import Lowering, signless

Iterator: TypeAlias = Literal["parallel", "reduction"]
Scalars: TypeAlias = Callable[..., SSAValue | Sequence[SSAValue]]
"""``(body, one scalar per input and output) -> one scalar per output``."""


def index(lowering: Lowering, value: int) -> SSAValue:
    """Return a constant of type index."""
    return lowering.insert(arith.ConstantOp(IntegerAttr(value, INDEX))).result


def dim(lowering: Lowering, value: SSAValue, axis: int) -> SSAValue:
    """Return the size of one axis of a tensor: a constant if the type has it.

    The size is that of the destination of the op that computes the tensor, not of its result, so
    that sizes do not depend on results and ops can merge.
    """
    if (size := tensor_type(value).get_shape()[axis]) != DYNAMIC:
        return index(lowering, size)
    while True:
        match value.owner:
            case linalg.ops.GenericOp() | linalg.ops.FillOp() as op:
                value = op.outputs[op.results.index(value)]  # pyright: ignore[reportArgumentType]
            case tensor.InsertSliceOp() as op:
                value = op.dest
            case tensor.EmptyOp() as op:
                before = tensor_type(value).get_shape()[:axis]
                return op.dynamic_sizes[before.count(DYNAMIC)]
            case _:
                return lowering.insert(tensor.DimOp(value, index(lowering, axis))).result


def dynamic_sizes(lowering: Lowering, value: SSAValue) -> list[SSAValue]:
    """Return the size of each `?` of a tensor, in order."""
    shape = tensor_type(value).get_shape()
    return [dim(lowering, value, axis) for axis, n in enumerate(shape) if n == DYNAMIC]


def empty(
    lowering: Lowering, shape: Sequence[int], element: Attribute, sizes: Sequence[SSAValue] = ()
) -> SSAValue:
    """Return a new uninitialized tensor; ``sizes`` are those of each `?`, in order."""
    type = TensorType(element, shape)
    return lowering.insert(tensor.EmptyOp(sizes, type)).tensor


def empty_like(lowering: Lowering, value: SSAValue, element: Attribute) -> SSAValue:
    """Return a new tensor of the shape of ``value`` with elements of type ``element``."""
    shape = tensor_type(value).get_shape()
    return empty(lowering, shape, element, dynamic_sizes(lowering, value))


def filled(lowering: Lowering, scalar: SSAValue, into: SSAValue) -> SSAValue:
    """Return ``into`` with every element set to ``scalar``."""
    return lowering.insert(linalg.ops.FillOp([scalar], [into], [into.type])).results[0]


def constant(lowering: Lowering, value: float, kind: DType) -> SSAValue:
    """Return a scalar constant outside of any generic, e.g. to fill with."""
    at = Body(Block(), kind)
    op = at.number(value).owner
    assert isinstance(op, Operation)
    op.detach()
    return lowering.insert(op).results[0]


def generic(
    lowering: Lowering,
    inputs: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
    maps: Sequence[AffineMap],
    iterators: Sequence[Iterator],
    body: Scalars,
    kind: DType,
) -> tuple[SSAValue, ...]:
    """Return the results of a linalg.generic whose body computes in the arithmetic of ``kind``.

    ``maps`` are those of the inputs, then of the outputs. ``body`` gets all elements in their
    memory format: apply `Body.widen` to f16 and bf16, and `Body.narrow` to its results, or use
    `elementwise`.
    """
    elements = [tensor_type(v).element_type for v in (*inputs, *outputs)]
    block = Block(arg_types=elements)
    scalars = body(Body(block, kind), *block.args)
    results = (scalars,) if isinstance(scalars, SSAValue) else tuple(scalars)
    block.add_op(linalg.ops.YieldOp(*results))
    op = linalg.ops.GenericOp.create(
        operands=[*inputs, *outputs],
        result_types=[v.type for v in outputs],
        properties={
            "indexing_maps": ArrayAttr(_map(m) for m in maps),
            "iterator_types": _iterators(tuple(iterators)),
            "operandSegmentSizes": _segments(len(inputs), len(outputs)),
        },
        regions=[Region(block)],
    )
    return tuple(lowering.insert(op).results)


def elementwise(
    lowering: Lowering, op: Operation, operands: Sequence[SSAValue], body: Scalars
) -> tuple[SSAValue, ...]:
    """Lower ``op`` to a generic over identity maps with the body ``(body, *operands) -> scalar``.

    f16 and bf16 operands are passed as f32, and the body's result is rounded to the result type.
    The arithmetic is that of the elements of the first operand of ``op``.
    """
    kind = computed_in(dtype(tensor_type(op.operands[0]).element_type))
    result = signless(tensor_type(op.results[0]).element_type)

    def widened(b: Body, *scalars: SSAValue) -> SSAValue:
        value: Any = body(b, *(b.widen(s) for s in scalars[:-1]))
        return b.narrow(value, result)

    return mapped(lowering, operands, result, widened, kind)


def mapped(
    lowering: Lowering,
    operands: Sequence[SSAValue],
    result: Attribute,
    body: Scalars,
    kind: DType,
) -> tuple[SSAValue, ...]:
    """Return a tensor of ``result`` elements computed from tensors of one shape, not widened."""
    into = empty_like(lowering, operands[0], result)
    rank = tensor_type(into).get_num_dims()
    maps = [AffineMap.identity(rank)] * (len(operands) + 1)
    return generic(lowering, operands, [into], maps, parallel(rank), body, kind)


def parallel(loops: int) -> list[Iterator]:
    """Return ``loops`` parallel iterators."""
    return ["parallel"] * loops


@lru_cache(maxsize=1024)
def _map(map: AffineMap) -> AffineMapAttr:
    return AffineMapAttr(map)


@lru_cache(maxsize=256)
def _iterators(kinds: tuple[Iterator, ...]) -> ArrayAttr[IteratorTypeAttr]:
    makers = {"parallel": IteratorTypeAttr.parallel, "reduction": IteratorTypeAttr.reduction}
    return ArrayAttr(makers[kind]() for kind in kinds)


@lru_cache(maxsize=256)
def _segments(inputs: int, outputs: int) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i32, [inputs, outputs])
