"""Evaluation of linalg.generic and linalg.fill on tensors and on buffers.

The body runs once for each point of the *reduction* axes, in order, on arrays that span all
parallel axes: the definition, vectorized. Simple reductions run over many points at once, with the
same results (`accumulating`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, MemRefType, ShapedType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from stepwell.core.dtypes import round_to_bf16
from stepwell.dialects.interpreter import Interpreter, Value, evaluate
from stepwell.dialects.readings import Array
from stepwell.dialects.upstream.accumulating import Accumulation, accumulation_of, runs
from stepwell.dialects.upstream.memory import from_memory, to_memory

_ARITHMETIC: dict[AffineBinaryOpKind, Any] = {
    AffineBinaryOpKind.Add: np.add,
    AffineBinaryOpKind.Mul: np.multiply,
    AffineBinaryOpKind.Mod: np.mod,
    AffineBinaryOpKind.FloorDiv: np.floor_divide,
    AffineBinaryOpKind.CeilDiv: lambda x, y: -np.floor_divide(-x, y),
}


def apply(expression: AffineExpr, dims: Sequence[Any]) -> Any:
    """Evaluate an affine expression on numbers or arrays."""
    match expression:
        case AffineConstantExpr(value=value):
            return value
        case AffineDimExpr(position=position):
            return dims[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            return _ARITHMETIC[kind](apply(lhs, dims), apply(rhs, dims))
        case _:
            raise ValueError(f"no value for the affine expression {expression}")


def extents(op: linalg.GenericOp, shapes: Sequence[Sequence[int]]) -> list[int]:
    """Return the trip count of each loop, from operands whose map has its dimension."""
    found: dict[int, int] = {}
    for map, shape in zip(op.indexing_maps, shapes, strict=True):
        for expression, size in zip(map.data.results, shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                known = found.setdefault(expression.position, size)
                assert known == size, f"loop {expression.position} is {known} and {size} long"
    return [found[d] for d in range(len(op.iterator_types))]


@evaluate(linalg.FillOp)
def _fill(
    interpreter: Interpreter, op: linalg.FillOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    value, into = operands
    if isinstance(op.outputs[0].type, MemRefType):
        into[...] = to_memory(value, op.outputs[0].type)
        return ()
    return (np.full_like(into, value),)


@evaluate(linalg.IndexOp)
def _index(
    interpreter: Interpreter, op: linalg.IndexOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    return (interpreter.loop_indices[-1][op.dim.value.data],)


@evaluate(linalg.GenericOp)
def _generic(
    interpreter: Interpreter, op: linalg.GenericOp, operands: Sequence[Value]
) -> tuple[Value, ...]:
    arrays = [np.asarray(v) for v in operands]
    for i, out in enumerate(op.outputs, len(op.inputs)):
        if not isinstance(out.type, MemRefType):
            arrays[i] = arrays[i].copy()
    sizes = extents(op, [a.shape for a in arrays])
    parallel = [d for d, t in enumerate(op.iterator_types) if t == IteratorTypeAttr.parallel()]
    others = [d for d in range(len(sizes)) if d not in parallel]
    dims: list[Any] = [0] * len(sizes)
    for axis, d in enumerate(parallel):
        dims[d] = np.arange(sizes[d]).reshape(
            [-1 if a == axis else 1 for a in range(len(parallel))]
        )
    how = accumulation_of(op, arrays) if others else None
    if how is None:
        for point in product(*(range(sizes[d]) for d in others)):
            for d, i in zip(others, point, strict=True):
                dims[d] = np.int64(i)
            _step(interpreter, op, arrays, dims)
    else:
        shape = tuple(sizes[d] for d in parallel)
        for run in runs(sizes, others, math.prod(shape)):
            within = [np.asarray(d)[None] for d in dims]
            for d, points in zip(others, run, strict=True):
                within[d] = points.reshape([-1] + [1] * len(parallel))
            _accumulate(interpreter, op, arrays, within, how, (run[0].size, *shape))
    return tuple(
        a
        for a, out in zip(arrays[len(op.inputs) :], op.outputs, strict=True)
        if not isinstance(out.type, MemRefType)
    )


def _step(
    interpreter: Interpreter, op: linalg.GenericOp, arrays: Sequence[Array], dims: Sequence[Any]
) -> None:
    """Run the body for one point of the reduction axes and store its results."""
    places = [_place(map.data, dims) for map in op.indexing_maps]
    given = [
        _read(a[at], v) for a, at, v in zip(arrays, places, (*op.inputs, *op.outputs), strict=True)
    ]
    interpreter.loop_indices.append(dims)
    try:
        results = interpreter.run(op.body, given)
    finally:
        interpreter.loop_indices.pop()
    first = len(op.inputs)
    for k, (result, out) in enumerate(zip(results, op.outputs, strict=True)):
        into, at = arrays[first + k], places[first + k]
        _write(into, at, result, out)


def _accumulate(
    interpreter: Interpreter,
    op: linalg.GenericOp,
    arrays: Sequence[Array],
    dims: Sequence[Array],
    how: Accumulation,
    shape: tuple[int, ...],
) -> None:
    """Run the body for the points of the reduction axes along the first axis of ``dims``."""
    given: dict[SSAValue, Array] = {}
    first = len(op.inputs)
    for k, value in enumerate(op.inputs):
        at = _place(op.indexing_maps.data[k].data, dims)
        given[how.block.args[k]] = _read(arrays[k][at], value)
    interpreter.loop_indices.append(dims)
    try:
        terms = interpreter.values_of(how.block, given, how.values, how.combining)
    finally:
        interpreter.loop_indices.pop()
    for k, (term, out) in enumerate(zip(terms, op.outputs, strict=True)):
        into = arrays[first + k]
        at = _place(op.indexing_maps.data[first + k].data, [d[0] for d in dims])
        state = np.asarray(_read(into[at], out))
        _write(into, at, how.over(k, state, np.broadcast_to(term, shape)), out)


def _place(map: AffineMap, dims: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(apply(expression, dims) for expression in map.results)


def _read(x: Array, value: SSAValue) -> Array:
    return from_memory(x, value.type) if isinstance(value.type, MemRefType) else x


def _write(into: Array, at: tuple[Any, ...], result: Array, out: SSAValue) -> None:
    assert isinstance(out.type, ShapedType)
    if isinstance(out.type, MemRefType):
        result = to_memory(result, out.type)
    elif isinstance(out.type.get_element_type(), BFloat16Type):  # pyright: ignore
        result = round_to_bf16(result)
    shape = np.broadcast_shapes(*(np.shape(i) for i in at)) if at else ()
    if np.ndim(result) > len(shape) or np.shape(result) != shape:
        result = np.broadcast_to(result, shape)
    into[at] = result
