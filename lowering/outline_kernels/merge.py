"""Merge the ops of a kernel that have the same iteration space into one op.

The exponentials of a softmax are summed as they are stored; the maximum and the sum of a row, or
two sums of it, are computed in one traversal of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import (
    Index,
    array_of_maps,
    combiner,
    contracts,
    extents,
    indices,
    inverse,
    is_parallel,
    yielded,
)
from stepwell.dialects.types import fuse_locations

MANY = 12
"""The most inputs of a merged op; a loop over more tensors gains nothing by another."""


def merge_walks(block: Block, shared: int) -> None:
    """Merge the generics of a kernel's ``block`` that have more loops than the ``shared`` ones."""
    walks = [op for op in block.ops if isinstance(op, linalg.GenericOp)]
    if len(walks) < 2 or any(op.regions and not _is_known(op) for op in block.ops):
        return
    earlier: list[linalg.GenericOp] = []
    for op in walks:
        here = op
        if len(op.iterator_types) > shared and _is_free(op):
            for other in reversed(earlier):
                if (merged := _merged(other, here, block)) is not None:
                    earlier.remove(other)
                    here = merged
        if len(here.iterator_types) > shared and _is_free(here):
            earlier.append(here)


def _is_known(op: Operation) -> bool:
    return isinstance(op, linalg.GenericOp | linalg.FillOp)


def _is_free(op: linalg.GenericOp) -> bool:
    """Whether the iterations of ``op`` may run in any order, and its body captures no value."""
    block, inputs, reduced = op.body.block, len(op.inputs), not all(is_parallel(op))
    inside = {*block.args, *(result for each in block.ops for result in each.results)}
    for each in block.ops:
        if isinstance(each, tensor.ExtractOp) or each.regions:
            return False
        if any(v not in inside and not isinstance(v.owner, Block) for v in each.operands):
            return False
    for k, index in enumerate(indices(op)[inputs:]):
        if inverse(index, len(op.iterator_types)) is not None:
            if block.args[inputs + k].first_use is not None:
                return False
        elif not reduced or not _is_sum(op, k, index):
            return False
    return not contracts(op)


def _is_sum(op: linalg.GenericOp, output: int, index: Index) -> bool:
    """Whether an output is invariant in the reduction loops, with a known combiner."""
    parallel = is_parallel(op)
    if any(not parallel[d] for expr in index for d in expr.used_dims()):
        return False
    return combiner(op, output) is not None and yielded(op.body.block)[output].has_one_use()


@dataclass
class _Pair:
    """Two ops of a kernel; the first precedes the second."""

    first: linalg.GenericOp
    second: linalg.GenericOp
    passed: dict[SSAValue, OpResult] = field(default_factory=dict[SSAValue, OpResult])
    """Maps a block argument of the second to the result of the first that it reads."""

    def fits(self) -> bool:
        """Whether one loop nest can compute both."""
        first, second = self.first, self.second
        if len(first.iterator_types) != len(second.iterator_types):
            return False
        if len(first.inputs) + len(second.inputs) > MANY or not self._one_space():
            return False
        mixed = [a and b for a, b in zip(is_parallel(first), is_parallel(second), strict=True)]
        reduced = {d for d, parallel in enumerate(mixed) if not parallel}
        for op in (first, second):
            for index in indices(op)[len(op.inputs) :]:
                used = {d for expr in index for d in expr.used_dims()} & reduced
                if used and used != reduced:
                    return False
        return True

    def _one_space(self) -> bool:
        """Whether both access some tensor at one index with all their loops; record ``passed``.

        A result of the first that the second reads must be an element of the same iteration.
        """
        first, second, common = self.first, self.second, False
        loops = len(first.iterator_types)
        seen = {(v, i) for v, i in zip(first.inputs, indices(first), strict=False)}
        written = dict(zip(first.results, indices(first)[len(first.inputs) :], strict=True))
        arguments = second.body.block.args
        for k, (value, index) in enumerate(zip(second.operands, indices(second), strict=True)):
            whole = inverse(index, loops) is not None
            if isinstance(value, OpResult) and value in written:
                if k >= len(second.inputs) or written[value] != index or not whole:
                    return False
                self.passed[arguments[k]] = value
                common = True
            elif k < len(second.inputs) and (value, index) in seen and whole:
                common |= arguments[k].first_use is not None
        return common and extents(first) == extents(second) and self._has_extents()

    def _has_extents(self) -> bool:
        """Whether some operand of the one op still has the extent of each loop as a size."""
        first, second, used = self.first, self.second, set[int]()
        for op in (first, second):
            for k, (index, argument) in enumerate(
                zip(indices(op), op.body.block.args, strict=True)
            ):
                result = op.results[k - len(op.inputs)] if k >= len(op.inputs) else None
                is_kept = result is None or op is second or _is_used(result, second)
                if argument not in self.passed and is_kept:
                    used.update(e.position for e in index if isinstance(e, AffineDimExpr))
        return len(used) == len(first.iterator_types)

    def between(self) -> Iterator[Operation]:
        """Yield the ops between the two."""
        at = self.first.next_op
        while at is not None and at is not self.second:
            yield at
            at = at.next_op


