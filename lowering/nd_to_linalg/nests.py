"""Loop nests that carry tensors and write single elements of them, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import scf, tensor
from xdsl.ir import Block, Region, SSAValue

from stepwell.core.dtypes import DType
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.body import INDEX, Body
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.table import Lowering

Operands: TypeAlias = Sequence[SSAValue]
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
    """Return a tensor with an element replaced."""
    return b.emit(tensor.InsertOp(value, x, at))
