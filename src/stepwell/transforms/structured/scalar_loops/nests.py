"""Write structured ops inside loops as loops over their elements, in place.

Before:  %r = linalg.generic {i} ins(%row, %other) outs(...) { mulf }
         %d = linalg.generic {i} ins(%r) outs(%zero) { addf }
         %y = tensor.insert_slice %r into %x[%k, 0] [1, 9]
After:   %d = scf.for %i = %c0 to %c9 iter_args(%acc = %zero) { ... addf ... } {kernel.simd}
         %y = scf.for %i = %c0 to %c9 iter_args(%a = %x) {
           ... tensor.insert %v into %a[%k, %i] ... } {kernel.simd}

Intermediate arrays are not stored: an element is computed where it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import AnyFloat, IndexType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.transforms.structured.scalar_loops.bounds import number_of
from stepwell.transforms.structured.scalar_loops.code import Code, Refused, refuse
from stepwell.transforms.structured.scalar_loops.flow import is_outside
from stepwell.transforms.structured.scalar_loops.narrowing import narrowed
from stepwell.transforms.structured.scalar_loops.splitting import split

INDEX = IndexType()

MAX_ELEMENTS = 1 << 14
"""The most elements of an op; larger ones stay kernels, with wider vectors and threads."""
UNKNOWN_SIZE = 1 << 10
"""The length assumed for a dynamic axis: a row of it is within MAX_ELEMENTS, a matrix is not.

