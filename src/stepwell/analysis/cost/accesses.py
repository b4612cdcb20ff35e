"""The accesses of an op to an array: their footprint in a part of its loops, and their strides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, gcd, prod
from typing import TypeAlias

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntAttr, MemRefType, ShapedType, StridedLayoutAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.ir.affine.affine_expr import AffineBinaryOpExpr, AffineBinaryOpKind

from stepwell.analysis.structured import bits_of, element, indices, linear, shape

PARTS = (memref.SubviewOp, tensor.ExtractSliceOp)
VIEWS = (
    *PARTS,
    memref.ExpandShapeOp,
    memref.CollapseShapeOp,
    memref.CastOp,
    tensor.ExpandShapeOp,
    tensor.CollapseShapeOp,
    tensor.CastOp,
)
ASSUMED = 256
"""Assumed size of an axis that is known at run time only: the size that `schedule` assumes."""

Shapes: TypeAlias = Callable[[SSAValue], Sequence[int]]
"""Returns the shape of an array."""


def assumed(value: SSAValue) -> Sequence[int]:
    """Return the shape of an array by its type; an unknown size is `ASSUMED`."""
    return [ASSUMED if n == DYNAMIC_INDEX else n for n in shape(value)]


def assuming(size: int) -> Shapes:
    """Return the function of shapes in which each unknown size is ``size``."""
    return lambda value: [size if n == DYNAMIC_INDEX else n for n in shape(value)]


@dataclass(frozen=True)
class Axis:
    """How one axis of an array is indexed."""

    steps: Mapping[int, int]
    """The step of the index along the axis for each loop."""
    size: int
    """The number of elements."""
    stride: int
    """The distance between neighbours, in elements."""
    width: int = 0
    """The divisor, where the index is a loop divided by a number or its remainder."""
    is_rest: bool = False
    begin: int = 0
    """The first element that is touched."""

    @cached_property
    def _alone(self) -> tuple[int, int]:
        """The loop and its step, if the index is that of one loop; else -1."""
        if len(self.steps) != 1 or self.width:
            return -1, 0
        ((loop, by),) = self.steps.items()
        return loop, abs(by)

    def touched(self, ranges: Sequence[float]) -> float:
        """Return how many elements of the axis these ranges of the loops touch."""
        loop, by = self._alone
        if loop >= 0:
            many = ranges[loop]
            many = many if many < self.size else float(self.size)
            return many if many > 1.0 and by else 1.0
        if not self.steps:
            return 1.0
        if self.width:
            (loop,) = self.steps
            many = min(ranges[loop], self.width) if self.is_rest else ranges[loop] / self.width
            return min(max(many, 1.0), self.size)
        reach, combinations = 1.0, 1.0
        for loop, by in self.steps.items():
            reach += abs(by) * (ranges[loop] - 1)
            combinations *= ranges[loop]
        return max(min(reach, combinations, self.size), 1.0)


@dataclass(frozen=True, eq=False)
class Access:
    """One operand of an op."""

    array: SSAValue
    """The array, or the part of one, that it reads or writes."""
    axes: tuple[Axis, ...]
    bytes: int
    """Bytes of an element."""
    operand: int = -1
    """Its number among the operands of the op; -1 for a read at an index that the body computes."""
    written: bool = False
    argument: int = -1
    """The kernel's argument that holds the array, by number, or -1."""
    is_copy: bool = False
    """Whether it reads the packed copy instead of the array itself."""
    unaligned: bool = False
    """Whether the array may begin within a cache line."""
    known: dict[tuple[float, ...], float] = field(default_factory=dict[tuple[float, ...], float])
    """The footprints that were asked for, by the ranges of the loops."""

    @property
    def local(self) -> bool:
        """Whether no argument of the kernel holds the array."""
        return self.argument < 0 or self.is_copy

    @property
    def anywhere(self) -> bool:
        """Whether the body computes the index."""
        return self.operand < 0

    @cached_property
    def loops(self) -> frozenset[int]:
        """The loops that the index depends on."""
        return frozenset(loop for axis in self.axes for loop in axis.steps)

    @cached_property
    def by_stride(self) -> list[Axis]:
        """The axes in the order of their strides, the smallest first."""
        return sorted(self.axes, key=lambda axis: (axis.stride, axis.size))

    def stride(self, loop: int) -> int:
        """Return the distance in elements between neighbours along ``loop``."""
        found = 0
        for axis in self.axes:
            if loop in axis.steps and (not axis.width or axis.is_rest):
                found += axis.steps[loop] * axis.stride
        return found

    def run(self, ranges: Sequence[float]) -> float:
        """Return the contiguous bytes that these ranges of the loops touch."""
        bytes = float(self.bytes)
        for axis in self.by_stride:
            if axis.stride * self.bytes > bytes:
                break
            bytes += (axis.touched(ranges) - 1) * axis.stride * self.bytes
        return bytes

    def footprint(self, ranges: Sequence[float], line: int) -> float:
        """Return the bytes of the cache lines that these ranges of the loops touch."""
        key = (line, *(ranges[k] for k in self.loops))
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._footprint(ranges, line)
        return found

    def _footprint(self, ranges: Sequence[float], line: int) -> float:
        if self.anywhere:
            whole = prod(axis.size for axis in self.axes) * self.bytes
            return min(whole, prod(ranges) * line)
        run, lines, dense, ragged = float(self.bytes), 1.0, True, 0
        for axis in self.by_stride:
            many = axis.touched(ranges)
            if dense and axis.stride * self.bytes <= max(run, line):
                run += (many - 1) * axis.stride * self.bytes
                dense = many >= axis.size or many <= 1
            else:
                dense = False
                lines *= many
                if many > 1:  # runs begin anywhere in a line
                    ragged = max(ragged, line - gcd(axis.stride * self.bytes, line))
        return lines * max(run + ragged, min(line, run + self.bytes))

    def packed(self, axis: int, ranges: Sequence[float]) -> Access:
        """Return the access to a packed copy for these ranges, with contiguous lanes."""
        axes: list[Axis] = []
        stride = 1
        for loop in sorted(self.loops, key=lambda k: (k != axis, -k)):
            size = max(round(ranges[loop]), 1)
            axes.append(Axis({loop: 1}, size, stride))
            stride *= size
        return replace(self, axes=tuple(axes[::-1]), is_copy=True, known={})


