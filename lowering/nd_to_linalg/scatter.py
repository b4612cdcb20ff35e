"""Scatters are loop nests that write one element after the other.

An update does not depend on the indices along unindexed axes. So the loops over the axes before the
indexed ones are outermost, and threads share the first; without such axes, and if long rows follow,
threads share an axis of the rows in blocks. Either way elements are combined in the order of the
updates, for any number of threads.

One thread writes short rows. If threads shared the rows of the table, each would read all indices
and test which are its own, by a branch that processors cannot predict. With 4 blocks of a table of
40 to 64 MB one thread took 2 to 3 times as long, and two were no faster than one without blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr, i64
from xdsl.ir import Block, SSAValue

from stepwell.core.dtypes import DType
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.dialects.nd.indexing import (
    ScatterAddOp,
    ScatterMaxOp,
    ScatterMinOp,
    ScatterMulOp,
    ScatterOp,
    ScatterOpBase,
)
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.types import dtype
from stepwell.lowering.nd_to_linalg.body import INDEX, Body, computed_in
from stepwell.lowering.nd_to_linalg.indexing import extended
from stepwell.lowering.nd_to_linalg.nests import Places, loop, nest, read, tasks, written
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

Operands = Sequence[SSAValue]
Bounds: TypeAlias = tuple[int | SSAValue, int | SSAValue]

LINE = 64
"""Bytes of a cache line; blocks of columns begin at multiples of it."""
BLOCK = 4 * LINE
"""Bytes of a row in a block that a thread takes; a row of no more is halved."""
BLOCKS = 8
"""The most blocks, as each of them reads all indices."""

_COMBINE: dict[type[ScatterOpBase], Callable[[Body, SSAValue, SSAValue], SSAValue]] = {
    ScatterOp: lambda b, old, new: new,
    ScatterAddOp: Body.add,
    ScatterMulOp: Body.mul,
    ScatterMinOp: Body.min,
    ScatterMaxOp: Body.max,
}


@lower(*_COMBINE)
def _scatter(lowering: Lowering, op: ScatterOpBase, operands: Operands) -> Operands:
    if 0 in shape_of(op.updates) or 0 in shape_of(op.x):
        return (operands[0],)
    return _Scatter(lowering, op, operands).write()


class _Scatter:
    """Writes the loops of one scatter."""

    def __init__(self, lowering: Lowering, op: ScatterOpBase, operands: Operands) -> None:
        self.lowering, self.op = lowering, op
        self.x, self.updates, *self.indices = operands
        self.along, sizes = axes(op.axes), Sizes(lowering)
        self.first = self.along[0]
        self.inner = self.first + len(shape_of(op.indices[0]))
        """The number of the first loop over axes after the indexed ones."""
        self.kept = [axis for axis in range(len(shape_of(op.x))) if axis not in self.along]
        self.limits = [_as_i64(sizes, sizes.of(self.x, axis)) for axis in self.along]
        self.extents = sizes.all_of(self.updates)
        self.bytes = dtype(element(op.x)).bytes
        self.kind: DType = computed_in(dtype(element(op.x)))

    def write(self) -> Operands:
        """Write the outermost loop, or the one over blocks of the table."""
        if (found := self._split()) is not None:
            return self._in_blocks(*found)
        outer = self.extents[:1]

        def step(b: Body, loops: Operands, carried: Operands) -> Operands:
            return (_Nest(self).walk(b, list(loops), carried[0]),)

        results = nest(self.lowering, outer, [self.x], step, self.kind)
        if self.first and isinstance(made_by := results[0].owner, scf.ForOp):
            made_by.attributes[INDEPENDENT] = UnitAttr()
        return results

    def _in_blocks(self, number: int, blocks: int, width: Size) -> Operands:
        """Write ``blocks`` tasks, each ``width`` iterations of loop ``number`` over rows."""

        def block(b: Body, numbers: Operands, carried: Operands) -> Operands:
            places = Places(b)
            low = places.mul(numbers[0], width)
            high = places.min(places.add(low, width), self.extents[number])
            bounds: dict[int, Bounds] = {number: (low, high)}
            if not isinstance(width, int):  # the last block may be shorter
                nonempty = b.emit(arith.CmpiOp(low, high, "slt"))
                count = places.value(self.extents[0])
                bounds[0] = (0, b.emit(arith.SelectOp(nonempty, count, places.value(0))))
            return (_Nest(self, bounds).walk(b, [], carried[0]),)

        return tasks(self.lowering, blocks, [self.x], block, self.kind)

    def _split(self) -> tuple[int, int, Size] | None:
        """Return the loop over rows that threads share, the number of blocks, and their width.

        That is the last loop, or, if that is short, the longest.
        """
        sizes = shape_of(self.op.updates)
        inner = range(self.inner, len(sizes))
        if self.first or not inner:
            return None
        line, least, number = max(1, LINE // self.bytes), BLOCK // self.bytes, inner[-1]
        if sizes[number] == DYNAMIC:
            with_sizes, n = Sizes(self.lowering), self.extents[number]
            lines = with_sizes.div(with_sizes.add(n, BLOCKS * line - 1), BLOCKS * line)
            return number, BLOCKS, with_sizes.max(least, with_sizes.mul(lines, line))
        known = prod(sizes[k] for k in inner if sizes[k] != DYNAMIC)
        if sizes[number] < least:
            number, line = max(inner, key=lambda k: sizes[k]), 1
        if known < least or sizes[number] < 2 * line:
            return None
        blocks = min(max(known // least, 2), BLOCKS)
        width = -(-sizes[number] // blocks // line) * line
        return number, -(-sizes[number] // width), width

    def places(self, b: Body, loops: Operands) -> tuple[SSAValue, dict[int, SSAValue]]:
        """Return whether an update's indices are in range, and the indices by axis."""
        places: dict[int, SSAValue] = {}
        inside: SSAValue | None = None
        for axis, value, old, limit in zip(
            self.along, self.indices, self.op.indices, self.limits, strict=True
        ):
            i = read(b, value, loops[self.first : self.inner])
            wide = extended(b.of(dtype(element(old))), i)
            fits = b.emit(arith.CmpiOp(wide, limit, "ult"))
            inside = fits if inside is None else b.both(inside, fits)
            places[axis] = b.emit(arith.IndexCastOp(wide, INDEX))
        assert inside is not None
        return inside, places


