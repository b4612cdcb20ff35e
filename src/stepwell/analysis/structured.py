"""Accessors of linalg.generic: its maps, loops, extents, combiners, and the cost of its body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TypeAlias

from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.ir.affine.affine_expr import AffineBinaryOpExpr, AffineBinaryOpKind

from stepwell.analysis.combiners import COMBINERS
from stepwell.dialects.upstream.effects import touches_nothing

Index: TypeAlias = tuple[AffineExpr, ...]
"""The index of an operand: one expression of the loops for each of its axes."""

PARALLEL = IteratorTypeAttr.parallel()

_TRANSCENDENTAL: tuple[type[Operation], ...] = (
    math.ExpOp,
    math.Exp2Op,
    math.ExpM1Op,
    math.LogOp,
    math.Log2Op,
    math.Log10Op,
    math.Log1pOp,
    math.SinOp,
    math.CosOp,
    math.TanOp,
    math.AtanOp,
    math.Atan2Op,
    math.TanhOp,
    math.ErfOp,
    math.PowFOp,
    math.FPowIOp,
    math.CbrtOp,
    math.AcosOp,
    math.AcoshOp,
    math.AsinOp,
    math.AsinhOp,
    math.AtanhOp,
    math.CoshOp,
    math.SinhOp,
)
_SLOW: tuple[type[Operation], ...] = (
    arith.DivfOp,
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    math.SqrtOp,
    math.RsqrtOp,
    tensor.ExtractOp,
)
EXPENSIVE = 20
COST: dict[type[Operation], int] = {
    **dict.fromkeys(_TRANSCENDENTAL, EXPENSIVE),
    arith.TruncFOp: 3,
    **dict.fromkeys(_SLOW, 4),
    arith.ConstantOp: 0,
    linalg.IndexOp: 0,
    linalg.YieldOp: 0,
}
"""The cost of an op relative to an addition; ops that are not listed cost 1."""

CASTS: tuple[type[Operation], ...] = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
)


def cost(block: Block) -> int:
    """Return the cost of one execution of a body, relative to an addition."""
    total = 0
    for op in block.ops:
        total += COST.get(type(op), 1)
        for region in op.regions:
            total += sum(cost(inner) for inner in region.blocks)
    return total


def indices(op: linalg.GenericOp) -> list[Index]:
    """Return the index of each operand of ``op``, inputs first."""
    return [attr.data.results for attr in op.indexing_maps.data]


def is_parallel(op: linalg.GenericOp) -> list[bool]:
    """Return, for each loop of ``op``, whether its iterations are independent."""
    return [each.data is IteratorType.PARALLEL for each in op.iterator_types.data]


def map_attribute(loops: int, index: Index) -> AffineMapAttr:
    """Return the indexing map of ``index`` with ``loops`` dimensions."""
    return AffineMapAttr(AffineMap(loops, 0, index))


def identity(rank: int) -> Index:
    """Return the index that reads axis k at loop k."""
    return tuple(AffineDimExpr(k) for k in range(rank))


def plain(expr: AffineExpr) -> int | None:
    """Return the loop that ``expr`` equals, or None if it is not a single loop."""
    return expr.position if isinstance(expr, AffineDimExpr) else None


def shape(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of ``value``, () for a scalar."""
    return value.type.get_shape() if isinstance(value.type, ShapedType) else ()


def extents(op: linalg.GenericOp) -> list[int]:
    """Return the trip count of each loop of ``op``; DYNAMIC_INDEX if unknown."""
    return loop_extents(len(op.iterator_types), list(zip(op.operands, indices(op), strict=True)))


def loop_extents(loops: int, reads: Sequence[tuple[SSAValue, Index]]) -> list[int]:
    """Return the trip count of each loop, from the shapes of the operands.

    The last operand indexed by a plain loop determines it: mostly a result, which has all loops.
    """
    found, missing = [DYNAMIC_INDEX] * loops, loops
    for value, index in reversed(reads):
        if not missing:
            break
        sizes = shape(value)
        for axis in range(len(index) - 1, -1, -1):
            expr, size = index[axis], sizes[axis]
            if isinstance(expr, AffineDimExpr) and size != DYNAMIC_INDEX:
                loop = expr.position
                if found[loop] == DYNAMIC_INDEX:
                    found[loop] = size
                    missing -= 1
    return found


def dims_of(index: Index) -> set[int]:
    """Return the loops that an index uses."""
    return {d for expr in index for d in expr.used_dims()}


