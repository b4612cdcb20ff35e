"""vector: lanes, and their loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, VectorType
from xdsl.ir import Attribute

from stepwell.dialects.upstream.verifiers.table import checks
from stepwell.dialects.upstream.verifiers.types import element, layout, refuse, shape
from stepwell.dialects.upstream.verifiers.views import check_layout

_POISON = -1


def _check_memory(type: Any, lanes: Any) -> None:
    """Refuse a buffer whose last axis is not contiguous, and vectors of higher rank."""
    check_layout(type)
    found = layout(type)
    if len(shape(lanes)) > type.get_num_dims():
        refuse(f"{lanes} has more axes than {type}")
    if found is None or (found[0] and found[0][-1] != 1):
        refuse(f"vectors are of elements that lie side by side, those of {type} may not")


@checks(vector.LoadOp)
def _load(op: vector.LoadOp) -> None:
    _check_memory(op.base.type, op.result.type)


@checks(vector.StoreOp)
def _store(op: vector.StoreOp) -> None:
    _check_memory(op.base.type, op.vector.type)


@checks(vector.MaskedLoadOp)
def _masked_load(op: vector.MaskedLoadOp) -> None:
    _check_masked(op.base.type, op.mask.type, op.result.type)
    if op.pass_thru.type != op.result.type:
        refuse(f"lanes that are not read are of {op.result.type}, not {op.pass_thru.type}")


@checks(vector.MaskedStoreOp)
def _masked_store(op: vector.MaskedStoreOp) -> None:
    _check_masked(op.base.type, op.mask.type, op.value_to_store.type)


def _check_masked(memory: Attribute, mask: Attribute, lanes: Attribute) -> None:
    assert isinstance(memory, MemRefType)
    check_layout(memory)
    if shape(mask) != shape(lanes):
        refuse(f"{lanes} needs a mask of as many lanes, not {mask}")


@checks(vector.BroadcastOp)
def _broadcast(op: vector.BroadcastOp) -> None:
    source, result = op.source.type, op.vector.type
    have, want = shape(source), shape(result)
    if not isinstance(source, VectorType):
        return
    if len(have) > len(want):
        refuse(f"{source} has more axes than {result}")
    for n, wanted in zip(reversed(have), reversed(want), strict=False):
        if n not in (1, wanted):
            refuse(f"{source} cannot be repeated to {result}")


def _inner(type: Any, position: Sequence[int]) -> Attribute:
    """Return the type of the element or subvector at a position; refuse an invalid position."""
    sizes = shape(type)
    if len(position) > len(sizes):
        refuse(f"{type} has {len(sizes)} axes, the position {len(position)}")
    for axis, (at, size) in enumerate(zip(position, sizes, strict=False)):
        if at not in (DYNAMIC_INDEX, _POISON) and not 0 <= at < size:
            refuse(f"{at} does not lie within axis {axis} of {type}")
    rest = sizes[len(position) :]
    return VectorType(type.element_type, rest) if rest else type.element_type


@checks(vector.ExtractOp)
def _extract(op: vector.ExtractOp) -> None:
    wanted = _inner(op.vector.type, op.static_position.get_values())
    _check_inner(op.result.type, wanted, op.vector.type)


@checks(vector.InsertOp)
def _insert(op: vector.InsertOp) -> None:
    wanted = _inner(op.dest.type, op.static_position.get_values())
    _check_inner(op.source.type, wanted, op.dest.type)
    if op.result.type != op.dest.type:
        refuse(f"{op.dest.type} with something inserted is not {op.result.type}")


def _check_inner(type: Attribute, wanted: Attribute, whole: Attribute) -> None:
    single = isinstance(type, VectorType) and not shape(type) and element(type) == wanted
    if type != wanted and not single:
        refuse(f"at such a position of {whole} lies {wanted}, not {type}")


@checks(vector.ReductionOp)
def _reduction(op: vector.ReductionOp) -> None:
    lanes = op.vector.type
    if len(shape(lanes)) > 1:
        refuse(f"a vector of one axis is reduced, not {lanes}")
    if op.dest.type != element(lanes):
        refuse(f"{lanes} is reduced to {element(lanes)}, not {op.dest.type}")


@checks(vector.ShuffleOp)
def _shuffle(op: vector.ShuffleOp) -> None:
    first, result = shape(op.v1.type), shape(op.result.type)
    if (len(first) or 1) != len(result) or first[1:] != result[1:]:
        refuse(f"{op.v1.type} shuffled is not {op.result.type}")


@checks(vector.CreateMaskOp)
def _create_mask(op: vector.CreateMaskOp) -> None:
    axes = len(shape(op.mask_vector.type))
    if len(op.operands) != max(axes, 1):
        refuse(f"{op.mask_vector.type} takes {max(axes, 1)} sizes, not {len(op.operands)}")


@checks(vector.BitcastOp)
def _bitcast(op: vector.BitcastOp) -> None:
    source, result = op.source.type, op.result.type
    have, want = shape(source), shape(result)
    if have[:-1] != want[:-1] or len(have) != len(want):
        refuse(f"{source} and {result} differ in more than their last axis")


@checks(vector.TransferWriteOp)
def _transfer_write(op: vector.TransferWriteOp) -> None:
    target = op.source.type
    wanted = [target] if isinstance(target, TensorType) else []
    if [value.type for value in op.results] != wanted:
        refuse("its result must have the type of the tensor that it writes")
