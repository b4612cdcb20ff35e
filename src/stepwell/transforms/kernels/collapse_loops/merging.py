"""Find the loops of a kernel to collapse: those that are adjacent axes in all its tensors."""

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
"""A loop and the inner loop merged into it: of all ops, or of one op alone."""
MIN_ROW_ELEMENTS = 16
"""Elements of a row below which transposing through registers has no whole block."""
MIN_KNOWN_ROWS = 64
"""Rows of known number that are better than more rows of a number known at run time only."""


@dataclass
class Merging:
    """The merged loops of one kernel."""

    function: kernel.FuncOp
    shared: int
    pairs: dict[Pair, None]
    sizes: dict[SSAValue, tuple[int, ...]] = field(default_factory=dict[SSAValue, tuple[int, ...]])
    """The original shapes of the kernel's tensors."""
    alike: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """For each tensor, the first tensor of its chain of in-place updates."""
    places: dict[SSAValue, frozenset[int]] = field(default_factory=dict[SSAValue, frozenset[int]])
    """For each such first tensor, the axes that are merged with the next."""

    @property
    def shared_left(self) -> int:
        """The number of shared loops that remain."""
        return self.shared - sum(of is None for of, *_ in self.pairs)

    def merged_away(self, op: linalg.GenericOp) -> set[int]:
        """Return the loops of ``op`` that are merged into others."""
        return {b for of, _, b in self.pairs if of is None or of is op}

    def order(self, op: linalg.GenericOp) -> list[int]:
        """Return the remaining loops of ``op``, in order.

        Each takes the position of its first loop, but the one with the last shared loop stays last.
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
        """Return the groups of merged axes of a tensor."""
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
        """Return an argument and its axis that has the size of an axis of ``value``.

        None where there is none: an op may reduce a tensor that the kernel fills.
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
        """Return the merged loop that indexes an axis of a tensor created in the kernel."""
        for op in self.function.body.block.ops:
            if isinstance(op, linalg.GenericOp):
                for operand, index in zip(op.operands, indices(op), strict=True):
                    if self.alike.get(operand, operand) is self.alike.get(value, value):
                        return index[axis]
        raise AssertionError("a tensor whose axes are merged is used")


def find(function: kernel.FuncOp, launches: Sequence[kernel.LaunchOp]) -> Merging | None:
    """Return the loops to merge in a kernel, None where there are none."""
    if not is_unscheduled(function):
        return None
    shared = choices.number(function, "kernel.shared")
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    pairs = dict.fromkeys(_candidates(ops, shared))
    if not pairs:
        return None
    merging = Merging(function, shared, pairs)
    _Choice(merging, ops, launches).settle()
    return merging if merging.pairs else None


def _candidates(ops: Sequence[linalg.GenericOp], shared: int) -> Iterator[Pair]:
    """Yield the pairs of loops whose merging makes an op faster.

    These are rows and columns of contractions, loops of sums, and rows of transposing copies.
    """
    outer, inner = set[int](), set[int]()
    if len(ops) == 1 and _transposes(ops[0], shared):
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


def _transposes(op: linalg.GenericOp, shared: int) -> bool:
    """Whether ``op`` transposes rows that are too short for blocks of whole vectors."""
    where, parallel = indices(op), is_parallel(op)
    if len(where) != 2 or not all(parallel) or len(parallel) != shared or not all(where):
        return False
    ends = [plain(index[-1]) for index in where]
    sizes = extents(op)
    return ends[0] != ends[1] and any(
        d is not None and 0 < sizes[d] < MIN_ROW_ELEMENTS for d in ends
    )


def _neighbours(index: Index, such: Callable[[int], bool]) -> list[tuple[int, int]]:
    """Return the pairs of loops that satisfy ``such`` and are adjacent axes of an operand."""
    loops = [plain(expr) for expr in index]
    pairs = [(a, b) for a, b in pairwise(loops) if a is not None and b is not None]
    return [(a, b) for a, b in pairs if such(a) and such(b)]


def _uses(index: Index, a: int, b: int) -> bool:
    """Whether an operand varies with one of two loops."""
    return any(d in (a, b) for expr in index for d in expr.used_dims())


class _Choice:
    """Drops the pairs that are not adjacent in some tensor."""

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
        """Collect the chains of in-place updates, and the accesses to each tensor."""
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
        """Drop pairs until every tensor agrees with the remaining ones."""
        for op in self.ops:
            for pair in list(self.merging.pairs):
                of, a, b = pair
                if of is not None and of is not op:
                    continue
                if any(_is_split(index, a, b) for index in indices(op)) or _reads_index(op, a, b):
                    del self.merging.pairs[pair]
        while not all([self._agrees(value) for value in self.accesses]):
            pass
        self.merging.places.update({v: self._places(*a[0]) for v, a in self.accesses.items()})

    def _agrees(self, value: SSAValue) -> bool:
        """Drop the pairs that the accesses of a tensor do not share, or that are not contiguous.

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
        """Return the axes that an access merges with the next."""
        merged_away = self.merging.merged_away(op)
        return frozenset(axis - 1 for axis, expr in enumerate(index) if plain(expr) in merged_away)

    def _is_in_order(self, value: SSAValue, axis: int) -> bool:
        """Whether an axis of a tensor and the next are contiguous at every launch."""
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


def _is_split(index: Index, a: int, b: int) -> bool:
    """Whether an operand varies with two loops otherwise than along adjacent axes."""
    if not _uses(index, a, b):
        return False
    used = sum(bool(expr.used_dims() & {a, b}) for expr in index)
    return used != 2 or (a, b) not in _neighbours(index, lambda k: k in (a, b))


def _reads_index(op: linalg.GenericOp, a: int, b: int) -> bool:
    """Whether the body reads the index of one of two loops."""
    return any(
        isinstance(inner, linalg.IndexOp) and inner.dim.value.data in (a, b)
        for inner in op.body.walk()
    )
