"""A kernel with versions: a test of a size selects the loops of one version.

Each version is lowered as a kernel of its own, from a copy of the body with the attributes of the
version; in a version for a single size that size is static. The number of iterations of a shared
loop selects the version at launch.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import Rewriter

from stepwell.analysis.structured import indices
from stepwell.dialects import kernel
from stepwell.dialects.kernel.versions import VERSIONS, versions_in
from stepwell.lowering.linalg_to_loops.plan import RANGE
from stepwell.transforms.kernels.versions import version
from stepwell.transforms.passes import fail


def lower_versions(function: kernel.FuncOp, lower: Callable[[kernel.FuncOp], None]) -> None:
    """Write the loops of each version of a kernel with ``lower``, and the tests between them."""
    versions = versions_in(function.attributes.get(VERSIONS))
    where = [_size(function, some.loop.data) for some in versions]
    copies = [_copy(function, n, some) for n, some in enumerate(versions)]
    del function.attributes[VERSIONS]
    for each in (*copies, function):
        lower(each)
    entry = function.body.block
    end = entry.last_op
    assert end is not None
    end.detach()
    rest = Block()
    _move(entry, rest)
    for place, some, copy in reversed(list(zip(where, versions, copies, strict=True))):
        then, outer = Block(), Block()
        _take_body(function, copy, then)
        test = _test(function, outer, place, some)
        for block in (then, rest):
            done = scf.YieldOp()
            done.location = function.location
            block.add_op(done)
        branches = scf.IfOp(test, [], Region(then), Region(rest))
        branches.location = function.location
        outer.add_op(branches)
        rest = outer
    _move(rest, entry)
    entry.add_op(end)


def _copy(function: kernel.FuncOp, number: int, some: kernel.VersionAttr) -> kernel.FuncOp:
    """Return the kernel as one version of it, on buffers."""
    copy = version(function, number)
    copy.attributes[RANGE] = some
    if some.exact is not None:
        _state(copy, some.loop.data, some.exact)
    return copy


def _places(op: Operation, loop: int) -> list[tuple[SSAValue, int]]:
    """Return each operand of an op, and its axis, that one loop alone indexes."""
    if isinstance(op, linalg.FillOp):
        return [(op.outputs[0], loop)]
    if not isinstance(op, linalg.GenericOp):
        return []
    return [
        (value, axis)
        for value, index in zip(op.operands, indices(op), strict=True)
        for axis, expr in enumerate(index)
        if isinstance(expr, AffineDimExpr) and expr.position == loop
    ]


def _size(function: kernel.FuncOp, loop: int) -> tuple[int, int]:
    """Return the argument and its axis whose size is the extent of a shared loop."""
    for op in function.body.block.ops:
        if isinstance(op, linalg.GenericOp):
            for value, axis in _places(op, loop):
                if isinstance(value, BlockArgument):
                    return value.index, axis
    fail(function, f"no argument tells how often loop {loop} runs, for which there are versions")


def _state(function: kernel.FuncOp, loop: int, size: int) -> None:
    """Make the extent of a shared loop static in the buffers of a kernel."""
    for op in function.body.block.ops:
        if isinstance(op, linalg.GenericOp):
            for value, axis in _places(op, loop):
                _state_axis(value, axis, size)
    types = list(function.body.block.arg_types)
    function.properties["function_type"] = FunctionType.from_lists(types, [])


def _state_axis(value: SSAValue, axis: int, size: int) -> None:
    """Make the size of a buffer along an axis static, where only loops use it."""
    kind, owner = value.type, value.owner
    if not isinstance(kind, MemRefType) or kind.get_shape()[axis] != DYNAMIC_INDEX:
        return
    uses = (use.operation for use in value.uses)
    if not all(isinstance(use, linalg.GenericOp | linalg.FillOp | memref.DimOp) for use in uses):
        return
    shape = list(kind.get_shape())
    unknown = shape[:axis].count(DYNAMIC_INDEX)
    shape[axis] = size
    new = MemRefType(kind.element_type, shape, kind.layout, kind.memory_space)
    if isinstance(owner, memref.AllocOp):
        sizes = [v for n, v in enumerate(owner.dynamic_sizes) if n != unknown]
        alloc = memref.AllocOp(sizes, [], new)
        alloc.location = owner.location
        alloc.memref.name_hint = value.name_hint
        Rewriter.replace_op(owner, alloc)
    elif isinstance(value, BlockArgument):
        Rewriter.replace_value_with_new_type(value, new)


def _take_body(function: kernel.FuncOp, copy: kernel.FuncOp, block: Block) -> None:
    """Move the lowered body of a version into ``block``, on the kernel's arguments."""
    body = copy.body.block
    for old, new in zip(body.args, function.body.block.args, strict=True):
        value: SSAValue = new
        if old.first_use is not None and old.type != new.type:
            assert isinstance(old.type, MemRefType)
            value = _put(function, block, memref.CastOp.get(new, old.type))
            value.name_hint = new.name_hint
        old.replace_all_uses_with(value)
    end = body.last_op
    assert end is not None
    end.detach()
    end.erase()
    _move(body, block)


def _test(
    function: kernel.FuncOp, block: Block, place: tuple[int, int], some: kernel.VersionAttr
) -> SSAValue:
    """Write the test whether a version is for the size of a launch."""
    low, high, (argument, axis) = some.low.data, some.high.data, place
    number = _put(function, block, arith.ConstantOp(IntegerAttr(axis, IndexType())))
    size = _put(function, block, memref.DimOp(function.body.block.args[argument], number))
    if low:
        first = _put(function, block, arith.ConstantOp(IntegerAttr(low, IndexType())))
        size = _put(function, block, arith.SubiOp(size, first))
    last = _put(function, block, arith.ConstantOp(IntegerAttr(high - low, IndexType())))
    return _put(function, block, arith.CmpiOp(size, last, "ule"))


def _put(function: kernel.FuncOp, block: Block, op: Operation) -> SSAValue:
    op.location = function.location
    block.add_op(op)
    return op.results[0]


def _move(source: Block, target: Block) -> None:
    for op in list(source.ops):
        op.detach()
        target.add_op(op)
