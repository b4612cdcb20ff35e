"""Which loops of a kernel may become one: those that all its tensors have side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.structured import (
    Index,
    contracts,
    extents,
    indices,
    is_parallel,
    plain,
    shape,
)
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.kernels.collapse_loops.in_order import follows
from stepwell.transforms.kernels.kernel_signature import Axes, is_unscheduled

Pair: TypeAlias = "tuple[linalg.GenericOp | None, int, int]"
"""A loop and the one that goes on inside it when both are one: of all ops, or of one op's own."""
SQUARE = 16
"""Shorter rows do not fill the squares in which copies across rows run."""
MIN_KNOWN_ROWS = 64
"""This many rows of known number are better than more rows whose number only the run knows."""


@dataclass
class Merging:
    """What is merged in one kernel."""

    function: kernel.FuncOp
    shared: int
    pairs: dict[Pair, None]
    sizes: dict[SSAValue, tuple[int, ...]] = field(default_factory=dict[SSAValue, tuple[int, ...]])
    """The shapes that the kernel's tensors had."""
    alike: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """For each tensor the first that is the same one, before or after an op wrote to it."""
    places: dict[SSAValue, frozenset[int]] = field(default_factory=dict[SSAValue, frozenset[int]])
    """For the first of such tensors the axes that are merged with the next."""

    @property
    def left(self) -> int:
        """How many shared loops are left."""
        return self.shared - sum(of is None for of, *_ in self.pairs)

    def gone(self, op: linalg.GenericOp) -> set[int]:
        """Return the loops of ``op`` that go on inside others."""
        return {b for of, _, b in self.pairs if of is None or of is op}

    def order(self, op: linalg.GenericOp) -> list[int]:
        """Return the loops of ``op`` that are left, in order.

        Each stands where the first of its loops did, but that with the last shared loop stays last.
        """
        outer = {b: a for of, a, b in self.pairs if of is None or of is op}
        place: dict[int, int] = {}
        for k in range(len(op.iterator_types)):
            root = k
            while root in outer:
                root = outer[root]
            first = place.setdefault(root, k)
            place[root] = k if k == self.shared - 1 else first
        return sorted(place, key=place.__getitem__)

    def axes(self, value: SSAValue) -> Axes:
        """Return how the axes of a tensor are merged."""
        places = self.places.get(self.alike.get(value, value))
        if not places:
            return ()
        groups: list[list[int]] = []
        for axis in range(len(self.sizes[value])):
            if axis - 1 in places:
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return tuple(map(tuple, groups))

    def argument_like(self, value: SSAValue, axis: int) -> tuple[SSAValue, int] | None:
        """Return an argument, and which axis of it, that is as long as an axis of ``value``.

        None where no argument is: an op may reduce what is filled in the kernel.
        """
        wanted = self._loop_of(value, axis)
        for op in self.function.body.block.ops:
            if isinstance(op, linalg.GenericOp):
                for operand, index in zip(op.operands, indices(op), strict=True):
                    first = self.alike.get(operand, operand)
                    if not isinstance(first.owner, Operation) and wanted in index:
                        return first, index.index(wanted)
        return None

    def _loop_of(self, value: SSAValue, axis: int) -> AffineExpr:
        """Return the merged loop that an axis of a tensor made in the kernel is read along."""
        for op in self.function.body.block.ops:
            if isinstance(op, linalg.GenericOp):
                for operand, index in zip(op.operands, indices(op), strict=True):
                    if self.alike.get(operand, operand) is self.alike.get(value, value):
                        return index[axis]
        raise AssertionError("a tensor whose axes are merged is used")


def find(function: kernel.FuncOp, launches: Sequence[kernel.LaunchOp]) -> Merging | None:
    """Return what is to be merged in a kernel, None where nothing is."""
    if not is_unscheduled(function):
        return None
    shared = choices.number(function, "kernel.shared")
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    pairs = dict.fromkeys(_wanted(ops, shared))
    if not pairs:
        return None
    merging = Merging(function, shared, pairs)
    _Choice(merging, ops, launches).settle()
    return merging if merging.pairs else None


def _wanted(ops: Sequence[linalg.GenericOp], shared: int) -> Iterator[Pair]:
    """List the pairs of loops by which an op gains.

    They are rows and columns of contractions, loops of sums, and rows of copies across them.
    """
    outer, inner = set[int](), set[int]()
    if len(ops) == 1 and _turns(ops[0], shared):
        pairs = _neighbours(indices(ops[0])[-1], lambda k: k < shared)
        read = _neighbours(indices(ops[0])[0], lambda k: k < shared)
        yield from ((None, a, b) for a, b in pairs if (a, b) in read)
    for op in ops:
        if all(is_parallel(op)):
            continue
        where, sizes = indices(op), extents(op)
        inputs = where[: len(op.inputs)]
        for a, b in _neighbours(where[-1], lambda k: k < shared) if contracts(op) else ():
            users = [_uses(index, a, b) for index in inputs]
            known = sizes[a] != DYNAMIC_INDEX or sizes[b] < MIN_KNOWN_ROWS
            gains = known and sizes[a] != 1 and any(users) and not all(users)
            if gains and a not in outer and b not in inner:
                outer.add(a)
                inner.add(b)
                yield None, a, b
        summed = {k for k, parallel in enumerate(is_parallel(op)) if k >= shared and not parallel}
        for a, b in _neighbours(inputs[0], summed.__contains__) if inputs else ():
            yield op, a, b


