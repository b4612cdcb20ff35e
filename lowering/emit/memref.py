"""memref: a buffer is a pointer, an access is index arithmetic with strides, views are pointers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Block, BlockArgument, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.calling import INTO
from stepwell.lowering.emit.arith import constant
from stepwell.lowering.emit.buffers import (
    Buffer,
    element_of,
    number,
    offset,
    product,
    row_major,
    sizes_and_strides,
    times,
)
from stepwell.lowering.emit.guards import (
    check_bytes,
    check_cast,
    check_collapsed,
    check_element,
    check_expanded,
    check_part,
    check_reinterpreted,
    check_same_sizes,
    is_there,
)
from stepwell.lowering.emit.kinds import Kind
from stepwell.lowering.emit.writer import Writer, emit
from stepwell.transforms.passes import fail

STACK = 1 << 18
"""The most bytes of a buffer on the stack."""


@emit(memref.LoadOp)
def _load(w: Writer, op: memref.LoadOp) -> None:
    check_element(w, op, op.memref, op.indices)
    buffer = w.buffer(op.memref)
    element = w.element_at(op.memref, op.indices)
    w.define(op.res, f"{element} != 0" if buffer.element == "i1" else element)


@emit(memref.StoreOp)
def _store(w: Writer, op: memref.StoreOp) -> None:
    check_element(w, op, op.memref, op.indices)
    w.line(f"{w.element_at(op.memref, op.indices)} = {w[op.value]};")


@emit(kernel.PrefetchOp)
def _prefetch(w: Writer, op: kernel.PrefetchOp) -> None:
    address = f"&{w.element_at(op.buffer, op.indices)}"
    if statement := w.spelling.prefetch(address):
        condition = is_there(w, op.buffer, op.indices) if w.guards is not None else ""
        w.line(f"if ({condition}) {statement}" if condition else statement)


@emit(memref.AllocaOp, memref.AllocOp)
def _allocate(w: Writer, op: Any) -> None:
    """Declare a buffer of static size as a local array of the current block."""
    type = op.memref.type
    element = element_of(op, type)
    sizes, strides = sizes_and_strides(op, type, (w[n] for n in op.dynamic_sizes))
    count = number(product(sizes))
    if count is None:
        fail(op, "a buffer of a kernel must have a size known here", help="run plan-memory first")
    bytes = count * (Kind(element).bits // 8)
    if bytes > STACK:
        help = "run fewer iterations at a time, or let the host hand the kernel this buffer"
        fail(op, f"a buffer of {bytes} bytes is too large for a stack", help)
    w.stack += bytes
    name, space = w.array(op.memref, element, max(count, 1))
    w.buffers[op.memref] = Buffer(name, element, sizes, w.strides_of(op.memref, strides), space)


@emit(memref.DeallocOp)
def _deallocate(w: Writer, op: memref.DeallocOp) -> None:
    """Write nothing: the buffer is a local array."""


@emit(memref.DimOp)
def _dim(w: Writer, op: memref.DimOp) -> None:
    axis = constant(op.index)
    if axis is None:
        fail(op, "the axis of memref.dim must be a constant")
    w.bind(op.result, w.buffer(op.source).sizes[axis])


@emit(memref.RankOp)
def _rank(w: Writer, op: memref.RankOp) -> None:
    w.bind(op.rank, str(len(w.buffer(op.source).sizes)))


# views


def _view(w: Writer, op: Any, result: SSAValue, source: Buffer, address: str, like: Any) -> None:
    """Define the pointer of a view, unless it equals the source's."""
    sizes, strides = like
    assert isinstance(result.type, MemRefType)
    element = element_of(op, result.type)
    writable = source.writable
    if element == source.element and address == source.pointer:
        pointer = address
    else:
        type = w.pointer(Buffer("", element, (), (), source.space, writable))
        cast = f"({type})" if element != source.element else ""
        pointer = w.fresh(result.name_hint, type)
        start = f"{cast}({address})" if cast else address
        w.line(f"{type}const {pointer} = {start};", defines=pointer)
    w.buffers[result] = Buffer(pointer, element, sizes, strides, source.space, writable)


def _moved(pointer: str, by: str) -> str:
    return pointer if by == "0" else f"{pointer} + {by}"


