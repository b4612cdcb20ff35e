"""The dataflow state of the check: the tensor that each region of each buffer holds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from xdsl.dialects import arith, tensor
from xdsl.ir import Block, SSAValue

from stepwell.analysis.sizes import Shape, Size, Sizes
from stepwell.dialects import kernel
from stepwell.dialects.types import tensor_type
from stepwell.lowering.bufferize.assignment import is_view, rows_of, slice_of, step_of
from stepwell.lowering.bufferize.views import (
    Cast,
    Slice,
    Step,
    Steps,
    covers,
    disjoint,
    inverse,
    join,
)
from stepwell.lowering.bufferize.views import part as box_of

Key: TypeAlias = Hashable
"""A tensor of the program on tensors: a value, a constant's elements, or one inserted element."""
Region: TypeAlias = tuple[Hashable, Steps]
"""A view of a buffer."""
Held: TypeAlias = tuple[Steps, Key, Steps]
"""A view of a buffer, a tensor, and the view of that tensor that the former holds."""
Gaps: TypeAlias = tuple[Steps, ...]
"""Views of a buffer, inside of a region, that do not hold the region's tensor."""


Named: TypeAlias = tuple[Region, Key, Gaps]
"""A region, the tensor that it holds, and the gaps of the region."""


def relative_view(whole: Steps, part: Steps) -> Steps | None:
    """Return the view from ``whole`` to ``part``, None if ``part`` is not a view of ``whole``."""
    same = _common(whole, part)
    back = inverse(whole[same:])
    return None if back is None else join(back, part[same:])


def apart(sizes: Sizes, a: Steps, b: Steps) -> bool:
    """Whether two views of one buffer provably have no element in common."""
    same = _common(a, b)
    return disjoint(sizes, box_of(a[same:]), box_of(b[same:]))


def inside(sizes: Sizes, a: Steps, b: Steps) -> bool:
    """Whether view ``b`` provably contains every element of view ``a``."""
    same = _common(a, b)
    return covers(sizes, box_of(b[same:]), box_of(a[same:]))


def _common(a: Steps, b: Steps) -> int:
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return same


def _cancel_common_end(at: Steps, view: Steps) -> tuple[Steps, Steps]:
    """Cancel the common last steps of a region and of the view of a tensor that it holds."""
    while at and view and at[-1] == view[-1]:
        at, view = at[:-1], view[:-1]
    return at, view


@dataclass
class Tensors:
    """The tensors of a program: views resolved to their roots, insertions split into pieces."""

    sizes: Sizes
    blank: set[SSAValue] = field(default_factory=set[SSAValue])
    """Results and arguments of loops and branches whose elements are all undefined."""
    where: dict[Key, dict[Hashable, None]] = field(default_factory=dict[Key, dict[Hashable, None]])
    """The buffers that have held a tensor, at any point."""

    def root(self, value: Key) -> tuple[Key, Steps]:
        """Return the tensor that ``value`` is a view of, and the view."""
        steps: list[Step] = []
        while isinstance(value, SSAValue) and not isinstance(value.owner, arith.ConstantOp):
            op = value.owner
            if isinstance(op, Block) or not is_view(op):
                break
            step = step_of(self.sizes, op)
            value = op.operands[0]
            if isinstance(step, Slice):
                steps += box_view(step, self.sizes.shape(value))
            elif not isinstance(step, Cast):
                steps.append(step)
        view = join((), tuple(reversed(steps)))
        if isinstance(value, SSAValue) and isinstance(value.owner, arith.ConstantOp):
            return value.owner.value, view
        return value, view

    def is_blank(self, value: Key) -> bool:
        """Whether all elements of ``value`` are undefined."""
        root, _ = self.root(value)
        is_value = isinstance(root, SSAValue)
        return is_value and (root in self.blank or isinstance(root.owner, tensor.EmptyOp))

    def pieces(self, value: Key) -> tuple[list[tuple[Steps, Key]], SSAValue | None]:
        """Return the pieces (view, tensor) inserted to make ``value``, and their destination."""
        op = value.owner if isinstance(value, SSAValue) else None
        match op:
            case tensor.InsertSliceOp():
                box = box_view(slice_of(self.sizes, op), self.sizes.shape(op.dest))
                return [(box, op.source)], op.dest
            case kernel.StackOp():
                rows = zip(rows_of(self.sizes, op.parts), op.parts, strict=True)
                return [((row, *seen), part) for (row, seen), part in rows], None
            case tensor.InsertOp():
                at = tuple(self.sizes.of(v) for v in op.indices)
                return [(element(at), (op.result, 0))], op.dest
            case tensor.FromElementsOp() | tensor.SplatOp():
                places = product(*map(range, tensor_type(op.results[0]).get_shape()))
                rows = enumerate(tuple(map(Size.of, place)) for place in places)
                return [(element(at), (op.results[0], n)) for n, at in rows], None
            case _:
                return [], None


