"""Live intervals of the tensors of a host function, over the positions of its ops.

Positions number the ops in program order, with three for each op and three more for the end of its
regions. Copies before an op are parallel: all read at the first position and write at the second;
the op itself reads and writes at the third. A tensor is live from its first write to its last read.
If a loop contains the read but not the write, it is live to the loop's end; if only the "else" of a
branch contains the read, it is not live in the "then".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.lowering.bufferize.views import Steps

BEFORE, WRITTEN, RUN, GRAIN = 0, 1, 2, 3
"""Positions of an op: copies read, copies write, the op runs; and the number of positions."""


class Holes(tuple[Steps, ...]):
    """Parts of a part that are not read. They compare by identity: a chain has thousands."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass
class Reads:
    """The reads of the same part of one tensor."""

    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """The live intervals of the part, as pairs of positions."""
    operands: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The operands of launches that read it, by position."""


@dataclass(eq=False)
class Variable:
    """A tensor with its writes and its live intervals."""

    value: SSAValue
    start: int
    """The first position at which it is written or live."""
    stop: int
    written: tuple[int, int] | None = None
    """The positions of its first and its last write that is not removed."""
    writes: list[tuple[int, Steps, Any]] = field(default_factory=list[tuple[int, Steps, Any]])
    """For each write its position, the part written, and the result or copy that writes it."""
    removed: set[Any] = field(default_factory=set[Any])
    """The copies among those that write nothing."""
    reads: dict[tuple[Steps, tuple[Steps, ...]], Reads] = field(
        default_factory=dict[tuple[Steps, tuple[Steps, ...]], Reads]
    )
    """The reads by the part that is read and the parts of that which are excluded."""

    def write(self, position: int, steps: Steps, by: Any) -> None:
        """Record a write to a part."""
        self.writes.append((position, steps, by))
        first, last = self.written or (position, position)
        self.written = min(first, position), max(last, position)
        self.start, self.stop = min(self.start, position), max(self.stop, position)

    def remove(self, by: Any) -> None:
        """Record that the writes by a copy write nothing."""
        self.removed.add(by)
        left = [position for position, _, other in self.writes if other not in self.removed]
        self.written = (min(left), max(left)) if left else None

    def may_overwrite(self, other: Variable) -> bool:
        """Whether a write is between the first write and the last read of another."""
        return self.written is not None and (
            other.start <= self.written[1] and self.written[0] <= other.stop
        )

    def live(self, spans: list[tuple[int, int]], steps: Steps, but: tuple[Steps, ...]) -> Reads:
        """Record live intervals of a part, except of the parts ``but``."""
        reads = self.reads.setdefault((steps, but), Reads())
        for span in spans:
            if span not in reads.spans:
                reads.spans.append(span)
                self.start, self.stop = min(self.start, span[0]), max(self.stop, span[1])
        return reads


class Positions:
    """The positions of the ops of a host function."""

    def __init__(self, block: Block) -> None:
        self._span: dict[Operation, tuple[int, int]] = {}
        self._loops: dict[Operation, tuple[Operation, ...]] = {}
        self._count = 0
        self._number(block, ())

    def _number(self, block: Block, loops: tuple[Operation, ...]) -> None:
        for op in block.ops:
            start = end = self._count
            self._count += GRAIN
            self._loops[op] = loops
            if op.regions and not isinstance(op, kernel.LaunchOp):
                inside = (*loops, op) if isinstance(op, scf.ForOp | scf.WhileOp) else loops
                for region in op.regions:
                    for inner in region.blocks:
                        self._number(inner, inside)
                end = self._count
                self._count += GRAIN
            self._span[op] = (start, end)

    def start(self, op: Operation) -> int:
        """Return the first position of ``op``."""
        return self._span[op][0]

    def end(self, op: Operation) -> int:
        """Return the first position of the end of ``op``: after its regions, if it has any."""
        return self._span[op][1]

    def depth(self, op: Operation) -> int:
        """Return the loop depth of ``op``."""
        return len(self._loops[op])

    def loop(self, op: Operation) -> Operation | None:
        """Return the innermost loop around ``op``."""
        return self._loops[op][-1] if self._loops[op] else None

    def defined(self, value: SSAValue) -> int:
        """Return the position that defines ``value``; for a block argument, its op's start."""
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            return self._span[parent][0] if parent is not None and parent in self._span else -1
        return self._span[owner][1]

    def dominates(self, value: SSAValue, op: Operation) -> bool:
        """Whether the definition of ``value`` dominates ``op``."""
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
        block = op.parent_block()
        while block is not None and block is not home:
            block = block.parent_block()
        return block is home and self.defined(value) < self.start(op)

    def outermost(self, made: int, use: Operation) -> Operation | None:
        """Return the outermost loop around ``use`` that does not contain position ``made``."""
        for loop in self._loops[use]:
            start, end = self._span[loop]
            if not start <= made < end:
                return loop
        return None

    def spans(self, made: int, use: Operation, position: int) -> list[tuple[int, int]]:
        """Return the live intervals of a tensor defined at ``made`` and read by ``use``."""
        if (loop := self.outermost(made, use)) is not None:  # the next iteration reads it again
            use, position = loop, self._span[loop][1] - 1
        gaps: list[tuple[int, int]] = []
        block = use.parent_block()
        while block is not None and (around := block.parent_op()) in self._span:
            assert around is not None
            if self._span[around][0] <= made:
                break
            if isinstance(around, scf.IfOp) and block.parent is around.false_region:
                last = around.true_region.block.last_op
                assert last is not None
                gaps.append((self._span[around][0] + GRAIN, self._span[last][1] + GRAIN))
            block = around.parent_block()
        found: list[tuple[int, int]] = []
        for start, end in reversed(gaps):
            found.append((made, start - 1))
            made = end
        return [*found, (made, position)]
