"""Derivatives of ops with their own differentiation rules: custom rules and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from stepwell.core.diagnostics import Diagnostic, is_heard, report
from stepwell.dialects.expanding import expand
from stepwell.dialects.nd.contraction import OPS as CONTRACTIONS
from stepwell.dialects.nd.contraction import DotGeneralOp
from stepwell.dialects.nd.control import YieldOp
from stepwell.dialects.nd.custom import (
    CheckpointNameOp,
    CheckpointOp,
    CustomJvpOp,
    CustomVjpOp,
    InlinedOp,
    floats,
)
from stepwell.dialects.nd.gradients.forward import Forward, drop_dead
from stepwell.dialects.nd.gradients.keeping import listed
from stepwell.dialects.nd.gradients.regions import captured
from stepwell.dialects.nd.gradients.reverse import Reverse, has_rule
from stepwell.dialects.nd.syntax import axes
from stepwell.dialects.readings import decomposition, gradient, moves, tangent
from stepwell.dialects.types import computed_again, place_of

Tangents = Sequence[SSAValue | None]


def inline(builder: Builder, region: Region, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Move a region's ops, applied to ``values``, to ``builder``; return the values it yields."""
    block = region.block
    last = block.last_op
    assert last is not None
    for op in list(block.ops):
        if op is not last:
            op.detach()
            builder.insert(op)
    mapped = dict(zip(block.args, values, strict=True))
    results = [mapped.get(v, v) for v in last.operands]  # pyright: ignore
    last.detach()
    last.erase()
    for argument, value in mapped.items():
        if argument is value:
            continue
        if value.name_hint is None:
            value.name_hint = argument.name_hint
        argument.replace_all_uses_with(value)
    return results


def _replace(op: Operation, results: Sequence[SSAValue]) -> None:
    """Replace the results of ``op`` by ``results`` and erase it."""
    for old, now in zip(op.results, results, strict=True):
        if old.name_hint is not None:
            now.name_hint = old.name_hint
    _erase(op, results)


def expanded(builder: Builder, op: InlinedOp) -> Sequence[SSAValue]:
    """Inline the function that the op customizes."""
    return inline(builder, op.regions[0], op.operands)


def _check_captured(r: Reverse, op: InlinedOp, what: str) -> None:
    """Refuse captured values that need a cotangent: the custom rule gives none for them."""
    if found := captured(r, op):
        name = found[0].name_hint
        said = f"a value of {found[0].type}" if name is None else f"'{name}'"
        r.refuse(
            op,
            f"the function given to {what} uses {said} from outside of it, which the derivative is "
            "by: its rule says nothing of that",
            help="pass it to the function as an argument, or sw.stop_gradient of it",
        )


@gradient(CustomVjpOp)
def _custom_vjp(r: Reverse, op: CustomVjpOp, cotangents: Tangents) -> None:
    """Replace the op by ``forward``, and write ``backward`` in the backward pass."""
    _check_captured(r, op, "sw.custom_vjp")
    count, inputs = len(op.outputs), list(op.inputs)
    found = inline(Builder(InsertPoint.before(op)), op.forward, inputs)
    given = dict[SSAValue, SSAValue | None](zip(op.outputs, cotangents, strict=True))
    seeds = [r.full(v, 0) if (c := given[v]) is None else c for v in floats(op.outputs)]
    of_inputs = inline(r.builder, op.backward, [*found[count:], *seeds])
    for value, more in zip(floats(inputs), of_inputs, strict=True):
        r.accumulate(value, more)
    _replace(op, found[:count])


@tangent(CustomVjpOp)
def _custom_vjp_forward(f: Forward, op: CustomVjpOp, tangents: Tangents) -> Tangents:
    """Transpose ``backward``, which is linear in the cotangents."""
    if op.exact is not None:
        return _through_body(f, op)
    count, inputs, float_results = len(op.outputs), list(op.inputs), floats(op.outputs)
    known = dict(zip(inputs, tangents, strict=True))
    found = inline(f.builder, op.forward, inputs)
    unknown = list(Block(arg_types=[v.type for v in float_results]).args)
    _, outs = _transposed(
        f.builder,
        f.builder,
        op.backward,
        [*found[count:], *unknown],
        unknown,
        [known[v] for v in floats(inputs)],
        0,
        op,
    )
    return _replace_with_tangents(f, op, found[:count], outs)