def box_view(box: Slice, whole: Shape) -> Steps:
    """Return the view of a box: no step if the box is the whole tensor."""
    zeros = (Size.of(0),) * len(whole)
    full = box.offsets == zeros and box.sizes == whole and box.is_dense
    return () if full and len(box.kept) == len(whole) else (box,)


def element(at: Shape) -> Steps:
    """Return the view of one element."""
    ones = (Size.of(1),) * len(at)
    return (Slice(at, ones, ones, ()),) if at else ()


@dataclass
class Contents:
    """The contents of buffers: for each buffer its regions and their tensors, with gaps."""

    tensors: Tensors
    held: dict[Hashable, dict[Held, Gaps]] = field(default_factory=dict[Hashable, dict[Held, Gaps]])

    def copy(self) -> Contents:
        """Return a copy of the state."""
        return Contents(self.tensors, {buffer: dict(held) for buffer, held in self.held.items()})

    def put(self, region: Region, rows: Sequence[tuple[Held, Gaps]]) -> None:
        """Add contents of a region, in the form that `seen` returns."""
        buffer, path = region
        mine = self.held.setdefault(buffer, {})
        for (at, key, view), gaps in rows:
            held, new = (join(path, at), key, view), tuple(join(path, gap) for gap in gaps)
            if held not in mine or not set(mine[held]) <= set(new):
                mine[held] = new
            self.tensors.where.setdefault(key, {})[buffer] = None

    def seen(self, region: Region) -> list[tuple[Held, Gaps]]:
        """Return the contents of a region, with views relative to the region."""
        buffer, path = region
        found: list[tuple[Held, Gaps]] = []
        for (at, key, view), gaps in self.held.get(buffer, {}).items():
            if (down := relative_view(path, at)) is not None:
                held = down, key, view
            elif (down := relative_view(at, path)) is not None:
                held = (), key, join(view, down)
            else:
                continue
            near = [gap for gap in gaps if not apart(self.tensors.sizes, gap, path)]
            found.append((held, tuple(relative_view(path, gap) or () for gap in near)))
        return found

    def agreeing(self, region: Region, rows: Sequence[tuple[Held, Gaps]]) -> dict[Held, Gaps]:
        """Return the contents that ``rows`` preserve: both are parts of one tensor there."""
        buffer, path = region
        new = {
            (_cancel_common_end((*path, *at), view), key)
            for (at, key, view), gaps in rows
            if not gaps
        }
        mine = self.held.get(buffer, {}).items()
        return {h: gaps for h, gaps in mine if (_cancel_common_end(h[0], h[2]), h[1]) in new}

    def overwrite(self, buffer: Hashable, path: Steps, exact: bool = True) -> None:
        """Invalidate a region: an overlapping one gets a gap, or is dropped if not ``exact``."""
        sizes, mine = self.tensors.sizes, self.held.get(buffer, {})
        for held, gaps in list(mine.items()):
            at = held[0]
            if apart(sizes, path, at):
                continue
            if not exact or inside(sizes, at, path):
                del mine[held]
            elif path not in gaps:
                mine[held] = (*gaps, path)

    def gaps(self, region: Region, value: Key, view: Steps = ()) -> Gaps | None:
        """Return the gaps of a region in a view of ``value``, None if it holds nothing of it."""
        return _Query(self.tensors, self.held).gaps(region, value, view)

    def regions(self, value: Key) -> dict[Region, None]:
        """Return the regions that may hold ``value``."""
        return _Query(self.tensors, self.held).regions(value)

    def named(self, values: Sequence[Key], names: Sequence[Key]) -> list[Named]:
        """Return the regions that hold each value, with their gaps, under the value's new name."""
        found: list[Named] = []
        for value, name in zip(values, names, strict=True):
            for region in self.regions(value):
                gaps = self.gaps(region, value)
                if gaps is not None and region[1] not in gaps:
                    found.append((region, name, gaps))
        return found

    def add(self, rows: Sequence[Named]) -> None:
        """Add contents of regions."""
        for (buffer, path), name, gaps in rows:
            mine, held = self.held.setdefault(buffer, {}), (path, name, ())
            if held not in mine or not set(mine[held]) <= set(gaps):
                mine[held] = gaps
            self.tensors.where.setdefault(name, {})[buffer] = None

    def meet(self, other: Contents) -> Contents:
        """Return the meet of two states: the contents of both, with the gaps of either."""
        found: dict[Hashable, dict[Held, Gaps]] = {}
        for buffer, held in self.held.items():
            theirs = other.held.get(buffer, {})
            both = held.keys() & theirs.keys()
            found[buffer] = {
                each: tuple(dict.fromkeys((*gaps, *theirs[each])))
                for each, gaps in held.items()
                if each in both
            }
        return Contents(self.tensors, found)

    def same(self, other: Contents) -> bool:
        """Whether two states are equal, the order of gaps aside."""
        ours, theirs = ({(b, h): set(g) for b, h, g in each} for each in (self, other))
        return ours == theirs

    def __iter__(self) -> Iterator[tuple[Hashable, Held, Gaps]]:
        for buffer, held in self.held.items():
            for each, gaps in held.items():
                yield buffer, each, gaps


