"""Pass values from one part of a kernel to another through memory.

Before:  a number computed by serial code of a kernel, used in another of its parts
After:   the number is stored in a buffer of one element and loaded from it wherever it is used
Afterwards: parts share only buffers, and values that each can recompute
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue


def pass_through_memory(block: Block, groups: Sequence[Sequence[Operation]]) -> set[Operation]:
    """Rewrite the body of a kernel; return the loads that its parts may repeat.

    groups : the ops of each part, in order
    """
    loads: set[Operation] = set()
    for group in groups:
        for op in group:
            for value in op.results:
                if not isinstance(value.type, MemRefType) and _leaves(value, block, group):
                    loads.add(_store_and_load(value, op, block))
    return loads


def _leaves(value: SSAValue, block: Block, group: Sequence[Operation]) -> bool:
    """Whether an op outside the part uses a value."""
    return any(block.find_ancestor_op_in_block(use.operation) not in group for use in value.uses)


def _store_and_load(value: SSAValue, op: Operation, block: Block) -> Operation:
    buffer = memref.AllocOp([], [], MemRefType(value.type, []))
    buffer.memref.name_hint = value.name_hint
    store = memref.StoreOp.get(value, buffer.memref, [])
    load = memref.LoadOp.get(buffer.memref, [])
    load.res.name_hint = value.name_hint
    for each in (buffer, store, load):
        each.location = op.location
    first = block.first_op
    assert first is not None
    block.insert_op_before(buffer, first)
    block.insert_ops_after([store, load], op)
    value.replace_uses_with_if(load.res, lambda use: use.operation is not store)
    return load
