"""What a kernel must do at least: operations, and bytes to be read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, ModuleOp, ShapedType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue, Use

from stepwell.dialects import kernel
from stepwell.transforms.structured import CASTS, extents, indices, shape

_INTEGER = (arith.AddiOp, arith.SubiOp, arith.MuliOp)
"""What counts among integer arithmetic: the rest is bookkeeping."""
_FREE: tuple[type[Operation], ...] = (
    *CASTS,
    arith.ConstantOp,
    arith.SelectOp,
    arith.BitcastOp,
    linalg.IndexOp,
    tensor.ExtractOp,
)


@dataclass(frozen=True)
class Cost:
    """What one launch of a kernel does; None where only the run knows."""

    flops: int | None
    """Operations, a multiply-add being two and any function one."""
    bytes: int | None
    """Each element that is read or written at all counts once."""
    bits: int
    """Of the widest float that is computed with, 32 where there is none."""


def kernel_costs(module: ModuleOp, known: Mapping[str, Cost] | None = None) -> dict[str, Cost]:
    """Return the cost of every kernel of a module with structured bodies; that of some is known."""
    costs = dict(known or {})
    for op in module.ops:
        if isinstance(op, kernel.FuncOp) and op.sym_name.data not in costs:
            costs[op.sym_name.data] = _cost(op)
    return costs


def _cost(function: kernel.FuncOp) -> Cost:
    block = function.body.block
    flops, bits = 0, 0
    known = True
    for op in block.ops:
        if isinstance(op, linalg.GenericOp):
            loops = extents(op)
            work = _operations(op.body.block)
            known = known and (DYNAMIC_INDEX not in loops or not work)
            flops += prod(loops) * work
            bits = max(bits, _widest(op.body.block))
        elif op.regions and not isinstance(op, linalg.FillOp):
            known = False
    bytes = [_traffic(argument) for argument in block.args if isinstance(argument.type, ShapedType)]
    total = None if None in bytes else sum(each or 0 for each in bytes)
    return Cost(flops if known else None, total, bits or 32)


def _operations(block: Block) -> int:
    """Return how many operations one pass through a body does."""
    return sum(_worth(op) for op in block.ops)


def _worth(op: Operation) -> int:
    if isinstance(op, math.FmaOp):
        return 2
    if isinstance(op, _FREE) or len(op.results) != 1:
        return 0
    return int(isinstance(op.results[0].type, AnyFloat) or isinstance(op, _INTEGER))


def _widest(block: Block) -> int:
    kinds = [result.type for op in block.ops for result in op.results]
    return max((kind.bitwidth for kind in kinds if isinstance(kind, AnyFloat)), default=0)


def _traffic(argument: SSAValue) -> int | None:
    """Return the bytes of an argument that a kernel touches; None where its size is unknown."""
    touched = 0
    whole = _product(shape(argument))
    for use in argument.uses:
        for count in _touched(use, whole):
            if count is None:
                return None
            touched += count
    if whole is None:
        return None
    return min(whole, touched) * _bytes_of(argument.type)


def _touched(use: Use, whole: int | None) -> Iterator[int | None]:
    """Yield how many elements of an argument one use of it touches."""
    op = use.operation
    if isinstance(op, tensor.DimOp):
        return
    if isinstance(op, linalg.GenericOp):
        block = op.body.block
        if use.index < len(op.inputs) and block.args[use.index].first_use is None:
            return
        loops = {d for expr in indices(op)[use.index] for d in expr.used_dims()}
        sizes = extents(op)
        yield _product([sizes[d] for d in sorted(loops)])
    elif isinstance(op, tensor.ExtractOp) and isinstance(
        around := op.parent_op(), linalg.GenericOp
    ):
        yield _product(extents(around))
    else:
        yield whole


def _product(sizes: list[int] | tuple[int, ...]) -> int | None:
    return None if DYNAMIC_INDEX in sizes else prod(sizes)


def _bytes_of(type: Attribute) -> int:
    """Return the bytes of an element."""
    assert isinstance(type, ShapedType)
    element: Attribute = getattr(type, "element_type")  # noqa: B009
    return max(getattr(element, "bitwidth", 64) // 8, 1)
