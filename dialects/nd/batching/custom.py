"""Batches of ops that say how they are differentiated: each of their regions is batched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.builder import Builder
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.dialects.nd.batching.walk import Batch, elementwise
from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.custom import (
    CheckpointOp,
    CustomJvpOp,
    CustomVjpOp,
    StopGradientOp,
    floats,
)
from stepwell.dialects.readings import batching

batching(StopGradientOp)(elementwise)

End = Callable[[Batch, int, SSAValue], SSAValue]
"""Makes what a region hands on of the number of a value and the value, for the batch."""


def _region(b: Batch, region: Region, given: Sequence[bool], end: End) -> tuple[Region, list[bool]]:
    """Return a region for the batch, and which of what it yields has an axis for it.

    given : which of its arguments have one
    """
    old = region.block
    block = Block(
        arg_types=[b.type(a) if g else a.type for a, g in zip(old.args, given, strict=True)]
    )
    for argument, before in zip(block.args, old.args, strict=True):
        argument.name_hint = before.name_hint
    inner = replace(b, builder=Builder(InsertPoint.at_end(block)), made=set(b.made), sizes_made={})
    yields = inner.inlined(old, list(block.args), given)
    values = [end(inner, k, v) for k, v in enumerate(yields)]
    block.add_op(YieldOp(values))
    return Region(block), [v.type == b.type(y) for v, y in zip(values, yields, strict=True)]


def _all(b: Batch, _: int, value: SSAValue) -> SSAValue:
    return b.lead(value)


@batching(CheckpointOp)
def _checkpoint(b: Batch, op: CheckpointOp) -> Sequence[SSAValue]:
    given = [b.has(v) for v in op.inputs]
    inputs = [b.read(v) for v in op.inputs]
    body, _ = _region(b, op.body, given, _all)
    new = CheckpointOp(inputs, [b.type(y) for y in op.outputs], [body], dict(op.properties))
    return b.builder.insert(new).results


@batching(CustomJvpOp)
def _custom_jvp(b: Batch, op: CustomJvpOp) -> Sequence[SSAValue]:
    given = [b.has(v) for v in op.inputs]
    inputs = [b.read(v) for v in op.inputs]
    of_tangents = [b.has(v) for v in floats(op.inputs)]
    body, _ = _region(b, op.body, given, _all)
    rule, _ = _region(b, op.rule, [*given, *of_tangents], _all)
    new = CustomJvpOp(inputs, [b.type(y) for y in op.outputs], [body, rule])
    return b.builder.insert(new).results


@batching(CustomVjpOp)
def _custom_vjp(b: Batch, op: CustomVjpOp) -> Sequence[SSAValue]:
    """The cotangent of an input that is one for the batch is the sum of those of all examples."""
    given = [b.has(v) for v in op.inputs]
    inputs = [b.read(v) for v in op.inputs]
    alone = [k for k, v in enumerate(floats(op.inputs)) if not b.has(v)]
    count = len(op.outputs)

    def results_first(inner: Batch, number: int, value: SSAValue) -> SSAValue:
        return inner.lead(value) if number < count else inner.read(value)

    def summed(inner: Batch, number: int, value: SSAValue) -> SSAValue:
        led = inner.lead(value)
        return inner.sum_over(led, [0]) if number in alone else led

    body, _ = _region(b, op.body, given, _all)
    forward, yielded = _region(b, op.forward, given, results_first)
    cotangents = [True] * len(floats(op.outputs))
    backward, _ = _region(b, op.backward, [*yielded[count:], *cotangents], summed)
    types = [b.type(y) for y in op.outputs]
    return b.builder.insert(CustomVjpOp(inputs, types, [body, forward, backward])).results
