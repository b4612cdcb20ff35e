"""Choose the vectorised loop of a structured op, its width, and the vectors in flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.cost.compute import STRIDES
from stepwell.analysis.levels.kernel_ops import is_free, writes_along
from stepwell.analysis.levels.queries import NO_LANES, Lanes
from stepwell.analysis.levels.tails import MIN_LANES
from stepwell.analysis.shifts import shift_of
from stepwell.analysis.structured import (
    Index,
    bits_of,
    cost,
    dims_of,
    extents,
    identity,
    indices,
    is_contraction,
    is_parallel,
    shape,
    stride,
)
from stepwell.core.machine import Machine
from stepwell.dialects import kernel

ASSUMED_EXTENT = 256
"""Assumed extent of a loop that is known at run time only."""
CHUNK = 1 << 15
"""Work that is worth handing to a thread: 0.3 us at two vectors of 16 lanes a cycle and 4 GHz,
three times the time that a waiting thread takes to begin (`Machine.launch`)."""
MASKED_BITS = 512
"""Bits of a vector from which on the machine's loads take a mask: AVX-512."""
STRAIGHT = (
    *(linalg.GenericOp, linalg.FillOp, tensor.EmptyOp, tensor.DimOp),
    *(arith.ConstantOp, kernel.ReturnOp),
)
"""The ops of a kernel without control flow."""


def busy(machine: Machine, least: int) -> int:
    """Return the blocks that keep every thread busy: ``least``, or two for each thread.

    Threads take blocks dynamically, so with two of each, none waits longer than half its time.
    """
    return max(least, 2 * machine.threads)


