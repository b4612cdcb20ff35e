"""The nesting of a kernel's loops, the form of its levels that passes read and write."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from stepwell.dialects.kernel.levels import PEEL, Level
from stepwell.dialects.kernel.sharing import is_border

LoopedOp = linalg.GenericOp | linalg.FillOp


class Lanes(NamedTuple):
    """The loop of an op that is vectorised, the width of its vectors and how many are interleaved.

    Without vectors the width is 1; axis -1 stands for no loop. ``tail`` tells how the loop ends.
    """

    axis: int = -1
    width: int = 1
    many: int = 1
    tail: str = PEEL
    nontemporal: tuple[int, ...] = ()
    """The results that are written with nontemporal stores."""


NO_LANES = Lanes()


@dataclass
class Nesting:
    """How the loops of one kernel nest; its levels are another form of the same choices."""

    shared: int = 0
    """How many of the first loops all ops share."""
    parallel: int = 0
    """How many of the shared loops, counted from the first, are parallel."""
    steps: tuple[int, ...] = ()
    """Iterations of each parallel loop that one parallel iteration takes."""
    tasks: bool = False
    """Whether the tasks of scalar code, its independent loops, run in parallel."""
    grain: int = 1
    """Parallel iterations that are worth a thread; 0 where they are counted at launch."""
    split: int = 0
    """Parallel parts into which a sum is split; 0 where it is not."""
    split_rows: int = 0
    """Rows that a part of a sum over rows reads side by side."""
    tile: tuple[int, int] = (1, 1)
    """The register tile: iterations of the last two shared loops, as rows and vectors."""
    band: int = 1
    """Iterations of the last shared loop that each op takes at a time."""
    pipeline_rows: int = 0
    """Rows of a software-pipelined run: each second loop runs with the next row's first."""
    blocks: tuple[int, ...] = ()
    """The cache block: iterations of the last shared loops (rows, columns last), then depth."""
    strip: tuple[int, int] = (0, 0)
    """The strip: its columns, and the rows of the column operand that are read at a time."""
    order: tuple[Level, ...] = ()
    """The levels around a tile of a sum in steps that are neither those of a block nor of a strip.
    """
    pack_rows: bool = False
    """Whether blocks pack the operand that varies with the rows too."""
    accumulate_in_f32: bool = False
    """Whether products of bytes accumulate in f32, where that is exact."""
    dots: bool = False
    """Whether both operands are packed as words for dot-product instructions."""
    bias_to_unsigned: bool = False
    """Whether the bytes of rows are biased to unsigned by 128; the sums are corrected."""
    pack_first: bool = False
    """Whether the first tile of a block packs while it computes, where the layout allows it."""
    prefetch: int = 0
    """How many steps before their use operands are prefetched, of a tile in steps of its sum; 0 for
    no prefetching. Blocks, strips and parts of a sum prefetch the next step."""
    unroll: bool = False
    """Whether the loops of each op's sum are unrolled by the target's compiler."""
    lanes: tuple[Lanes, ...] = ()
    """The vectorised loop of each op that has loops, in order."""
    tails: dict[int, str] = field(default_factory=dict[int, str])
    """How the shared loops end that are not vectorised, where they do not peel."""

    @property
    def whole_reads(self) -> bool:
        """Whether operands are packed or read in runs instead of by the body's accesses."""
        return self.in_steps or bool(self.split)

    @property
    def in_steps(self) -> bool:
        """Whether a sum is taken in steps, its partial sums in scratch."""
        return bool(self.blocks or self.strip[0] or self.order)

    @property
    def axis(self) -> int:
        """The shared loop that is vectorised, or -1."""
        axis = self.lanes[0].axis if self.lanes else -1
        return axis if axis < self.shared else -1

    def tail(self, loop: int) -> str:
        """Return how a shared loop ends."""
        return self.lanes[0].tail if loop == self.axis else self.tails.get(loop, PEEL)

    def step(self, loop: int) -> int:
        """Return the iterations of a shared loop that the innermost levels compute."""
        if loop == self.axis:
            _, width, many, *_ = self.lanes[0]
            return width * (self.tile[1] if self.tile != (1, 1) else many)
        if loop == self.shared - 1:
            return max(self.band, self.tile[1], 1)
        return self.tile[0] if loop == self.shared - 2 else 1


def loop_ops(function: kernel.FuncOp) -> list[LoopedOp]:
    """Return the ops of a kernel that have loops.

    A fill that initialises a sum is part of the sum; one of scalar code is part of that code.
    """
    scalar = "kernel.scalar" in function.attributes
    return [op for op in function.body.block.ops if _has_loops(op, scalar)]


def loops_of(op: LoopedOp) -> list[bool]:
    """Return for each loop of an op whether its iterations are independent."""
    if isinstance(op, linalg.FillOp):
        return [True] * len(shape(op.outputs[0]))
    return is_parallel(op)


def first_of_rows(packed: Index, shared: int) -> int:
    """Return the first shared loop after the last one that the packed operand varies with.

    packed : the access to an operand that varies with the columns and not with the rows
    """
    used = {d for expr in packed for d in expr.used_dims()}
    first = shared - 2
    while first and first - 1 not in used:
        first -= 1
    return first


def is_free(op: LoopedOp, parallel: list[bool]) -> bool:
    """Whether every result is a reduction by a known combiner over all the reduction loops.

    Results written at every iteration that do not read an accumulator are allowed too.
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