def linear(expr: AffineExpr) -> tuple[dict[int, int], int] | None:
    """Return ``expr`` as (coefficient of each loop, constant), or None if it is not linear."""
    match expr:
        case AffineDimExpr():
            return {expr.position: 1}, 0
        case AffineConstantExpr():
            return {}, expr.value
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
            left, right = linear(expr.lhs), linear(expr.rhs)
            if left is None or right is None:
                return None
            terms = dict(left[0])
            for loop, factor in right[0].items():
                terms[loop] = terms.get(loop, 0) + factor
            return {k: f for k, f in terms.items() if f}, left[1] + right[1]
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul):
            left, right = linear(expr.lhs), linear(expr.rhs)
            if left is None or right is None or (left[0] and right[0]):
                return None
            terms, by = (left, right[1]) if left[0] else (right, left[1])
            return {k: f * by for k, f in terms[0].items() if f * by}, terms[1] * by
        case _:
            return None


def coefficient(expr: AffineExpr, loop: int) -> int | None:
    """Return the increment of ``expr`` in a step of ``loop``; None where that varies."""
    match expr:
        case AffineDimExpr():
            return int(expr.position == loop)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
            a, b = coefficient(expr.lhs, loop), coefficient(expr.rhs, loop)
            return None if a is None or b is None else a + b
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, rhs=AffineConstantExpr(value=by)):
            a = coefficient(expr.lhs, loop)
            return None if a is None else a * by
        case _:
            return None if loop in expr.used_dims() else 0


def stride(index: Index, loop: int) -> int | None:
    """Return the distance in elements, along the last axis, of a step of ``loop``.

    None where it moves along another axis, or varies; within panels it is 1.
    """
    if in_panels(index, loop):
        return 1
    if not index:
        return 0
    if any(coefficient(expr, loop) != 0 for expr in index[:-1]):
        return None
    return coefficient(index[-1], loop)


def normal(expr: AffineExpr) -> AffineExpr:
    """Return ``expr`` with like terms combined and ordered by loop."""
    if isinstance(expr, AffineDimExpr | AffineConstantExpr):
        return expr
    if (form := linear(expr)) is None:
        return expr
    terms, constant = form
    result: AffineExpr = AffineConstantExpr(0)
    for loop in sorted(terms):
        result = result + AffineDimExpr(loop) * terms[loop]
    return result + constant


def at(index: Index, loops: Sequence[AffineExpr]) -> Index:
    """Return ``index`` with each loop k replaced by ``loops[k]``."""
    return tuple(normal(expr.replace_dims_and_symbols(loops, ())) for expr in index)


def quotients(expr: AffineExpr) -> Iterator[tuple[int, int]]:
    """Yield loop and divisor of each `loop floordiv divisor` in ``expr``."""
    for each in expr.dfs():
        match each:
            case AffineBinaryOpExpr(
                kind=AffineBinaryOpKind.FloorDiv,
                lhs=AffineDimExpr(position=loop),
                rhs=AffineConstantExpr(value=divisor),
            ):
                yield loop, divisor
            case _:
                pass


def in_panels(index: Index, loop: int) -> tuple[int, int] | None:
    """Return (axis, width) if ``index`` reads panels: ``loop`` floordiv and, last, mod width.

    Such an operand is packed: ``width`` neighbours along ``loop`` are adjacent in a panel, which is
    read contiguously.
    """
    match index[-1] if index else None:
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mod,
            lhs=AffineDimExpr(position=found),
            rhs=AffineConstantExpr(value=width),
        ) if found == loop:
            number = AffineDimExpr(loop) // width
            return (index.index(number), width) if number in index else None
        case _:
            return None


def in_parts(index: Index, loop: int) -> tuple[int, int, int] | None:
    """Return (axis, inner axis, size) if ``index`` reads parts: ``loop`` floordiv and mod size.

    Parts of ``loop`` are then stored one after the other, each with all that is between both axes.
    """
    number, size = next(
        ((axis, by) for axis, expr in enumerate(index) for k, by in quotients(expr) if k == loop),
        (-1, 1),
    )
    whole, rest = AffineDimExpr(loop) // size, AffineDimExpr(loop) % size
    if number < 0 or index[number] != whole or rest not in index:
        return None
    return number, index.index(rest), size


def inverse(index: Index, loops: int) -> tuple[int, ...] | None:
    """Return the axis that each loop indexes if ``index`` is a permutation of the loops."""
    if len(index) != loops:
        return None
    axes = [-1] * loops
    for axis, expr in enumerate(index):
        if not isinstance(expr, AffineDimExpr):
            return None
        axes[expr.position] = axis
    return tuple(axes) if -1 not in axes else None


def constant_of(value: SSAValue) -> int | None:
    """Return the integer of an arith.constant, None for any other value."""
    made_by = value.owner
    if isinstance(made_by, arith.ConstantOp) and isinstance(made_by.value, IntegerAttr):
        return made_by.value.value.data
    return None


def yielded(block: Block) -> Sequence[SSAValue]:
    """Return the values that a body yields, one for each destination."""
    assert block.last_op is not None
    return block.last_op.operands


