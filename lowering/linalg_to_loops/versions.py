"""A kernel with versions: a test of a size selects the loops of one version.

Each version is lowered as a kernel of its own, from a copy of the body with the attributes of the
version; in a version for a single size that size is static. The number of iterations of a loop
selects the version at launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.analysis.loop_extents import argument_of_extent
from stepwell.dialects import kernel
from stepwell.dialects.kernel.versions import FIRST_FITS, VERSIONS, versions_in
from stepwell.lowering.linalg_to_loops.plan import NOT_OF_LOOPS, RANGE
from stepwell.lowering.linalg_to_loops.writer import Index, Writer
from stepwell.transforms.kernels.versions import version
from stepwell.transforms.passes import fail


def lower_versions(function: kernel.FuncOp, lower: Callable[[kernel.FuncOp], None]) -> None:
    """Write the loops of each version of a kernel with ``lower``, and the tests between them.

    If the first version fits every launch, only its loops are written.
    """
    versions = versions_in(function.attributes.get(VERSIONS))
    if function.attributes.pop(FIRST_FITS, None) is not None:
        _lower_first(function, lower, versions[0])
        return
    where = [_size(function, some.loop.data) for some in versions]
    copies = [version(function, number) for number in range(len(versions))]
    for copy, some in zip(copies, versions, strict=True):
        copy.attributes[RANGE] = some
    del function.attributes[VERSIONS]
    for each in (*copies, function):
        lower(each)
    entry = function.body.block
    *rest, end = entry.ops
    writer = Writer(entry, entry, function.location, before=end)

    def write(n: int) -> None:
        if n == len(versions):
            _move(writer, rest)
            return
        (argument, axis), low, high = where[n], versions[n].low.data, versions[n].high.data
        size = memref.DimOp(entry.args[argument], writer.index(axis))
        above = Index.of(writer.result(size)) + -low
        test = writer.compare("ule", above, Index.of(high - low))
        writer.branch(test, lambda: _take_body(writer, copies[n]), lambda: write(n + 1))

    write(0)


def _lower_first(
    function: kernel.FuncOp, lower: Callable[[kernel.FuncOp], None], some: kernel.VersionAttr
) -> None:
    """Write the loops of the first version in place of the kernel's own."""
    copy = version(function, 0)
    copy.attributes[RANGE] = some
    lower(copy)
    for name in (VERSIONS, *NOT_OF_LOOPS):
        function.attributes.pop(name, None)
    entry = function.body.block
    *rest, end = entry.ops
    for op in reversed(rest):
        entry.erase_op(op)
    _take_body(Writer(entry, entry, function.location, before=end), copy)


def _size(function: kernel.FuncOp, loop: int) -> tuple[int, int]:
    """Return the argument and its axis whose size is the extent of a loop."""
    if (found := argument_of_extent(function, loop)) is None:
        fail(
            function, f"no argument tells how often loop {loop} runs, for which there are versions"
        )
    return found


def _take_body(writer: Writer, copy: kernel.FuncOp) -> None:
    """Move the lowered body of a version to where ``writer`` writes, on the kernel's arguments."""
    for old, new in zip(copy.body.block.args, writer.entry.args, strict=True):
        value: SSAValue = new
        if old.first_use is not None and old.type != new.type:
            value = _as_type(writer, new, old.type)
        old.replace_all_uses_with(value)
    *ops, _ = copy.body.block.ops
    _move(writer, ops)


def _as_type(writer: Writer, argument: SSAValue, kind: Attribute) -> SSAValue:
    """Return an argument with the sizes of a version, which may have its last two axes as one."""
    assert isinstance(kind, MemRefType) and isinstance(argument.type, MemRefType)
    sizes, hint = kind.get_shape(), argument.name_hint
    if len(sizes) == argument.type.get_num_dims():
        return writer.result(memref.CastOp.get(argument, kind), hint)
    *_, row, column = argument.type.get_shape()
    known = [row, sizes[-1] // row] if row not in (DYNAMIC_INDEX, sizes[-1]) else [sizes[-1], 1]
    assert column in (DYNAMIC_INDEX, known[1])
    whole = MemRefType(kind.element_type, [*sizes[:-1], *known], memory_space=kind.memory_space)
    cast = writer.result(memref.CastOp.get(argument, whole), hint)
    axes = [[axis] for axis in range(len(sizes))]
    axes[-1].append(len(sizes))
    groups = ArrayAttr(ArrayAttr(IntegerAttr(a, i64) for a in group) for group in axes)
    return writer.result(
        memref.CollapseShapeOp(
            operands=[cast], result_types=[kind], properties={"reassociation": groups}
        ),
        hint,
    )


def _move(writer: Writer, ops: Sequence[Operation]) -> None:
    """Move ops to where ``writer`` writes."""
    for op in ops:
        op.detach()
        writer.insert(op)
