"""Sums of products of bytes, which floats compute exactly where there are not too many."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

EXACT = 1 << 24
"""Every integer up to this one is a number of 32-bit floats."""


def byte_products(body: Block) -> tuple[bool, bool] | None:
    """Return which factors are signed where ``body`` adds a product of two bytes to an integer."""
    last = body.last_op
    if len(body.args) != 3 or not isinstance(last, linalg.YieldOp) or len(list(body.ops)) != 5:
        return None
    x, w, total = body.args
    added = last.operands[0].owner
    if not isinstance(added, arith.AddiOp) or total not in added.operands:
        return None
    product = added.lhs if added.rhs is total else added.rhs
    if not isinstance(product.owner, arith.MuliOp):
        return None
    casts = [_cast(operand) for operand in product.owner.operands]
    signs = {cast.operands[0]: isinstance(cast, arith.ExtSIOp) for cast in casts if cast}
    return (signs[x], signs[w]) if set(signs) == {x, w} else None


def _cast(value: SSAValue) -> Operation | None:
    """Return the op that makes a byte a wider integer."""
    owner = value.owner
    if not isinstance(owner, arith.ExtSIOp | arith.ExtUIOp):
        return None
    kind = owner.input.type
    return owner if isinstance(kind, IntegerType) and kind.width.data == 8 else None


def exact_count(signs: tuple[bool, bool]) -> int:
    """Return how many such products may be added up in 32-bit floats without rounding."""
    largest = [128 if signed else 255 for signed in signs]
    return EXACT // (largest[0] * largest[1])
