"""Derivatives of nd.if: an nd.if with the derivatives of its branches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.control import IfOp, YieldOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.gradients.regions import Body, captured, last_of
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.gradients.sizes import Outside
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.readings import gradient


@gradient(IfOp)
def _if(r: Reverse, op: IfOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Run the backward pass of the branch that ran.

    It recomputes cheap values; a branch yields the others, and the other branch yields zeros.
    """
    inputs = captured(r, op)
    before = [r.found_plain(v) for v in inputs]
    bodies: list[Body] = []
    for region in (op.then, op.otherwise):
        body = Body(region.block)
        body.follow(inputs)
        bodies.append(body)
        pairs = zip(body.yields, cotangents, strict=True)
        seeds = [(v, g) for v, g in pairs if g is not None]
        known = zip(inputs, before, strict=True)
        body.run(seeds, [(v, b) for v, b in known if b is not None])
    found = [[body.found(v) for v in inputs] for body in bodies]
    some = [k for k in range(len(inputs)) if any(ends[k] is not None for ends in found)]
    composer = Composer(Builder(InsertPoint.before(op)))
    blocks: list[Block] = []
    handed: list[tuple[int, SSAValue]] = []
    for number, (body, ends) in enumerate(zip(bodies, found, strict=True)):
        chosen = [_or_zero(body, ends[k], inputs[k]) for k in some]
        into = Block()
        outside = Outside(composer, body.block, {})
        ends_there, used = body.take_out(into, chosen, outside, lambda v: False)
        into.add_op(YieldOp(ends_there))
        blocks.append(into)
        handed += [(number, v) for v in used]
    kept = _yield_more(op, handed, composer)
    arguments = [a for block in blocks for a in block.args]
    for argument, value in zip(arguments, kept, strict=True):
        argument.replace_all_uses_with(value)
    for block in blocks:
        for argument in reversed(block.args):
            block.erase_arg(argument)
    types = [inputs[k].type for k in some]
    back = r.builder.insert(IfOp(op.condition, types, Region(blocks[0]), Region(blocks[1])))
    for k, result in zip(some, back.results, strict=True):
        r.accumulate(inputs[k], result)


def _or_zero(body: Body, end: SSAValue | None, value: SSAValue) -> SSAValue:
    return body.inner.full(value, 0) if end is None else end


def _yield_more(
    op: IfOp, handed: Sequence[tuple[int, SSAValue]], composer: Composer
) -> Sequence[SSAValue]:
    """Make the op yield values of its branches too; return its results for them."""
    if not handed:
        return []
    blocks = [op.then.block, op.otherwise.block]
    ends = [list(last_of(block).operands) for block in blocks]
    for number, value in handed:
        assert isinstance(value.type, TensorType)
        sizes = Outside(composer, blocks[number], {}).sizes(value)
        assert sizes is not None or DYNAMIC not in shape_of(value)
        other = blocks[1 - number]
        zero = FullOp.of(0, value.type, sizes or [])
        other.insert_op_before(zero, last_of(other))
        ends[number].append(value)
        ends[1 - number].append(zero.results[0])
    for block, values in zip(blocks, ends, strict=True):
        last = last_of(block)
        last.detach()
        last.erase()
        block.add_op(YieldOp(values))
    types = [v.type for v in ends[0]]
    regions = [op.detach_region(0), op.detach_region(0)]
    new = composer.builder.insert(IfOp(op.condition, types, *regions))
    new.location = op.location
    replace(op, new.results[: len(op.results)])
    return new.results[len(types) - len(handed) :]


def replace(op: Operation, results: Sequence[SSAValue]) -> None:
    """Replace the results of ``op`` by ``results`` and erase it."""
    for old, now in zip(op.results, results, strict=True):
        now.name_hint = old.name_hint
        old.replace_all_uses_with(now)
    op.detach()
    op.erase()