def without_overlaps(found: Sequence[Access], ranges: Sequence[float]) -> Sequence[Access]:
    """Return the accesses to one array that do not overlap earlier ones in a part of the loops."""
    if len(found) < 2:
        return found
    chosen: list[tuple[Access, list[float]]] = []
    for access in found:
        touched = [axis.touched(ranges) for axis in access.axes]
        if not any(_overlap(access, touched, *other) for other in chosen):
            chosen.append((access, touched))
    return [access for access, _ in chosen]


def _overlap(a: Access, touched: list[float], b: Access, others: list[float]) -> bool:
    """Whether ``b`` touches what ``a`` touches: the same part, or all of it.

    Indices that depend on other loops, as in a product by the same matrix, are elsewhere in most
    parts of the loops.
    """
    if len(a.axes) != len(b.axes):
        return True
    for x, y, m, n in zip(a.axes, b.axes, touched, others, strict=True):
        if x.steps != y.steps and n < y.size:
            return False
        if x.begin != y.begin and abs(x.begin - y.begin) >= max(m, n):
            return False
    return True


def accesses(
    op: linalg.GenericOp | linalg.FillOp, shapes: Shapes, unaligned: Collection[int] = ()
) -> list[Access]:
    """Return the reads and writes of an op, in the order of its operands, without unused ones.

    unaligned : the kernel's arguments that may begin within a cache line, by number
    """
    if isinstance(op, linalg.FillOp):
        value = op.outputs[0]
        index = [AffineDimExpr(k) for k in range(len(shapes(value)))]
        return [_access(value, index, shapes(value), 0, True)]
    found = (*_operands(op, shapes), *_looked_up(op, shapes))
    return [replace(a, unaligned=True) if a.argument in unaligned else a for a in found]


def _operands(op: linalg.GenericOp, shapes: Shapes) -> Iterator[Access]:
    for k, (value, index) in enumerate(zip(op.operands, indices(op), strict=True)):
        written = k >= len(op.inputs)
        unread = not written and op.body.block.args[k].first_use is None
        if isinstance(value.type, ShapedType) and not unread:
            yield _access(value, index, shapes(value), k, written)


def _looked_up(op: linalg.GenericOp, shapes: Shapes) -> Iterator[Access]:
    """Yield the reads of the body at indices that it computes."""
    for inner in op.body.block.walk():
        if isinstance(inner, tensor.ExtractOp | memref.LoadOp):
            value = inner.operands[0]
            loops = dict.fromkeys(range(len(op.iterator_types)), 1)
            axes = tuple(Axis(loops, n, 1) for n in shapes(value))
            array, argument = root_of(value)
            yield Access(array, axes, _bytes(value), argument=argument)


def _access(
    value: SSAValue, index: Sequence[AffineExpr], sizes: Sequence[int], number: int, written: bool
) -> Access:
    axes = tuple(map(_axis, index, sizes, strides_of(value, sizes)))
    array, argument = root_of(value)
    return Access(array, axes, _bytes(value), number, written, argument)


def _axis(expr: AffineExpr, size: int, stride: int) -> Axis:
    if (form := linear(expr)) is not None:
        return Axis(form[0], size, stride, begin=form[1])
    match expr:
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.FloorDiv | AffineBinaryOpKind.Mod as kind,
            lhs=AffineDimExpr(position=loop),
            rhs=AffineConstantExpr(value=width),
        ):
            return Axis({loop: 1}, size, stride, width, kind is AffineBinaryOpKind.Mod)
        case _:
            return Axis(dict.fromkeys(sorted(expr.used_dims()), 1), size, stride)


def root_of(value: SSAValue) -> tuple[SSAValue, int]:
    """Return the array, or the part of one, that a value is a view of, and its argument or -1.

    Different parts of one array are distinguished.
    """
    part: SSAValue | None = None
    while isinstance(value, OpResult):
        op: Operation = value.op
        if isinstance(op, VIEWS):
            part = part or (value if isinstance(op, PARTS) else None)
            value = op.operands[0]
        elif isinstance(op, linalg.GenericOp | linalg.FillOp):
            value = op.outputs[value.index]
        elif isinstance(op, tensor.InsertSliceOp):
            value = op.dest
        else:
            break
    return part or value, value.index if isinstance(value, BlockArgument) else -1


def strides_of(value: SSAValue, sizes: Sequence[int]) -> list[int]:
    """Return the distance in elements between neighbours along each axis of an array."""
    layout = value.type.layout if isinstance(value.type, MemRefType) else None
    if isinstance(layout, StridedLayoutAttr):
        known = [n.data for n in layout.strides.data if isinstance(n, IntAttr)]
        if len(known) == len(sizes):
            return known
    strides: list[int] = []
    step = 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return strides[::-1]


def _bytes(value: SSAValue) -> int:
    return max(ceil(bits_of(element(value)) / 8), 1)