@dataclass
class _Query:
    """One query of contents; it memoizes the subqueries on tensors made by insertion."""

    tensors: Tensors
    held: Mapping[Hashable, Mapping[Held, Gaps]]
    known: dict[tuple[Region, Key, Steps], Gaps | None] = field(
        default_factory=dict[tuple[Region, Key, Steps], "Gaps | None"]
    )
    found: dict[Key, dict[Region, None]] = field(default_factory=dict[Key, dict[Region, None]])

    def gaps(self, region: Region, value: Key, view: Steps) -> Gaps | None:
        """Answer `Contents.gaps`."""
        root, seen = self.tensors.root(value)
        if self.tensors.is_blank(root):
            return ()
        view = join(seen, view)
        gaps = self._held(region, root, view)
        pieces, dest = self.tensors.pieces(root)
        if gaps == () or not pieces:
            return gaps
        key = region, root, view
        if key not in self.known:
            self.known[key] = self._of_pieces(region, view, pieces, dest)
        made = self.known[key]
        return self._least(gaps, made)

    def _held(self, region: Region, root: Key, view: Steps) -> Gaps | None:
        """Return the least gaps of a region among its contents recorded for ``root``."""
        (buffer, path), sizes = region, self.tensors.sizes
        best: Gaps | None = None
        for (at, key, part), gaps in self.held.get(buffer, {}).items():
            if key is root or key == root:
                down = relative_view(at, path)
                if down is not None and down == relative_view(part, view):
                    near = tuple(gap for gap in gaps if not apart(sizes, gap, path))
                    best = self._least(best, near)
        return best

    def _least(self, a: Gaps | None, b: Gaps | None) -> Gaps | None:
        """Return the gaps that are contained in the others, or else the smaller number of gaps."""
        if a is None or b is None:
            return b if a is None else a
        if self._are_inside(b, a):
            return b
        return a if self._are_inside(a, b) or len(a) < len(b) else b

    def _are_inside(self, some: Gaps, others: Gaps) -> bool:
        sizes = self.tensors.sizes
        return all(any(inside(sizes, gap, other) for other in others) for gap in some)

    def _of_pieces(
        self,
        region: Region,
        view: Steps,
        pieces: Sequence[tuple[Steps, Key]],
        dest: SSAValue | None,
    ) -> Gaps | None:
        """Return the gaps of a region in a tensor made by insertion."""
        (buffer, path), sizes = region, self.tensors.sizes
        if view:  # the view may lie in one piece, or in the destination around all pieces
            inner = [(relative_view(box, view), piece) for box, piece in pieces]
            found = [self.gaps(region, p, down) for down, p in inner if down is not None]
            if dest is not None and all(apart(sizes, box, view) for box, _ in pieces):
                found = [self.gaps(region, dest, view)]
            if () in found:
                return ()
        whole = path
        while view and (whole[-1:] == view[-1:] or not isinstance(view[-1], Slice)):
            back = inverse(view[-1:])
            whole, view = whole[:-1] if back is None else join(whole, back), view[:-1]
        if view:
            return None
        rest = None if dest is None else self.gaps((buffer, whole), dest, ())
        gaps = () if dest is None else (whole,) if rest is None else rest
        for box, piece in pieces:
            at = join(whole, box)
            gaps = tuple(gap for gap in gaps if not inside(sizes, gap, at))
            if not apart(sizes, at, path):
                more = self.gaps((buffer, at), piece, ())
                gaps += (at,) if more is None else more
        return tuple(gap for gap in gaps if not apart(sizes, gap, path))

    def regions(self, value: Key) -> dict[Region, None]:
        """Answer `Contents.regions`."""
        root, view = self.tensors.root(value)
        if root not in self.found:
            self.found[root] = self._regions(root)
        whole = {(buffer, join(at, view)): None for buffer, at in self.found[root]}
        return self._seen(root, view) | whole if view else whole

    def _seen(self, root: Key, view: Steps) -> dict[Region, None]:
        """Return the regions whose contents are recorded as a view of ``root``."""
        found: dict[Region, None] = {}
        for buffer in self.tensors.where.get(root, ()):
            for at, key, part in self.held.get(buffer, ()):
                if (key is root or key == root) and (down := relative_view(part, view)) is not None:
                    found[buffer, join(at, down)] = None
        return found

    def _regions(self, root: Key) -> dict[Region, None]:
        found = self._seen(root, ())
        pieces, dest = self.tensors.pieces(root)
        for box, inner in pieces:
            for buffer, at in self.regions(inner):
                whole = at[: len(at) - len(box)]
                if at == (*whole, *box):
                    found[buffer, whole] = None
        return found | (self.regions(dest) if dest is not None else {})
