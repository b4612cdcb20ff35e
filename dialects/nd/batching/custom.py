"""Batching of ops with custom differentiation: the batched op keeps its rules, batched."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region, SSAValue

from stepwell.dialects.nd.batching.blocks import end, inside_of, led, rebind, yields
from stepwell.dialects.nd.batching.walk import Batch, elementwise
from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.custom import (
    CheckpointNameOp,
    CheckpointOp,
    CustomJvpOp,
    CustomVjpOp,
    InlinedOp,
    StopGradientOp,
    floats,
)
from stepwell.dialects.readings import batching

batching(StopGradientOp)(elementwise)


@batching(CheckpointNameOp)
def _checkpoint_name(b: Batch, op: CheckpointNameOp) -> Sequence[SSAValue]:
    return b.again(op, [b.lead(op.x)])


@batching(CheckpointOp)
def _checkpoint(b: Batch, op: CheckpointOp) -> Sequence[SSAValue]:
    (region,) = regions = _detached(op)
    each, ends = _batched_region(b, region, [b.has(v) for v in op.inputs])
    flags = [b.has(v) for v in ends]
    end(each, region.block, YieldOp(led(each, ends, flags)))
    return _rebuilt(b, op, regions, flags)


@batching(CustomVjpOp)
def _custom_vjp(b: Batch, op: CustomVjpOp) -> Sequence[SSAValue]:
    """Sum the cotangents of all examples for an unbatched input."""
    known = floats(op.inputs)
    given, count, cotangents = (
        [b.has(v) for v in op.inputs],
        len(op.outputs),
        len(floats(op.outputs)),
    )
    body, forward, backward = regions = _detached(op)
    each, ends = _batched_region(b, body, given)
    end(each, body.block, YieldOp([each.lead(v) for v in ends]))
    each, ends = _batched_region(b, forward, given)
    kept = [b.has(v) for v in ends[count:]]
    end(each, forward.block, YieldOp(led(each, ends, [True] * count + kept)))
    each, ends = _batched_region(b, backward, [*kept, *(True for _ in range(cotangents))])
    found = [
        each.lead(v) if b.has(x) else each.sum_over(each.lead(v), [0])
        for v, x in zip(ends, known, strict=True)
    ]
    end(each, backward.block, YieldOp(found))
    return _rebuilt(b, op, regions, [True] * count)


@batching(CustomJvpOp)
def _custom_jvp(b: Batch, op: CustomJvpOp) -> Sequence[SSAValue]:
    """Keep the tangent of an unbatched input unbatched."""
    given = [b.has(v) for v in op.inputs]
    tangents = [b.has(v) for v in floats(op.inputs)]
    regions = _detached(op)
    for region, flags in zip(regions, (given, [*given, *tangents]), strict=True):
        each, ends = _batched_region(b, region, flags)
        end(each, region.block, YieldOp([each.lead(v) for v in ends]))
    return _rebuilt(b, op, regions, [True] * len(op.outputs))


def _detached(op: InlinedOp) -> list[Region]:
    return [op.detach_region(op.regions[0]) for _ in list(op.regions)]


def _batched_region(
    b: Batch, region: Region, flags: Sequence[bool]
) -> tuple[Batch, Sequence[SSAValue]]:
    """Batch the ops of a region except its end; return the batch, and the values it yielded."""
    rebind(b, region.block, flags)
    return inside_of(b, region.block), yields(region.block)


def _rebuilt(
    b: Batch, op: InlinedOp, regions: Sequence[Region], flags: Sequence[bool]
) -> Sequence[SSAValue]:
    """Return the results of a copy of the op with other regions; flagged results are batched."""
    types = [b.type(y) if f else y.type for y, f in zip(op.results, flags, strict=True)]
    created = type(op)([b.read(v) for v in op.inputs], types, regions, dict(op.properties))
    created.attributes = dict(op.attributes)
    b.builder.insert(created)
    return list(created.outputs)