@dataclass(frozen=True)
class _Nest:
    """The loops of a scatter inside the outermost one."""

    of: _Scatter
    bounds: Mapping[int, Bounds] = field(default_factory=dict[int, "Bounds"])
    """The range of a loop, if it is restricted."""

    def walk(self, b: Body, loops: list[SSAValue], y: SSAValue) -> SSAValue:
        """Write the remaining loops over leading axes and indices; return the updated y."""
        of = self.of
        if len(loops) < of.inner:
            return self._loop(b, loops, y, self.walk)
        inside, places = of.places(b, loops)
        then = Body(Block(), b.dtype)
        result = self._update(then, places, loops, y)
        then.block.add_op(scf.YieldOp(result))
        otherwise = Block([scf.YieldOp(y)])
        return b.emit(scf.IfOp(inside, [y.type], [then.block], [otherwise]))

    def _loop(
        self,
        b: Body,
        loops: list[SSAValue],
        y: SSAValue,
        inner: Callable[[Body, list[SSAValue], SSAValue], SSAValue],
    ) -> SSAValue:
        number = len(loops)
        bounds = self.bounds.get(number, (0, self.of.extents[number]))

        def step(b: Body, at: SSAValue, carried: Operands) -> Operands:
            return (inner(b, [*loops, at], carried[0]),)

        return loop(b, bounds, [y], step)[0]

    def _update(
        self, b: Body, places: dict[int, SSAValue], loops: list[SSAValue], y: SSAValue
    ) -> SSAValue:
        of = self.of
        if len(loops) < len(of.extents):
            return self._loop(b, loops, y, lambda b, at, y: self._update(b, places, at, y))
        kept = {
            axis: loops[k if k < of.first else k + of.inner - of.first]
            for k, axis in enumerate(of.kept)
        }
        where = places | kept
        at = [where[axis] for axis in range(len(where))]
        new = read(b, of.updates, loops)
        if not isinstance(of.op, ScatterOp):
            narrow, combine = new.type, _COMBINE[type(of.op)]
            old = b.widen(read(b, y, at))
            new = b.narrow(combine(b, old, b.widen(new)), narrow)
        return written(b, new, y, at)


def _as_i64(sizes: Sizes, size: Size) -> SSAValue:
    if isinstance(size, int):
        constant = arith.ConstantOp.from_int_and_width(size, i64)
        return sizes.lowering.insert(constant).result
    return sizes.lowering.insert(arith.IndexCastOp(size, i64)).result
