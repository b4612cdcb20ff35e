"""The guards of a program, numbered, and which numbers are compared as they lie in memory."""

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
    """Of numbers: whether the C compiler might read them from memory a second time."""

    @property
    def found(self) -> tuple[Guard, ...]:
        """Every guard there is, in the order of their numbers."""
        return tuple(self.numbers)

    def number(self, op: Operation, words: tuple[str, ...]) -> int:
        """Return the number of a guard of ``op``."""
        at = place_of(op)
        guard = Guard(words, str(at) if at else "")
        return self.numbers.setdefault(guard, FIRST + len(self.numbers))

    def number_of(self, guard: Guard) -> int:
        """Return the number of a guard that says what it is."""
        return self.numbers.setdefault(guard, FIRST + len(self.numbers))

    def is_wild(self, value: SSAValue) -> bool:
        """Whether a number comes from memory, which other threads may be writing."""
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

    def told(self, op: Operation) -> list[SSAValue]:
        """Return the numbers from memory by which ``op`` says where something is."""
        if not (isinstance(op, _CHOOSING) or _touches_buffers(op)):
            return []
        found = dict.fromkeys(v for v in op.operands if isinstance(v.type, IndexType))
        return [value for value in found if self.is_wild(value)]


_CHOOSING = (scf.ForOp, scf.ParallelOp, vector.ExtractOp, vector.InsertOp)
"""What else says by numbers where something is."""


def _touches_buffers(op: Operation) -> bool:
    return any(isinstance(value.type, MemRefType) for value in (*op.operands, *op.results))
