"""Loop nests that carry tensors and write their elements one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Region, SSAValue

from stepwell.core.dtypes import DType
from stepwell.dialects.kernel.choices import INDEPENDENT
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.body import INDEX, Body
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering

Operands: TypeAlias = Sequence[SSAValue]
UNROLL = "kernel.unroll"
AtEach: TypeAlias = Callable[[Body, Operands, Operands], Operands]
"""``(body, loop indices, carried) -> carried``."""


def nest(
    lowering: Lowering, extents: Sequence[Size], carried: Operands, at_each: AtEach, kind: DType
) -> Operands:
    """Return ``carried`` after ``at_each`` for each point of ``extents``, in row-major order."""
    sizes = Sizes(lowering)
    bounds = [sizes.value(n) for n in extents]
    zero, one = sizes.value(0), sizes.value(1)
    types = [v.type for v in carried]
    blocks = [Block(arg_types=[INDEX, *types]) for _ in bounds]
    loops = [block.args[0] for block in blocks]
    if not blocks:
        holder = Block()
        now = at_each(Body(holder, kind), loops, carried)
        for op in list(holder.ops):
            op.detach()
            lowering.insert(op)
        return now
    now = at_each(Body(blocks[-1], kind), loops, blocks[-1].args[1:])
    for depth in range(len(blocks) - 1, -1, -1):
        blocks[depth].add_op(scf.YieldOp(*now))
        start = carried if depth == 0 else blocks[depth - 1].args[1:]
        loop = scf.ForOp(zero, bounds[depth], one, start, Region(blocks[depth]))
        if depth == 0:
            return lowering.insert(loop).res
        blocks[depth - 1].add_op(loop)
        now = loop.res
    raise AssertionError


def read(b: Body, x: SSAValue, at: Operands) -> SSAValue:
    """Return an element of a tensor."""
    return b.emit(tensor.ExtractOp(x, at, tensor_type(x).element_type))


def written(b: Body, value: SSAValue, x: SSAValue, at: Operands) -> SSAValue:
    """Return a tensor with one element replaced."""
    return b.emit(tensor.InsertOp(value, x, at))


def tasks(
    lowering: Lowering, count: Size, carried: Operands, at_each: AtEach, kind: DType
) -> Operands:
    """Return ``carried`` after ``at_each`` for each of ``count`` tasks, which threads may share."""
    results = nest(lowering, [count], carried, at_each, kind)
    made_by = results[0].owner
    assert isinstance(made_by, scf.ForOp)
    made_by.attributes[INDEPENDENT] = UnitAttr()
    return results


def loop(
    b: Body,
    bounds: tuple[int | SSAValue, int | SSAValue],
    carried: Operands,
    at_each: Callable[[Body, SSAValue, Operands], Operands],
    step: int | SSAValue = 1,
    mark: str = "",
) -> Operands:
    """Return ``carried`` after ``at_each`` for each number of a range, in a nested loop.

    mark : an attribute of the loop: INDEPENDENT, or UNROLL to unroll it completely
    """
    low, high, by = (Places(b).value(n) for n in (*bounds, step))
    block = Block(arg_types=[INDEX, *(v.type for v in carried)])
    index, *inside = block.args
    block.add_op(scf.YieldOp(*at_each(Body(block, b.dtype), index, inside)))
    created = scf.ForOp(low, high, by, carried, Region(block))
    if mark:
        created.attributes[mark] = UnitAttr()
    b.block.add_op(created)
    return created.res


@dataclass(frozen=True)
class Places:
    """Arithmetic on non-negative indices, inserting ops with ``b``."""

    b: Body

    def value(self, n: int | SSAValue) -> SSAValue:
        """Return a number as an index."""
        return self.b.constant(n, INDEX) if isinstance(n, int) else n

    def add(self, x: SSAValue, y: int | SSAValue) -> SSAValue:
        """Return x + y."""
        return self.b.emit(arith.AddiOp(x, self.value(y)))

    def sub(self, x: int | SSAValue, y: int | SSAValue) -> SSAValue:
        """Return x - y."""
        return self.b.emit(arith.SubiOp(self.value(x), self.value(y)))

    def mul(self, x: SSAValue, y: int | SSAValue) -> SSAValue:
        """Return x * y."""
        return self.b.emit(arith.MuliOp(x, self.value(y)))

    def min(self, x: SSAValue, y: int | SSAValue) -> SSAValue:
        """Return the minimum."""
        return self.b.emit(arith.MinSIOp(x, self.value(y)))

    def div(self, x: SSAValue, y: int | SSAValue) -> tuple[SSAValue, SSAValue]:
        """Return the quotient x / y, rounded down, and the remainder."""
        by = self.value(y)
        times = self.b.emit(arith.DivSIOp(x, by))
        return times, self.sub(x, self.mul(times, by))
