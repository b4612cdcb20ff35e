"""Evaluation of memref: buffers are NumPy arrays, views of buffers are NumPy views.

In memory bf16 is stored as its 16 bits (uint16), so that views of a byte arena behave as on the
machine; loads convert it to float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
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
from stepwell.dialects.types import array, called
from stepwell.dialects.upstream.faults import check_equal, check_sizes, fault, place
from stepwell.dialects.upstream.scalar import numpy_type
from stepwell.dialects.upstream.tensor import collapse, dropped_axes, mixed, slices, uninitialised


def storage_type(type: Attribute) -> np.dtype[Any]:
    """Return the NumPy type of a memref's elements in memory."""
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
    at = place(op, op.memref, indices, x.shape)
    return (from_memory(x[at], op.memref.type),)


@evaluate(memref.StoreOp)
def _store(
    interpreter: Interpreter, op: memref.StoreOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    value, x, *indices = operands
    at = place(op, op.memref, indices, x.shape)
    x[at] = to_memory(value, op.memref.type)
    return ()


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
    part = x[slices(op, iter(rest), x.shape)]
    return (part.squeeze(dropped_axes(part.shape, op.result.type.get_shape())),)


@evaluate(memref.ViewOp)
def _view(
    interpreter: Interpreter, op: memref.ViewOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    """Reinterpret part of a byte buffer as another type."""
    assert isinstance(op.result.type, MemRefType)
    data, shift, *sizes = operands
    dynamic = iter(sizes)
    shape = [int(next(dynamic)) if n == DYNAMIC else n for n in op.result.type.get_shape()]
    kind = storage_type(op.result.type)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    start = int(shift)
    check_sizes(op, shape)
    if start < 0 or start + size > data.size:
        words = (
            f"{op.name}: bytes from ",
            f" on do not all lie within {called(op.source)}, of size ",
        )
        fault(op, (*words, ""), start, data.size)
    if (data.ctypes.data + start) % kind.itemsize:
        words = f"{op.name}: byte ", f" is no place for elements of {kind.itemsize} bytes"
        fault(op, words, start)
    return (data[start : start + size].view(kind).reshape(shape),)


@evaluate(memref.ExpandShapeOp)
def _expand(
    interpreter: Interpreter, op: memref.ExpandShapeOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *sizes = operands
    wanted = mixed(op.static_output_shape, iter(sizes))
    check_sizes(op, wanted)
    for axis, group in enumerate(op.reassociation.data):
        count = prod(wanted[k.value.data] for k in group.data)
        words = f"{op.name}: axis {axis} of {called(op.src)} has size ", ", not ", ""
        check_equal(op, x.shape[axis], count, words)
    return (_same_memory(x, x.reshape(mixed(op.static_output_shape, iter(sizes)))),)


@evaluate(memref.CollapseShapeOp)
def _collapse(
    interpreter: Interpreter, op: memref.CollapseShapeOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    (x,) = operands
    _check_collapsed(op, x)
    return (_same_memory(x, collapse(x, op.reassociation)),)


def _check_collapsed(op: memref.CollapseShapeOp, x: Array) -> None:
    assert isinstance(op.result.type, MemRefType)
    wanted = op.result.type.get_shape()
    for axis, group in enumerate(op.reassociation.data):
        axes = [k.value.data for k in group.data]
        long = [k for k in axes if x.shape[k] != 1]
        for a, b in pairwise(long):
            have, step = x.strides[a] // x.itemsize, x.shape[b] * x.strides[b] // x.itemsize
            if x.shape[a] > 1 and x.size:
                words = f"{op.name}: axis {a} of {called(op.src)} has stride ", ", not ", ""
                check_equal(op, have, step, words)
        count = prod(x.shape[k] for k in axes)
        if wanted[axis] >= 0:
            words = f"{op.name}: axis {axis} would have size ", ", not ", ""
            check_equal(op, count, wanted[axis], words)


def _same_memory(x: Array, y: Array) -> Array:
    if x.size and not np.shares_memory(x, y):
        raise ValueError("this reshape of a strided buffer is no view")
    return y


@evaluate(memref.CastOp)
def _cast(
    interpreter: Interpreter, op: memref.CastOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    (x,) = operands
    type = op.dest.type
    if isinstance(type, MemRefType):
        strides = [step // x.itemsize for step in x.strides]
        said = ("size", x.shape, type.get_shape()), ("stride", strides, type.get_strides())
        for what, have, wanted in said:
            for axis, (old, n) in enumerate(zip(have, wanted or (), strict=False)):
                # NumPy ignores strides of unit axes, and in arrays without elements
                moves = what == "size" or (x.shape[axis] > 1 and x.size)
                if n is not None and n >= 0 and moves:
                    words = f"{op.name}: axis {axis} of {called(op.source)} has {what} "
                    check_equal(op, old, n, (words, ", not ", ""))
    return (x,)


@evaluate(memref.ReinterpretCastOp)
def _reinterpret(
    interpreter: Interpreter, op: memref.ReinterpretCastOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *rest = operands
    numbers = iter(rest)
    (offset,) = mixed(op.static_offsets, numbers)
    sizes, strides = mixed(op.static_sizes, numbers), mixed(op.static_strides, numbers)
    check_sizes(op, sizes)
    low = offset + sum(min((n - 1) * s, 0) for n, s in zip(sizes, strides, strict=True))
    high = offset + sum(max((n - 1) * s, 0) for n, s in zip(sizes, strides, strict=True))
    first, last = reach(x)
    within = first <= low and high <= last and x.size if prod(sizes) else 0 <= offset <= last + 1
    if not within:
        words = f"{op.name}: elements from ", f" on do not all lie within {called(op.source)}"
        fault(op, words, offset)
    if not prod(sizes):
        return (np.empty(sizes, x.dtype),)
    forwards = x[tuple(slice(None, None, -1 if s < 0 else 1) for s in x.strides)]
    memory = np.lib.stride_tricks.as_strided(forwards, (last - first + 1,), (x.itemsize,))
    base = memory[offset - first :]
    return (np.lib.stride_tricks.as_strided(base, sizes, [s * x.itemsize for s in strides]),)


def reach(x: Array) -> tuple[int, int]:
    """Return the offsets of the first and the last element from the beginning of a buffer."""
    spans = [(n - 1) * (s // x.itemsize) for n, s in zip(x.shape, x.strides, strict=True) if n > 1]
    return sum(min(n, 0) for n in spans), sum(max(n, 0) for n in spans)


@evaluate(memref.CopyOp)
def _copy(
    interpreter: Interpreter, op: memref.CopyOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    source, destination = operands
    for a, b in zip(source.shape, destination.shape, strict=True):
        check_equal(op, a, b, (f"{op.name}: a size of ", " meets one of ", ""))
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
