"""The versions of a buffer's contents, and the proof that a part of one holds a tensor.

A version never changes: a write makes a new one over the one before. The proof goes backwards from
what is read. At the head of a loop it is by induction: the fact must hold before the first
iteration and, if it holds at the head of an iteration, at its end, under the names of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.analysis.sizes import Shape, Size, Sizes
from stepwell.lowering.bufferize.checking.tensors import Key, Tensors, box_view
from stepwell.lowering.bufferize.views import (
    Reshape,
    Slice,
    Step,
    Steps,
    common,
    covers,
    disjoint,
    in_one_slice,
    inverse,
    join,
    outside,
    part,
    relative_view,
    run_time_values,
    same_place,
)

Region: TypeAlias = tuple[Hashable, Steps]
"""A view of a buffer."""


@dataclass(eq=False)
class Blank:
    """Nothing is known: the buffer is new, or may have been written through another name."""


@dataclass(eq=False)
class Whole:
    """A tensor, all of it."""

    tensor: Key


@dataclass(eq=False)
class Write:
    """The version ``before`` with one part overwritten by what a view of another one holds."""

    before: Version
    part: Steps
    value: Contents


@dataclass(eq=False)
class Either:
    """One of two versions; those after a branch with the tensors that its sides yield."""

    sides: tuple[Version, Version]
    yields: tuple[Mapping[Key, SSAValue], Mapping[Key, SSAValue]] = ({}, {})


@dataclass(eq=False)
class Both:
    """Two versions that describe the same memory, kept under two names: either may prove a fact."""

    names: tuple[Version, Version]


@dataclass(eq=False)
class Head:
    """The version at the head of a loop: from before it, or from the end of an iteration."""

    loop: Iterations
    start: Contents
    end: Contents | None = None


@dataclass(eq=False)
class After:
    """The version after a loop: the one with which it left."""

    loop: Iterations
    left: Version


Version: TypeAlias = Blank | Whole | Write | Either | Both | Head | After
Contents: TypeAlias = tuple[Version, Steps]
"""What a view of a version holds."""


@dataclass(eq=False)
class Iterations:
    """The tensors of a loop: what each slot starts as, goes on as, and is left as."""

    ops: tuple[Operation, Operation]
    """The loop on tensors, and on buffers."""
    starts: Mapping[Key, SSAValue]
    arguments: Sequence[SSAValue]
    """The buffers that the loop carries, under the names that they have in it."""
    given: Sequence[Region]
    """What they are in the first iteration."""
    nexts: Mapping[Key, SSAValue] = field(default_factory=dict[Key, SSAValue])
    results: Mapping[Key, SSAValue] = field(default_factory=dict[Key, SSAValue])

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is made in the loop, a new one in each iteration."""
        return value.owner not in self.ops and any(op.is_ancestor(value.owner) for op in self.ops)


class Fact(NamedTuple):
    """A view of a version, but for its gaps, holds a view of a tensor."""

    version: Version
    path: Steps
    value: Key
    view: Steps
    gaps: frozenset[Steps] = frozenset()