def _mixed(w: Writer, static: Any, dynamic: Sequence[SSAValue]) -> list[str]:
    values: Iterator[SSAValue] = iter(dynamic)
    return [
        w[next(values)] if n == DYNAMIC_INDEX else str(n) if n >= 0 else f"({n})"
        for n in static.get_values()
    ]


@emit(memref.SubviewOp)
def _subview(w: Writer, op: memref.SubviewOp) -> None:
    """Move the pointer; drop the axes of size 1 that the result type drops."""
    source, type = w.buffer(op.source), op.result.type
    assert isinstance(type, MemRefType)
    offsets = _mixed(w, op.static_offsets, op.offsets)
    sizes = _mixed(w, op.static_sizes, op.sizes)
    steps = _mixed(w, op.static_strides, op.strides)
    check_part(w, op, source, offsets, sizes, steps)
    strides = [times(s, t) for s, t in zip(steps, source.strides, strict=True)]
    kept = kept_axes(op.static_sizes.get_values(), type.get_shape())
    if kept is None:
        fail(op, f"cannot tell which axes {type} leaves out")
    address = _moved(source.pointer, offset(zip(offsets, source.strides, strict=True)))
    shape = tuple(sizes[k] for k in kept), tuple(strides[k] for k in kept)
    _view(w, op, op.result, source, address, shape)


