"""A kernel with versions: a test of a size selects the loops of one version.

Each version is lowered as a kernel of its own, from a copy of the body with the attributes of the
version; in a version for a single size that size is static. The number of iterations of a loop
selects the version at launch.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.analysis.loop_extents import argument_of_extent
from stepwell.dialects import kernel
from stepwell.dialects.kernel.versions import VERSIONS, versions_in
from stepwell.lowering.linalg_to_loops.plan import RANGE
from stepwell.transforms.kernels.versions import version
from stepwell.transforms.passes import fail


def lower_versions(function: kernel.FuncOp, lower: Callable[[kernel.FuncOp], None]) -> None:
    """Write the loops of each version of a kernel with ``lower``, and the tests between them."""
    versions = versions_in(function.attributes.get(VERSIONS))
    where = [_size(function, some.loop.data) for some in versions]
    copies = [version(function, number) for number in range(len(versions))]
    for copy, some in zip(copies, versions, strict=True):
        copy.attributes[RANGE] = some
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


def _size(function: kernel.FuncOp, loop: int) -> tuple[int, int]:
    """Return the argument and its axis whose size is the extent of a loop."""
    if (found := argument_of_extent(function, loop)) is None:
        fail(
            function, f"no argument tells how often loop {loop} runs, for which there are versions"
        )
    return found


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
