"""How the loops of a kernel nest, in the terms of those who write them: what levels say, read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from stepwell.analysis.structured import (
    Index,
    combiner,
    indices,
    inverse,
    is_parallel,
    shape,
    yielded,
)
from stepwell.dialects import kernel
from stepwell.dialects.kernel.sharing import is_border

LoopedOp = linalg.GenericOp | linalg.FillOp


class Lanes(NamedTuple):
    """Which loop of an op is vectors, how wide these are and how many stand side by side.

    Without vectors the width is 1; axis -1 is no loop at all.
    """

    axis: int = -1
    width: int = 1
    many: int = 1


NO_LANES = Lanes()


@dataclass
class Nesting:
    """How the loops of one kernel nest; levels say the same, one by one."""

    shared: int = 0
    """How many of the first loops all ops share."""
    parallel: int = 0
    """How many of these, the first ones, threads share."""
    steps: tuple[int, ...] = ()
    """Iterations of each of these that one parallel iteration takes."""
    tasks: bool = False
    """Whether threads share the tasks of scalar code: its loops without dependences."""
    grain: int = 1
    """Iterations of all of them that are worth a thread; 0 where the launch finds out."""
    split: int = 0
    """Into how many parts, which threads share, a sum is cut; 0 where it is not."""
    split_rows: int = 0
    """Rows that a part of a sum over rows reads side by side."""
    tile: tuple[int, int] = (1, 1)
    """Iterations of the last two shared loops side by side in registers, as rows and vectors."""
    band: int = 1
    """Iterations of the last shared loop that each op runs over at a time."""
    ahead: int = 0
    """In runs of so many rows the first loop of the next runs along with the second of each."""
    blocks: tuple[int, ...] = ()
    """How much of the last shared loops, rows and columns being the last, then the depth."""
    stream: tuple[int, int] = (0, 0)
    """Columns of a stretch, and how many rows of the operand of the columns are read at a time."""
    pack_rows: bool = False
    """Whether blocks pack the operand that varies with the rows too."""
    in_floats: bool = False
    """Whether products of bytes are added up in floats, which is exact."""
    dots: bool = False
    """Whether products of bytes are added up four at a time."""
    unsigned_rows: bool = False
    """Whether 128 is added to the bytes of rows for that, and what comes of it taken off again."""
    pack_first: bool = False
    """Whether the first tile of a block packs what it reads, where that is simple."""
    prefetch: bool = False
    """Whether what a block packs next, or a tile reads later, is asked for while it computes."""
    unroll: bool = False
    """Whether the loops of each op's sum are written out by the compiler of the text."""
    lanes: tuple[Lanes, ...] = ()
    """Of each op that has loops, in order."""

    @property
    def whole_reads(self) -> bool:
        """Whether operands are packed or read in runs, not by the elements that a body takes."""
        return bool(self.blocks or self.stream[0] or self.split)

    @property
    def axis(self) -> int:
        """The shared loop that is vectors, or -1."""
        axis = self.lanes[0].axis if self.lanes else -1
        return axis if axis < self.shared else -1

    def step(self, loop: int) -> int:
        """Return how many iterations of a shared loop the innermost levels compute."""
        if loop == self.axis:
            _, width, many = self.lanes[0]
            return width * (self.tile[1] if self.tile != (1, 1) else many)
        if loop == self.shared - 1:
            return max(self.band, self.tile[1], 1)
        return self.tile[0] if loop == self.shared - 2 else 1


def loop_ops(function: kernel.FuncOp) -> list[LoopedOp]:
    """Return the ops of a kernel that have loops.

    Fills that start a sum are part of the sum, those of scalar code are part of that.
    """
    scalar = "kernel.scalar" in function.attributes
    return [op for op in function.body.block.ops if _has_loops(op, scalar)]


def loops_of(op: LoopedOp) -> list[bool]:
    """Return of each loop of an op whether its iterations are independent."""
    if isinstance(op, linalg.FillOp):
        return [True] * len(shape(op.outputs[0]))
    return is_parallel(op)


def first_of_rows(packed: Index, shared: int) -> int:
    """Return the first of the shared loops that stand between the rows and what is packed anew.

    packed : where an operand is read that varies with the columns and not with the rows
    """
    used = {d for expr in packed for d in expr.used_dims()}
    first = shared - 2
    while first and first - 1 not in used:
        first -= 1
    return first


def is_free(op: LoopedOp, parallel: list[bool]) -> bool:
    """Whether every result is a reduction by a known combiner over all the reduction loops.

    What is written at every iteration and does not look at what a reduction has so far may stand
    beside them.
    """
    if isinstance(op, linalg.FillOp):
        return True
    arguments, results = op.body.block.args[len(op.inputs) :], yielded(op.body.block)
    for k, index in enumerate(indices(op)[len(op.inputs) :]):
        if inverse(index, len(parallel)) is not None and not all(parallel):
            if arguments[k].first_use is not None:
                return False
            continue
        if any(not parallel[d] for expr in index for d in expr.used_dims()):
            return False
        if combiner(op, k) is None or not results[k].has_one_use():
            return False
    return True


def _has_loops(op: Operation, scalar: bool) -> TypeGuard[LoopedOp]:
    if isinstance(op, linalg.FillOp):
        values = op.results or op.outputs
        uses = [use for use in values[0].uses if use.operation is not op]
        return not scalar and not any(isinstance(use.operation, linalg.GenericOp) for use in uses)
    return isinstance(op, linalg.GenericOp) and not is_border(op)
