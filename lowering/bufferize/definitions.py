"""The op that defines a tensor of a host function, and the blocks around it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue


def definition(value: SSAValue) -> Operation:
    """Return the op that defines ``value``, or the parent op of the block it is an argument of."""
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    assert owner is not None
    return owner


def blocks_around(block: Block | None) -> list[Block]:
    """Return ``block`` and the blocks around it, inside the function, innermost first."""
    found: list[Block] = []
    while block is not None and not isinstance(block.parent_op(), ModuleOp):
        found.append(block)
        block = block.parent_block()
    return found
