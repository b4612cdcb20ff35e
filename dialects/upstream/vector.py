"""Evaluation of vector: a vector is a small array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from stepwell.core.guards import no_place
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.readings import Array, reference
from stepwell.dialects.types import called
from stepwell.dialects.upstream.faults import check_lane, fault, place
from stepwell.dialects.upstream.memory import from_memory, to_memory
from stepwell.dialects.upstream.scalar import element_of, reinterpret
from stepwell.dialects.upstream.tensor import mixed


def _window(op: Any, x: Array, indices: Sequence[Value], shape: Sequence[int]) -> tuple[Any, ...]:
    """Return the index in ``x`` of a vector of ``shape`` that starts at ``indices``."""
    counts = (*(1 for _ in range(len(indices) - len(shape))), *shape)
    at: list[Any] = []
    for axis, (index, count, size) in enumerate(zip(indices, counts, x.shape, strict=True)):
        if not 0 <= int(index) <= size - count:
            fault(op, no_place(op.name, called(op.base), axis, count), int(index), size)
        is_lane = axis >= len(indices) - len(shape)
        at.append(slice(int(index), int(index) + count) if is_lane else int(index))
    return tuple(at)


def _shape(type: Attribute) -> tuple[int, ...]:
    assert isinstance(type, VectorType)
    return type.get_shape()


@evaluate(vector.LoadOp)
def _load(
    interpreter: Interpreter, op: vector.LoadOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *indices = operands
    return (from_memory(x[_window(op, x, indices, _shape(op.result.type))], op.base.type),)


@evaluate(vector.StoreOp)
def _store(
    interpreter: Interpreter, op: vector.StoreOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    lanes, x, *indices = operands
    x[_window(op, x, indices, np.shape(lanes))] = to_memory(lanes, op.base.type)
    return ()


@evaluate(vector.MaskedLoadOp)
def _masked_load(
    interpreter: Interpreter, op: vector.MaskedLoadOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *indices, mask, otherwise = operands
    lanes = np.array(otherwise)
    *outer, first = (int(i) for i in indices)
    place(op, op.base, [*outer, 0], [*x.shape[:-1], 1])
    for k in np.flatnonzero(mask):
        at = (*outer, _lane(op, first, int(k), x.shape[-1], len(lanes)))
        lanes[k] = from_memory(x[at], op.base.type)
    return (lanes,)


@evaluate(vector.MaskedStoreOp)
def _masked_store(
    interpreter: Interpreter, op: vector.MaskedStoreOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    x, *indices, mask, lanes = operands
    *outer, first = (int(i) for i in indices)
    place(op, op.base, [*outer, 0], [*x.shape[:-1], 1])
    for k in np.flatnonzero(mask):
        x[(*outer, _lane(op, first, int(k), x.shape[-1], len(lanes)))] = to_memory(
            lanes[k], op.base.type
        )
    return ()


def _lane(op: Any, first: int, lane: int, size: int, lanes: int) -> int:
    """Return the index of an active lane, or raise if it is out of bounds."""
    if not 0 <= first + lane < size:
        axis = op.base.type.get_num_dims() - 1
        fault(op, no_place(op.name, called(op.base), axis, lanes), first, size)
    return first + lane


def _position(op: Any, rest: Iterator[Value], shape: Sequence[int]) -> tuple[int, ...]:
    found = mixed(op.static_position, rest)
    for position, lanes in zip(found, shape, strict=False):
        check_lane(op, position, lanes)
    return tuple(found)


@reference(vector.BroadcastOp)
def _broadcast(op: vector.BroadcastOp, operands: Sequence[Array]) -> Array:
    return np.broadcast_to(operands[0], _shape(op.vector.type)).copy()


@reference(vector.FMAOp)
def _fma(op: vector.FMAOp, operands: Sequence[Array]) -> Array:
    x, y, z = (np.asarray(v, np.longdouble) for v in operands)
    return (x * y + z).astype(operands[0].dtype)


@reference(vector.CreateMaskOp)
def _create_mask(op: vector.CreateMaskOp, operands: Sequence[Array]) -> Array:
    mask = np.zeros(_shape(op.mask_vector.type), np.bool_)
    mask[tuple(slice(0, max(int(n), 0)) for n in operands)] = True
    return mask


@reference(vector.ExtractOp)
def _extract(op: vector.ExtractOp, operands: Sequence[Array]) -> Array:
    x, *rest = operands
    return x[_position(op, iter(rest), x.shape)]


@reference(vector.InsertOp)
def _insert(op: vector.InsertOp, operands: Sequence[Array]) -> Array:
    value, x, *rest = operands
    y = np.array(x)
    y[_position(op, iter(rest), y.shape)] = value
    return y


@reference(vector.ShuffleOp)
def _shuffle(op: vector.ShuffleOp, operands: Sequence[Array]) -> Array:
    return np.concatenate([np.atleast_1d(v) for v in operands])[list(op.mask.get_values())]


@reference(vector.BitcastOp)
def _bitcast(op: vector.BitcastOp, operands: Sequence[Array]) -> Array:
    found = reinterpret(operands[0], element_of(op.source.type), element_of(op.result.type))
    return found.reshape(_shape(op.result.type))


_COMBINE: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": np.maximum,
    "minui": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@reference(vector.ReductionOp)
def _reduction(op: vector.ReductionOp, operands: Sequence[Array]) -> Array:
    """Combine the lanes pairwise, as a tree; then add the accumulator."""
    kind = op.kind.data.value
    combine = _COMBINE[kind]
    lanes, *accumulator = (np.asarray(v) for v in operands)
    signed = lanes.dtype
    if kind in ("maxui", "minui"):
        lanes = lanes.view(f"u{signed.itemsize}")
        accumulator = [a.view(f"u{signed.itemsize}") for a in accumulator]
    while len(lanes) > 1:
        half = len(lanes) // 2
        joined = combine(lanes[:half], lanes[half : 2 * half]).astype(lanes.dtype)
        lanes = np.concatenate([joined, lanes[2 * half :]])
    result = lanes[0]
    for value in accumulator:
        result = combine(result, value)
    return np.asarray(result).view(signed)[()]
