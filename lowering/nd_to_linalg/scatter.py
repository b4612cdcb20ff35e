"""Scatters are loop nests that write one element after the other.

What an update does is independent of what lies before and after the indexed axes. So the loops over
axes before them are outermost, and threads share the first; where there are none, and the last axis
of long rows comes after them, threads share that in blocks of columns. Elements are combined in the
order of the updates either way, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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

BLOCK = 64
"""Columns of a block that a thread takes, or more: four lines of a cache of f32."""
LINE = 16
"""Blocks begin at multiples of so many columns: a line of f32."""
BLOCKS = 8
"""So many blocks at most: each of them reads all indices."""

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
        """The loops from this one on are over axes after those of the indices."""
        self.kept = [axis for axis in range(len(shape_of(op.x))) if axis not in self.along]
        self.limits = [_as_i64(sizes, sizes.of(self.x, axis)) for axis in self.along]
        self.extents = sizes.all_of(self.updates)
        self.kind: DType = computed_in(dtype(element(op.x)))

    def write(self) -> Operands:
        """Write the outermost loop, or the one over blocks of columns."""
        if (blocks := self._blocks()) > 1:
            columns = shape_of(self.op.updates)[-1]
            width = -(-columns // blocks // LINE) * LINE

            def block(b: Body, numbers: Operands, carried: Operands) -> Operands:
                places = Places(b)
                low = places.mul(numbers[0], width)
                high = places.min(places.add(low, width), columns)
                return (_Nest(self, (low, high)).walk(b, [], carried[0]),)

            return tasks(self.lowering, blocks, [self.x], block, self.kind)
        outer = self.extents[:1]

        def step(b: Body, loops: Operands, carried: Operands) -> Operands:
            return (_Nest(self).walk(b, list(loops), carried[0]),)

        results = nest(self.lowering, outer, [self.x], step, self.kind)
        if self.first and isinstance(made_by := results[0].owner, scf.ForOp):
            made_by.attributes[INDEPENDENT] = UnitAttr()
        return results

    def _blocks(self) -> int:
        """Return in how many blocks of columns threads work."""
        sizes = shape_of(self.op.updates)
        if self.first or self.inner == len(sizes) or sizes[-1] == DYNAMIC:
            return 1
        return min(sizes[-1] // BLOCK, BLOCKS)

    def places(self, b: Body, loops: Operands) -> tuple[SSAValue, dict[int, SSAValue]]:
        """Return whether an update's indices are in range, and where they lead."""
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
    """The loops of a scatter, inside of the outermost."""

    of: _Scatter
    columns: tuple[SSAValue, SSAValue] | None = None
    """The range of the last loop, if it is not all of it."""

    def walk(self, b: Body, loops: list[SSAValue], y: SSAValue) -> SSAValue:
        """Write the loops that are left over leading axes and indices; return what becomes of y."""
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
        last = number == len(self.of.extents) - 1
        bounds = self.columns if self.columns is not None and last else (0, self.of.extents[number])

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
