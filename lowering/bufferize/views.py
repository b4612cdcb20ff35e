"""Views: one buffer as a slice, reshape or cast of another.

A view is a list of steps, each applied to the result of the step before. Steps are compared, to
decide whether two tensors are in the same place or overlap, and are written as memref ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import gcd
from typing import TypeAlias

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.analysis.sizes import Shape, Size, Sizes, product

Buffer: TypeAlias = "MemRefType[Attribute]"


@dataclass(frozen=True)
class Slice:
    """A strided slice: offsets, sizes and strides by axis; the view has only the axes ``kept``."""

    offsets: Shape
    sizes: Shape
    strides: Shape
    kept: tuple[int, ...]

    @staticmethod
    def between(ends: Sequence[tuple[Size, Size]]) -> Slice:
        """Return the slice with all axes from each first index to its exclusive bound."""
        offsets, sizes = tuple(a for a, _ in ends), tuple(b - a for a, b in ends)
        return Slice(offsets, sizes, (Size.of(1),) * len(ends), tuple(range(len(ends))))

    @staticmethod
    def all_of(shape: Shape) -> Slice:
        """Return the slice of all elements."""
        return Slice.between([(Size(), n) for n in shape])

    @property
    def places(self) -> tuple[Shape, Shape, Shape]:
        """The elements of the slice, independent of ``kept``."""
        return self.offsets, self.sizes, self.strides

    @cached_property
    def reach(self) -> Shape:
        """For each axis an exclusive upper bound of the indices."""
        axes = zip(self.offsets, self.sizes, self.strides, strict=True)
        return tuple(o + n * s for o, n, s in axes)

    @cached_property
    def known(self) -> tuple[tuple[int | None, int | None], ...]:
        """For each axis its first index and exclusive upper bound, None if not static."""
        ends = zip(self.offsets, self.reach, strict=True)
        return tuple((start.number, end.number) for start, end in ends)

    @cached_property
    def is_dense(self) -> bool:
        """Whether all strides are one."""
        return all(n.number == 1 for n in self.strides)

    def is_all_of(self, shape: Shape) -> bool:
        """Whether it is all of a buffer of ``shape``, without a change of axes."""
        whole = self.is_dense and self.sizes == shape and len(self.kept) == len(shape)
        return whole and all(n.number == 0 for n in self.offsets)

    def then(self, part: Slice) -> Slice:
        """Return the slice of the buffer that ``part``, a slice of this one, is."""
        offsets, sizes, strides = list(self.offsets), list(self.sizes), list(self.strides)
        rows = zip(self.kept, part.offsets, part.sizes, part.strides, strict=True)
        for axis, offset, size, stride in rows:
            offsets[axis] += self.strides[axis] * offset
            sizes[axis], strides[axis] = size, self.strides[axis] * stride
        kept = tuple(self.kept[axis] for axis in part.kept)
        return Slice(tuple(offsets), tuple(sizes), tuple(strides), kept)

    def result(self, source: Buffer) -> Buffer | None:
        """Return the type of the view of a buffer, None if that has no strides."""
        old, offset = source.get_strides(), source.get_offset()
        if old is None:
            return None
        for at, stride in zip(self.offsets, old, strict=True):
            offset = _plus(offset, _times(at.number, stride))
        by = [_times(stride.number, n) for stride, n in zip(self.strides, old, strict=True)]
        shape = [_static(self.sizes[a]) for a in self.kept]
        return _strided(source, shape, [by[a] for a in self.kept], offset)

    def write(self, source: SSAValue, result: Buffer, index: Index) -> Operation:
        """Return the op that makes the view."""
        lists = [[_mixed(n, index) for n in each] for each in (self.offsets, self.sizes)]
        by = [_mixed(n, index) for n in self.strides]
        return memref.SubviewOp.get(source, lists[0], lists[1], by, result)


@dataclass(frozen=True)
class Reshape:
    """The same elements, in order, in another shape: each group of axes collapses to one axis.

    It collapses the groups of ``large``, or expands axes to them. The other shape is their
    products, so reshapes of one array are equal whatever formulas its number of elements has.
    """

    groups: tuple[tuple[int, ...], ...]
    large: Shape
    expands: bool

    @staticmethod
    def between(groups: tuple[tuple[int, ...], ...], source: Shape, target: Shape) -> Reshape:
        """Return the reshape of one shape to another."""
        expands = len(target) > len(source)
        return Reshape(groups, target if expands else source, expands)

    @cached_property
    def target(self) -> Shape:
        """The shape of the view."""
        if self.expands:
            return self.large
        return tuple(product([self.large[axis] for axis in group]) for group in self.groups)

    def inverse(self) -> Reshape:
        """Return the inverse reshape."""
        return Reshape(self.groups, self.large, not self.expands)

    def result(self, source: Buffer) -> Buffer | None:
        """Return the type of the view, None if the layout of the source permits none."""
        shape = self._static_shape(source.get_shape())
        if isinstance(source.layout, NoneAttr):
            return MemRefType(source.element_type, shape)
        old = source.get_strides()
        assert old is not None
        strides: list[int | None] = []
        if not self.groups:  # one element belongs to no group
            strides = [1] * len(shape)
        for number, group in enumerate(self.groups):
            if self.expands:
                strides += _expanded([shape[a] for a in group], old[number])
            elif (one := _collapsed([(_static(self.large[a]), old[a]) for a in group])) is False:
                return None
            else:
                strides.append(one)
        return _strided(source, shape, strides, source.get_offset())

    def _static_shape(self, source: Sequence[int]) -> list[int]:
        """Return the shape of the result type for a source type of shape ``source``.

        MLIR requires for both ops that a `?` never becomes static sizes alone, nor those a `?`.
        """
        shape = [_static(n) for n in self.target]
        for number, group in enumerate(self.groups):
            if self.expands:
                if source[number] == DYNAMIC_INDEX and all(shape[a] >= 0 for a in group):
                    shape[group[0]] = DYNAMIC_INDEX
            elif any(source[a] == DYNAMIC_INDEX for a in group):
                shape[number] = DYNAMIC_INDEX
        return shape

    def write(self, source: SSAValue, result: Buffer, index: Index) -> Operation:
        """Return the op that makes the view."""
        groups = ArrayAttr(
            ArrayAttr(IntegerAttr(axis, i64) for axis in group) for group in self.groups
        )
        if not self.expands:
            return memref.CollapseShapeOp.build(
                operands=[source], properties={"reassociation": groups}, result_types=[result]
            )
        shape = result.get_shape()
        static = DenseArrayBase.from_list(i64, shape)
        told = zip(self.target, shape, strict=True)
        dynamic = [index(n) for n, known in told if known == DYNAMIC_INDEX]
        return memref.ExpandShapeOp.build(
            operands=[source, dynamic],
            properties={"reassociation": groups, "static_output_shape": static},
            result_types=[result],
        )


@dataclass(frozen=True)
class Cast:
    """The same buffer with more or fewer static sizes in its type."""

    source: tuple[int, ...]
    target: tuple[int, ...]

    def inverse(self) -> Cast:
        """Return the inverse cast."""
        return Cast(self.target, self.source)

    def result(self, source: Buffer) -> Buffer | None:
        """Return the type of the view."""
        return MemRefType(source.element_type, self.target, source.layout)

    def write(self, source: SSAValue, result: Buffer, index: Index) -> Operation:
        """Return the op that makes the view."""
        return memref.CastOp.get(source, result)


Step: TypeAlias = Slice | Reshape | Cast
Steps: TypeAlias = tuple[Step, ...]
Index: TypeAlias = Callable[[Size], SSAValue]


def join(first: Steps, then: Steps) -> Steps:
    """Return the composition of two views; a step followed by its inverse cancels."""
    steps = list(first)
    for step in then:
        back = None if isinstance(step, Slice) else step.inverse()
        if steps and steps[-1] == back:
            steps.pop()
        else:
            steps.append(step)
    return tuple(steps)


def inverse(steps: Steps) -> Steps | None:
    """Return the inverse view, None if ``steps`` contain a slice."""
    back: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, Slice):
            return None
        back.append(step.inverse())
    return tuple(back)


def common(a: Steps, b: Steps) -> int:
    """Return the number of steps with which both views begin."""
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return same


def relative_view(whole: Steps, part: Steps) -> Steps | None:
    """Return the view from ``whole`` to ``part``, None if ``part`` is not a view of ``whole``."""
    same = common(whole, part)
    back = inverse(whole[same:])
    return None if back is None else join(back, part[same:])


def run_time_values(sizes: Sizes, steps: Steps) -> list[SSAValue]:
    """Return the values known only at run time that the slices of a view depend on."""
    slices = [step for step in steps if isinstance(step, Slice)]
    numbers = (n for s in slices for n in (*s.offsets, *s.sizes, *s.strides) if n.number is None)
    return [value for n in numbers for value in sizes.unknowns(n)]


def view_type(source: Buffer, steps: Steps) -> Buffer | None:
    """Return the type of the view ``steps``, None if a reshape in it would need a copy."""
    type: Buffer | None = source
    for step in steps:
        if type is not None:
            type = step.result(type)
    return type


def same_place(a: Steps, b: Steps) -> bool:
    """Whether two views are equal, but for casts and slices of slices."""
    return a == b or in_one_slice(a) == in_one_slice(b)


def same_or_apart(sizes: Sizes, a: Steps, b: Steps) -> bool:
    """Whether two views of one buffer are equal or disjoint, whatever the run-time offsets are.

    That holds for two rows of a matrix: slices that differ only in the offset of an axis of one.
    """
    if same_place(a, b) or disjoint(sizes, part(a), part(b)):
        return True
    (ours, rest), (theirs, others) = _boxes(a), _boxes(b)
    if not ours or not theirs or ours[-1].kept != theirs[-1].kept or rest != others:
        return False
    return all(
        n == m and (n.number == 1 or (start, step) == (begin, stride))
        for start, n, step, begin, m, stride in zip(
            *ours[-1].places, *theirs[-1].places, strict=True
        )
    )


def in_one_slice(steps: Steps) -> Steps:
    """Return an equal view without casts that begins with at most one slice."""
    boxes, rest = _boxes(steps)
    return (*boxes[-1:], *rest)


def _boxes(steps: Steps) -> tuple[list[Slice], list[Step]]:
    """Return the slices of a buffer that a view begins with, and the steps after them."""
    rest: list[Step] = [s for s in steps if not isinstance(s, Cast)]
    boxes: list[Slice] = []
    while rest and isinstance(step := rest[0], Slice):
        boxes.append(boxes[-1].then(step) if boxes else step)
        rest = rest[1:]
    return boxes, rest


@dataclass(frozen=True)
class Part:
    """Boxes around a view; ``exact`` if every element of the last one belongs to the view."""

    boxes: tuple[Slice, ...]
    """One for each slice that the view begins with, each inside of the one before."""
    exact: bool
    all_steps: bool = False
    """Whether every element that the strides of the last box visit belongs to the view."""

    @property
    def box(self) -> Slice | None:
        """The smallest box, None if it is the whole buffer."""
        return self.boxes[-1] if self.boxes else None


def part(steps: Steps) -> Part:
    """Return the boxes of a view in its buffer."""
    boxes, rest = _boxes(steps)
    if not boxes:
        return Part((), not rest)
    all_steps = not any(isinstance(step, Slice) for step in rest)
    return Part(tuple(boxes), all_steps and boxes[-1].is_dense, all_steps)


def disjoint(sizes: Sizes, a: Part, b: Part) -> bool:
    """Whether two parts of one buffer provably have no element in common."""
    return any(_are_apart(sizes, one, other) for one in a.boxes for other in b.boxes)


def _are_apart(sizes: Sizes, a: Slice, b: Slice) -> bool:
    """Whether two boxes of one buffer provably have no element in common."""
    for axis, ((start, end), (other, limit)) in enumerate(zip(a.known, b.known, strict=True)):
        if start is None or end is None or other is None or limit is None:
            apart = sizes.never_negative(b.offsets[axis] - a.reach[axis]) or sizes.never_negative(
                a.offsets[axis] - b.reach[axis]
            )
        else:
            apart = other >= end or start >= limit
        if apart:
            return True
    return not (a.is_dense or b.is_dense) and _interleaved(a, b)


def _interleaved(a: Slice, b: Slice) -> bool:
    """Whether along some axis two boxes visit disjoint residues, as odd and even indices."""
    rows = zip(a.offsets, a.strides, b.offsets, b.strides, strict=True)
    for start_a, step_a, start_b, step_b in rows:
        one, other = step_a.number, step_b.number
        if one is None or other is None or (common := gcd(one, other)) <= 1:
            continue
        apart = (start_a - start_b).number
        if apart is not None and apart % common:
            return True
    return False


def outside(sizes: Sizes, box: Slice, whole: Slice) -> list[Slice] | None:
    """Return boxes that together are all of ``whole`` that is not in ``box``.

    None if that is unknown, or if they are no boxes, as ``box`` has strides.
    """
    if _are_apart(sizes, box, whole):
        return [whole]
    if not box.is_dense:
        return None
    found, rest = list[Slice](), list(zip(whole.offsets, whole.reach, strict=True))
    for axis, (start, end) in enumerate(zip(box.offsets, box.reach, strict=True)):
        first, last = rest[axis]
        for a, b in ((first, start), (end, last)):
            if sizes.never_negative(b - a):
                if a != b:
                    found.append(Slice.between([*rest[:axis], (a, b), *rest[axis + 1 :]]))
            elif not sizes.never_negative(a - b):
                return None
        rest[axis] = (
            start if sizes.never_negative(start - first) else first,
            end if sizes.never_negative(last - end) else last,
        )
    return found


def covers(sizes: Sizes, a: Part, b: Part) -> bool:
    """Whether part ``a`` provably contains every element of part ``b``."""
    if (whole := a.box) is None:
        return a.exact
    return any(
        (a.all_steps and whole.places == box.places) or (a.exact and _contains(sizes, whole, box))
        for box in b.boxes
    )


def _contains(sizes: Sizes, a: Slice, b: Slice) -> bool:
    rows = zip(a.offsets, a.reach, b.offsets, b.reach, strict=True)
    return all(
        sizes.never_negative(start_b - start_a) and sizes.never_negative(end_a - end_b)
        for start_a, end_a, start_b, end_b in rows
    )


@lru_cache(maxsize=1024)
def buffer_of(type: TensorType[Attribute]) -> Buffer:
    """Return the contiguous buffer type of a tensor type."""
    return MemRefType(type.element_type, type.get_shape())


def buffer_type(value: SSAValue) -> Buffer:
    """Return the type of ``value``, a buffer."""
    assert isinstance(value.type, MemRefType)
    return value.type


def contiguous(type: Buffer) -> bool:
    """Whether the layout is row-major without gaps, from offset zero."""
    if isinstance(type.layout, NoneAttr):
        return True
    plain = MemRefType(type.element_type, type.get_shape()).get_strides()
    return type.get_offset() == 0 and type.get_strides() == plain and None not in (plain or ())


def _static(size: Size) -> int:
    return DYNAMIC_INDEX if size.number is None else size.number


def _mixed(size: Size, index: Index) -> SSAValue | int:
    return index(size) if size.number is None else size.number


def _times(a: int | None, b: int | None) -> int | None:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _expanded(shape: Sequence[int], stride: int | None) -> list[int | None]:
    strides: list[int | None] = []
    for n in reversed(shape):
        strides.insert(0, stride)
        stride = _times(stride, None if n == DYNAMIC_INDEX else n)
    return strides


def _collapsed(group: Sequence[tuple[int, int | None]]) -> int | bool | None:
    """Return the stride of a collapsed group of (size, stride), False if it has no single one."""
    axes = [(n, stride) for n, stride in group if n != 1]
    for (_, outer), (n, inner) in pairwise(axes):
        if outer is None or inner is None or n == DYNAMIC_INDEX or outer != n * inner:
            return False
    if not axes:  # if all axes are unit, MLIR takes the stride of the first
        return group[0][1] if group else 1
    return axes[-1][1]


def _strided(
    source: Buffer, shape: Sequence[int], strides: Sequence[int | None], offset: int | None
) -> Buffer:
    return MemRefType(source.element_type, shape, _layout(tuple(strides), offset))


@lru_cache(maxsize=1024)
def _layout(strides: tuple[int | None, ...], offset: int | None) -> StridedLayoutAttr:
    return StridedLayoutAttr(strides, offset)
