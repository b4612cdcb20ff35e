"""Batching of regions' blocks: their arguments, their ops, their yielded values."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.dialects.nd.batching.walk import Batch
from stepwell.dialects.nd.control import ConditionOp


def yields(block: Block) -> Sequence[SSAValue]:
    """Return the values that ``block`` yields."""
    last = block.last_op
    return list(last.operands) if last is not None else []


def led(b: Batch, values: Sequence[SSAValue], flags: Sequence[bool]) -> list[SSAValue]:
    """Return ``values``, the flagged ones with a leading batch axis."""
    return [b.lead(v) if flag else v for v, flag in zip(values, flags, strict=True)]


def inside_of(b: Batch, block: Block) -> Batch:
    """Batch the ops of ``block``; return a batch that inserts before its terminator."""
    each = b.within(block)
    last = block.last_op
    assert last is not None
    each.through(block.first_op, last)
    each.builder.insertion_point = InsertPoint.before(last)
    if isinstance(last, ConditionOp):
        last.operands[0] = b.read(last.condition)
    return each


def end(b: Batch, block: Block, last: Operation) -> None:
    """Replace the terminator of ``block``."""
    old = block.last_op
    assert old is not None
    last.location = old.location
    old.detach()
    b.dead.append(old)
    Builder(InsertPoint.at_end(block)).insert(last)


def rebind(b: Batch, block: Block, flags: Sequence[bool]) -> None:
    """Replace the flagged arguments of ``block`` by batched ones."""
    for old, flag in zip(list(block.args), flags, strict=True):
        if flag:
            new = block.insert_arg(b.type(old), old.index)
            new.name_hint = old.name_hint
            b.found[old] = new
            b.dead.append(old)
