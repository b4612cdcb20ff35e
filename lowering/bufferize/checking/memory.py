"""Alias analysis on buffers: the region that each memref is, and the regions that overlap."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.ir import Operation, SSAValue

from stepwell.lowering.bufferize.checking.tensors import view_of
from stepwell.lowering.bufferize.checking.versions import Proof, Region
from stepwell.lowering.bufferize.views import Steps, join, same_or_apart

_VIEWS = (memref.CastOp, memref.SubviewOp, memref.ExpandShapeOp, memref.CollapseShapeOp)


@dataclass
class Memory:
    """The buffers of one function, each named by the value that defines it."""

    proof: Proof
    shared: Mapping[Hashable, Hashable]
    """Outputs that may alias an argument, with that argument."""
    constant: set[Hashable]
    """Buffers that are never written: arguments and globals."""
    _regions: dict[SSAValue, Region] = field(default_factory=dict[SSAValue, Region])
    _any_of: dict[Hashable, Sequence[Region]] = field(
        default_factory=dict[Hashable, Sequence[Region]]
    )
    """For a buffer that a loop exchanges, the regions that it may alias."""
    _beside: dict[Hashable, Operation] = field(default_factory=dict[Hashable, Operation])
    """The loop that exchanges a buffer: no two buffers of one loop alias."""
    _order: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    """Numbers of exchanged buffers: those of inner loops come after those of outer loops."""

    def bind(self, value: SSAValue, region: Region) -> None:
        """Bind ``value`` to a region."""
        self._regions[value] = region

    def region(self, value: SSAValue) -> Region:
        """Return the region that ``value`` is."""
        return self._regions[value]

    def view(self, op: Operation) -> bool:
        """Bind the result of a view op to its region; return False if ``op`` is no view."""
        if not isinstance(op, _VIEWS):
            return False
        buffer, path = self._regions[op.operands[0]]
        self.bind(op.results[0], (buffer, join(path, view_of(self.proof.sizes, op))))
        return True

    def choose(self, loop: Operation, value: SSAValue, among: Sequence[Region]) -> None:
        """Let ``value``, a buffer of ``loop``, alias one of the regions ``among`` exclusively."""
        self.bind(value, (value, ()))
        self._any_of[value], self._beside[value] = among, loop
        self._order.setdefault(value, len(self._order) + 1)

    def name(self, buffer: Hashable) -> Hashable:
        """Return the name of a buffer: for an output that replaces an argument, that argument."""
        return self.shared.get(buffer, buffer)

    def overlap(self, a: Region, b: Region) -> bool:
        """Whether two regions may have elements in common."""
        return any(not self.proof.apart(*case) for case in self._cases(a, b))

    def same_or_apart(self, a: Region, b: Region) -> bool:
        """Whether two regions are equal or disjoint in every case."""
        cases = self._cases(a, b)
        return all(
            self.proof.apart(one, two) or same_or_apart(self.proof.sizes, one, two)
            for one, two in cases
        )

    def _cases(self, a: Region, b: Region) -> Iterator[tuple[Steps, Steps]]:
        """Yield two regions as views of one buffer, for each buffer that both may be in.

        An argument and the output that replaces it count as one.
        """
        if self.name(a[0]) == self.name(b[0]):
            yield a[1], b[1]
            return
        loop = self._beside.get(a[0])
        if loop is not None and self._beside.get(b[0]) is loop:
            return
        early, late = sorted((a, b), key=lambda region: self._order.get(region[0], 0))
        for buffer, path in self._any_of.get(late[0], ()):
            for one, two in self._cases((buffer, join(path, late[1])), early):
                yield (one, two) if late is a else (two, one)

    def within(self, region: Region, others: Sequence[Region]) -> bool:
        """Whether a region is in a buffer of ``others``, for each buffer that it may alias."""
        if any(self.name(region[0]) == self.name(other) for other, _ in others):
            return True
        choices = self._any_of.get(region[0], ())
        return bool(choices) and all(self.within(each, others) for each in choices)

    def is_constant(self, region: Region) -> bool:
        """Whether a region is in a buffer that is never written."""
        return region[0] in self.constant

    def others(self, region: Region, among: Collection[Hashable]) -> list[Hashable]:
        """Return the other names that a buffer in part of a region may have."""
        near = dict.fromkeys((*self._names(region[0]), *self._any_of))
        return [n for n in near if n in among and n != region[0] and self.overlap(region, (n, ()))]

    def _names(self, buffer: Hashable) -> Iterator[Hashable]:
        """Yield a buffer, the output that replaces it, and the buffers that these may be."""
        twins = [output for output, argument in self.shared.items() if argument == buffer]
        yield from (buffer, self.name(buffer), *twins)
        for other, _ in self._any_of.get(buffer, ()):
            yield from self._names(other)

    def seen_in(self, region: Region, other: Hashable) -> Steps | None:
        """Return the view of the buffer ``other`` that a region is in each case that they alias.

        None if it is not the same view in all cases, or is unknown.
        """
        views = {
            self.proof.relative(whole, path) for path, whole in self._cases(region, (other, ()))
        }
        return views.pop() if len(views) == 1 else None
