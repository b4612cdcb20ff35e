"""Merge generics that traverse one tensor in the same way into one op with several results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from stepwell.analysis.structured import Index, combiner, inverse, is_not_fused, plain
from stepwell.transforms.structured.fuse.cost import MAX_TENSORS
from stepwell.transforms.structured.fuse.draft import Draft, Readers

Walk: TypeAlias = tuple[SSAValue, Index, tuple[bool, ...]]
"""A tensor, the index at which it is read, and which of the loops are parallel."""


@dataclass
class Siblings:
    """The drafts of one block; the earlier ones keyed by their traversals."""

    block: Block
    readers: Readers
    positions: dict[Operation, int] = field(init=False)
    earlier: dict[Walk, Draft] = field(default_factory=dict[Walk, Draft])

    def __post_init__(self) -> None:
        self.positions = {op: i for i, op in enumerate(self.block.ops)}

    def merge(self, drafts: Sequence[Draft]) -> set[int]:
        """Merge siblings among ``drafts``, in program order; return the ids of those removed."""
        away: set[int] = set()
        for draft in drafts:
            if not _is_simple(draft):
                continue
            kept = draft
            for other in {id(d): d for w in _walks(draft) if (d := self.earlier.get(w))}.values():
                if other is kept or id(other) in away or other.op is kept.op:
                    continue
                if len(other.reads) + len(kept.reads) > MAX_TENSORS:
                    continue
                first, second = sorted((other, kept), key=lambda d: self.positions[d.op])
                if self._can_sink(first, second):
                    self._merge(first, second)
                    away.add(id(first))
                    kept = second
                elif self._can_hoist(second, first):
                    self._merge(second, first)
                    away.add(id(second))
                    kept = first
            self.earlier.update((walk, kept) for walk in _walks(kept))
        return away

    def _merge(self, draft: Draft, into: Draft) -> None:
        for destination in draft.outputs:
            self.positions[destination.result.op] = self.positions[into.op]
        into.take(draft)

    def position(self, value: SSAValue) -> int:
        """Return the position at which ``value`` is defined, -1 if before the block."""
        owner = value.owner
        return self.positions.get(owner, -1) if isinstance(owner, Operation) else -1

    def _can_sink(self, first: Draft, second: Draft) -> bool:
        """Whether all users of ``first`` come after ``second``."""
        here = self.positions[second.op]
        for destination in first.outputs:
            result = destination.result
            for draft, index in self.readers.get(result, ()):
                if (result, index) in draft.reads and self._inside(draft.op) <= here:
                    return False
            for use in result.uses:
                user = use.operation
                merged = isinstance(user, linalg.GenericOp) and use.index < len(user.inputs)
                if not merged and self._inside(user) <= here:
                    return False
        return True

    def _inside(self, op: Operation) -> int:
        """Return the position of the op in the block that contains ``op``."""
        at: Operation | None = op
        while at is not None and at not in self.positions:
            at = at.parent_op()
        return self.positions[at] if at is not None else -1

    def _can_hoist(self, second: Draft, first: Draft) -> bool:
        """Hoist the operands of ``second`` before ``first`` if legal; return whether it is."""
        needed = [*(v for v, _ in second.reads), *(v for v, _ in second.sizes)]
        needed += [d.init for d in second.outputs]
        here = self.positions[first.op]
        moving: dict[Operation, None] = {}
        if not all(self._movable(value, here, moving) for value in needed):
            return False
        for op in moving:
            op.detach()
            self.block.insert_op_before(op, first.op)
            self.positions[op] = here - 1
        return True

    def _movable(self, value: SSAValue, here: int, moving: dict[Operation, None]) -> bool:
        if self.position(value) < here:
            return True
        op = value.owner
        if not isinstance(op, tensor.EmptyOp | linalg.FillOp | arith.ConstantOp | tensor.DimOp):
            return False
        if op not in moving:
            if not all(self._movable(v, here, moving) for v in op.operands):
                return False
            moving[op] = None
        return True


def _walks(draft: Draft) -> list[Walk]:
    """Return the reads of ``draft`` that index a tensor by all of its loops, one per axis."""
    return [
        (value, index, tuple(draft.parallel))
        for value, index in draft.reads
        if index and inverse(index, draft.loops) is not None
    ]


def _is_simple(draft: Draft) -> bool:
    """Whether ``draft`` is elementwise or has only known combiners, and captures no value."""
    if draft.contracts() or _captures(draft.block) or is_not_fused(draft.op):
        return False
    for i, destination in enumerate(draft.outputs):
        loops = [plain(expr) for expr in destination.index]
        if None in loops or not all(draft.parallel[k] for k in loops if k is not None):
            return False
        if len(loops) < draft.loops and combiner(draft.op, i) is None:
            return False
    return True


def _captures(block: Block) -> bool:
    """Whether a body captures values, or loads from memory at computed indices."""
    return any(
        isinstance(op, tensor.ExtractOp)
        or op.regions
        or any(_is_outer(v, block) for v in op.operands)
        for op in block.ops
    )


def _is_outer(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    if isinstance(owner, Block):
        return owner is not block and owner.parent is not None
    return owner.parent is not None and owner.parent is not block
