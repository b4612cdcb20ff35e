"""Find the axes of a kernel's values that have the same size as one of its loops has iterations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import extents, identity, indices, shape
from stepwell.dialects import kernel
from stepwell.dialects.kernel.sharing import is_border

Axis: TypeAlias = tuple[SSAValue, int]
"""An axis of a tensor or buffer."""
Loop: TypeAlias = tuple[Operation, int]


def op_of_loop(function: kernel.FuncOp, loop: int) -> linalg.GenericOp | None:
    """Return the op whose loop `kernel.versions` names: the first that has one of this number.

    All ops of a kernel have its shared loops, but each counts its own.
    """
    ops = (op for op in function.body.block.ops if isinstance(op, linalg.GenericOp))
    found = (op for op in ops if not is_border(op) and loop < len(op.iterator_types))
    return next(found, None)


def axes_of_extent(function: kernel.FuncOp, loop: int) -> list[Axis]:
    """Return the axes of unknown size that are as long as a loop of `op_of_loop`.

    An axis that one loop alone indexes has its extent; so have all loops that index such an axis
    alone.
    """
    return _of_extent(function, loop)[0]


def loops_of_extent(function: kernel.FuncOp, loop: int) -> list[Loop]:
    """Return the loops of unknown extent that run as often as a loop of `op_of_loop`."""
    return _of_extent(function, loop)[1]


def _of_extent(function: kernel.FuncOp, loop: int) -> tuple[list[Axis], list[Loop]]:
    op = op_of_loop(function, loop)
    if op is None or extents(op)[loop] != DYNAMIC_INDEX:
        return [], []
    loops: list[Loop] = [(op, loop)]
    axes: dict[Axis, None] = {}
    for op, number in loops:
        for value, axis in _indexed(op, number):
            if (value, axis) in axes or not _is_unknown(value, axis):
                continue
            axes[value, axis] = None
            users = (use.operation for use in value.uses)
            for user in (*users, *([value.owner] if isinstance(value.owner, Operation) else [])):
                loops += [each for each in _indexing(user, value, axis) if each not in loops]
    return list(axes), loops


def argument_of_extent(function: kernel.FuncOp, loop: int) -> tuple[int, int] | None:
    """Return an argument, by its number, and its axis, as long as a loop of `op_of_loop`."""
    for value, axis in axes_of_extent(function, loop):
        if isinstance(value, BlockArgument):
            return value.index, axis
    return None


def _is_unknown(value: SSAValue, axis: int) -> bool:
    return isinstance(value.type, ShapedType) and value.type.get_shape()[axis] == DYNAMIC_INDEX


def _accesses(op: Operation) -> Iterator[tuple[SSAValue, int, int]]:
    """Yield each value, axis and loop of an op such that the loop alone indexes the axis."""
    if isinstance(op, linalg.GenericOp):
        where = indices(op)
        values = [*zip(op.operands, where, strict=True)]
        values += zip(op.results, where[len(op.inputs) :], strict=False)
    elif isinstance(op, linalg.FillOp):
        values = [(v, identity(len(shape(v)))) for v in (*op.outputs, *op.results)]
    else:
        return
    for value, index in values:
        for axis, expr in enumerate(index):
            if isinstance(expr, AffineDimExpr):
                yield value, axis, expr.position


def _indexed(op: Operation, loop: int) -> list[Axis]:
    return [(value, axis) for value, axis, number in _accesses(op) if number == loop]


def _indexing(op: Operation, value: SSAValue, axis: int) -> list[Loop]:
    return [(op, loop) for each, at, loop in _accesses(op) if each is value and at == axis]