def _replace_with_tangents(
    f: Forward, op: InlinedOp, results: Sequence[SSAValue], found: Tangents
) -> Tangents:
    """Replace the results of ``op`` by ``results``, and record the tangents of the floats."""
    for value, more in zip(floats(results), found, strict=True):
        f.learn(value, more)
    number = len(op.results)
    _replace(op, results)
    return [None] * number


@gradient(CustomJvpOp)
def _custom_jvp(r: Reverse, op: CustomJvpOp, cotangents: Tangents) -> None:
    """Replace the op by its rule, and write the transpose of the linear part backward."""
    _check_captured(r, op, "sw.custom_jvp")
    count, inputs = len(op.outputs), list(op.inputs)
    float_inputs = floats(inputs)
    wanted = [v for v in float_inputs if r.wants(v)]
    here = Builder(InsertPoint.before(op))
    zero = Reverse(here)
    unknown = list(Block(arg_types=[v.type for v in wanted]).args)
    rest = iter(unknown)
    given = [next(rest) if r.wants(v) else zero.full(v, 0) for v in float_inputs]
    by_result = dict[SSAValue, SSAValue | None](zip(op.outputs, cotangents, strict=True))
    results, found = _transposed(
        here,
        r.builder,
        op.rule,
        [*inputs, *given],
        unknown,
        [by_result[v] for v in floats(op.outputs)],
        count,
        op,
    )
    for value, more in zip(wanted, found, strict=True):
        if more is not None:
            r.accumulate(value, more)
    _replace(op, results)


@tangent(CustomJvpOp)
def _custom_jvp_forward(f: Forward, op: CustomJvpOp, tangents: Tangents) -> Tangents:
    """Replace the op by its rule."""
    count, inputs = len(op.outputs), list(op.inputs)
    known = dict(zip(inputs, tangents, strict=True))
    more = [f.full(v, 0) if (t := known[v]) is None else t for v in floats(inputs)]
    found = inline(f.builder, op.rule, [*inputs, *more])
    return _replace_with_tangents(f, op, found[:count], found[count:])


def _transposed(
    here: Builder,
    back: Builder,
    region: Region,
    values: Sequence[SSAValue],
    unknown: Sequence[SSAValue],
    seeds: Tangents,
    count: int,
    op: InlinedOp,
) -> tuple[list[SSAValue], Tangents]:
    """Inline a region at ``here`` and write its transpose at ``back``.

    values : the region's arguments; it is linear in ``unknown``, a subset of them
    seeds : the cotangents of its results, except for the first ``count``
    returns : the first ``count`` results, and the cotangents of ``unknown``
    """
    border = here.insert(YieldOp([]))
    yielded = inline(here, region, values)
    end = here.insert(YieldOp([]))
    reverse = Reverse(back, active=set(unknown))
    ops = reverse.follow(border.next_op, end)
    for value, seed in zip(yielded[count:], seeds, strict=True):
        if seed is not None:
            reverse.accumulate(value, seed)
    reverse.run(ops)
    found = [reverse.found_plain(u) for u in unknown]
    drop_dead(border, InsertPoint.before(end), {*yielded[:count], *found})
    _erase(border)
    _erase(end)
    if any(u.first_use is not None for u in unknown) or {*yielded[:count]} & {*unknown}:
        reverse.refuse(
            op,
            f"the rule given to sw.{op.name[3:]} is not linear in its "
            f"{'tangents' if isinstance(op, CustomJvpOp) else 'cotangents'}",
            help="its result must be linear in them: a sum of products with them",
        )
    return yielded[:count], found


@moves(CheckpointNameOp)
def _checkpoint_name(r: Reverse, op: CheckpointNameOp, g: SSAValue) -> SSAValue:
    return g


