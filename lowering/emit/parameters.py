"""Parameters of a function: a memref becomes a pointer and the sizes and strides it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import func, memref, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, OpResult, Region, SSAValue
from xdsl.traits import MemoryEffectKind, only_has_effect

from stepwell.dialects import kernel
from stepwell.lowering.emit.buffers import Buffer, element_of, sizes_and_strides
from stepwell.lowering.emit.kinds import INDEX, Kind
from stepwell.lowering.emit.names import FAULT
from stepwell.lowering.emit.writer import Writer

RUNTIME = "rt"
"""The name of the parameter for the runtime, in every function that needs it."""


@dataclass(frozen=True)
class Parameter:
    """One parameter, which is ``part`` of the caller's operand ``operand``."""

    name: str
    type: str
    operand: int = -1
    part: str = "runtime"
    """``value``, ``pointer``, ``size`` or ``stride`` (of ``axis``), ``runtime`` or ``fault``."""
    axis: int = 0
    kind: Kind | None = None
    alone: bool = False
    """Whether the pointer is ``restrict``: no other parameter points to the same memory."""

    @property
    def declaration(self) -> str:
        """The parameter's declaration in C."""
        if self.alone and self.part == "pointer":
            return f"{self.type}restrict {self.name}"
        return f"{self.type}{'' if self.type[-1] == '*' else ' '}{self.name}"

    def given(self, w: Writer, operands: Sequence[SSAValue]) -> str:
        """Return the argument that a caller passes."""
        if self.part == "runtime":
            return RUNTIME
        if self.part == "fault":
            return FAULT
        operand = operands[self.operand]
        if self.part == "value":
            assert self.kind is not None
            return w.spelling.convert(self.kind, w[operand], w.kind(operand))
        buffer = w.buffer(operand)
        if self.part == "pointer":
            return buffer.pointer
        return (buffer.sizes if self.part == "size" else buffer.strides)[self.axis]


def parameters(
    w: Writer, op: Operation, arguments: Sequence[SSAValue], space: str, writes: set[SSAValue]
) -> list[Parameter]:
    """Name all parameters that a function might need and bind its arguments to them."""
    found: list[Parameter] = []

    def add(hint: str | None, type: str, operand: int, part: str, axis: int = 0) -> str:
        name = w.fresh(hint, type)
        found.append(Parameter(name, type, operand, part, axis))
        return name

    size_type = w.spelling.type(INDEX)
    for number, argument in enumerate(arguments):
        type = argument.type
        if not isinstance(type, MemRefType):
            kind = w.kind(argument)
            name = add(argument.name_hint, w.spelling.type(kind), number, "value")
            found[-1] = Parameter(name, found[-1].type, number, "value", kind=kind)
            w.bind(argument, name)
            continue
        element, writable = element_of(op, type), argument in writes
        pointer_type = w.pointer(Buffer("", element, (), (), space, writable))
        pointer = add(argument.name_hint or "x", pointer_type, number, "pointer")
        sizes = (
            add(f"{pointer}_d{axis}", size_type, number, "size", axis)
            for axis, n in enumerate(type.get_shape())
            if n < 0
        )
        given_strides = type.get_strides() or ()
        strides = (
            add(f"{pointer}_s{axis}", size_type, number, "stride", axis)
            for axis, n in enumerate(given_strides)
            if n is None
        )
        shape = sizes_and_strides(op, type, sizes, strides)
        w.buffers[argument] = Buffer(pointer, element, *shape, space, writable)
    return found


_VIEWS: dict[type[Any], str] = {
    memref.SubviewOp: "source",
    memref.ReinterpretCastOp: "source",
    memref.CastOp: "source",
    memref.MemorySpaceCastOp: "source",
    memref.ViewOp: "source",
    memref.ExpandShapeOp: "src",
    memref.CollapseShapeOp: "src",
}
_STORES: dict[type[Any], str] = {
    memref.StoreOp: "memref",
    vector.StoreOp: "base",
    vector.MaskedStoreOp: "base",
    memref.CopyOp: "destination",
    kernel.DotTileOp: "sums",
}
_READS = (
    kernel.PrefetchOp,
    kernel.ReleaseTilesOp,
    memref.LoadOp,
    memref.DimOp,
    memref.RankOp,
    vector.LoadOp,
    vector.MaskedLoadOp,
)


_READ = MemoryEffectKind.READ


def root(value: SSAValue) -> SSAValue:
    """Return the buffer that a view is of."""
    while isinstance(value, OpResult) and (field := _VIEWS.get(type(value.op))):
        value = getattr(value.op, field)
    return value


def written(region: Region, writes_of: Callable[[Operation, str], Iterable[bool]]) -> set[SSAValue]:
    """Return every buffer that may be written; an op not known to only read, writes.

    writes_of : returns which operands a called function or kernel writes
    """
    found: set[SSAValue] = set()
    for op in region.walk():
        kind = type(op)
        if field := _STORES.get(kind):
            found.add(root(getattr(op, field)))
        elif isinstance(op, kernel.LaunchOp | func.CallOp):
            callee = op.callee.string_value()
            for operand, writes in zip(op.operands, writes_of(op, callee), strict=True):
                if writes and isinstance(operand.type, MemRefType):
                    found.add(root(operand))
        elif isinstance(op, kernel.CallbackOp):
            found.update(map(root, op.outputs))
        elif kind not in _VIEWS and kind not in _READS:
            buffers = [v for v in op.operands if isinstance(v.type, MemRefType)]
            if buffers and not only_has_effect(op, _READ):
                found.update(map(root, buffers))
    return found
