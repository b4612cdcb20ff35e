"""Products of an array with itself, whose results are equal on both sides of the diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.levels.kernel_ops import LoopedOp
from stepwell.analysis.structured import (
    CASTS,
    Index,
    dims_of,
    extents,
    indices,
    is_parallel,
    yielded,
)

PRODUCTS = arith.MulfOp, arith.MuliOp
SUMS = arith.AddfOp, arith.AddiOp


def is_symmetric(ops: Sequence[LoopedOp], shared: int) -> bool:
    """Whether the results of a kernel stay as they are when the last two shared loops swap.

    One op sums products of an operand with itself, at indices that swap; each product is computed
    from the same factors, and each sum in the same order, so that both sides are equal bit for bit.
    The other ops compute one result from it and from operands whose indices use neither loop.
    """
    sums = [op for op in ops if isinstance(op, linalg.GenericOp) and not all(is_parallel(op))]
    if shared < 2 or len(sums) != 1 or not squares(sums[0], shared):
        return False
    made = {value for op in ops for value in (*op.outputs, *op.results)}
    others = (op for op in ops if isinstance(op, linalg.GenericOp) and op is not sums[0])
    return all(_keeps(op, made, shared) for op in others)


def squares(op: linalg.GenericOp, shared: int) -> bool:
    """Whether an op sums products of an operand with itself, at indices that swap two loops."""
    row, column, where = shared - 2, shared - 1, indices(op)
    if len(op.inputs) != 2 or len(op.outputs) != 1 or op.inputs[0] is not op.inputs[1]:
        return False
    swap = _swap(len(op.iterator_types), row, column)
    first, second, result = where
    swapped = tuple(expr.replace_dims_and_symbols(swap, ()) for expr in first)
    high, wide = (extents(op)[k] for k in (row, column))
    plain = high != DYNAMIC_INDEX or AffineDimExpr(row) in (*first, *second)
    lies = swapped == second and row in dims_of(first) and column not in dims_of(first)
    return lies and high == wide and plain and _is_square(result, row, column) and _adds(op)


def _swap(loops: int, row: int, column: int) -> list[AffineDimExpr]:
    other = {row: column, column: row}
    return [AffineDimExpr(other.get(k, k)) for k in range(loops)]


def _is_square(index: Index, row: int, column: int) -> bool:
    """Whether a result has one axis for the rows and one for the columns."""
    used = [expr for expr in index if not expr.used_dims().isdisjoint((row, column))]
    return sorted(map(str, used)) == [f"d{row}", f"d{column}"]


def _adds(op: linalg.GenericOp) -> bool:
    """Whether the body adds the product of both operands, each widened alike, to the sum."""
    body = op.body.block
    x, y, total = body.args
    (added,) = (value.owner for value in yielded(body))
    if not isinstance(added, SUMS) or total not in added.operands or not total.has_one_use():
        return False
    factor = next((v for v in added.operands if v is not total), None)
    if factor is None or not isinstance(factor.owner, PRODUCTS):
        return False
    one, other = (_widened(value) for value in factor.owner.operands)
    return {one[0], other[0]} == {x, y} and one[1] == other[1]


def _widened(value: SSAValue) -> tuple[SSAValue, tuple[object, ...]]:
    """Return the value before casts, and the casts with their types."""
    steps: tuple[object, ...] = ()
    while isinstance(value.owner, CASTS):
        steps = (*steps, type(value.owner), value.type)
        value = value.owner.operands[0]
    return value, steps


def _keeps(op: linalg.GenericOp, made: set[SSAValue], shared: int) -> bool:
    """Whether an op of equal results on both sides computes equal results."""
    row, column = shared - 2, shared - 1
    if not all(is_parallel(op)) or len(op.iterator_types) != shared:
        return False
    varies = zip(op.operands, indices(op), strict=True)
    alike = all(
        _is_square(index, row, column)
        if value in made
        else dims_of(index).isdisjoint((row, column))
        for value, index in varies
    )
    return alike and _computes(op.body.block)


def _computes(body: Block) -> bool:
    """Whether a body depends on its arguments alone."""
    plain = ("arith.", "math.", "linalg.yield")
    return all(op.name.startswith(plain) and not op.regions for op in body.ops)
