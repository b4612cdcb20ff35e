"""Rewrite nd.vjp to ordinary ops: those of its region, then those of its backward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, SSAValue

from stepwell.core.diagnostics import is_heard
from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.gradients.keeping import tell_kept
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.transformations import TransformationOp, VjpOp


def unpack(builder: Builder, body: Block) -> Operation | None:
    """Move the ops of ``body`` except the last to ``builder``; return the first."""
    last = body.last_op
    moved = [op for op in body.ops if op is not last]
    for op in moved:
        op.detach()
        builder.insert(op)
    return moved[0] if moved else None


def bind(op: TransformationOp) -> None:
    """Replace the arguments of the region by their operands."""
    for argument, value in zip(op.body.block.args, op.inputs, strict=True):
        if value.name_hint is None:
            value.name_hint = argument.name_hint
        argument.replace_all_uses_with(value)


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    """Yield the ops between two."""
    op = first.next_op
    while op is not None and op is not last:
        yield op
        op = op.next_op


def expanded(builder: Builder, op: VjpOp) -> Sequence[SSAValue]:
    """Inline the region, then write its backward pass.

    Until that is done the arguments are not replaced by their operands: one value may be two
    arguments, or be captured as well and count there as a constant.
    """
    reverse = Reverse(builder, active=set(op.sources))
    borders = [builder.insert(YieldOp([]))]
    first = unpack(builder, op.body.block)
    borders.append(builder.insert(YieldOp([])))
    ops = reverse.follow(first, borders[1]) if first is not None else []
    for target, cotangent in zip(op.targets, op.cotangents, strict=True):
        reverse.accumulate(target, cotangent)
    reverse.run(ops)
    cotangents = [reverse.result(source) for source in op.sources]
    results = [*op.yields, *cotangents]
    if is_heard():
        forward = list(_between(*borders))
        tell_kept(op, forward, list(_between(borders[1], op)), set(results))
    for border in borders:
        border.detach()
        border.erase()
    arguments = dict(zip(op.body.block.args, op.inputs, strict=True))
    bind(op)
    return [arguments.get(value, value) for value in results]  # pyright: ignore
