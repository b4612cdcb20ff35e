"""Estimate the bytes that each launch moves between a core's caches and memory.

The model: one cache of known size. A loop whose whole footprint fits the cache fetches each element
once; each iteration of the loops around it fetches them again. The least possible traffic reads
each element of an input once, writes each element of a result once, and keeps the kernel's
temporaries out of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    ModuleOp,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, OpResult, SSAValue

from stepwell.analysis.levels import kernel_levels
from stepwell.analysis.structured import Index, identity, indices, linear, plain
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.ops import kernel_of
from stepwell.dialects.types import dtype
from stepwell.transforms.passes import Pass, fail, remark

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Traffic:
    """Bytes read and written, and the least possible number."""

    moved: int
    least: int

    @property
    def excess(self) -> float:
        """The bytes moved relative to the least; 1 where the least is 0."""
        return self.moved / self.least if self.least else 1.0


@dataclass(frozen=True)
class ReportTraffic(Pass):
    """Report the bytes that each launch and copy on buffers moves, in a remark.

    Before:  kernel.launch @k ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
    After:   the same; remark: @k moves 32 bytes, the least possible

    cache : bytes of each core's L2 cache

    Afterwards the module is unchanged. Launches with sizes known at run time only are left out.
    """

    name = "report-traffic"
    one_block = True

    cache: int = 1 << 20

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Report on every host function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                for each in function.walk():
                    if isinstance(each, kernel.LaunchOp | memref.CopyOp):
                        self._report(each)

    def _report(self, op: kernel.LaunchOp | memref.CopyOp) -> None:
        if isinstance(op, kernel.LaunchOp) and op.results:
            fail(op, "report-traffic wants buffers", "run bufferize first")
        found = traffic(op, self.cache)
        if found is None:
            return
        name = str(op.callee) if isinstance(op, kernel.LaunchOp) else "a copy"
        rest = f"{found.least} would do ({found.excess:.1f} times)"
        if not found.least:
            rest = "none need be"
        elif found.moved == found.least:
            rest = "the least possible"
        remark(op, f"{name} moves {found.moved} bytes, {rest}")


def traffic(
    op: kernel.LaunchOp | memref.CopyOp,
    cache: int = 1 << 20,
    shape_of: Callable[[SSAValue], Shape] | None = None,
) -> Traffic | None:
    """Return the traffic of one launch or copy on buffers; None where a size is unknown.

    shape_of : returns the shape of an operand, where its type does not have it
    """
    shapes = [shape_of(v) if shape_of else _static(v.type) for v in op.operands]
    if any(n < 0 for shape in shapes for n in shape):
        return None
    if isinstance(op, memref.CopyOp):
        return Traffic(2 * prod(shapes[0]) * _bytes(op.source.type), 0)
    found = _Kernel(kernel_of(op), shapes, cache)
    wholes = _roots(op)
    sizes = {v: shape_of(v) if shape_of else _static(v.type) for v in wholes}
    return found.traffic(_private_outputs(op), wholes, sizes)


def _roots(launch: kernel.LaunchOp) -> list[SSAValue]:
    """Return for each operand the buffer that it is a view of."""
    found: list[SSAValue] = []
    for value in launch.operands:
        while isinstance(value, OpResult) and isinstance(value.op, _VIEWS):
            value = value.op.operands[0]
        found.append(value)
    return found


def _private_outputs(launch: kernel.LaunchOp) -> set[int]:
    """Return the destinations, by operand number, that no other op uses."""
    first = len(launch.inputs)
    return {
        first + n
        for n, v in enumerate(launch.outputs)
        if isinstance(v, OpResult)
        and isinstance(v.op, memref.AllocOp | memref.ViewOp)
        and v.has_one_use()
    }


@dataclass
class _Nest:
    """The loops of one op, outermost first, as (loop of the op, iterations); and its accesses."""

    loops: list[tuple[int, int]]
    extents: list[int]
    accesses: list[_Access]

    def inner(self, level: int) -> list[int]:
        """Return the range of each loop of the op inside loop ``level`` of the nest."""
        spans = [1] * len(self.extents)
        for loop, trips in self.loops[level:]:
            spans[loop] *= trips
        return [min(span, extent) for span, extent in zip(spans, self.extents, strict=True)]


@dataclass
class _Access:
    """One operand of an op: its buffer, its index, and whether it is written."""

    buffer: SSAValue
    index: Index | None
    """None where the body computes the index: any element may be touched."""
    writes: bool
    shape: Shape

    def touched(self, spans: Sequence[int]) -> int:
        """Return the bytes touched by these ranges of the loops."""
        size = _bytes(self.buffer.type)
        if self.index is None:
            return min(prod(spans), prod(self.shape)) * size
        used = {d for expr in self.index for d in expr.used_dims()}
        box = 1
        for expr, extent in zip(self.index, self.shape, strict=True):
            form = linear(expr)
            reach = extent
            if form is not None:
                reach = 1 + sum(abs(f) * (spans[d] - 1) for d, f in form[0].items())
            box *= max(min(reach, extent), 0)
        return min(box, prod(spans[d] for d in used)) * size


class _Kernel:
    def __init__(self, function: kernel.FuncOp, shapes: Sequence[Shape], cache: int) -> None:
        self.function, self.cache = function, cache
        self.arguments: list[SSAValue] = list(function.body.block.args)
        self.shapes = dict(zip(self.arguments, shapes, strict=True))
        self.shared = choices.number(function, "kernel.shared")
        self.nests = [self._nest(op) for op in function.body.block.ops if isinstance(op, _LOOPS)]

    def _shape(self, value: SSAValue) -> Shape:
        known = self.shapes.get(value)
        return known if known is not None else _static(value.type)

    def _nest(self, op: linalg.GenericOp | linalg.FillOp) -> _Nest:
        outputs = list(op.outputs)
        if isinstance(op, linalg.FillOp):
            shape = self._shape(outputs[0])
            access = _Access(outputs[0], identity(len(shape)), True, shape)
            return _Nest(list(enumerate(shape)), list(shape), [access])
        where, block = indices(op), op.body.block
        extents = [1] * len(op.iterator_types.data)
        accesses: list[_Access] = []
        operands = [*op.inputs, *outputs]
        for n, (value, index) in enumerate(zip(operands, where, strict=True)):
            if not isinstance(value.type, MemRefType):
                continue
            for expr, size in zip(index, self._shape(value), strict=True):
                if (loop := plain(expr)) is not None:
                    extents[loop] = size
            if n >= len(op.inputs) or block.args[n].first_use is not None:
                writes = n >= len(op.inputs)
                accesses.append(_Access(value, index, writes, self._shape(value)))
        for inside in op.body.walk():
            if isinstance(inside, memref.LoadOp):
                value = inside.memref
                accesses.append(_Access(value, None, False, self._shape(value)))
        return _Nest(self._order(extents), extents, accesses)

    def _order(self, extents: list[int]) -> list[tuple[int, int]]:
        """Return the loops in the schedule's order: blocks, then tiles, else all in order."""
        sizes = kernel_levels(self.function).blocks
        own = len(extents) - self.shared
        if not sizes or own != 1 or len(sizes) > len(extents):
            return list(enumerate(extents))
        first = len(extents) - len(sizes)
        outer = [(k, n) for k, n in enumerate(extents[:first])]
        inner: list[tuple[int, int]] = []
        for k, most in enumerate(sizes, first):
            step = max(min(most, extents[k]), 1)
            outer.append((k, -(-extents[k] // step)))
            inner.append((k, step))
        return outer + inner

    def traffic(
        self, own: set[int], wholes: Sequence[SSAValue], sizes: Mapping[SSAValue, Shape]
    ) -> Traffic:
        """Return the traffic of one run.

        own : destinations that no other op uses
        wholes : for each argument the buffer that it is a view of
        sizes : the shapes of these buffers
        """
        together = sum(self._part(nest) for nest in self.nests) <= self.cache
        moved: dict[tuple[SSAValue, bool], list[int]] = {}
        whole: dict[tuple[SSAValue, bool], int] = {}
        for nest in self.nests:
            for access in nest.accesses:
                if access.buffer in self.shapes:
                    key = access.buffer, access.writes
                    moved.setdefault(key, []).append(self._moved(nest, access))
                    all = access.touched(nest.extents) if prod(nest.extents) else 0
                    whole[key] = max(whole.get(key, 0), all)
        for op in self._others():
            for value, writes in op:
                bytes = prod(self._shape(value)) * _bytes(value.type)
                moved.setdefault((value, writes), []).append(bytes)
                whole[value, writes] = max(whole.get((value, writes), 0), bytes)
        total = sum(
            max(each) if together else sum(each) for each in self._reads_and_writes(moved, together)
        )
        numbers = {a: n for n, a in enumerate(self.arguments)}
        written = {value for value, writes in whole if writes}
        least = sum(
            bytes
            for (value, writes), bytes in whole.items()
            if numbers[value] not in own and (writes or value not in written)
        )
        read = {v: n for (v, writes), n in whole.items() if not writes}
        twice = self._overlapping_bytes(read, wholes, sizes)
        least -= twice
        return Traffic(max(total - twice, least), least)

    def _overlapping_bytes(
        self,
        read: Mapping[SSAValue, int],
        wholes: Sequence[SSAValue],
        sizes: Mapping[SSAValue, Shape],
    ) -> int:
        """Return the bytes that are counted more than once, because views of one buffer overlap."""
        sums: dict[SSAValue, int] = {}
        for argument, whole in zip(self.arguments, wholes, strict=True):
            if argument in read:
                sums[whole] = sums.get(whole, 0) + read[argument]
        return sum(
            max(0, bytes - prod(sizes[whole]) * _bytes(whole.type))
            for whole, bytes in sums.items()
            if all(n >= 0 for n in sizes[whole])
        )

    def _reads_and_writes(
        self, moved: dict[tuple[SSAValue, bool], list[int]], together: bool
    ) -> Iterator[list[int]]:
        """Yield the reads or writes of each buffer, but not reads of fresh results."""
        written = {value for value, writes in moved if writes}
        for (value, writes), each in moved.items():
            if writes or not together or value not in written:
                yield each

    def _others(self) -> Iterator[list[tuple[SSAValue, bool]]]:
        """Yield the accesses of a kernel's plain loops: arguments, each as a whole."""
        for op in self.function.body.block.ops:
            if isinstance(op, scf.ForOp):
                loads = {v.memref: False for v in op.walk() if isinstance(v, memref.LoadOp)}
                stores = {v.memref: True for v in op.walk() if isinstance(v, memref.StoreOp)}
                found = [*loads.items(), *stores.items()]
                yield [(value, writes) for value, writes in found if value in self.shapes]

    def _part(self, nest: _Nest) -> int:
        """Return the bytes that one iteration of the shared loops touches."""
        spans = [1] * self.shared + nest.extents[self.shared :]
        return sum(a.touched(spans[: len(nest.extents)]) for a in nest.accesses)

    def _moved(self, nest: _Nest, access: _Access) -> int:
        bytes = _bytes(access.buffer.type)
        for level in reversed(range(len(nest.loops))):
            inside = nest.inner(level + 1)
            if sum(a.touched(inside) for a in nest.accesses) <= self.cache:
                bytes = access.touched(nest.inner(level))
            else:
                loop, trips = nest.loops[level]
                used = access.index is None or any(
                    loop in expr.used_dims() for expr in access.index
                )
                sums = access.writes and not used  # an accumulator stays in registers
                bytes *= 1 if sums else trips
        return bytes if prod(nest.extents) else 0


_LOOPS = linalg.GenericOp | linalg.FillOp
_VIEWS = (
    memref.SubviewOp,
    memref.CastOp,
    memref.ExpandShapeOp,
    memref.CollapseShapeOp,
)


def _static(type: Attribute) -> Shape:
    shape = type.get_shape() if isinstance(type, MemRefType) else ()
    return tuple(-1 if n == DYNAMIC_INDEX else n for n in shape)


def _bytes(type: Attribute) -> int:
    assert isinstance(type, MemRefType)
    element = type.element_type
    return 8 if isinstance(element, IndexType) else dtype(element).bytes