@gradient(CheckpointOp)
def _checkpoint(r: Reverse, op: CheckpointOp, cotangents: Tangents) -> None:
    """Recompute the region in the backward pass, and propagate cotangents through the copy."""
    inputs, more = list(op.inputs), captured(r, op)
    _expand_inside(op.body.block)
    again = op.body.clone()
    kept = _kept(op, again)
    results = inline(Builder(InsertPoint.before(op)), op.body, inputs)
    block = again.block
    for each in again.walk() if op.merged is None else ():
        each.location = computed_again(each.location)
    border = r.builder.insert(YieldOp([]))
    ends = inline(r.builder, again, block.args)
    end = r.builder.insert(YieldOp([]))
    pairs = list(zip(block.args, inputs, strict=True))
    inner = Reverse(r.builder, active={*more, *(a for a, v in pairs if r.wants(v))})
    ops = inner.follow(border.next_op, end)
    for value, cotangent in zip(ends, cotangents, strict=True):
        if cotangent is not None:
            inner.accumulate(value, cotangent)
    inner.run(ops)
    for inside, value in (*pairs, *((v, v) for v in more)):
        if (found := inner.found_plain(inside)) is not None:
            r.accumulate(value, found)
    for argument, value in pairs:
        argument.replace_all_uses_with(value)
    if is_heard():
        _report_kept(op, kept)
    for first, second in kept:
        _erase(second, first.results)
    _erase(border)
    _erase(end)
    _replace(op, results)


def _erase(op: Operation, instead: Sequence[SSAValue] = ()) -> None:
    """Erase ``op``; ``instead`` replace its results."""
    for old, now in zip(op.results, instead, strict=True):
        old.replace_all_uses_with(now)
    op.detach()
    op.erase()


def _expand_inside(block: Block) -> None:
    """Expand composite ops without a gradient rule."""
    op = block.first_op
    while op is not None:
        composite = not has_rule(op) and decomposition.get(type(op)) is not None
        op = expand(op) if composite else op.next_op


def _kept(op: CheckpointOp, again: Region) -> list[tuple[Operation, Operation]]:
    """Return the ops whose results are kept, each with its copy in the recomputation."""
    pairs = zip(op.body.block.ops, again.block.ops, strict=True)
    return [(a, b) for a, b in pairs if b.next_op is not None and _is_kept(a, op)]


def _report_kept(op: CheckpointOp, pairs: Sequence[tuple[Operation, Operation]]) -> None:
    """Report in a remark which values a checkpoint keeps besides its arguments.

    pairs : each op whose results are kept, with its copy in the recomputation
    """
    seconds = {second for _, second in pairs}
    used = [
        a
        for first, second in pairs
        for a, b in zip(first.results, second.results, strict=True)
        if isinstance(a.type, TensorType) and any(u.operation not in seconds for u in b.uses)
    ]
    arrays = {v.owner.x if isinstance(v.owner, CheckpointNameOp) else v: None for v in used}
    said = f"beside its arguments the checkpoint keeps {listed(arrays)}"
    report(Diagnostic("remark", said, place_of(op)))


def _is_kept(op: Operation, around: CheckpointOp) -> bool:
    policy = around.keeps
    if not is_side_effect_free(op):
        return True
    if isinstance(op, CheckpointNameOp):
        return around.keeps_name(op.called.data)
    readers = [u.operation for r in op.results for u in r.uses]
    names = [n.called.data for n in readers if isinstance(n, CheckpointNameOp)]
    if len(op.results) == 1 and any(map(around.keeps_name, names)):
        return True  # the array with the kept name is the same
    if policy == "everything":  # a value used only under a name that is not kept is not kept
        return len(names) < len(readers) or not names
    if policy == "nothing" or not isinstance(op, CONTRACTIONS):
        return False
    return policy == "dots" or (isinstance(op, DotGeneralOp) and not axes(op.x_batch))


@tangent(CheckpointOp)
def _checkpoint_forward(f: Forward, op: CheckpointOp, tangents: Tangents) -> Tangents:
    """Differentiate the body: forward mode keeps nothing."""
    return _through_body(f, op)


def _through_body(f: Forward, op: InlinedOp) -> Tangents:
    """Inline the first region in place of the op, and propagate tangents through it."""
    border = f.builder.insert(YieldOp([]))
    results = inline(f.builder, op.regions[0], list(op.inputs))
    end = f.builder.insert(YieldOp([]))
    f.follow(border.next_op, end)
    _erase(border)
    _erase(end)
    return _replace_with_tangents(f, op, results, [f.tangents.get(v) for v in floats(results)])
