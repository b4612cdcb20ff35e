"""Reference rules of tensor: values are immutable arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, MemRefType, TensorType
from xdsl.ir import Attribute

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.readings import Array, reference
from stepwell.dialects.upstream.faults import check_part
from stepwell.dialects.upstream.scalar import numpy_type


def mixed(static: Any, dynamic: Iterator[Value]) -> list[int]:
    """Return a static list with its placeholders replaced by ``dynamic``."""
    return [int(next(dynamic)) if n == DYNAMIC else n for n in static.get_values()]


def slices(
    op: Any, operands: Iterator[Value], shape: Sequence[int] | None = None
) -> tuple[slice, ...]:
    """Return the slices given by offsets, sizes and strides of a slicing op.

    shape : of the sliced array, to raise IndexError for slices out of bounds; None for no check
    """
    offsets = mixed(op.static_offsets, operands)
    sizes = mixed(op.static_sizes, operands)
    strides = mixed(op.static_strides, operands)
    for axis, room in enumerate(() if shape is None else shape):
        check_part(op, axis, offsets[axis], sizes[axis], strides[axis], room)
    return tuple(
        slice(o, o + max(n - 1, 0) * s + (1 if n else 0), s)
        for o, n, s in zip(offsets, sizes, strides, strict=True)
    )


def dropped_axes(full: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the unit axes of ``full`` that ``shape`` lacks (a rank-reducing slice)."""
    missing, kept = len(full) - len(shape), 0
    dropped: list[int] = []
    for axis, n in enumerate(full):
        left = len(full) - axis
        wanted = len(shape) - kept
        matches = kept < len(shape) and (shape[kept] in (n, DYNAMIC))
        if len(dropped) < missing and n == 1 and (not matches or left > wanted):
            dropped.append(axis)
        else:
            kept += 1
    return tuple(dropped)


def uninitialised(type: TensorType[Attribute] | MemRefType[Attribute], sizes: Any) -> Array:
    """Return an array of conspicuous garbage: NaN, or the smallest integer."""
    dynamic = iter(sizes)
    shape = [int(next(dynamic)) if n == DYNAMIC else n for n in type.get_shape()]
    kind = numpy_type(type.element_type)
    if kind.kind == "f":
        return np.full(shape, np.nan, kind)
    return np.full(shape, True if kind.kind == "b" else np.iinfo(kind).min, kind)


@reference(tensor.EmptyOp)
def _empty(op: tensor.EmptyOp, operands: Sequence[Array]) -> Array:
    assert isinstance(op.tensor.type, TensorType)
    return uninitialised(op.tensor.type, operands)


@reference(tensor.DimOp)
def _dim(op: tensor.DimOp, operands: Sequence[Array]) -> Array:
    return np.asarray(np.asarray(operands[0]).shape[int(operands[1])], np.int64)[()]


@reference(tensor.CastOp)
def _cast(op: tensor.CastOp, operands: Sequence[Array]) -> Array:
    return operands[0]


@reference(tensor.ExtractOp)
def _extract(op: tensor.ExtractOp, operands: Sequence[Array]) -> Array:
    """Extract one element, or for arrays of indices (inside linalg.generic) an array."""
    x, *indices = operands
    return np.asarray(x)[tuple(np.asarray(i) for i in indices)]


@reference(tensor.InsertOp)
def _insert(op: tensor.InsertOp, operands: Sequence[Array]) -> Array:
    scalar, x, *indices = operands
    y = np.array(x)
    y[tuple(int(i) for i in indices)] = scalar
    return y


@reference(tensor.ExtractSliceOp)
def _extract_slice(op: tensor.ExtractSliceOp, operands: Sequence[Array]) -> Array:
    assert isinstance(op.result.type, TensorType)
    x, *rest = operands
    part = np.asarray(x)[slices(op, iter(rest))]
    return part.squeeze(dropped_axes(part.shape, op.result.type.get_shape()))


@reference(tensor.InsertSliceOp)
def _insert_slice(op: tensor.InsertSliceOp, operands: Sequence[Array]) -> Array:
    x, into, *rest = operands
    y = np.array(into)
    place = y[slices(op, iter(rest))]
    place[...] = np.asarray(x).reshape(place.shape)
    return y


@reference(tensor.CollapseShapeOp)
def _collapse(op: tensor.CollapseShapeOp, operands: Sequence[Array]) -> Array:
    return collapse(np.asarray(operands[0]), op.reassociation)


def collapse(x: Array, reassociation: ArrayAttr[Any]) -> Array:
    """Merge groups of adjacent axes."""
    shape = x.shape
    return x.reshape(
        [int(np.prod([shape[a.value.data] for a in g], dtype=np.int64)) for g in reassociation]
    )


@reference(tensor.ExpandShapeOp)
def _expand(op: tensor.ExpandShapeOp, operands: Sequence[Array]) -> Array:
    x, *sizes = operands
    return np.asarray(x).reshape(mixed(op.static_output_shape, iter(sizes)))


@reference(tensor.ReshapeOp)
def _reshape(op: tensor.ReshapeOp, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0]).reshape([int(n) for n in operands[1]])


@reference(tensor.FromElementsOp)
def _from_elements(op: tensor.FromElementsOp, operands: Sequence[Array]) -> Array:
    assert isinstance(op.result.type, TensorType)
    return np.array(operands).reshape(op.result.type.get_shape())


@reference(tensor.SplatOp)
def _splat(op: tensor.SplatOp, operands: Sequence[Array]) -> Array:
    assert isinstance(op.result.type, TensorType)
    scalar, *sizes = operands
    result = uninitialised(op.result.type, sizes)
    result[...] = scalar
    return result


@reference(tensor.ConcatOp)
def _concat(op: tensor.ConcatOp, operands: Sequence[Array]) -> Array:
    return np.concatenate(operands, axis=op.dim.value.data)


@evaluate(tensor.PadOp)
def _pad(
    interpreter: Interpreter, op: tensor.PadOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    """Pad with the value that the region yields; it must not depend on its indices."""
    x, *rest = operands
    amounts = iter(rest)
    low, high = mixed(op.static_low, amounts), mixed(op.static_high, amounts)
    (value,) = interpreter.run(op.region, [np.int64(0)] * np.asarray(x).ndim)
    return (np.pad(x, list(zip(low, high, strict=True)), constant_values=value),)
