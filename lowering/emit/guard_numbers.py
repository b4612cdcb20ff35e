"""Number the guards of a program, and find the index values that come from memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.core.guards import FIRST, Guard
from stepwell.dialects.types import place_of


@dataclass
class Guards:
    """The guards of a program, numbered in order."""

    numbers: dict[Guard, int] = field(default_factory=dict[Guard, int])
    wild: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])
    """Caches whether the C compiler might reload a number from memory after its check."""

    @property
    def found(self) -> tuple[Guard, ...]:
        """All guards, in the order of their numbers."""
        return tuple(self.numbers)

    def number(self, op: Operation, words: tuple[str, ...]) -> int:
        """Return the number of a guard of ``op``."""
        at = place_of(op)
        guard = Guard(words, str(at) if at else "")
        return self.numbers.setdefault(guard, FIRST + len(self.numbers))

    def number_of(self, guard: Guard) -> int:
        """Return the number of a given guard."""
        return self.numbers.setdefault(guard, FIRST + len(self.numbers))

    def is_wild(self, value: SSAValue) -> bool:
        """Whether a number is loaded from memory, which other threads may write."""
        if (known := self.wild.get(value)) is None:
            known = self.wild[value] = self._comes_from_memory(value)
        return known

    def _comes_from_memory(self, value: SSAValue) -> bool:
        op = value.owner
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            counts = isinstance(loop, scf.ParallelOp) or (
                isinstance(loop, scf.ForOp) and not value.index
            )
            return not counts
        if isinstance(op, memref.DimOp | arith.ConstantOp):
            return False
        is_plain = isinstance(op, Operation) and op.name.startswith("arith.")
        return not is_plain or any(map(self.is_wild, value.owner.operands))  # pyright: ignore

    def wild_operands(self, op: Operation) -> list[SSAValue]:
        """Return the numbers from memory that ``op`` uses as indices, sizes or bounds."""
        if not (isinstance(op, _CHOOSING) or _touches_buffers(op)):
            return []
        found = dict.fromkeys(v for v in op.operands if isinstance(v.type, IndexType))
        return [value for value in found if self.is_wild(value)]


_CHOOSING = (scf.ForOp, scf.ParallelOp, vector.ExtractOp, vector.InsertOp)
"""Ops besides accesses of buffers whose index operands choose an element or iteration."""


def _touches_buffers(op: Operation) -> bool:
    return any(isinstance(value.type, MemRefType) for value in (*op.operands, *op.results))
