"""Recognize an image within its padding: insertions of fills and of the image into one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from stepwell.analysis.structured import identity, indices, is_not_fused, shape


class Padded(NamedTuple):
    """The image within a padded tensor, its offsets, and a fill of the padding."""

    image: SSAValue
    offsets: list[int]
    fill: linalg.FillOp
    inner: SSAValue
    """The value that is inserted: the image, or a copy of it."""


def padded(value: SSAValue) -> Padded | None:
    """Return the parts of a padded tensor: one value everywhere, then an image, at known offsets.

    No insertion on the way has another user, so that the padded tensor can be built elsewhere.
    """
    chain: list[tensor.InsertSliceOp] = []
    at = value
    while isinstance(op := at.owner, tensor.InsertSliceOp) and at.has_one_use():
        if op.offsets or op.strides or set(_static_values(op, "strides")) != {1}:
            return None
        chain.insert(0, op)
        at = op.dest
    if not chain or len(shape(chain[-1].source)) != len(shape(value)):
        return None
    *sides, last = chain
    fills = [side.source.owner for side in sides]
    if isinstance(base := at.owner, linalg.FillOp):
        fills.append(base)
    elif not isinstance(base, tensor.EmptyOp) or not _cover(chain, shape(value)):
        return None
    found = [f for f in fills if isinstance(f, linalg.FillOp)]
    if not found or len(found) < len(fills) or not _all_equal([f.inputs[0] for f in found]):
        return None
    offsets = _static_values(last, "offsets")
    return Padded(_copy_source(last.source), offsets, found[0], last.source)


def _static_values(op: tensor.InsertSliceOp, name: str) -> list[int]:
    static = op.properties[f"static_{name}"]
    assert isinstance(static, DenseArrayBase)
    return [int(n) for n in static.get_values()]


def _cover(chain: Sequence[tensor.InsertSliceOp], whole: Sequence[int]) -> bool:
    """Whether the inserted tensors cover the whole without overlap."""
    boxes = [
        list(zip(_static_values(op, "offsets"), shape(op.source), strict=True)) for op in chain
    ]
    if any(size == DYNAMIC_INDEX for box in boxes for _, size in box) or DYNAMIC_INDEX in whole:
        return False
    apart = all(
        any(a + m <= b or b + n <= a for (a, m), (b, n) in zip(one, other, strict=True))
        for one, other in combinations(boxes, 2)
    )
    return apart and sum(prod(n for _, n in box) for box in boxes) == prod(whole)


def _all_equal(values: Sequence[SSAValue]) -> bool:
    """Whether all scalars are equal."""
    made_by = [v.owner for v in values]
    constants = [op.value for op in made_by if isinstance(op, arith.ConstantOp)]
    same = len(constants) == len(values) and len(set(constants)) == 1
    return same or len(set(values)) == 1


def _copy_source(value: SSAValue) -> SSAValue:
    """Return the source of ``value`` where it is a copy made for an insertion, else itself."""
    op = value.owner
    if isinstance(op, linalg.GenericOp) and is_not_fused(op) and value.has_one_use():
        plain_copy = all(index == identity(len(op.iterator_types)) for index in indices(op))
        if plain_copy and len(op.inputs) == 1 and len(op.outputs) == 1:
            return op.inputs[0]
    return value