def combiner(op: linalg.GenericOp, output: int) -> type[Operation] | None:
    """Return the op by which destination ``output`` accumulates, or None if it is unknown."""
    block = op.body.block
    accumulator = block.args[len(op.inputs) + output]
    result = yielded(block)[output].owner
    if type(result) not in COMBINERS or not accumulator.has_one_use():
        return None
    assert isinstance(result, Operation)
    return type(result) if accumulator in result.operands else None


def is_elementwise(op: linalg.GenericOp) -> bool:
    """Whether all loops of ``op`` are parallel and index each result by a permutation."""
    loops = len(op.iterator_types)
    return all(is_parallel(op)) and all(
        inverse(index, loops) is not None for index in indices(op)[len(op.inputs) :]
    )


def is_contraction(parallel: Sequence[bool], inputs: Iterable[Index]) -> bool:
    """Whether two inputs are reduced such that each varies along a loop the other does not.

    Then a register tile loads each of their elements once and uses it several times.
    """
    used: list[frozenset[int]] = []
    for index in inputs:
        loops = frozenset(d for expr in index for d in expr.used_dims())
        if any(not parallel[d] for d in loops):
            used.append(frozenset(d for d in loops if parallel[d]))
    return any(a - b and b - a for i, a in enumerate(used) for b in used[:i])


def contracts(op: linalg.GenericOp) -> bool:
    """Whether ``op`` is a contraction."""
    parallel = is_parallel(op)
    return not all(parallel) and is_contraction(parallel, indices(op)[: len(op.inputs)])


def contracts_in_groups(op: linalg.GenericOp) -> bool:
    """Whether ``op`` is a contraction once `split-groups` has split the loops that it divides.

    The image of a grouped convolution varies with the group of a feature, not within the group.
    """
    parallel = is_parallel(op)
    if all(parallel):
        return False
    return contracts(op) or is_contraction(
        parallel, map(_read_beside_groups, indices(op)[: len(op.inputs)])
    )


def _read_beside_groups(index: Index) -> Index:
    """Return the loops of ``index``, without those of which it reads only quotients."""
    read: Counter[int] = Counter()
    for expr in index:
        read.update(each.position for each in expr.dfs() if isinstance(each, AffineDimExpr))
        read.subtract(loop for loop, _ in quotients(expr))
    return tuple(AffineDimExpr(loop) for loop, count in read.items() if count > 0)


def is_not_fused(op: Operation) -> bool:
    """Whether ``op`` must be a kernel of its own, as a copy into another layout is.

    The op that copies an image into its padding is fused only with its reader's kernel.
    """
    return "kernel.no_fuse" in op.attributes or "kernel.border" in op.attributes


def element(value: SSAValue) -> Attribute:
    """Return the element type of ``value``; its own type if it is a scalar."""
    return value.type.get_element_type() if isinstance(value.type, ShapedType) else value.type  # pyright: ignore


def bits_of(kind: Attribute) -> int:
    """Return the bits of an element in a vector."""
    match kind:
        case IndexType():
            return 64
        case IntegerType():
            return max(kind.width.data, 8)
        case ShapedType():
            return 8
        case _:
            return kind.bitwidth if isinstance(kind, AnyFloat) else 64


def zero_of(kind: Attribute) -> FloatAttr | IntegerAttr:
    """Return zero in the type of a float or of an integer."""
    if isinstance(kind, AnyFloat):
        return FloatAttr(0.0, kind)
    assert isinstance(kind, IntegerType)
    return IntegerAttr(0, kind)


def bytes_of(value: SSAValue) -> int:
    """Return the bytes of an element of ``value`` in memory."""
    return bits_of(element(value)) // 8


def tensor_bytes(value: SSAValue) -> int:
    """Return the bytes of a tensor; 0 for an unknown size, and for a scalar."""
    if not isinstance(value.type, TensorType) or DYNAMIC_INDEX in shape(value):
        return 0
    return prod(shape(value)) * bytes_of(value)


def widening(argument: SSAValue) -> list[Operation]:
    """Return the casts that only an argument of a body goes through first, in order."""
    found: list[Operation] = []
    while (use := argument.get_user_of_unique_use()) is not None and isinstance(use, CASTS):
        found.append(use)
        argument = use.results[0]
    return found


def array_of_maps(loops: int, index_list: Iterable[Index]) -> ArrayAttr[AffineMapAttr]:
    """Return the ``indexing_maps`` property for ``loops`` loops."""
    return ArrayAttr(map_attribute(loops, index) for index in index_list)


def erase_dead(block: Block) -> None:
    """Erase every dead op of ``block``, in one reverse walk."""
    for op in reversed(list(block.ops)):
        unused = op.results and all(result.first_use is None for result in op.results)
        if unused and touches_nothing(op):
            op.detach()
            op.erase()
