"""Split a loop that reads arrays as they were before it writes them: the reads run first.

Before:  %y = scf.for %i = %low to %high iter_args(%a = %x) {
           %v = tensor.extract %x[%k]
           ... tensor.insert %w into %a[%j] ... }
After:   %s = scf.for %i = %low to %high iter_args(%b = %scratch) {
           %v = tensor.extract %x[%k]
           ... tensor.insert %v into %b[%i] ... }
         %y = scf.for %i = %low to %high iter_args(%a = %x) {
           %v = tensor.extract %s[%i]
           ... tensor.insert %w into %a[%j] ... }

Scratch memory is an argument of the outermost loop, which becomes a destination of the kernel: its
size is known when the kernel is launched. The first loop is a copy of the second one without its
stores, so it computes the same bounds, conditions and indices; where these depend on an element
that the loop has written, there is no such copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.types import tensor_type
from stepwell.transforms.structured.scalar_loops.bounds import Bounds, Range
from stepwell.transforms.structured.scalar_loops.code import Code, erase_unused, refuse

LEAST = 1 << 14
"""The elements that scratch may have even where no array of the loop is as large."""


def split(code: Code, op: Operation, loop: scf.ForOp) -> None:
    """Let a loop that is not inserted yet read the arrays that it was given in an earlier loop.

    op : the tensor-level op to blame if that is impossible
    """
    given = {v for v in loop.iter_args if isinstance(v.type, TensorType)}
    reads = [r for r in loop.walk() if isinstance(r, tensor.ExtractOp) and r.tensor in given]
    first = _Reads(code, op, {r: _Place.of(code, op, loop, r) for r in reads})
    scratch = first.write(loop)
    for read, filled in zip(reads, scratch, strict=True):
        load = tensor.ExtractOp(filled, first.places[read].indices, read.result.type)
        load.location = read.location
        parent = read.parent
        assert parent is not None
        parent.insert_op_before(load, read)
        read.result.replace_all_uses_with(load.result)
        read.detach()
        read.erase()
    for check in [each for each in loop.walk() if isinstance(each, kernel.CheckOp)]:
        check.detach()
        check.erase()


@dataclass(frozen=True)
class _Place:
    """Where a read is: the indices of the loops around it, and how many values each has."""

    indices: Sequence[SSAValue]
    shape: Sequence[int]

    @staticmethod
    def of(code: Code, op: Operation, loop: scf.ForOp, read: tensor.ExtractOp) -> _Place:
        loops: list[scf.ForOp] = []
        at = read.parent_op()
        while True:
            if isinstance(at, scf.ForOp):
                loops.insert(0, at)
            elif not isinstance(at, scf.IfOp):
                refuse(op, "an array is read in an inner loop as it was before it was written")
            if at is loop:
                break
            at = at.parent_op()
        shape = [_count(code.bounds, each) for each in loops]
        sizes = [tensor_type(v).get_shape() for each in loop.walk() for v in _tensors(each)]
        known = [prod(each) for each in sizes if DYNAMIC_INDEX not in each]
        if None in shape or prod(n or 0 for n in shape) > max(LEAST, *known):
            refuse(op, "scratch memory for what a loop overwrites would have no known size")
        return _Place([each.body.block.args[0] for each in loops], [n or 0 for n in shape])


def _tensors(op: Operation) -> list[SSAValue]:
    return [v for v in op.operands if isinstance(v.type, TensorType)]


def _count(bounds: Bounds, loop: scf.ForOp) -> int | None:
    """Return the number of indices from 0 to the greatest one of a loop; None if unknown."""
    least, most = _range(bounds, loop.lb)[0], _range(bounds, loop.ub)[1]
    return None if least < 0 or most >= 1 << 40 else max(most, 1)


def _range(bounds: Bounds, value: SSAValue) -> Range:
    """Return the range of a loop's bound; facts about those of inner loops are forgotten by now."""
    held = bounds.of(value)
    assert held is not None
    match value.owner:
        case arith.MaxSIOp(lhs=x, rhs=y):
            of = max
        case arith.MinSIOp(lhs=x, rhs=y):
            of = min
        case _:
            return held
    (a, b), (c, d) = _range(bounds, x), _range(bounds, y)
    return max(held[0], of(a, c)), min(held[1], of(b, d))