def _merged(
    first: linalg.GenericOp, second: linalg.GenericOp, block: Block
) -> linalg.GenericOp | None:
    """Return one op that replaces both, None where that is illegal or gains nothing.

    Either op may precede the other: an earlier merge may have moved the first one behind.
    """
    if not first.is_before_in_block(second):
        first, second = second, first
    pair = _Pair(first, second)
    if not pair.fits():
        return None
    middle = list(pair.between())
    depend = _depending(first, middle)
    needed = _needed(second, middle)
    if not depend.isdisjoint(needed):
        return None
    if any(v.owner in depend for v in second.operands):
        return None
    for op in middle:  # users of the first are moved behind both
        if op in depend:
            op.detach()
    merged = _one_op(pair)
    after: Operation = merged
    for op in middle:
        if op in depend:
            block.insert_op_after(op, after)
            after = op
    return merged


def _depending(first: Operation, middle: list[Operation]) -> set[Operation]:
    """Return the ops of ``middle`` that depend, also indirectly, on ``first``."""
    found: set[Operation] = {first}
    for op in middle:
        if any(v.owner in found for inner in op.walk() for v in inner.operands):
            found.add(op)
    return found - {first}


def _needed(second: Operation, middle: list[Operation]) -> set[Operation]:
    """Return the ops of ``middle`` on which ``second`` depends, also indirectly."""
    found: set[Operation] = {second}
    used = {v.owner for v in second.operands}
    for op in reversed(middle):
        if op in used:
            found.add(op)
            used.update(v.owner for inner in op.walk() for v in inner.operands)
    return found - {second}


@dataclass
class _Output:
    """Output ``k`` of one of the two ops."""

    op: linalg.GenericOp
    k: int

    @property
    def result(self) -> OpResult:
        """The op's result for it."""
        return self.op.results[self.k]


def _is_used(result: OpResult, but_by: Operation) -> bool:
    return any(use.operation is not but_by for use in result.uses)


def _one_op(pair: _Pair) -> linalg.GenericOp:
    """Insert one op before the second that computes both, and erase both."""
    first, second = pair.first, pair.second
    reads: dict[tuple[SSAValue, Index], list[SSAValue]] = {}
    for op in (first, second):
        for value, index, argument in zip(op.inputs, indices(op), op.body.block.args, strict=False):
            if argument not in pair.passed:
                reads.setdefault((value, index), []).append(argument)
    outputs = [_Output(op, k) for op in (first, second) for k in range(len(op.outputs))]
    outputs = [each for each in outputs if each.op is second or _is_used(each.result, second)]
    accumulators = [each.op.body.block.args[len(each.op.inputs) + each.k] for each in outputs]
    block = Block(
        arg_types=[*(same[0].type for same in reads.values()), *(a.type for a in accumulators)]
    )
    olds = [*reads.values(), *([a] for a in accumulators)]
    for same, new in zip(olds, block.args, strict=True):
        new.name_hint = same[0].name_hint
        for old in same:
            old.replace_all_uses_with(new)
    values = dict(zip(first.results, yielded(first.body.block), strict=True))
    for argument, result in pair.passed.items():
        argument.replace_all_uses_with(values[result])
    ends = [yielded(each.op.body.block)[each.k] for each in outputs]
    moved: list[Operation] = []
    for op in (first, second):
        *inner, last = list(op.body.block.ops)
        for each in inner:
            each.detach()
            moved.append(each)
        last.detach()
        last.drop_all_references()
    block.add_ops([*moved, linalg.YieldOp(*ends)])
    return _insert_merged(pair, block, list(reads), outputs)


def _insert_merged(
    pair: _Pair,
    block: Block,
    reads: list[tuple[SSAValue, Index]],
    outputs: list[_Output],
) -> linalg.GenericOp:
    first, second = pair.first, pair.second
    written = [indices(each.op)[len(each.op.inputs) + each.k] for each in outputs]
    parallel = zip(is_parallel(first), is_parallel(second), strict=True)
    kinds = [
        IteratorTypeAttr.parallel() if a and b else IteratorTypeAttr.reduction()
        for a, b in parallel
    ]
    new = linalg.GenericOp(
        [value for value, _ in reads],
        [each.op.outputs[each.k] for each in outputs],
        Region(block),
        array_of_maps(len(kinds), [*(index for _, index in reads), *written]),
        ArrayAttr(kinds),
        [each.result.type for each in outputs],
    )
    new.location = fuse_locations((first.location, second.location))
    assert block.last_op is not None
    block.last_op.location = new.location
    parent = second.parent
    assert parent is not None
    parent.insert_op_before(new, second)
    for each, result in zip(outputs, new.results, strict=True):
        result.name_hint = each.result.name_hint
        each.result.replace_all_uses_with(result)
    for op in (second, first):
        op.detach()
        op.erase()
    return new