def kept_axes(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """Return which axes of ``sizes`` are those of ``shape``, dropping axes of size 1.

    A dynamic size matches only a dynamic axis of the type; its value does not matter.

    >>> kept_axes((1, 4, 1), (4, 1)), kept_axes((DYNAMIC_INDEX, 1), (DYNAMIC_INDEX,))
    ([1, 2], [0])
    """
    kept: list[int] = []
    spare = len(sizes) - len(shape)
    for axis, size in enumerate(sizes):
        wanted = shape[len(kept)] if len(kept) < len(shape) else None
        if size == wanted and not (
            size == 1 and spare and _fits_later(sizes[axis + 1 :], shape[len(kept) :])
        ):
            kept.append(axis)
        elif size == 1 and spare:
            spare -= 1
        else:
            return None
    return kept


def _fits_later(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the remaining axes alone can be ``shape``."""
    return len(sizes) >= len(shape) and kept_axes(sizes, shape) is not None


@emit(memref.ReinterpretCastOp)
def _reinterpret_cast(w: Writer, op: memref.ReinterpretCastOp) -> None:
    source = w.buffer(op.source)
    (start,) = _mixed(w, op.static_offsets, op.offsets)
    sizes = tuple(_mixed(w, op.static_sizes, op.sizes))
    strides = tuple(_mixed(w, op.static_strides, op.strides))
    check_reinterpreted(w, op, source, start, sizes, strides)
    _view(w, op, op.result, source, _moved(source.pointer, start), (sizes, strides))


@emit(memref.CastOp, memref.MemorySpaceCastOp)
def _cast(w: Writer, op: Any) -> None:
    """Alias the buffer; static sizes of the new type become literals."""
    source = w.buffer(op.source)
    if not isinstance(op.dest.type, MemRefType):
        fail(op, f"{op.dest.type} has no rank")
    check_cast(w, op, source, op.dest.type)
    sizes, strides = (
        tuple(old if n is None or n < 0 else str(n) for old, n in zip(have, new, strict=True))
        for have, new in (
            (source.sizes, op.dest.type.get_shape()),
            (source.strides, op.dest.type.get_strides() or ()),
        )
    )
    w.buffers[op.dest] = Buffer(
        source.pointer, source.element, sizes, strides, source.space, source.writable
    )


@emit(memref.ViewOp)
def _bytes_view(w: Writer, op: memref.ViewOp) -> None:
    """View part of a byte buffer as elements."""
    source, type = w.buffer(op.source), op.result.type
    assert isinstance(type, MemRefType)
    shape = sizes_and_strides(op, type, (w[n] for n in op.sizes))
    check_bytes(w, op, source, w[op.byte_shift], shape[0], element_of(op, type))
    _view(w, op, op.result, source, _moved(source.pointer, w[op.byte_shift]), shape)


@emit(memref.ExpandShapeOp)
def _expand_shape(w: Writer, op: memref.ExpandShapeOp) -> None:
    """Compute strides: each group of new axes is row-major within its old one."""
    source = w.buffer(op.src)
    sizes = _mixed(w, op.static_output_shape, op.output_shape)
    check_expanded(w, op, source, sizes)
    strides = [""] * len(sizes)
    for old, group in enumerate(op.reassociation.data):
        stride = source.strides[old]
        for axis in reversed([k.value.data for k in group.data]):
            strides[axis] = stride
            stride = times(sizes[axis], stride)
    for axis in {*range(len(sizes))} - {
        k.value.data for g in op.reassociation.data for k in g.data
    }:
        strides[axis] = "1"
    _reshaped(w, op, source, sizes, strides)


@emit(memref.CollapseShapeOp)
def _collapse_shape(w: Writer, op: memref.CollapseShapeOp) -> None:
    """Use the stride of the last of the collapsed axes that is longer than 1."""
    source = w.buffer(op.src)
    check_collapsed(w, op, source)
    sizes: list[str] = []
    strides: list[str] = []
    for group in op.reassociation.data:
        axes = [k.value.data for k in group.data]
        long = [k for k in axes if source.sizes[k] != "1"] or axes
        sizes.append(product(source.sizes[k] for k in axes))
        strides.append(source.strides[long[-1]])
    _reshaped(w, op, source, sizes, strides)


def _reshaped(
    w: Writer, op: Any, source: Buffer, sizes: Sequence[str], strides: Sequence[str]
) -> None:
    """Bind the result; static sizes and strides of its type replace computed ones."""
    type = op.result.type
    known = type.get_strides() or [None] * len(sizes)
    sizes = tuple(
        have if n < 0 else str(n) for have, n in zip(sizes, type.get_shape(), strict=True)
    )
    strides = tuple(have if n is None else str(n) for have, n in zip(strides, known, strict=True))
    _view(w, op, op.result, source, source.pointer, (sizes, strides))


# copies


@emit(memref.CopyOp)
def _copy(w: Writer, op: memref.CopyOp) -> None:
    """Copy the largest blocks that are contiguous in both: everything, rows or elements."""
    source, target = w.buffer(op.source), w.buffer(op.destination)
    check_same_sizes(w, op, source, target)
    if may_be_one(op):
        w.line(f"if ({target.pointer} != {source.pointer}) {{")
        w.depth += 1
    together = min(source.gapless, target.gapless)
    inside: list[str] = []
    for size in target.sizes[: len(target.sizes) - together]:
        index = w.fresh("i", w.spelling.type(Kind("index")))
        w.line(f"for ({w.declared[index]} {index} = 0; {index} < {size}; {index}++)")
        w.depth += 1
        inside.append(index)
    if together or not target.sizes:
        row = target.inside(inside)
        w.copy(source.inside(inside), row, product(row.sizes))
    else:
        w.line(f"{target.at(inside)} = {source.at(inside)};")
    w.depth -= len(inside)
    if may_be_one(op):
        w.depth -= 1
        w.line("}")


def may_be_one(op: memref.CopyOp) -> bool:
    """Whether source and destination of a copy on the host may be the same array of the caller."""
    target, source = op.destination, op.source
    while isinstance(source.owner, memref.CastOp):
        source = source.owner.source
    block = target.owner
    function = block.parent_op() if isinstance(block, Block) else None
    if not isinstance(target, BlockArgument) or not isinstance(function, func.FuncOp):
        return False
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    if target.index >= len(attributes) or INTO not in attributes[target.index].data:
        return False
    return source.owner is block or isinstance(source.owner, scf.ForOp | scf.WhileOp | scf.IfOp)


# globals


@emit(memref.GetGlobalOp)
def _get_global(w: Writer, op: memref.GetGlobalOp) -> None:
    type = op.memref.type
    assert isinstance(type, MemRefType)
    element = element_of(op, type)
    name, space, writable = w.global_array(op, op.name_.string_value())
    sizes = tuple(str(n) for n in type.get_shape())
    w.buffers[op.memref] = Buffer(name, element, sizes, row_major(sizes), space, writable)
