"""Evaluation of memref: buffers are NumPy arrays, views of buffers are NumPy views.

In memory bf16 is its 16 bits (uint16), so that views of an arena of bytes mean what they mean on
the machine; it becomes float32 when it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    MemRefType,
)
from xdsl.ir import Attribute
from xdsl.traits import SymbolTable

from stepwell.core.dtypes import round_to_bf16
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.readings import Array
from stepwell.dialects.types import array
from stepwell.dialects.upstream.scalar import numpy_type
from stepwell.dialects.upstream.tensor import collapse, dropped_axes, mixed, slices, uninitialised


def storage_type(type: Attribute) -> np.dtype[Any]:
    """Return the NumPy type that elements of a memref type have in memory."""
    assert isinstance(type, MemRefType)
    element = type.element_type
    return np.dtype(np.uint16) if isinstance(element, BFloat16Type) else numpy_type(element)


def from_memory(x: Array, type: Attribute) -> Array:
    """Return loaded elements as values."""
    assert isinstance(type, MemRefType)
    if isinstance(type.element_type, BFloat16Type):
        return (np.asarray(x).astype(np.uint32) << 16).view(np.float32)
    return np.array(x)[()]


def to_memory(x: Value, type: Attribute) -> Array:
    """Return values as they are stored."""
    assert isinstance(type, MemRefType)
    if isinstance(type.element_type, BFloat16Type):
        return (round_to_bf16(np.asarray(x)).view(np.uint32) >> 16).astype(np.uint16)
    return np.asarray(x)


@evaluate(memref.AllocOp, memref.AllocaOp)
def _alloc(
    interpreter: Interpreter, op: memref.AllocOp | memref.AllocaOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    assert isinstance(op.memref.type, MemRefType)
    return (
        np.array(to_memory(uninitialised(op.memref.type, operands), op.memref.type), order="C"),
    )


@evaluate(memref.DeallocOp)
def _dealloc(
    interpreter: Interpreter, op: memref.DeallocOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    return ()


@evaluate(memref.LoadOp)
def _load(
    interpreter: Interpreter, op: memref.LoadOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *indices = operands
    at = tuple(checked(i, n) for i, n in zip(indices, x.shape, strict=True))
    return (from_memory(x[at], op.memref.type),)


@evaluate(memref.StoreOp)
def _store(
    interpreter: Interpreter, op: memref.StoreOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    value, x, *indices = operands
    at = tuple(checked(i, n) for i, n in zip(indices, x.shape, strict=True))
    x[at] = to_memory(value, op.memref.type)
    return ()


def checked(index: Any, size: int) -> Any:
    """Return ``index`` where it lies within ``size``; a negative one would wrap in NumPy."""
    if np.size(index) and (np.min(index) < 0 or np.max(index) >= size):
        raise IndexError(f"index {index} is outside 0..{size - 1}")
    return np.asarray(index) if np.ndim(index) else int(index)


@evaluate(memref.DimOp)
def _dim(
    interpreter: Interpreter, op: memref.DimOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    return (np.int64(operands[0].shape[int(operands[1])]),)


@evaluate(memref.SubviewOp)
def _subview(
    interpreter: Interpreter, op: memref.SubviewOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    assert isinstance(op.result.type, MemRefType)
    x, *rest = operands
    part = x[slices(op, iter(rest))]
    return (part.squeeze(dropped_axes(part.shape, op.result.type.get_shape())),)


@evaluate(memref.ViewOp)
def _view(
    interpreter: Interpreter, op: memref.ViewOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    """Read part of a buffer of bytes as another type; its start need not be aligned here."""
    assert isinstance(op.result.type, MemRefType)
    data, shift, *sizes = operands
    dynamic = iter(sizes)
    shape = [int(next(dynamic)) if n == DYNAMIC else n for n in op.result.type.get_shape()]
    kind = storage_type(op.result.type)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    start = int(shift)
    if start < 0 or start + size > data.size:
        raise IndexError(f"bytes {start}..{start + size} are outside a buffer of {data.size}")
    return (data[start : start + size].view(kind).reshape(shape),)


@evaluate(memref.ExpandShapeOp)
def _expand(
    interpreter: Interpreter, op: memref.ExpandShapeOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *sizes = operands
    return (_same_memory(x, x.reshape(mixed(op.static_output_shape, iter(sizes)))),)


@evaluate(memref.CollapseShapeOp)
def _collapse(
    interpreter: Interpreter, op: memref.CollapseShapeOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    (x,) = operands
    return (_same_memory(x, collapse(x, op.reassociation)),)


def _same_memory(x: Array, y: Array) -> Array:
    if x.size and not np.shares_memory(x, y):
        raise ValueError("this reshape of a strided buffer is no view")
    return y


@evaluate(memref.CastOp)
def _cast(
    interpreter: Interpreter, op: memref.CastOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    return tuple(operands)


@evaluate(memref.ReinterpretCastOp)
def _reinterpret(
    interpreter: Interpreter, op: memref.ReinterpretCastOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *rest = operands
    numbers = iter(rest)
    (offset,) = mixed(op.static_offsets, numbers)
    sizes, strides = mixed(op.static_sizes, numbers), mixed(op.static_strides, numbers)
    base = x.reshape(-1)[offset:]
    return (np.lib.stride_tricks.as_strided(base, sizes, [s * x.itemsize for s in strides]),)


@evaluate(memref.CopyOp)
def _copy(
    interpreter: Interpreter, op: memref.CopyOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    source, destination = operands
    destination[...] = source
    return ()


@evaluate(memref.GlobalOp)
def _global(
    interpreter: Interpreter, op: memref.GlobalOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    return ()


@evaluate(memref.GetGlobalOp)
def _get_global(
    interpreter: Interpreter, op: memref.GetGlobalOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    found = SymbolTable.lookup_symbol(interpreter.module, op.name_)
    assert isinstance(found, memref.GlobalOp)
    assert isinstance(found.initial_value, DenseIntOrFPElementsAttr)
    return (to_memory(array(found.initial_value), op.memref.type),)
