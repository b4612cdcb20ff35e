"""Sums of products of narrow elements."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, bf16, f16, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation

_HALVES: dict[Attribute, str] = {f16: "f16", bf16: "bf16"}


def dot_elements(body: Block) -> tuple[str, str] | None:
    """Return the element types if ``body`` adds a product of narrow elements to a wide sum.

    They have the names of `stepwell.core.dot_instructions`: two of bytes, accumulated in integers,
    or the same 16-bit float twice, accumulated in f32.
    """
    if (signs := byte_products(body)) is not None:
        x, w = ("i8" if signed else "ui8" for signed in signs)
        return x, w
    kinds = [_HALVES.get(arg.type) for arg in body.args[:2]]
    if len(body.args) != 3 or body.args[2].type != f32 or kinds[0] is None or kinds[0] != kinds[1]:
        return None
    found = _product(body, arith.AddfOp, arith.MulfOp)
    if found is None or not all(isinstance(cast, arith.ExtFOp) for cast in found):
        return None
    return (kinds[0], kinds[0]) if {c.operands[0] for c in found} == {*body.args[:2]} else None


def byte_products(body: Block) -> tuple[bool, bool] | None:
    """Return which factors are signed if ``body`` adds a product of two bytes to an integer."""
    found = _product(body, arith.AddiOp, arith.MuliOp)
    if found is None or not all(map(_widens_byte, found)):
        return None
    x, w, _ = body.args
    signs = {cast.operands[0]: isinstance(cast, arith.ExtSIOp) for cast in found}
    return (signs[x], signs[w]) if set(signs) == {x, w} else None


def _product(
    body: Block, add: type[Operation], multiply: type[Operation]
) -> list[Operation] | None:
    """Return the ops of the factors if ``body`` adds the product of two to its last argument."""
    last = body.last_op
    if len(body.args) != 3 or not isinstance(last, linalg.YieldOp) or len(list(body.ops)) != 5:
        return None
    added = last.operands[0].owner
    if not isinstance(added, add) or body.args[2] not in added.operands:
        return None
    product = next((v for v in added.operands if v is not body.args[2]), added.operands[0]).owner
    if not isinstance(product, multiply):
        return None
    owners = [factor.owner for factor in product.operands]
    found = [owner for owner in owners if isinstance(owner, Operation)]
    return found if len(found) == len(owners) else None


def _widens_byte(cast: Operation) -> bool:
    if not isinstance(cast, arith.ExtSIOp | arith.ExtUIOp):
        return False
    kind = cast.input.type
    return isinstance(kind, IntegerType) and kind.width.data == 8
