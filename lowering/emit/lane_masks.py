"""Masks that enable neighbouring lanes: loads and stores of these take numbers in their place."""

from __future__ import annotations

from xdsl.dialects import arith, vector
from xdsl.ir import SSAValue


def first_of(mask: SSAValue) -> SSAValue | None:
    """Return how many lanes a mask enables, where these are the first ones."""
    return mask.owner.mask_dim_sizes[0] if isinstance(mask.owner, vector.CreateMaskOp) else None


def between_of(mask: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """Return two numbers of first lanes of a mask that enables those which one of them counts."""
    if not isinstance(mask.owner, arith.XOrIOp):
        return None
    n, m = map(first_of, mask.owner.operands)
    return (n, m) if n is not None and m is not None else None


def is_unneeded(mask: SSAValue) -> bool:
    """Whether only loads and stores use a mask, which take numbers of lanes instead."""
    if between_of(mask) is not None:
        return all(isinstance(use.operation, vector.MaskedLoadOp) for use in mask.uses)
    users = [use.operation for use in mask.uses]
    masked = vector.MaskedLoadOp | vector.MaskedStoreOp
    return first_of(mask) is not None and all(
        isinstance(u, masked) or (isinstance(u, arith.XOrIOp) and _is_unneeded_range(u))
        for u in users
    )


def _is_unneeded_range(op: arith.XOrIOp) -> bool:
    return between_of(op.result) is not None and is_unneeded(op.result)