def _turns(op: linalg.GenericOp, shared: int) -> bool:
    """Whether ``op`` copies across rows that are too short for squares of whole vectors."""
    where, parallel = indices(op), is_parallel(op)
    if len(where) != 2 or not all(parallel) or len(parallel) != shared or not all(where):
        return False
    ends = [plain(index[-1]) for index in where]
    sizes = extents(op)
    return ends[0] != ends[1] and any(d is not None and 0 < sizes[d] < SQUARE for d in ends)


def _neighbours(index: Index, such: Callable[[int], bool]) -> list[tuple[int, int]]:
    """Return the loops, of those wanted, that lie side by side in an operand."""
    loops = [plain(expr) for expr in index]
    pairs = [(a, b) for a, b in pairwise(loops) if a is not None and b is not None]
    return [(a, b) for a, b in pairs if such(a) and such(b)]


def _uses(index: Index, a: int, b: int) -> bool:
    """Whether an operand varies with one of two loops."""
    return any(d in (a, b) for expr in index for d in expr.used_dims())


class _Choice:
    """Drops the pairs that some tensor does not have side by side."""

    def __init__(
        self,
        merging: Merging,
        ops: Sequence[linalg.GenericOp],
        launches: Sequence[kernel.LaunchOp],
    ) -> None:
        self.merging = merging
        self.ops = ops
        self.launches = launches
        self.accesses: dict[SSAValue, list[tuple[linalg.GenericOp, Index]]] = {}
        self._read()

    def _read(self) -> None:
        """Find out what is one tensor, and where each is read and written."""
        merging, block = self.merging, self.merging.function.body.block
        same = merging.alike
        for op in block.ops:
            if isinstance(op, linalg.GenericOp | linalg.FillOp):
                for result, into in zip(op.results, op.outputs, strict=True):
                    same[result] = same.get(into, into)
        for op in self.ops:
            for value, index in zip(op.operands, indices(op), strict=True):
                self.accesses.setdefault(same.get(value, value), []).append((op, index))
        for value in (*block.args, *(r for op in block.ops for r in op.results)):
            if isinstance(value.type, TensorType):
                merging.sizes[value] = shape(value)

    def settle(self) -> None:
        """Drop pairs until every tensor agrees with those that are left."""
        for op in self.ops:
            for pair in list(self.merging.pairs):
                of, a, b = pair
                if of is not None and of is not op:
                    continue
                if any(_is_torn(index, a, b) for index in indices(op)) or _is_counted(op, a, b):
                    del self.merging.pairs[pair]
        while not all([self._agrees(value) for value in self.accesses]):
            pass
        self.merging.places.update({v: self._places(*a[0]) for v, a in self.accesses.items()})

    def _agrees(self, value: SSAValue) -> bool:
        """Drop the pairs that the accesses of a tensor do not have in common, or it not in order.

        Return whether there were none.
        """
        accesses = self.accesses[value]
        found = [self._places(op, index) for op, index in accesses]
        common = frozenset.intersection(*found)
        common = frozenset(axis for axis in common if self._is_in_order(value, axis))
        for (op, index), places in zip(accesses, found, strict=True):
            for axis in sorted(places - common):
                a, b = plain(index[axis]), plain(index[axis + 1])
                assert a is not None and b is not None
                self.merging.pairs.pop((None if a < self.merging.shared else op, a, b), None)
        return all(places == common for places in found)

    def _places(self, op: linalg.GenericOp, index: Index) -> frozenset[int]:
        """Return the axes that an access would have merged with the next."""
        gone = self.merging.gone(op)
        return frozenset(axis - 1 for axis, expr in enumerate(index) if plain(expr) in gone)

    def _is_in_order(self, value: SSAValue, axis: int) -> bool:
        """Whether an axis of a tensor and the next may become one wherever it comes from."""
        alike = [value, *(v for v, first in self.merging.alike.items() if first is value)]
        block = self.merging.function.body.block
        if not all(use.operation.parent is block for each in alike for use in each.uses):
            return False
        if isinstance(value.owner, Operation):
            return True
        number = self.merging.function.body.block.args.index(value)
        inputs = len(self.launches[0].inputs)
        for launch in self.launches:
            result = launch.results_[number - inputs] if number >= inputs else None
            if not follows(launch.operands[number], result, axis):
                return False
        return True


def _is_torn(index: Index, a: int, b: int) -> bool:
    """Whether an operand varies with two loops otherwise than along axes side by side."""
    if not _uses(index, a, b):
        return False
    used = sum(bool(expr.used_dims() & {a, b}) for expr in index)
    return used != 2 or (a, b) not in _neighbours(index, lambda k: k in (a, b))


def _is_counted(op: linalg.GenericOp, a: int, b: int) -> bool:
    """Whether the body asks how far one of two loops is."""
    return any(
        isinstance(inner, linalg.IndexOp) and inner.dim.value.data in (a, b)
        for inner in op.body.walk()
    )
