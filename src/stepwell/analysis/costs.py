"""The minimum cost of a kernel: operations, and bytes read and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, IndexType, ModuleOp, ShapedType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue, Use

from stepwell.analysis.launch_sizes import Launches, loop_sizes
from stepwell.analysis.sizes import Result, Size, Sizes, static_shape
from stepwell.analysis.structured import CASTS, extents, indices
from stepwell.core.host_schedule import Tree, in_call
from stepwell.dialects import kernel

SERIAL = 1 << 15
"""The work of a kernel (loop iterations times cost) up to which a second thread does not pay."""
_INTEGER = (arith.AddiOp, arith.SubiOp, arith.MuliOp)
"""The integer ops that count as operations: the others are bookkeeping."""
_FREE: tuple[type[Operation], ...] = (
    *CASTS,
    arith.ConstantOp,
    arith.SelectOp,
    arith.BitcastOp,
    linalg.IndexOp,
    tensor.ExtractOp,
)


Count: TypeAlias = int | Size
"""A count: a plain number if it is known, else a formula over `?`."""


@dataclass(frozen=True)
class Cost:
    """The cost of one launch of a kernel; None if known only at run time."""

    flops: Tree | None
    """Operations, a multiply-add being two and any function one; a tree over a call's `?`."""
    bytes: Tree | None
    """Bytes; an element that is read or written counts once."""
    bits: int
    """The width of the widest float type of the computation, 32 if there is none."""

    def at(self, sizes: Sequence[int]) -> Cost:
        """Return the cost in a call whose arguments' `?` are ``sizes``, in order."""
        flops, bytes = in_call(self.flops, sizes), in_call(self.bytes, sizes)
        return Cost(flops, bytes, self.bits)

    @property
    def known(self) -> Cost:
        """The cost with the unknown parts as None."""
        flops, bytes = (n if isinstance(n, int) else None for n in (self.flops, self.bytes))
        return Cost(flops, bytes, self.bits)


def kernel_costs(module: ModuleOp, known: Mapping[str, Cost] | None = None) -> dict[str, Cost]:
    """Return the cost of every kernel of a module with structured bodies; reuse ``known`` costs."""
    costs = dict(known or {})
    launches = None
    for op in module.ops:
        if isinstance(op, kernel.FuncOp) and (name := op.sym_name.data) not in costs:
            sizes = Sizes(op.body.block.args)
            flops, bytes, bits = _counted(op, sizes)
            if isinstance(flops, Size) or isinstance(bytes, Size):
                launches = launches or Launches(module)
                flops, bytes = (
                    launches.tree(op, each, sizes) if isinstance(each, Size) else each
                    for each in (flops, bytes)
                )
            costs[name] = Cost(flops, bytes, bits)
    return costs


def operations(function: kernel.FuncOp) -> int:
    """Return the operations of a launch; 0 if known only at run time."""
    flops, _, _ = _counted(function, Sizes(function.body.block.args))
    return flops if isinstance(flops, int) else 0


def _counted(function: kernel.FuncOp, sizes: Sizes) -> tuple[Count | None, Count | None, int]:
    """Return operations, bytes and bits of a kernel, None where sizes do not determine them."""
    block = function.body.block
    flops: Count | None = 0
    bits = 0
    for op in block.ops:
        if isinstance(op, linalg.GenericOp):
            work = _operations(op.body.block)
            bits = max(bits, _widest(op.body.block))
            if work and flops is not None:
                each = _product([work, *_extents(op, sizes)])
                flops = None if each is None else _plus(flops, each)
        elif op.regions and not isinstance(op, linalg.FillOp):
            flops = None
    total: Count | None = 0
    for argument in block.args:
        if isinstance(argument.type, ShapedType):
            bytes = _traffic(argument, sizes)
            total = None if bytes is None or total is None else _plus(total, bytes)
    return flops, total, bits or 32


def _extents(op: linalg.GenericOp, sizes: Sizes) -> list[Count | None]:
    """Return the trip count of each loop; None if no operand has it as an axis."""
    static = extents(op)
    if DYNAMIC_INDEX not in static:
        return list(static)
    return [None if each is None else _plain(each) for each in loop_sizes(op, sizes)]


def _operations(block: Block) -> int:
    """Return the number of operations of one execution of a body."""
    return sum(_operations_of(op) for op in block.ops)


def _operations_of(op: Operation) -> int:
    if isinstance(op, math.FmaOp):
        return 2
    if isinstance(op, _FREE) or len(op.results) != 1:
        return 0
    return int(isinstance(op.results[0].type, AnyFloat) or isinstance(op, _INTEGER))


def _widest(block: Block) -> int:
    kinds = [result.type for op in block.ops for result in op.results]
    return max((kind.bitwidth for kind in kinds if isinstance(kind, AnyFloat)), default=0)


def _traffic(argument: SSAValue, sizes: Sizes) -> Count | None:
    """Return the bytes of an argument that a kernel accesses; None if its size is unknown."""
    shape = sizes.shape(argument) if DYNAMIC_INDEX in static_shape(argument.type) else ()
    whole = _product([_plain(n) for n in shape] or static_shape(argument.type))
    touched: Count = 0
    for use in argument.uses:
        for count in _touched(use, whole, sizes):
            if count is None:
                return None
            touched = _plus(touched, count)
    if whole is None:
        return None
    return _product([_least(whole, touched, sizes), _bytes_of(argument.type)])


def _touched(use: Use, whole: Count | None, sizes: Sizes) -> Iterator[Count | None]:
    """Yield the number of elements of an argument that a use of it accesses."""
    op = use.operation
    if isinstance(op, tensor.DimOp):
        return
    if isinstance(op, linalg.GenericOp):
        block = op.body.block
        if use.index < len(op.inputs) and block.args[use.index].first_use is None:
            return
        loops = {d for expr in indices(op)[use.index] for d in expr.used_dims()}
        lengths = _extents(op, sizes)
        yield _product([lengths[d] for d in sorted(loops)])
    elif isinstance(op, tensor.ExtractOp) and isinstance(
        around := op.parent_op(), linalg.GenericOp
    ):
        yield _product(_extents(around, sizes))
    elif isinstance(op, tensor.ExtractSliceOp | tensor.InsertSliceOp):
        part = op.result if isinstance(op, tensor.ExtractSliceOp) else op.source
        shape = static_shape(part.type)
        yield whole if DYNAMIC_INDEX in shape else _product(shape)
    else:
        yield whole


def _plain(size: Size) -> Count:
    return size if (number := size.number) is None else number


def _size(count: Count) -> Size:
    return Size.of(count) if isinstance(count, int) else count


def _plus(a: Count, b: Count) -> Count:
    return a + b if isinstance(a, int) and isinstance(b, int) else _size(a) + _size(b)


def _times(a: Count, b: Count) -> Count:
    return a * b if isinstance(a, int) and isinstance(b, int) else _size(a) * _size(b)


def _product(counts: Iterable[Count | None]) -> Count | None:
    total: Count = 1
    for each in counts:
        if each is None:
            return None
        total = _times(total, each)
    return total


def _least(a: Count, b: Count, sizes: Sizes) -> Count:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    both = _size(a), _size(b)
    return a if a == b else sizes.atom(Result(arith.MinSIOp, (), both, IndexType()))


def _bytes_of(type: Attribute) -> int:
    """Return the bytes of an element."""
    assert isinstance(type, ShapedType)
    element: Attribute = getattr(type, "element_type")  # noqa: B009
    return max(getattr(element, "bitwidth", 64) // 8, 1)
