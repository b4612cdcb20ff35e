"""Updates that cover a whole tensor: its previous contents are dead, and are not computed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.indexing import DynamicUpdateSliceOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.sizes import Sizes
from stepwell.lowering.nd_to_linalg.starts import never_meet, written
from stepwell.lowering.nd_to_linalg.table import Lowering

Part = tuple[range, ...]
"""The range of indices along each axis."""


def leave_out_covered(lowering: Lowering, op: DynamicUpdateSliceOp, x: SSAValue) -> SSAValue:
    """Return ``x``, which ``op`` updates, or an empty tensor if it is overwritten completely.

    Where ``op`` is the last of several updates that together cover a splat, the first of them
    updates an empty tensor instead.
    """
    part = _part(op)
    if part is None:
        return x
    before = lowering.updates.get(op.x.owner) if op.x.has_one_use() else None
    first, elements = before or (op, 0)
    elements += prod(map(len, part))
    lowering.updates[op] = first, elements
    if not isinstance(first.x.owner, FullOp) or elements != prod(shape_of(op.x)):
        return x
    parts = _parts(first, op)
    if not all(any(map(never_meet, a, b)) for a, b in combinations(parts, 2)):
        return x
    type = tensor_type(x)
    empty = Sizes(lowering).empty(list(shape_of(op.x)), type.element_type)
    if first is op:
        return empty
    insert = x.owner
    for _ in parts[2:]:
        assert isinstance(insert, tensor.InsertSliceOp)
        insert = insert.dest.owner
    assert isinstance(insert, tensor.InsertSliceOp)
    made_by = empty.owner
    assert isinstance(made_by, tensor.EmptyOp)
    made_by.detach()
    assert insert.parent is not None
    insert.parent.insert_op_before(made_by, insert)
    insert.operands[1] = empty
    return x


def _part(op: DynamicUpdateSliceOp) -> Part | None:
    """Return the indices that ``op`` writes, None where they are dynamic."""
    if DYNAMIC in shape_of(op.x) or DYNAMIC in shape_of(op.update):
        return None
    places = [each for each in written(op) if each is not None]
    return tuple(places) if len(places) == len(shape_of(op.x)) else None


def _parts(first: DynamicUpdateSliceOp, last: DynamicUpdateSliceOp) -> Sequence[Part]:
    """Return the indices that each of several successive updates writes."""
    parts, at = list[Part](), last
    while (part := _part(at)) is not None:
        parts.append(part)
        if at is first or not isinstance(at.x.owner, DynamicUpdateSliceOp):
            break
        at = at.x.owner
    return parts