class Proof:
    """Proves facts about versions; one about a loop's head is assumed while it is proved."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors, self.sizes = tensors, tensors.sizes
        self._known: dict[Fact, bool] = {}
        self._any_of: dict[Size, Size] = {}
        """For a size that differs from iteration to iteration: any value that it has in one."""

    def apart(self, a: Steps, b: Steps) -> bool:
        """Whether two views of one buffer provably have no element in common."""
        same = common(a, b)
        return disjoint(self.sizes, part(a[same:]), part(b[same:]))

    def within(self, a: Steps, b: Steps) -> bool:
        """Whether view ``b`` provably contains every element of view ``a``."""
        same = common(a, b)
        return covers(self.sizes, part(b[same:]), part(a[same:]))

    def relative(self, whole: Steps, inside: Steps) -> Steps | None:
        """Return the view from ``whole`` to ``inside``, None if that is not provably in it."""
        view, same = relative_view(whole, inside), common(whole, inside)
        if view is not None:
            return view
        outer, inner = in_one_slice(whole[same:]), in_one_slice(inside[same:])
        match outer, inner:
            case (Slice() as box,), (Slice() as part, *rest):
                found = _in_box(self.sizes, part, box)
                shape = tuple(box.sizes[axis] for axis in box.kept)
                return None if found is None else (*box_view(found, shape), *rest)
            case _:
                return None

    def _apart_or_in(self, over: Steps, path: Steps, gap: Steps) -> bool:
        """Whether ``over`` has no element of ``path`` outside of ``gap``.

        It is in the gap, or in another row than the path and the gap, which are in the same one.
        """
        if self.within(over, gap):
            return True
        a, b, hole = part(over).box, part(path).box, part(gap)
        if a is None or b is None or hole.box is None or not hole.exact:
            return False
        one = Size.of(1)
        return all(
            (n == m == count == one and first == at)
            or (self.sizes.never_negative(start - first) and self.sizes.never_negative(end - stop))
            for start, n, stop, first, m, end, at, count in zip(
                *(a.offsets, a.sizes, a.reach),
                *(hole.box.offsets, hole.box.sizes, hole.box.reach),
                *(b.offsets, b.sizes),
                strict=True,
            )
        )

    def holds(self, fact: Fact) -> bool:
        """Whether a fact can be proved."""
        root, view = self.tensors.root(fact.value)
        version, path = fact.version, fact.path
        while isinstance(version, Write) and (
            self.apart(version.part, path)
            or any(self._apart_or_in(version.part, path, gap) for gap in fact.gaps)
        ):
            version = version.before
        fact = fact._replace(version=version, value=root, view=join(view, fact.view))
        if self.tensors.is_blank(root) or self._is_gap(fact):
            return True
        if fact not in self._known:
            before = len(self._known)
            self._known[fact] = True
            if not self._prove(fact):
                for each in list(self._known)[before:]:  # what was proved from it is not known
                    del self._known[each]
                self._known[fact] = False
        return self._known[fact]

    def _is_gap(self, fact: Fact) -> bool:
        """Whether gaps are all of a region, one alone or several boxes together."""
        if any(self.within(fact.path, gap) for gap in fact.gaps):
            return True
        start, steps = _reshaped(fact.path)
        region = part(steps)
        if not region.exact:
            return False
        whole = region.box or Slice.all_of(self._shape(fact))
        rest = [whole]
        for gap in [part(gap[len(start) :]) for gap in fact.gaps if gap[: len(start)] == start]:
            box = gap.box
            if gap.exact and box is not None and len(box.sizes) == len(whole.sizes):
                pieces = [outside(self.sizes, box, each) for each in rest]
                if None not in pieces:
                    rest = [each for found in pieces for each in found or ()]
        return not rest

    def _shape(self, fact: Fact) -> Shape:
        match fact.view[-1] if fact.view else None:
            case Slice() as box:
                return tuple(box.sizes[axis] for axis in box.kept)
            case Reshape() as reshape:
                return reshape.target
            case _:
                return self.tensors.shape(fact.value)

    def _prove(self, fact: Fact) -> bool:
        version = fact.version
        if isinstance(version, Write):
            down = self.relative(version.part, fact.path)
            if down is not None:
                return self.holds(self._inside(fact, version.value, down, version.part))
        for within in (self.relative, relative_view):
            pieces = self._pieces(fact, within)
            if pieces is not None and all(map(self.holds, pieces)):
                return True
        if self._from_earlier(fact, version):
            return True
        path, view = fact.path, fact.view  # what holds more holds the part
        is_part = bool(path) and path[-1:] == view[-1:]
        if is_part and self.holds(fact._replace(path=path[:-1], view=view[:-1])):
            return True
        flat = in_one_slice(path)  # as a copy may have written it
        return flat != path and self.holds(fact._replace(path=flat))

    def _from_earlier(self, fact: Fact, version: Version) -> bool:
        """Prove a fact by the version that comes before, or those that may."""
        match version:
            case Whole(tensor=tensor):
                return tensor == fact.value and same_place(fact.path, fact.view)
            case Write():
                return self._split(fact, version)
            case Either():
                rows = zip(version.sides, version.yields, strict=True)
                return all(self.holds(_renamed(fact, side, names)) for side, names in rows)
            case Both(names=names):
                return any(self.holds(fact._replace(version=each)) for each in names)
            case Head():
                return self._induct(fact, version)
            case After():
                return self.holds(_renamed(fact, version.left, version.loop.results))
            case Blank():
                return False

    def _split(self, fact: Fact, write: Write) -> bool:
        """Prove a fact of a part that was written, and of the rest."""
        over = self.relative(fact.path, write.part)
        if over is None:
            return False
        part = fact._replace(view=join(fact.view, over))
        part = self._inside(part, write.value, (), write.part)
        rest = fact._replace(version=write.before, gaps=fact.gaps | {write.part})
        return self.holds(part) and self.holds(rest)

    def _inside(self, fact: Fact, contents: Contents, path: Steps, over: Steps = ()) -> Fact:
        """Return the fact about the view of ``contents`` that part ``over`` of a version has."""
        version, root = contents
        gaps = (self.relative(over, gap) for gap in fact.gaps)
        kept = frozenset(join(root, gap) for gap in gaps if gap is not None)
        return fact._replace(version=version, path=join(root, path), gaps=kept)

    def _pieces(
        self, fact: Fact, within: Callable[[Steps, Steps], Steps | None]
    ) -> list[Fact] | None:
        """Return the facts of what a tensor is made of by insertion, None if it is not so made.

        within : returns the view from a piece to a part, None if that is not known to be in it
        """
        pieces, dest = self.tensors.pieces(fact.value)
        if not pieces:
            return None
        for box, piece in pieces:
            if fact.view and (down := within(box, fact.view)) is not None:
                return [fact._replace(value=piece, view=down)]
        whole, view = fact.path, fact.view
        while view and (whole[-1:] == view[-1:] or not isinstance(view[-1], Slice)):
            back = inverse(view[-1:])
            whole, view = whole[:-1] if back is None else join(whole, back), view[:-1]
        boxes = [(join(whole, box), piece) for box, piece in pieces]
        if view:
            apart = dest is not None and all(self.apart(box, fact.view) for box, _ in pieces)
            return [fact._replace(value=dest)] if apart else None
        found = [
            fact._replace(path=at, value=piece, view=(), gaps=fact.gaps | self._beyond(at, fact))
            for at, piece in boxes
            if not self.apart(at, fact.path)
        ]
        if dest is not None:
            gaps = fact.gaps | {at for at, _ in boxes}
            found.append(fact._replace(value=dest, gaps=gaps))
        return found

    def _beyond(self, at: Steps, fact: Fact) -> frozenset[Steps]:
        """Return the parts of a view that are not in the region of a fact, where they are boxes."""
        start, steps = _reshaped(fact.path)
        a, b = part(at[len(start) :]), part(steps)
        if at[: len(start)] != start or a.box is None or b.box is None or not (a.exact and b.exact):
            return frozenset()
        return frozenset((*start, box) for box in outside(self.sizes, b.box, a.box) or ())

    def _induct(self, fact: Fact, head: Head) -> bool:
        """Prove a fact of the head of a loop: for all iterations at once, so of nothing in one."""
        loop, (path, view) = head.loop, (fact.path, fact.view)
        while self._varies(loop, (*path, *view)):
            if not path or path[-1:] != view[-1:]:
                return False
            path, view = path[:-1], view[:-1]
        gaps = frozenset(gap for gap in fact.gaps if not self._varies(loop, gap))
        found = [fact._replace(path=path, view=view, gaps=gaps)]
        if fact.gaps != gaps:
            found.append(self._in_any_iteration(fact, loop))
        return any(self._holds_in_all(each, head) for each in found)

    def _holds_in_all(self, fact: Fact, head: Head) -> bool:
        """Whether a fact holds at the head of a loop: before it, and after each iteration."""
        loop = head.loop
        assert head.end is not None
        rows = ((head.start, loop.starts), (head.end, loop.nexts))
        return all(
            self.holds(
                self._inside(
                    fact._replace(value=names.get(fact.value, fact.value)), where, fact.path
                )
            )
            for where, names in rows
        )

    def _in_any_iteration(self, fact: Fact, loop: Iterations) -> Fact:
        """Return a fact of all values that the sizes in it have in iterations of a loop."""

        def size(n: Size) -> Size:
            varies = any(loop.is_inside(v) for v in self.sizes.unknowns(n))
            return self._any_value(n) if varies else n

        def step(each: Step) -> Step:
            if not isinstance(each, Slice):
                return each
            first, count, by = (tuple(map(size, numbers)) for numbers in each.places)
            return Slice(first, count, by, each.kept)

        def steps(each: Steps) -> Steps:
            return tuple(map(step, each))

        gaps = frozenset(map(steps, fact.gaps))
        return fact._replace(path=steps(fact.path), view=steps(fact.view), gaps=gaps)

    def _any_value(self, size: Size) -> Size:
        """Return a size of which nothing is known, the same for the same one."""
        if size not in self._any_of:
            self._any_of[size] = self.sizes.of(Block(arg_types=[IndexType()]).args[0])
        return self._any_of[size]

    def _varies(self, loop: Iterations, steps: Steps) -> bool:
        """Whether a view may be another one in each iteration of a loop."""
        return any(loop.is_inside(v) for v in run_time_values(self.sizes, steps))


def _reshaped(path: Steps) -> tuple[Steps, Steps]:
    """Split a view into its steps to the last reshape, and the slices of that."""
    start = max((n + 1 for n, step in enumerate(path) if not isinstance(step, Slice)), default=0)
    return path[:start], path[start:]


def _in_box(sizes: Sizes, part: Slice, box: Slice) -> Slice | None:
    """Return a slice of a buffer as a slice of a box of it, None if it is not provably in that."""
    if not (box.is_dense and set(part.kept) <= set(box.kept)):
        return None
    starts = tuple(a - b for a, b in zip(part.offsets, box.offsets, strict=True))
    ends = (a - b for a, b in zip(box.reach, part.reach, strict=True))
    if not all(map(sizes.never_negative, (*starts, *ends))):
        return None
    first, count, by = (
        tuple(each[axis] for axis in box.kept) for each in (starts, part.sizes, part.strides)
    )
    return Slice(first, count, by, tuple(map(box.kept.index, part.kept)))


def _renamed(fact: Fact, version: Version, names: Mapping[Key, SSAValue]) -> Fact:
    return fact._replace(version=version, value=names.get(fact.value, fact.value))
