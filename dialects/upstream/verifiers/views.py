"""memref: views, whose layouts follow from their sources'."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr
from xdsl.ir import SSAValue

from stepwell.dialects.upstream.verifiers.slices import check_slice, rank_reductions
from stepwell.dialects.upstream.verifiers.table import checks
from stepwell.dialects.upstream.verifiers.tensors import check_groups, check_output_shape
from stepwell.dialects.upstream.verifiers.types import (
    Layout,
    all_fit,
    bits,
    fits,
    layout,
    one_space,
    refuse,
    spelled,
    times,
)


def ranked(value: SSAValue) -> MemRefType[Any]:
    """Return the type of a buffer; refuse an unranked one."""
    if not isinstance(value.type, MemRefType):
        refuse(f"it works on buffers of known rank, not on {value.type}")
    check_layout(value.type)
    return value.type


def check_layout(type: MemRefType[Any]) -> None:
    """Refuse a layout whose rank differs from the type's."""
    strides = type.layout.strides.data if isinstance(type.layout, StridedLayoutAttr) else None
    if strides is not None and len(strides) != type.get_num_dims():
        refuse(f"a stride is needed for each axis of {type}")


def _strided(type: MemRefType[Any]) -> Layout:
    if (found := layout(type)) is None:
        refuse(f"views are taken of buffers with strides, not of {type}")
    return found


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _layout(strides: Sequence[int | None], offset: int | None) -> str:
    start = "" if offset == 0 else f", offset: {spelled([offset])}"
    return f"strided<[{', '.join(spelled([n]) for n in strides)}]{start}>"


@checks(memref.SubviewOp)
def _subview(op: memref.SubviewOp) -> None:
    source, result = ranked(op.source), ranked(op.result)
    if source.element_type != result.element_type:
        refuse(f"a view of {source} has elements of type {source.element_type}")
    one_space(source, result)
    sizes = check_slice(op, source.get_shape(), source)
    strides, offset = _strided(source)
    steps = [times(a, b) for a, b in zip(strides, op.static_strides.get_values(), strict=True)]
    for begin, stride in zip(op.static_offsets.get_values(), strides, strict=True):
        offset = _plus(offset, times(begin, stride))
    have, start = _strided(result)
    ways = [
        kept
        for kept in rank_reductions(sizes, result.get_shape())
        if all(sizes[axis] == n for axis, n in zip(kept, result.get_shape(), strict=True))
    ]
    if not ways:
        refuse(
            f"a view of {spelled(sizes)}, or without axes of size 1, is not one of "
            f"{spelled(result.get_shape())}"
        )
    if start != offset or not any(list(have) == [steps[k] for k in kept] for kept in ways):
        layouts = " or ".join(_layout([steps[k] for k in kept], offset) for kept in ways[:2])
        refuse(f"the view has the layout {layouts}, not {_layout(have, start)}")


@checks(memref.CastOp)
def _cast(op: memref.CastOp) -> None:
    source, target = op.source.type, op.dest.type
    if getattr(source, "element_type", None) != getattr(target, "element_type", None):
        refuse(f"a cast leaves the elements as they are: {source} is not {target}")
    if not (isinstance(source, MemRefType) and isinstance(target, MemRefType)):
        if not (isinstance(source, MemRefType) or isinstance(target, MemRefType)):
            refuse("one side of a cast has a known rank")
        return
    check_layout(source)
    check_layout(target)
    one_space(source, target)
    if not all_fit(source.get_shape(), target.get_shape()):
        refuse(f"{source} cannot have the sizes of {target}")
    if source.layout == target.layout:
        return
    (have, begin), (want, start) = _strided(source), _strided(target)
    if not all_fit(have, want) or not fits(begin, start):
        refuse(f"{source} cannot have the layout of {target}")


@checks(memref.ExpandShapeOp)
def _expand_shape(op: memref.ExpandShapeOp) -> None:
    source, result = ranked(op.src), ranked(op.result)
    one_space(source, result)
    check_groups(op.reassociation, result, source)
    check_output_shape(op.static_output_shape, len(op.output_shape), result.get_shape())
    if tuple(op.static_output_shape.get_values()) != result.get_shape():
        refuse(f"output_shape must be that of {result}")
    have, offset = _strided(source)
    wanted: list[int | None] = [1] * result.get_num_dims()
    for old, group in enumerate(op.reassociation.data):
        step = have[old]
        for axis in reversed([k.value.data for k in group.data]):
            wanted[axis] = step
            step = times(result.get_shape()[axis], step)
    _check_reshaped(result, wanted, offset)