A window both of whose ends the run decides is as long at most: the windows of a loop tend to divide
an axis among them, as the rows of a sparse matrix do.
"""

SHORT = 1 << 6
"""The most iterations of a loop that takes less time than the launches, some 100 ns, that the host
would need instead of it: kernels compute longer arrays with vectors."""

Element = Callable[[Sequence[SSAValue]], SSAValue]
Body = Callable[[Sequence[SSAValue], Sequence[SSAValue]], list[SSAValue]]
"""Maps the loop indices and the carried values to the yielded values."""


@dataclass
class Writing:
    """An array whose elements are being written by a loop."""

    array: int
    before: SSAValue
    """Its state before the loop."""
    now: SSAValue
    """Its state in the current iteration."""
    place: Sequence[SSAValue]
    apart: bool = True
    """Whether no iteration reads an element that another one writes."""


@dataclass
class Level:
    """A loop over elements that is being written."""

    block: Block
    starts: list[SSAValue] = field(default_factory=list[SSAValue])
    """The initial values of the numbers that it carries for running sums, and the like."""
    ends: list[SSAValue] = field(default_factory=list[SSAValue])
    scans: dict[Operation, list[SSAValue]] = field(default_factory=dict[Operation, list[SSAValue]])
    """For each op that computes running values: those of the current iteration."""


@dataclass
class Nests:
    """The element loops that are being written, outermost first."""

    code: Code
    indices: list[SSAValue] = field(default_factory=list[SSAValue])
    levels: list[Level] = field(default_factory=list[Level])
    inner: list[int] = field(default_factory=lambda: [1])
    """The most iterations of a nest outside all loops, then inside each loop being written."""
    costly: list[Refused | None] = field(default_factory=lambda: [None])
    """For the same places, why an element there is too costly unless the loop is a window's."""
    length: int = 0
    """The most iterations of the nest that was written last."""
    writing: list[Writing] = field(default_factory=list[Writing])

    def write(
        self,
        op: Operation,
        sizes: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        body: Body,
        may_be_vectors: Callable[[], bool],
    ) -> list[SSAValue]:
        """Write a nest of loops of these sizes around ``body``; return their results.

        carried : the initial values
        may_be_vectors : whether adjacent iterations of the innermost loop are independent, called
            after it has been written
        """
        left = [k for k, size in enumerate(sizes) if number_of(size) != 1]
        at = [self.code.index(0)] * len(sizes)
        others, self.inner[-1] = self.inner[-1], 1
        with self.code.arrays.entered(carried) as read:
            results = self._level(list(sizes), left, at, carried, body, may_be_vectors)
        if read:
            loop = results[0].owner
            assert isinstance(loop, scf.ForOp)
            loop.detach()
            split(self.code, op, loop)
            self.code.block.add_op(loop)
        self.length = self.inner[-1]
        self.inner[-1] = max(self.length, others)
        if not self.indices and self.inner[0] > MAX_ELEMENTS:
            refuse(op, "an op on arrays is large enough for a kernel of its own")
        return results

    def _level(
        self,
        sizes: Sequence[SSAValue],
        left: Sequence[int],
        at: list[SSAValue],
        carried: Sequence[SSAValue],
        body: Body,
        may_be_vectors: Callable[[], bool],
    ) -> list[SSAValue]:
        if not left:
            return body(at, carried)
        axis, *rest = left
        size, code, arrays = sizes[axis], self.code, self.code.arrays
        block = Block(arg_types=[INDEX, *(v.type for v in carried)])
        index, *given = block.args
        for start, argument in zip(carried, given, strict=True):
            argument.name_hint = start.name_hint
            if start in arrays.of:
                arrays.change(start, argument)
        held = code.bounds.of(size)
        assert held is not None
        code.bounds.note(index, (0, max(held[1] - 1, 0)))
        with code.inside(block):
            code.bounds.order(index, size, 1)
            self.indices.append(index)
            self.levels.append(level := Level(block))
            self.inner.append(1)
            self.costly.append(None)
            ends = self._level(
                sizes, rest, [*at[:axis], index, *at[axis + 1 :]], given, body, may_be_vectors
            )
            self.indices.pop()
            self.levels.pop()
            code.put(scf.YieldOp(*ends, *level.ends))
        low, high = narrowed(code, block, (code.index(0), size))
        inside, costly = self.inner.pop(), self.costly.pop()
        if costly is not None and not _is_short(costly, low, high, size):
            raise costly
        self.inner[-1] = max(self.inner[-1], inside * _length(low, high, size))
        starts = [*carried, *level.starts]
        loop = scf.ForOp(low, high, code.index(1), starts, Region(block))
        if not rest and not level.scans and may_be_vectors() and _is_vector_loop(block):
            loop.attributes["kernel.simd"] = UnitAttr()
        code.put(loop, [v.name_hint for v in carried])
        for start, result in zip(carried, loop.results, strict=False):
            if start in arrays.of:
                arrays.change(start, result)
        return list(loop.results[: len(carried)])

    def scanned(
        self,
        op: Operation,
        result: SSAValue,
        index: SSAValue,
        starts: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], tuple[list[SSAValue], list[SSAValue]]],
    ) -> list[SSAValue]:
        """Return the running values of an iteration, which the loop along ``index`` carries on.

        starts : the values before the first iteration
        body : computes the values to carry on and the results of an iteration, of the former
        """
        level = self.levels[-1] if self.indices and self.indices[-1] is index else None
        if level is None or level.block is not self.code.block:
            why = "running values are read elsewhere than one after the other"
            raise Refused(op, why, store=result)
        if op not in level.scans:
            if not all(is_outside(v, level.block) for v in starts):
                refuse(op, "running values begin with a number that the loop computes")
            block, level.scans[op] = level.block, []
            given = [block.insert_arg(v.type, len(block.args)) for v in starts]
            level.starts += starts
            ends, level.scans[op] = body(given)
            level.ends += ends
        return level.scans[op]

    def leave(self, *limits: SSAValue) -> None:
        """Leave a loop that the user wrote; refuse what is too costly in it.

        limits : its bounds, and the size of the axis that it goes along, if it has any
        """
        costly = self.costly.pop()
        if costly is not None and not (limits and is_window(*limits)):
            raise costly

    def check_read(self, op: Operation, array: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
        """Return the state of an array to read from, which may be one that is being written.

        Refuse the loop where the element may have been overwritten.
        """
        arrays = self.code.arrays
        if (number := arrays.of.get(array)) is None:
            return array
        for each in self.writing:
            if each.array != number:
                continue
            if array is not each.now:
                if not self._is_as_before(each.before, array, at):
                    return array
                array = each.now
            far = self._distance(each, at)
            if far is None:
                why = "an array is computed from elements that may have been overwritten"
                self.costly[-1] = self.costly[-1] or Refused(op, why, unless_short=True)
                return each.before
            each.apart &= far == 0
            return array
        newest = arrays.newest[number]
        return newest if self._is_as_before(newest, array, at) else array

    def _is_as_before(self, state: SSAValue, before: SSAValue, at: Sequence[SSAValue]) -> bool:
        """Whether the element at ``at`` is the same in a later and an earlier state of an array."""
        while state is not before:
            write = self.code.arrays.written.get(state)
            if write is None:
                return False
            pairs = zip(write.place, at, strict=True)
            if not any(a is not None and self._are_apart(a, b) for a, b in pairs):
                return False
            state = write.before
        return True

    def _are_apart(self, written: SSAValue, read: SSAValue) -> bool:
        """Whether two indices along an axis differ, where only one index is written."""
        bounds = self.code.bounds
        (a, more), (b, less) = bounds.sum_of(written), bounds.sum_of(read)
        if _differ(written, read) or (a is b and more != less):
            return True
        return bounds.is_ordered(written, read, 1) or bounds.is_ordered(read, written, 1)

    def _distance(self, writing: Writing, at: Sequence[SSAValue]) -> int | None:
        """Return how many iterations after the read its element is written; 0 if in no other.

        None where that is unknown, or the element has been written before.
        """
        bounds, around = (
            self.code.bounds,
            [i.owner for i in self.indices if isinstance(i.owner, Block)],
        )
        pairs = list(zip(writing.place, at, strict=True))
        sums = [(bounds.sum_of(a), bounds.sum_of(b)) for a, b in pairs]
        for (written, read), (a, b) in zip(pairs, sums, strict=True):
            # the blocks being written are not attached to the outer ones yet, so check each of them
            fixed = [all(is_outside(v, block) for block in around) for v in (a[0], b[0])]
            if all(fixed) and (_differ(written, read) or (a[0] is b[0] and a[1] != b[1])):
                return 0
            ordered = bounds.is_ordered(written, read, 1) or bounds.is_ordered(read, written, 1)
            if any(fixed) and ordered:
                return 0
        if any(a[0] is not b[0] for a, b in sums):
            return None
        distances = [b[1] - a[1] for a, b in sums]
        first = next((d for d in distances if d), 0)
        return first if first >= 0 else None


def _length(low: SSAValue, high: SSAValue, size: SSAValue) -> int:
    """Return the assumed number of iterations of a loop; a window's is that of a row."""
    count = number_of(size)
    if count is None:
        return UNKNOWN_SIZE
    return min(count, UNKNOWN_SIZE) if is_window(low, high, size) else count


def is_window(low: SSAValue, high: SSAValue, size: SSAValue) -> bool:
    """Whether the run decides both ends of a loop over an axis of known size."""
    known = [number_of(v) is not None for v in (low, high, size)]
    return known == [False, False, True]


def _is_short(costly: Refused, low: SSAValue, high: SSAValue, size: SSAValue) -> bool:
    """Whether a loop is so short that what makes it costly does not count."""
    few = costly.unless_short and (number_of(size) or UNKNOWN_SIZE) <= SHORT
    return few or is_window(low, high, size)


def _differ(a: SSAValue, b: SSAValue) -> bool:
    return number_of(a) is not None and number_of(b) is not None and number_of(a) != number_of(b)


def _is_vector_loop(block: Block) -> bool:
    """Whether a loop is innermost, and only accumulates the floats that it carries."""
    *ops, last = block.ops
    if any(op.regions or op.dialect_name() == "kernel" for op in ops):
        return False
    sums = [_is_sum(v, a) for a, v in zip(block.args[1:], last.operands, strict=True)]
    return all(sums)


_SUMMED = (
    *(arith.AddfOp, arith.MulfOp),
    *(arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp),
)


def _is_sum(value: SSAValue, argument: SSAValue) -> bool:
    if not isinstance(value.type, AnyFloat):
        return True
    made_by = value.owner
    summed = isinstance(made_by, _SUMMED) and argument in made_by.operands
    return summed and argument.has_one_use()
