"""Interchange loops over columns, so that memory is accessed contiguously.

Before:  scf.for %k = %c1 to %n iter_args(%x = %x0) {
           %y = scf.for %i = %c0 to %m iter_args(%z = %x) { %z[%i, %k] of %z[%i, %k - 1] }
           %w = scf.for %i = %c0 to %m iter_args(%z = %y) { %z[%i, %k] of itself }
           scf.yield %w }
After:   scf.for %i = %c0 to %m iter_args(%x = %x0) {
           %w = scf.for %k = %c1 to %n iter_args(%z = %x) { both }
           scf.yield %w }

The interchange is legal where every array that is written is accessed only at %i along one of its
axes: no %i depends on another, so each may run through all %k by itself. A value that one %k hands
to the next is then in a register, and memory is read in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.transforms.structured.scalar_loops.code import Code
from stepwell.transforms.structured.scalar_loops.flow import is_outside

_AGAIN = 8
"""The most ops besides the inner loops, which each %i repeats after the interchange."""
_ABREAST = 4
"""The number of %i that are unrolled and jammed where each carries a dependence over %k: the
latency, in cycles, of a float multiplication and addition."""

_FREE = (arith.ConstantOp, arith.IndexCastOp, scf.YieldOp)


@dataclass(frozen=True)
class Interchanged:
    """The inner loops that an interchange moves around the outer one; outermost first."""

    bodies: Sequence[Block]
    """Their bodies, whose arguments are an index and the arrays."""
    limits: Sequence[Sequence[SSAValue]]
    """Lower bound, upper bound and step of each."""

    def around(
        self,
        code: Code,
        starts: Sequence[SSAValue],
        write: Callable[[Sequence[SSAValue]], scf.ForOp],
    ) -> scf.ForOp:
        """Write the loops around the loop that ``write`` makes; return the outermost."""
        low, high, _ = self.limits[-1]
        away = code.number(arith.SubiOp(high, low))
        times = code.number(arith.DivSIOp(away, code.index(_ABREAST)))
        middle = code.add(low, code.times(times, code.index(_ABREAST)))
        loops: list[scf.ForOp] = []
        for k in reversed(range(len(self.bodies))):
            body = self.bodies[k]
            with code.inside(body):
                loops = loops or [write(body.args[1:])]
                for loop in loops[: None if k + 1 < len(self.bodies) else 0]:
                    code.put(loop)
                code.put(scf.YieldOp(*loops[-1].results[: len(starts)]))
            given = list(self.bodies[k - 1].args[1:] if k else starts)
            low, high, step = self.limits[k]
            if k + 1 == len(self.bodies) and _carries_floats(loops[0]):
                several = scf.ForOp(
                    low,
                    middle,
                    code.index(_ABREAST),
                    given,
                    Region(_unrolled_and_jammed(code, body)),
                )
                one = scf.ForOp(middle, high, step, list(several.results), Region(body))
                loops = [several, one]
            else:
                loops = [scf.ForOp(low, high, step, given, Region(body))]
        for loop in loops[:-1]:
            code.put(loop)
        return loops[-1]


def _carries_floats(loop: scf.ForOp) -> bool:
    """Whether a loop carries floats that it computes, so that its latency limits it."""
    return any(isinstance(v.type, AnyFloat) for v in loop.iter_args)


def _unrolled_and_jammed(code: Code, body: Block) -> Block:
    """Return the body of a loop that was unrolled and jammed.

    body : the ops before an inner loop, that loop, and the terminator
    """
    *ops, loop, _ = body.ops
    assert isinstance(loop, scf.ForOp)
    arrays = len(body.args) - 1
    several = Block(arg_types=body.arg_types)
    maps: list[dict[SSAValue, SSAValue]] = []
    with code.inside(several):
        for k in range(_ABREAST):
            index = code.add(several.args[0], code.index(k))
            maps.append(dict(zip(body.args, (index, *several.args[1:]), strict=True)))
            for op in ops:
                code.put(op.clone(maps[-1]))
        numbers = [known.get(v, v) for known in maps for v in loop.iter_args[arrays:]]
        inner = _jammed_body(code, loop, maps, arrays)
        starts = [*several.args[1:], *numbers]
        bounds = [maps[0].get(v, v) for v in (loop.lb, loop.ub, loop.step)]
        new = scf.ForOp(bounds[0], bounds[1], bounds[2], starts, Region(inner))
        code.put(new)
        code.put(scf.YieldOp(*new.results[:arrays]))
    for old, argument in zip(body.args, several.args, strict=True):
        argument.name_hint = old.name_hint
    return several


def _jammed_body(
    code: Code, loop: scf.ForOp, maps: Sequence[dict[SSAValue, SSAValue]], arrays: int
) -> Block:
    """Return the inner loop's body for all unrolled iterations; each carries its own numbers."""
    old = loop.body.block
    *ops, last = old.ops
    own = [a.type for a in old.args[1 + arrays :]]
    block = Block(arg_types=[*old.arg_types[: 1 + arrays], *own * len(maps)])
    states, carried = list(block.args[1 : 1 + arrays]), list[SSAValue]()
    with code.inside(block):
        for k, known in enumerate(maps):
            first = 1 + arrays + k * len(own)
            given = [block.args[0], *states, *block.args[first : first + len(own)]]
            known.update(zip(old.args, given, strict=True))
            for op in ops:
                code.put(op.clone(known))
            ends = [known.get(v, v) for v in last.operands]
            states, carried = ends[:arrays], [*carried, *ends[arrays:]]
        code.put(scf.YieldOp(*states, *carried))
    for k, argument in enumerate(block.args[: 1 + arrays]):
        argument.name_hint = old.args[k].name_hint
    return block


