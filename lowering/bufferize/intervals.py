"""When each tensor of a host function is live: the positions of ops, and intervals of these.

Positions are numbers in program order. A copy before an op reads at its first and writes at its
second, the op itself reads and writes at its third; copies of one op read before any of them
writes. A tensor is live from its first write to its last read, in a loop around a read that is not
around the write to the loop's end, and not in the "then" of a branch whose "else" has the read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.lowering.bufferize.views import Steps

BEFORE, WRITTEN, RUN, GRAIN = 0, 1, 2, 3
"""What happens at an op, in order, and how many positions it takes."""


@dataclass
class Reads:
    """Reads of one tensor that see the same part of it."""

    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """From when to when they want what the tensor holds."""
    operands: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The operands of launches that read it, by position."""


@dataclass(eq=False)
class Variable:
    """A tensor: what writes it, and when it is live."""

    value: SSAValue
    start: int
    """When it is first written."""
    stop: int
    written: tuple[int, int] | None = None
    """When it is first and last written."""
    writes: list[tuple[int, Steps, Any]] = field(default_factory=list[tuple[int, Steps, Any]])
    """When it is written, which part, and by which result or copy."""
    reads: dict[tuple[Steps, tuple[Steps, ...]], Reads] = field(
        default_factory=dict[tuple[Steps, tuple[Steps, ...]], Reads]
    )
    """By the part that is read, and parts of that which are not."""

    def write(self, position: int, steps: Steps, by: Any) -> None:
        """Note a write of a part."""
        self.writes.append((position, steps, by))
        first, last = self.written or (position, position)
        self.written = min(first, position), max(last, position)
        self.start, self.stop = min(self.start, position), max(self.stop, position)

    def live(self, spans: list[tuple[int, int]], steps: Steps, but: tuple[Steps, ...]) -> Reads:
        """Note when a part is live."""
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
        """Return where the end of ``op`` begins: behind its regions, if it has some."""
        return self._span[op][1]

    def depth(self, op: Operation) -> int:
        """Return how many loops are around ``op``."""
        return len(self._loops[op])

    def loop(self, op: Operation) -> Operation | None:
        """Return the innermost loop around ``op``."""
        return self._loops[op][-1] if self._loops[op] else None

    def defined(self, value: SSAValue) -> int:
        """Return when ``value`` comes to be; what a block is given, when its op begins."""
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            return self._span[parent][0] if parent is not None and parent in self._span else -1
        return self._span[owner][1]

    def dominates(self, value: SSAValue, op: Operation) -> bool:
        """Whether ``value`` is known at ``op``."""
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
        block = op.parent_block()
        while block is not None and block is not home:
            block = block.parent_block()
        return block is home and self.defined(value) < self.start(op)

    def outermost(self, made: int, use: Operation) -> Operation | None:
        """Return the outermost loop around ``use`` that what is made at ``made`` is not in."""
        for loop in self._loops[use]:
            start, end = self._span[loop]
            if not start <= made < end:
                return loop
        return None

    def spans(self, made: int, use: Operation, position: int) -> list[tuple[int, int]]:
        """Return when a tensor is live that is made at ``made`` and read by ``use``."""
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
