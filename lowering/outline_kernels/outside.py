"""Cache the captured values of ops with regions, computed once per op at any nesting depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

Places: TypeAlias = list[tuple[Operation, int]]
"""Operands: the op and the operand number."""


@dataclass
class Outside:
    """Remembers which nested operands of an op with regions are captured from outside.

    Operand positions are kept, not values: they stay valid where values are replaced or ops erased.
    """

    known: dict[Operation, Places] = field(default_factory=dict[Operation, Places])

    def values(self, op: Operation) -> Iterator[SSAValue]:
        """Yield the operands and the captured values of ``op``."""
        yield from op.operands
        for inner, number in self._inside(op):
            if inner.parent is not None:
                yield inner.operands[number]

    def _inside(self, op: Operation) -> Sequence[tuple[Operation, int]]:
        if not op.regions:
            return ()
        if (found := self.known.get(op)) is None:
            found = self.known[op] = list(self._found(op))
        return found

    def _found(self, op: Operation) -> Iterator[tuple[Operation, int]]:
        for region in op.regions:
            for block in region.blocks:
                for each in block.ops:
                    own = [(each, number) for number in range(len(each.operands))]
                    for inner, number in (*own, *self._inside(each)):
                        if _home(inner.operands[number]).parent_op() is not op:
                            yield inner, number


def _home(value: SSAValue) -> Block:
    """Return the block in which ``value`` is defined."""
    owner = value.owner
    if isinstance(owner, Block):
        return owner
    assert owner.parent is not None
    return owner.parent