@dataclass
class _Reads:
    """The copy of a loop that reads, and stores what it read in scratch memory."""

    code: Code
    op: Operation
    places: dict[tensor.ExtractOp, _Place]
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    late: list[Operation] = field(default_factory=list[Operation])
    """Reads of elements that the loop may have written; they must turn out to be unused."""

    def write(self, loop: scf.ForOp) -> list[SSAValue]:
        """Write the copy of a loop; return the scratch of each read, filled."""
        scratch = {
            read: self.code.scratch(TensorType(read.result.type, place.shape))
            for read, place in self.places.items()
        }
        copy = self._for(loop, scratch)
        self.code.put(copy)
        erase_unused(copy.body.block)
        if any(each.parent is not None for each in self.late):
            refuse(self.op, "what a loop reads as it was depends on what it has written")
        return list(copy.results[len(copy.results) - len(scratch) :])

    def _value(self, old: SSAValue) -> SSAValue:
        return self.values.get(old, old)

    def _for(self, old: scf.ForOp, scratch: _Found) -> scf.ForOp:
        """Return a copy of a loop that carries its numbers, and scratch."""
        body = old.body.block
        numbers = [k for k, v in enumerate(old.iter_args) if not isinstance(v.type, TensorType)]
        starts = [*(self._value(old.iter_args[k]) for k in numbers), *scratch.values()]
        block = Block(arg_types=[body.args[0].type, *(v.type for v in starts)])
        block.args[0].name_hint = body.args[0].name_hint
        self.values.update(zip(body.args[1:], map(self._value, old.iter_args), strict=True))
        self.values[body.args[0]] = block.args[0]
        self.values.update(zip((body.args[k + 1] for k in numbers), block.args[1:], strict=False))
        found: _Found = dict(zip(scratch, block.args[1 + len(numbers) :], strict=True))
        self._ops(body, block, found, self._store)
        last = body.last_op
        assert last is not None
        ends = [self._value(last.operands[k]) for k in numbers]
        _add(block, scf.YieldOp(*ends, *found.values()), last)
        low, high, step = (self._value(v) for v in (old.lb, old.ub, old.step))
        copy = scf.ForOp(low, high, step, starts, Region(block))
        copy.location = old.location
        self.values.update(zip(old.results, map(self._value, old.iter_args), strict=True))
        self.values.update(zip((old.results[k] for k in numbers), copy.results, strict=False))
        return copy

    def _ops(self, old: Block, new: Block, found: _Found, keep: _Keep) -> None:
        """Copy the ops of a block but the terminator.

        found : what becomes of each read, kept up to date
        keep : returns what becomes of a read that has been copied
        """
        *ops, _ = old.ops
        for op in ops:
            inside = [read for read in found if op.is_ancestor(read)]
            match op:
                case tensor.InsertOp():
                    self.values[op.result] = self._value(op.dest)
                case scf.ForOp() if keep == self._store or not inside:
                    copy = self._for(op, {read: found[read] for read in inside})
                    _add(new, copy, op)
                    found.update(
                        zip(inside, copy.results[len(copy.results) - len(inside) :], strict=True)
                    )
                case scf.IfOp():
                    self._if(op, inside, new, found, keep)
                case _ if op.regions:
                    refuse(self.op, "a loop reads an array as it was, beside a loop in a branch")
                case _:
                    copy = op.clone(self.values)
                    _add(new, copy, op)
                    self.values.update(zip(op.results, copy.results, strict=True))
                    if isinstance(op, tensor.ExtractOp):
                        self._read(op, copy, new, found, keep)

    def _read(
        self, op: tensor.ExtractOp, copy: Operation, new: Block, found: _Found, keep: _Keep
    ) -> None:
        if op in found:
            found[op] = keep(op, copy.results[0], new, found[op])
        elif self._value(op.tensor) is not op.tensor:
            self.late.append(copy)

    def _store(
        self, read: tensor.ExtractOp, value: SSAValue, new: Block, into: SSAValue
    ) -> SSAValue:
        at = [self._value(i) for i in self.places[read].indices]
        store = tensor.InsertOp(value, into, at)
        _add(new, store, read)
        return store.result

    def _if(
        self,
        op: scf.IfOp,
        inside: Sequence[tensor.ExtractOp],
        new: Block,
        found: _Found,
        keep: _Keep,
    ) -> None:
        """Copy a branch: what a side reads is a result, which the loop around it stores."""
        kept = [r for r in op.results if not isinstance(r.type, TensorType)]
        blocks: list[Block] = []
        for region in op.regions:
            block, last = Block(), region.block.last_op
            assert last is not None
            read: _Found = {each: self.code.zero(each.result.type) for each in inside}
            self._ops(region.block, block, read, lambda op, value, new, into: value)
            ends = [self._value(last.operands[r.index]) for r in kept]
            _add(block, scf.YieldOp(*ends, *read.values()), last)
            self.values.update(zip(op.results, map(self._value, last.operands), strict=True))
            blocks.append(block)
        types = [*(r.type for r in kept), *(each.result.type for each in inside)]
        copy = scf.IfOp(self._value(op.cond), types, Region(blocks[0]), Region(blocks[1]))
        _add(new, copy, op)
        self.values.update(zip(kept, copy.output, strict=False))
        for each, value in zip(inside, copy.output[len(kept) :], strict=True):
            found[each] = keep(each, value, new, found[each])


_Found: TypeAlias = dict[tensor.ExtractOp, SSAValue]
_Keep: TypeAlias = Callable[[tensor.ExtractOp, SSAValue, Block, SSAValue], SSAValue]


def _add(block: Block, new: Operation, old: Operation) -> None:
    """Append ``new``, which replaces ``old``, to a block."""
    new.location = old.location
    for result, was in zip(new.results, old.results, strict=False):
        result.name_hint = was.name_hint
    block.add_op(new)
