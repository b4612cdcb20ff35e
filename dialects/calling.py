"""Call an entry function of a module of any floor, arrays in and arrays out.

Above `bufferize` a function takes and returns tensors; below it, inputs, constants, buffers for
outputs and an arena, as `kernel.role` declares, which this module allocates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.traits import SymbolTable

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.checks import check_call
from stepwell.dialects.interpreter import Interpreter, Value
from stepwell.dialects.readings import Array
from stepwell.dialects.types import dtype
from stepwell.dialects.upstream.memory import from_memory, storage_type, to_memory
from stepwell.dialects.upstream.scalar import element_of, numpy_type

ROLE = "kernel.role"
RESOURCE = "nd.resource"
MADE = "kernel.computed_constant"
INTO = "nd.into"
"""Attribute of a result: the number of an argument of its type whose memory it may reuse."""


def call(interpreter: Interpreter, entry: str, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Call ``@entry`` with its inputs; return its results.

    Below `nd` integers are signless: a result that was unsigned is returned as signed.
    Weights are taken from ``interpreter.resources`` by name; those that ``@entry.constants``
    computes are computed first.
    """
    function = SymbolTable.lookup_symbol(interpreter.module, entry)
    if not isinstance(function, func.FuncOp):
        raise LookupError(f"no function @{entry} in the module")
    interpreter.resources = {
        **interpreter.resources,
        **_computed_weights(interpreter, entry, function),
    }
    if any(ROLE in attributes_of(function, i) for i in range(len(function.args))):
        return _call_on_buffers(interpreter, entry, function, inputs)
    values = list(inputs)
    for i, type in enumerate(function.function_type.inputs.data[len(inputs) :], len(inputs)):
        values.append(_resource(interpreter.resources, attributes_of(function, i), type))
    pairs = zip(values, function.args, strict=True)
    return interpreter.call(entry, [_signless(v, a.type) for v, a in pairs])


def _computed_weights(
    interpreter: Interpreter, entry: str, function: func.FuncOp
) -> Mapping[str, Array]:
    """Return the weights that the program computes from given ones."""
    attributes = [attributes_of(function, i) for i in range(len(function.args))]
    wanted = [(a[RESOURCE], a[MADE]) for a in attributes if MADE in a]
    if not wanted:
        return {}
    results = call(interpreter, f"{entry}.constants", ())
    return {
        name.data: results[number.value.data]
        for name, number in wanted
        if isinstance(name, StringAttr) and isinstance(number, IntegerAttr)
    }


def attributes_of(function: func.FuncOp, argument: int) -> Mapping[str, Attribute]:
    """Return the attributes of an argument of ``function``."""
    all = function.arg_attrs
    return all.data[argument].data if all is not None else DictionaryAttr({}).data


def _resource(
    resources: Mapping[str, Any], attributes: Mapping[str, Attribute], type: Attribute
) -> Array:
    name = attributes.get(RESOURCE)
    if not isinstance(name, StringAttr):
        raise LookupError(f"an argument of type {type} has neither a value nor a resource")
    return np.asarray(resources[name.data])


def _signless(value: Value, type: Attribute) -> Value:
    """Reinterpret unsigned input as signed if the function takes signless integers."""
    element = element_of(type)
    if not isinstance(type, TensorType | MemRefType):
        return value
    array, wanted = np.asarray(value), numpy_type(element)
    return array.view(wanted) if array.dtype.kind == "u" and wanted.kind == "i" else array


def _call_on_buffers(
    interpreter: Interpreter, entry: str, function: func.FuncOp, inputs: Sequence[Array]
) -> tuple[Array, ...]:
    check_call(function, inputs)
    dims = [
        np.int64(n)
        for x, a in zip(inputs, function.args, strict=False)
        for n, declared in zip(np.shape(x), _memref(a.type).get_shape(), strict=True)
        if declared == DYNAMIC
    ]
    sizes = iter(_sizes(interpreter, f"{entry}.shapes", dims))
    given = iter(inputs)
    buffers: list[Array] = []
    outputs: list[tuple[Array, Attribute]] = []
    for i, argument in enumerate(function.args):
        type, attributes = argument.type, attributes_of(function, i)
        match attributes.get(ROLE):
            case StringAttr(data="input"):
                value = _signless(next(given), type)
                buffers.append(np.array(to_memory(value, type), order="C"))
            case StringAttr(data="output") if isinstance(into := attributes.get(INTO), IntegerAttr):
                outputs.append((buffers[into.value.data], type))
                buffers.append(outputs[-1][0])
                sizes = iter([*sizes][_memref(type).get_shape().count(DYNAMIC) :])
            case StringAttr(data="constant"):
                value = _resource(interpreter.resources, attributes, type)
                buffers.append(np.array(to_memory(_signless(value, type), type), order="C"))
            case StringAttr(data="output"):
                shape = [int(next(sizes)) if n == DYNAMIC else n for n in _memref(type).get_shape()]
                outputs.append((_garbage(shape, storage_type(type)), type))
                buffers.append(outputs[-1][0])
            case _:
                buffers.append(np.zeros(_arena_bytes(interpreter, entry, function, dims), np.int8))
    interpreter.call(entry, buffers)
    return tuple(np.asarray(from_memory(x, type)) for x, type in outputs)


def _memref(type: Attribute) -> MemRefType[Attribute]:
    assert isinstance(type, MemRefType), type
    return type


def _sizes(interpreter: Interpreter, name: str, dims: Sequence[Value]) -> Sequence[Value]:
    if SymbolTable.lookup_symbol(interpreter.module, name) is None:
        return ()
    return interpreter.call(name, dims)


def _arena_bytes(
    interpreter: Interpreter, entry: str, function: func.FuncOp, dims: Sequence[Value]
) -> int:
    if isinstance(bytes := function.attributes.get("kernel.arena_bytes"), IntegerAttr):
        return bytes.value.data
    found = _sizes(interpreter, f"{entry}.arena", dims)
    return int(found[0]) if found else 0


def _garbage(shape: Sequence[int], kind: np.dtype[Any]) -> Array:
    """Return an output buffer of bytes that reveal elements that were not written."""
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if kind.kind == "b":
        return np.ones(shape, kind)
    return np.full(size, 0x7F, np.uint8).view(kind).reshape(shape)


def random_inputs(function: func.FuncOp, size: int, random: np.random.Generator) -> list[Array]:
    """Return random tensor arguments except weights; every `?` is ``size``."""
    inputs: list[Array] = []
    for i, argument in enumerate(function.args):
        if RESOURCE in attributes_of(function, i):
            continue
        type: Any = argument.type
        shape = [size if n == DYNAMIC else n for n in type.get_shape()]
        kind = dtype(element_of(type))
        if kind.kind == "float":
            values = random.standard_normal(shape)
        else:
            values = random.integers(0, 2 if kind.kind == "bool" else 100, shape)
        inputs.append(kind.round(np.asarray(values).astype(kind.numpy)))
    return inputs
