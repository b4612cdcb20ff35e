"""Masks that enable neighbouring lanes: loads and stores of these take numbers in their place.

A mask of first lanes is their number; one of a range of lanes is an integer with a bit for each.
"""

from __future__ import annotations

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import SSAValue

from stepwell.lowering.emit.kinds import LANES


def first_of(mask: SSAValue) -> SSAValue | None:
    """Return how many lanes a mask enables, where these are the first ones."""
    return mask.owner.mask_dim_sizes[0] if isinstance(mask.owner, vector.CreateMaskOp) else None


def between_of(mask: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """Return two numbers of first lanes of a mask that enables those which one of them counts."""
    if not isinstance(mask.owner, arith.XOrIOp):
        return None
    n, m = map(first_of, mask.owner.operands)
    return (n, m) if n is not None and m is not None else None


def is_range(mask: SSAValue) -> bool:
    """Whether only loads and stores use a mask, and it enables a range of lanes.

    On a condition it may enable none.
    """
    owner = mask.owner
    whole = not isinstance(owner, arith.SelectOp) or is_range(owner.lhs)
    return whole and _enables_range(mask) and _is_only_accessed(mask)


def is_unneeded(mask: SSAValue) -> bool:
    """Whether only loads, stores and ranges use a mask of first lanes: they take its number."""
    masked = vector.MaskedLoadOp | vector.MaskedStoreOp
    users = [use.operation for use in mask.uses]
    return first_of(mask) is not None and all(
        isinstance(u, masked) or (isinstance(u, arith.XOrIOp) and is_range(u.result)) for u in users
    )


def _enables_range(mask: SSAValue) -> bool:
    owner = mask.owner
    if not isinstance(owner, arith.SelectOp):
        kind = mask.type
        lanes = kind.get_shape()[0] if isinstance(kind, VectorType) else 0
        return 0 < lanes <= LANES.bits and between_of(mask) is not None
    return (
        not isinstance(owner.cond.type, VectorType)
        and _is_none(owner.rhs)
        and _enables_range(owner.lhs)
    )


def _is_none(mask: SSAValue) -> bool:
    value = mask.owner.value if isinstance(mask.owner, arith.ConstantOp) else None
    return isinstance(value, DenseIntOrFPElementsAttr) and not any(value.get_values())


def _is_only_accessed(mask: SSAValue) -> bool:
    users = [use.operation for use in mask.uses]
    return all(
        isinstance(u, vector.MaskedLoadOp | vector.MaskedStoreOp)
        or (
            isinstance(u, arith.SelectOp)
            and _enables_range(u.result)
            and _is_only_accessed(u.result)
        )
        for u in users
    )
