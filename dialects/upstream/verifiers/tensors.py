"""tensor: elements, slices and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.ir import Attribute

from stepwell.dialects.upstream.verifiers.slices import check_slice, rank_reduced
from stepwell.dialects.upstream.verifiers.table import checks
from stepwell.dialects.upstream.verifiers.types import (
    all_fit,
    check_axis,
    check_indices,
    element,
    fits,
    refuse,
    spelled,
)


@checks(tensor.CastOp)
def _cast(op: tensor.CastOp) -> None:
    source, target = op.source.type, op.dest.type
    if getattr(source, "element_type", None) != getattr(target, "element_type", None):
        refuse(f"a cast leaves the elements as they are: {source} is not {target}")


@checks(tensor.DimOp)
def _dim(op: tensor.DimOp) -> None:
    check_axis(op.source.type, op.index)


@checks(tensor.EmptyOp)
def _empty(op: tensor.EmptyOp) -> None:
    check_sizes(op.tensor.type, len(op.dynamic_sizes))


def check_sizes(type: Attribute, given: int) -> None:
    """Refuse a number of sizes that differs from the number of `?` in the type."""
    assert isinstance(type, TensorType)
    if (wanted := type.get_shape().count(DYNAMIC_INDEX)) != given:
        refuse(f"{type} takes {wanted} sizes, one for each `?`, not {given}")


@checks(tensor.SplatOp)
def _splat(op: tensor.SplatOp) -> None:
    check_sizes(op.result.type, len(op.operands) - 1)
    if op.input.type != op.result.type.element_type:
        refuse(f"it fills {op.result.type} with one of its elements, not with {op.input.type}")


@checks(tensor.FromElementsOp)
def _from_elements(op: tensor.FromElementsOp) -> None:
    sizes = op.result.type.get_shape()
    if DYNAMIC_INDEX in sizes:
        refuse(f"it makes a tensor of known sizes, not {op.result.type}")
    if prod(sizes) != len(op.elements):
        refuse(f"{op.result.type} has {prod(sizes)} elements, {len(op.elements)} are given")


@checks(tensor.ExtractOp)
def _extract(op: tensor.ExtractOp) -> None:
    check_indices(op.tensor.type, op.indices, "a tensor")


@checks(tensor.InsertOp)
def _insert(op: tensor.InsertOp) -> None:
    check_indices(op.dest.type, op.indices, "a tensor")


@checks(tensor.ExtractSliceOp)
def _extract_slice(op: tensor.ExtractSliceOp) -> None:
    source, result = op.source.type, op.result.type
    assert isinstance(source, TensorType) and isinstance(result, TensorType)
    sizes = check_slice(op, source.get_shape(), source)
    check_part(result, source, sizes, "a slice of")


@checks(tensor.InsertSliceOp)
def _insert_slice(op: tensor.InsertSliceOp) -> None:
    source, target = op.source.type, op.dest.type
    assert isinstance(source, TensorType) and isinstance(target, TensorType)
    sizes = check_slice(op, target.get_shape(), target)
    check_part(source, target, sizes, "what is put into")


def check_part(
    part: TensorType[Any], whole: TensorType[Any], sizes: Sequence[int], what: str
) -> None:
    """Refuse a part whose sizes or elements differ from those of the slice."""
    if part.element_type != whole.element_type:
        refuse(f"{what} {whole} has elements of type {whole.element_type}, not {part.element_type}")
    if rank_reduced(sizes, part.get_shape()) is None:
        refuse(f"{what} {whole} is {spelled(sizes)}, or without axes of size 1, not {part}")


@checks(tensor.CollapseShapeOp)
def _collapse_shape(op: tensor.CollapseShapeOp) -> None:
    source, result = op.src.type, op.result.type
    assert isinstance(source, TensorType)
    check_groups(op.reassociation, source, result)


@checks(tensor.ExpandShapeOp)
def _expand_shape(op: tensor.ExpandShapeOp) -> None:
    source, result = op.src.type, op.result.type
    assert isinstance(source, TensorType)
    check_groups(op.reassociation, result, source)
    check_output_shape(op.static_output_shape, len(op.dynamic_output_shape), result.get_shape())


def check_output_shape(static: Any, dynamic: int, shape: Sequence[int]) -> None:
    """Refuse sizes of an expand_shape that differ from its result's."""
    sizes = tuple(static.get_values())
    if sizes.count(DYNAMIC_INDEX) != dynamic:
        refuse(f"output_shape has {sizes.count(DYNAMIC_INDEX)} `?` and {dynamic} values for them")
    if not all_fit(sizes, shape):
        refuse(f"output_shape says {spelled(sizes)}, the result is {spelled(shape)}")


def check_groups(reassociation: Any, long: Any, short: Any) -> None:
    """Refuse groups of axes of ``long`` that do not give the axes of ``short`` in order."""
    if long.element_type != short.element_type:
        refuse(f"{long} and {short} have different elements")
    groups = [[axis.value.data for axis in group.data] for group in reassociation.data]
    many, few = long.get_shape(), short.get_shape()
    if len(groups) != len(few):
        refuse(f"there are {len(groups)} groups of axes for {short}, which has {len(few)} axes")
    if [axis for group in groups for axis in group] != list(range(len(many))) and few:
        refuse(f"the groups must name every axis of {long} once and in order")
    if not few and any(n != 1 for n in many):
        refuse(f"only axes of size 1 can be left off, {long} has others")
    for group, size in zip(groups, few, strict=True):
        sizes = [many[axis] for axis in group]
        wanted = DYNAMIC_INDEX if DYNAMIC_INDEX in sizes else prod(sizes)
        if size != wanted:
            refuse(f"axes of {spelled(sizes)} elements are one of {spelled([wanted])}, not {short}")


@checks(tensor.ReshapeOp)
def _reshape(op: tensor.ReshapeOp) -> None:
    if element(op.source.type) != op.result.type.element_type:
        refuse(f"{op.source.type} and {op.result.type} have different elements")


@checks(tensor.ConcatOp)
def _concat(op: tensor.ConcatOp) -> None:
    if op.dim.value.data < 0:
        refuse(f"{op.result.type} has no axis {op.dim.value.data}")


@checks(tensor.PadOp)
def _pad(op: tensor.PadOp) -> None:
    source, result = op.source.type, op.result.type
    assert isinstance(source, TensorType)
    axes = source.get_num_dims()
    low, high = (tuple(each.get_values()) for each in (op.static_low, op.static_high))
    for name, static, dynamic in (("low", low, op.low), ("high", high, op.high)):
        if len(static) != axes or static.count(DYNAMIC_INDEX) != len(dynamic):
            refuse(f"{name} must have a width for each of {axes} axes")
    for size, before, after, n in zip(
        source.get_shape(), low, high, _sizes(result, axes), strict=True
    ):
        known = DYNAMIC_INDEX not in (size, before, after)
        if known and not fits(size + before + after, n):
            refuse(f"{source} padded by these widths is not {result}")
    if result.element_type != source.element_type:
        refuse(f"{source} padded is not {result}: the elements differ")
    block = op.region.block
    if [a.type for a in block.args] != [IndexType()] * axes:
        refuse(f"the region takes {axes} indices, one for each axis")
    last = block.last_op
    given = last.operand_types if isinstance(last, tensor.YieldOp) else ()
    if tuple(given) != (source.element_type,):
        refuse(f"the region must yield one {source.element_type}")


def _sizes(type: TensorType[Any], axes: int) -> tuple[int, ...]:
    if type.get_num_dims() != axes:
        refuse(f"a padded tensor has as many axes as before, not those of {type}")
    return type.get_shape()