def _check_reshaped(result: MemRefType[Any], wanted: Sequence[int | None], at: int | None) -> None:
    strides, offset = _strided(result)
    if list(strides) != list(wanted) or offset != at:
        refuse(f"the view has the layout {_layout(wanted, at)}, not {_layout(strides, offset)}")


@checks(memref.CollapseShapeOp)
def _collapse_shape(op: memref.CollapseShapeOp) -> None:
    source, result = ranked(op.src), ranked(op.result)
    one_space(source, result)
    check_groups(op.reassociation, source, result)
    have, offset = _strided(source)
    sizes = source.get_shape()
    wanted: list[int | None] = []
    for group in op.reassociation.data:
        axes = [k.value.data for k in group.data]
        wanted.append(_merged(source, [(sizes[k], have[k]) for k in axes]))
    _check_reshaped(result, wanted, offset)


def _merged(source: MemRefType[Any], axes: list[tuple[int, int | None]]) -> int | None:
    """Return the stride of merged axes; refuse axes that are not contiguous."""
    axes = [each for each in axes if each[0] != 1] or axes[:1]  # the first unit axis, as in MLIR
    for (_, stride), (size, inner) in pairwise(axes):
        step = times(size, inner)
        if stride is not None and step is not None and stride != step:
            refuse(f"axes of {source} with gaps between cannot be made one")
    return axes[-1][1] if axes else 1


@checks(memref.ReinterpretCastOp)
def _reinterpret_cast(op: memref.ReinterpretCastOp) -> None:
    source, result = ranked(op.source), ranked(op.result)
    if source.element_type != result.element_type:
        refuse(f"a view of {source} has elements of type {source.element_type}")
    one_space(source, result)
    offsets, sizes, strides = (
        tuple(each.get_values()) for each in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    if len(offsets) != 1 or len(strides) != len(sizes):
        refuse("it takes one offset, and as many strides as sizes")
    have, begin = _strided(result)
    unknown = DYNAMIC_INDEX
    if begin != (None if offsets[0] == unknown else offsets[0]) or list(have) != [
        None if n == unknown else n for n in strides
    ]:
        refuse(f"the result {result} must have the offset and the strides that are given")
    if unknown in (*offsets, *sizes, *strides) or unknown in source.get_shape():
        return
    reach = [(n - 1) * step for n, step in zip(sizes, strides, strict=True)]
    low = offsets[0] + sum(n for n in reach if n < 0)
    high = offsets[0] + sum(n for n in reach if n > 0)
    room = extent(source)
    if 0 not in sizes and room is not None and not (low >= 0 and high < room):
        refuse(f"elements {low} to {high} do not all lie within {source}")


def extent(type: MemRefType[Any]) -> int | None:
    """Return the number of elements from the first to the last of a buffer; None if unknown."""
    found = layout(type)
    sizes = type.get_shape()
    if found is None or DYNAMIC_INDEX in sizes or None in found[0]:
        return None
    if 0 in sizes:
        return 0
    return 1 + sum((n - 1) * abs(step or 0) for n, step in zip(sizes, found[0], strict=True))


@checks(memref.ViewOp)
def _view(op: memref.ViewOp) -> None:
    source, result = ranked(op.source), ranked(op.result)
    room, sizes = source.get_shape()[0], result.get_shape()
    if DYNAMIC_INDEX in (room, *sizes):
        return
    bytes = prod(sizes) * max(bits(result.element_type), 8) // 8
    if bytes > room:
        refuse(f"{result} has {bytes} bytes, which {source} has not")


@checks(memref.ExtractStridedMetaDataOp)
def _metadata(op: memref.ExtractStridedMetaDataOp) -> None:
    source = ranked(op.source)
    axes = source.get_num_dims()
    base = op.results[0].type
    wanted = MemRefType(source.element_type, [], memory_space=source.memory_space)
    if len(op.results) != 2 + 2 * axes or base != wanted:
        refuse(f"{source} gives {wanted}, an offset, {axes} sizes and {axes} strides")