def page(machine: Machine) -> int:
    """Return the bytes of a way of the L1 cache: rows at multiples of it share few lines."""
    return max(machine.l1 // machine.l1_ways, 1)


class Operand(NamedTuple):
    """An input that a body reads, where it does, and the loops that the index uses."""

    number: int
    value: SSAValue
    place: Index
    loops: set[int]


@dataclass
class Loops:
    """The properties of one op that the choice of a vector axis depends on."""

    op: linalg.GenericOp | linalg.FillOp
    parallel: list[bool]
    extents: list[int]
    accesses: list[Index]
    """The indices of each operand that the body touches; accumulators are not among them, as they
    stay in registers."""
    work: int
    """The cost of one iteration, in additions and memory accesses."""
    free: bool
    """Whether reductions may run in any order."""
    gathers: bool
    """Whether the body reads memory at indices it computes, other than along a row."""
    reads: int = 0
    """How many of the accesses, counted from the first, are reads."""
    likely: dict[int, int] = field(default_factory=dict[int, int])
    """Likely extents of loops known at run time only, where other than `ASSUMED_EXTENT`."""
    picks: bool = False
    """Whether several columns share the vectors that lanes of a sum are picked out of."""
    lanes: Lanes = NO_LANES
    """The loop that is chosen to be vectorised."""

    def size(self, loop: int) -> int:
        """Return the known or assumed extent of ``loop``."""
        known = self.extents[loop]
        return self.likely.get(loop, ASSUMED_EXTENT) if known == DYNAMIC_INDEX else known

    @property
    def iterations(self) -> int:
        """Return the number of iterations of the body."""
        return prod(self.size(k) for k in range(len(self.extents)))

    def score(self, axis: int) -> float:
        """Return the part of the accesses that are whole vectors, or one element, along a loop."""
        good = sum(stride(index, axis) in (0, 1) for index in self.accesses)
        if self.parallel[axis] or self.picks:
            # strided lanes are loaded as whole vectors and shuffled
            good += sum(stride(index, axis) in STRIDES for index in self.accesses[: self.reads])
        return good / len(self.accesses) if self.accesses else 1.0

    def allows(self, axis: int) -> bool:
        """Whether iterations of ``axis`` may run side by side."""
        return self.parallel[axis] or self.free

    @cached_property
    def where(self) -> list[Index]:
        """The index of each operand, inputs first."""
        return indices(self.op) if isinstance(self.op, linalg.GenericOp) else []

    @cached_property
    def operands(self) -> list[Operand]:
        """The inputs that the body reads."""
        inputs = self.where[: len(self.op.inputs)]
        arguments = self.op.body.block.args if isinstance(self.op, linalg.GenericOp) else ()
        return [
            Operand(number, self.op.operands[number], index, dims_of(index))
            for number, index in enumerate(inputs)
            if arguments[number].first_use is not None
        ]

    @property
    def writes_along(self) -> bool:
        """Whether some result is written while the reductions run, not after them."""
        return writes_along(self.op, self.parallel)

    @property
    def contracts(self) -> bool:
        """Whether the op is a contraction."""
        inputs = len(self.op.inputs) if self.where else 0
        return not all(self.parallel) and is_contraction(self.parallel, self.accesses[:inputs])


class Range(NamedTuple):
    """The least, the greatest and the likely number of iterations of a loop."""

    loop: int
    low: int
    high: int
    likely: int


def read(op: linalg.GenericOp | linalg.FillOp, some: Range | None = None) -> Loops:
    """Return the properties of the loops of ``op``.

    some : the known range of a loop whose extent is known at run time only
    """
    loops = _read(op)
    if some is None or some.low == some.high or some.loop >= len(loops.extents):
        loops.picks = some is not None and some.low in STRIDES and loops.contracts
        return loops
    if loops.extents[some.loop] == DYNAMIC_INDEX:
        loops.likely = {some.loop: some.likely}
    return loops


def _read(op: linalg.GenericOp | linalg.FillOp) -> Loops:
    if isinstance(op, linalg.FillOp):
        rank = len(shape(op.outputs[0]))
        size = list(shape(op.outputs[0]))
        return Loops(op, [True] * rank, size, [identity(rank)], 1, True, False)
    block = op.body.block
    where, inputs = indices(op), len(op.inputs)
    read = zip(where[:inputs], block.args[:inputs], strict=True)
    touched = [index for index, argument in read if argument.first_use is not None]
    parallel = is_parallel(op)
    work, reads = max(cost(block), 1) + len(touched) + len(op.outputs), len(touched)
    touched += [index for index in where[inputs:] if not _is_running(index, parallel)]
    rows = [_row_read(op, inner) for inner in block.walk() if isinstance(inner, tensor.ExtractOp)]
    touched += [row for row in rows if row]
    gathers = not all(rows)
    free = is_free(op, parallel)
    return Loops(op, parallel, extents(op), touched, work, free, gathers, reads)


def _row_read(op: linalg.GenericOp, read: tensor.ExtractOp) -> Index:
    """Return the index of a body's read along a row that it computes, else an empty one.

    Its last loop walks along the row, from any start; the row may vary with any other loop.
    """
    if not read.indices or (shift := shift_of(read.indices[-1])) is None:
        return ()
    along = shift.loop.dim.value.data
    if any(along in _loops_behind(op, v) for v in (*read.indices[:-1], *shift.others)):
        return ()
    others = [k for k in range(len(op.iterator_types)) if k != along]
    return tuple(AffineDimExpr(k) for k in (*others, along))


def _loops_behind(op: linalg.GenericOp, value: SSAValue) -> set[int]:
    """Return the loops of ``op`` with which a value of its body may vary."""
    block, found, seen = op.body.block, set[int](), [value]
    for each in seen:
        if each.owner is block:
            assert isinstance(each, BlockArgument)
            found |= {d for expr in indices(op)[each.index] for d in expr.used_dims()}
        elif isinstance(each.owner, linalg.IndexOp):
            found.add(each.owner.dim.value.data)
        elif isinstance(each.owner, Operation) and each.owner.parent is block:
            seen += [v for v in each.owner.operands if v not in seen]
    return found


def _is_running(index: Index, parallel: list[bool]) -> bool:
    """Whether ``index`` is that of a reduction's result, written once at its end."""
    return not all(parallel) and all(parallel[d] for d in dims_of(index))


def own_axis(loops: Loops, shared: int) -> int | None:
    """Return the best loop of the op itself to vectorise, None where none is good."""
    axes = [k for k in range(shared, len(loops.extents)) if loops.allows(k)]
    return best(loops, axes)


def best(loops: Loops, axes: Sequence[int]) -> int | None:
    """Return the best of ``axes``: most vector accesses, then parallel, then innermost."""
    ranked = sorted(axes, key=lambda k: (loops.score(k), loops.parallel[k], k))
    return ranked[-1] if ranked and is_good(loops, ranked[-1]) else None


def is_good(loops: Loops, axis: int) -> bool:
    """Whether vectors along ``axis`` repay the accesses that must be gathered."""
    if loops.gathers or loops.size(axis) < MIN_LANES:
        return False
    score = loops.score(axis)
    return score > 0.5 or (score == 0.5 and loops.work >= 8)


def lanes(ops: Sequence[Loops], axis: int, machine: Machine, overlap: bool = False) -> int:
    """Return how many lanes a vector along ``axis`` should have in all of ``ops``.

    The tail of the axis takes one more vector where vectors may ``overlap``, else an iteration for
    each element.
    """
    widest = max(_widest(loops) for loops in ops)
    most = full_lanes(ops, machine)
    size = ops[0].extents[axis]
    if size == DYNAMIC_INDEX:
        return most if most >= MIN_LANES else 1
    choices: list[int] = []
    while most >= MIN_LANES or (most >= 2 and widest == 64):
        choices.append(most)
        most //= 2
    fitting = [w for w in choices if w <= size]
    return min(fitting, key=lambda w: -(-size // w) if overlap else size // w + size % w, default=1)


def full_lanes(ops: Sequence[Loops], machine: Machine) -> int:
    """Return how many of the widest elements that ``ops`` compute with fill a vector."""
    return machine.full_lanes(max(_widest(loops) for loops in ops))


def _widest(loops: Loops) -> int:
    """Return the bits of the widest element that a body computes with."""
    if isinstance(loops.op, linalg.FillOp):
        return bits_of(loops.op.inputs[0].type)
    return _widest_of(loops.op.body.block)


def _widest_of(block: Block) -> int:
    found = [bits_of(arg.type) for arg in block.args if arg.first_use is not None]
    found += [bits_of(r.type) for op in block.ops if not _is_only_cast(op) for r in op.results]
    return max(found, default=8)


def _is_only_cast(op: Operation) -> bool:
    """Whether ``op`` is an iteration's number that is used only as narrower integers."""
    uses = op.result.uses if isinstance(op, linalg.IndexOp) else ()
    return bool(uses) and all(isinstance(use.operation, arith.IndexCastOp) for use in uses)


def at_once(loops: Loops, axis: int, width: int) -> int:
    """Return how many vectors along ``axis`` should be in flight."""
    if loops.parallel[axis]:
        count = 4 if loops.work <= 6 else 2 if loops.work <= 16 else 1
    else:
        count = 4 if loops.work <= 12 else 2 if loops.work <= 20 else 1
    while count > 1 and width * count > loops.size(axis):
        count //= 2
    return count


def sums_rows(loops: Loops, axis: int) -> bool:
    """Whether the op sums over one loop an operand that is contiguous along another, ``axis``."""
    inner = [k for k, parallel in enumerate(loops.parallel) if not parallel]
    return (
        len(inner) == 1
        and loops.parallel[axis]
        and any(stride(index, axis) == 1 and inner[0] in dims_of(index) for index in loops.accesses)
    )
