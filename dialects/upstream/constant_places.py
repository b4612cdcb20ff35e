"""Refuse modules on buffers with an out-of-bounds access at constant indices.

The accesses of a module on tensors are proved (`accesses.py`); a module on buffers or loops
computes its own addresses, of which nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.dialects.types import place_of
from stepwell.dialects.upstream.verifiers.types import shape

Access = tuple[Attribute, Sequence[SSAValue], Sequence[int]]
"""The type of a buffer, the indices, and the number of elements accessed along its last axes."""

_ACCESSES: Mapping[type[Operation], Callable[[Any], Access]] = {
    memref.LoadOp: lambda op: (op.memref.type, op.indices, ()),
    memref.StoreOp: lambda op: (op.memref.type, op.indices, ()),
    vector.LoadOp: lambda op: (op.base.type, op.indices, shape(op.result.type)),
    vector.StoreOp: lambda op: (op.base.type, op.indices, shape(op.vector.type)),
}


def check_constant_places(module: ModuleOp) -> None:
    """Raise `CompileError` at the first access that is provably out of bounds."""
    for op in module.walk():
        if (access := _ACCESSES.get(type(op))) is not None:
            _check(op, *access(op))


def _check(op: Operation, buffer: Attribute, indices: Sequence[SSAValue], part: Any) -> None:
    assert isinstance(buffer, MemRefType)
    sizes = buffer.get_shape()
    lanes = (*(1 for _ in range(len(sizes) - len(part))), *part)
    for axis, (index, size, count) in enumerate(zip(indices, sizes, lanes, strict=True)):
        value = index.owner.value if isinstance(index.owner, arith.ConstantOp) else None
        if not isinstance(value, IntegerAttr):
            continue
        first = value.value.data
        if first < 0 or (size != DYNAMIC_INDEX and first + count > size):
            places = f"place {first}" if count == 1 else f"places {first} to {first + count - 1}"
            message = f"{op.name}: axis {axis} of {buffer} has no {places}"
            raise CompileError(Diagnostic("error", message, place_of(op)))
