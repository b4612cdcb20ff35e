"""Accesses of a block whose addresses differ by a constant: they are written from one pointer.

Before:  loads of `x[i * 64 + j]`, `x[i * 64 + j + 16]` and so on
After:   `const float *const x_at = &x[i * 64 + j];` and loads of `x_at[0]`, `x_at[16]` and so on

A C compiler would find the common address in each of its passes, one operation after the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, memref, scf, vector
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel

Family = tuple[SSAValue | None, ...]
"""A buffer and its indices without constants, equal for accesses whose addresses differ by one."""

_BUFFERS: dict[type[Operation], str] = {
    **dict.fromkeys((memref.LoadOp, memref.StoreOp), "memref"),
    **dict.fromkeys((vector.LoadOp, vector.StoreOp), "base"),
    **dict.fromkeys((vector.MaskedLoadOp, vector.MaskedStoreOp), "base"),
    kernel.PrefetchOp: "buffer",
}
"""The ops that access an element of a buffer, and the names of their operand."""


def families(block: Block) -> set[Family]:
    """Return the families of which a block has at least two accesses.

    There is none in a loop that the C compiler unrolls: its index is a number in each copy, so the
    addresses of all copies differ by constants, and a pointer in each would take a register.
    """
    seen: set[Family] = set()
    found: set[Family] = set()
    if _is_unrolled(block):
        return found
    for op in block.ops:
        if (name := _BUFFERS.get(type(op))) is not None:
            each = family(getattr(op, name), op.indices)  # pyright: ignore
            (found if each in seen else seen).add(each)
    return found


def family(buffer: SSAValue, indices: Iterable[SSAValue]) -> Family:
    """Return the family of an access."""
    return (buffer, *map(_without_constants, indices))


def _is_unrolled(block: Block) -> bool:
    loop = block.parent_op()
    while isinstance(loop, scf.ForOp | scf.IfOp):
        if "kernel.unroll" in loop.attributes:
            return True
        loop = loop.parent_op()
    return False


def _without_constants(index: SSAValue) -> SSAValue | None:
    op = index.owner
    while type(op) is arith.AddiOp and isinstance(op.rhs.owner, arith.ConstantOp):
        index = op.lhs
        op = index.owner
    return None if isinstance(op, arith.ConstantOp) else index