def interchange(block: Block) -> Interchanged | None:
    """Move the inner loops in the body of a loop out, to be put around it, if that pays.

    block : the finished body of a counted loop
    """
    nests = [op for op in block.ops if isinstance(op, scf.ForOp)]
    if not nests or any(not isinstance(a.type, TensorType) for a in block.args[1:]):
        return None
    first = _perfect_nest(nests[0])
    depth = len(first)
    limits = [list(loop.operands[:3]) for loop in first]
    if any(not is_outside(v, block) for each in limits for v in each):
        return None
    for nest in nests:
        levels = _perfect_nest(nest)
        if [list(loop.operands[:3]) for loop in levels] != limits:
            return None
    rest = [op for op in block.ops if not isinstance(op, scf.ForOp)]
    if any(op.regions or not touches_nothing(op) for op in rest[:-1]):
        return None
    if not _is_gain(block, nests, rest):
        return None
    bodies = [Block(arg_types=block.arg_types) for _ in range(depth)]
    for body, loop in zip(bodies, first, strict=True):
        body.args[0].name_hint = loop.body.block.args[0].name_hint
        for argument, old in zip(body.args[1:], block.args[1:], strict=True):
            argument.name_hint = old.name_hint
    for nest in nests:
        _inline(nest, [body.args[0] for body in bodies])
    return Interchanged(bodies, limits)


def _perfect_nest(loop: scf.ForOp) -> list[scf.ForOp]:
    """Return the loops of a perfect nest, outermost first."""
    found = [loop]
    while isinstance(inner := found[-1].body.block.first_op, scf.ForOp):
        last = inner.next_op
        whole = isinstance(last, scf.YieldOp) and list(last.operands) == list(inner.results)
        given = list(inner.iter_args) == list(found[-1].body.block.args[1:])
        if not whole or not given:
            break
        found.append(inner)
    return found


def _is_gain(block: Block, nests: Sequence[scf.ForOp], rest: Sequence[Operation]) -> bool:
    """Whether the interchange is legal, and makes memory accesses contiguous."""
    if sum(1 for op in rest if not isinstance(op, _FREE)) > _AGAIN:
        return False
    carried = set(block.args[1:])
    for op in rest[:-1]:
        if any(v in carried or _is_result_of(v, nests) for v in op.operands):
            return False  # the ops outside the nests must not depend on the arrays
    roots: dict[SSAValue, int] = {a: k for k, a in enumerate(block.args[1:])}
    axes: dict[int, list[int]] = {}
    for nest in nests:
        if not _follow(nest, roots, axes):
            return False
    ends = block.last_op
    assert ends is not None
    if any(roots.get(v) != k for k, v in enumerate(ends.operands)):
        return False
    ranks = [len(a.type.get_shape()) for a in carried if isinstance(a.type, TensorType)]
    return bool(axes) and all(max(at) < ranks[0] - 1 for at in axes.values()) and len({*ranks}) == 1


def _is_result_of(value: SSAValue, nests: Sequence[scf.ForOp]) -> bool:
    return isinstance(value, OpResult) and value.op in nests


def _follow(nest: scf.ForOp, roots: dict[SSAValue, int], axes: dict[int, list[int]]) -> bool:
    """Record the array of each state in a nest, and the axes that the nest indexes.

    Return whether all accesses to arrays that are written use the nest's indices on the same axes.
    """
    levels = _perfect_nest(nest)
    for loop in levels:
        body = loop.body.block
        for init, argument, result in zip(loop.iter_args, body.args[1:], loop.results, strict=True):
            if init not in roots:
                return False
            roots[argument] = roots[result] = roots[init]
    indices = [loop.body.block.args[0] for loop in levels]
    *ops, last = levels[-1].body.block.ops
    for op in ops:
        if op.regions or not (touches_nothing(op) or isinstance(op, tensor.ExtractOp)):
            return False
        match op:
            case tensor.InsertOp(dest=array) | tensor.ExtractOp(tensor=array) if array in roots:
                places = list(op.indices)
                at = [places.index(i) if places.count(i) == 1 else -1 for i in indices]
                if -1 in at or axes.setdefault(roots[array], at) != at:
                    return False
                if isinstance(op, tensor.InsertOp):
                    roots[op.result] = roots[array]
            case tensor.InsertOp():
                return False
            case _:
                pass
    arguments = levels[-1].body.block.args[1:]
    return all(roots.get(v) == roots[a] for a, v in zip(arguments, last.operands, strict=True))


def _inline(nest: scf.ForOp, indices: Sequence[SSAValue]) -> None:
    """Replace a nest by its body at the given indices."""
    levels = _perfect_nest(nest)
    *ops, last = levels[-1].body.block.ops
    ends = list(last.operands)
    for loop, index in zip(levels, indices, strict=True):
        body = loop.body.block
        body.args[0].replace_all_uses_with(index)
        for init, argument in zip(loop.iter_args, body.args[1:], strict=True):
            argument.replace_all_uses_with(init)
    parent = nest.parent
    assert parent is not None
    ends = list(last.operands)
    for op in ops:
        op.detach()
        parent.insert_op_before(op, nest)
    for result, value in zip(nest.results, ends, strict=True):
        result.replace_all_uses_with(value)
    nest.detach()
    nest.drop_all_references()
