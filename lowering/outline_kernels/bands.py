"""Fuse a contraction, ops on its rows and a contraction over those rows into one kernel.

This is attention: ``softmax(q @ k) @ v``. The three share the loops over rows, and a row of the
first result is scratch of the kernel: it is never stored to memory. `schedule` runs such a kernel
over one band of rows at a time, with a register tile for each contraction. The operand of the first
that varies with the columns is packed into panels beforehand (see `pack-operands`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.structured import (
    PARALLEL,
    Index,
    array_of_maps,
    contracts,
    element,
    extents,
    indices,
    is_parallel,
    plain,
    shape,
)
from stepwell.dialects.types import locate
from stepwell.lowering.outline_kernels.clusters import Cluster, merged_loops, reads

ROW = 32 << 10
"""The most bytes in a row of the first contraction's result."""
COLUMNS = 64
"""The number of columns in a panel: a multiple of the vector length of every machine."""
FEW = 8
"""The number of rows below which packing the columns' operand does not pay; it does not either
where the first contraction's result is no larger than that operand."""


@dataclass
class Band:
    """Three clusters that can be fused into one kernel."""

    first: Cluster
    middle: Cluster
    last: Cluster
    pairs: list[tuple[int, int]]
    """The pairs of loops that the first and the middle share."""
    inner: list[tuple[int, int]]
    """The pairs of loops that those two share with the last."""
    scores: linalg.GenericOp
    """The first contraction."""
    operand: int
    """The number of its operand that varies with the columns."""
    column: int


def find_band(last: Cluster, least: int) -> Band | None:
    """Return the band that ends in ``last``.

    ``least`` is the fewest bytes that the first contraction's result must have.
    """
    sums = _only_contraction(last)
    if sums is None:
        return None
    for middle in {c.find(): None for c in last.needs}:
        if middle is last or _contractions(middle) or not _leads_only_to(middle, last):
            continue
        for first in {c.find(): None for c in middle.needs}:
            scores = _only_contraction(first)
            if scores is None or not _leads_only_to(first, middle):
                continue
            band = _checked(first, middle, last, scores, sums)
            if band is not None and _is_large(band, least):
                return band
    return None


def _contractions(cluster: Cluster) -> list[linalg.GenericOp]:
    return [op for op in cluster.members if isinstance(op, linalg.GenericOp) and contracts(op)]


def _only_contraction(cluster: Cluster) -> linalg.GenericOp | None:
    found = _contractions(cluster)
    plain = all(isinstance(op, linalg.GenericOp) for op in cluster.members)
    return found[0] if plain and len(found) == 1 else None


def _leads_only_to(cluster: Cluster, user: Cluster) -> bool:
    """Whether only ``user`` uses the results of ``cluster``."""
    return not cluster.held and all(c.find() in (cluster, user) for c in cluster.users)


def _checked(
    first: Cluster,
    middle: Cluster,
    last: Cluster,
    scores: linalg.GenericOp,
    sums: linalg.GenericOp,
) -> Band | None:
    pairs = merged_loops(first, middle)
    kept = {j: n for n, (_, j) in enumerate(pairs)}
    inner = [(kept[i], j) for i, j in merged_loops(middle, last) if i in kept]
    count = len(inner)
    if not count or any(
        read.value.owner in first.loops for op in last.members for read in reads(op)
    ):
        return None
    for op in (scores, sums):  # each has one more result loop and one reduction loop
        if sum(is_parallel(op)) != count + 1 or len(op.iterator_types) != count + 2:
            return None
    shared = {first.loops[scores][pairs[n][0]] for n, _ in inner}
    (column,) = (d for d, p in enumerate(is_parallel(scores)) if p and d not in shared)
    used = [_used(index) for index in indices(scores)[: len(scores.inputs)]]
    along = [k for k, loops in enumerate(used) if column in loops]
    rows = [d for d in sorted(shared) if all(d not in used[k] for k in along)]
    if len(along) != 1 or not rows:
        return None
    sizes = extents(scores)
    deep = max(n for n, p in zip(sizes, is_parallel(scores), strict=True) if not p)
    if DYNAMIC_INDEX not in (high := [sizes[d] for d in rows]) and prod(high) < max(FEW, deep):
        return None
    (operand,) = along
    index = indices(scores)[operand]
    if any(plain(expr) is None for expr in index) or sizes[column] == DYNAMIC_INDEX:
        return None
    if not isinstance(element(scores.inputs[operand]), AnyFloat | IntegerType):
        return None
    return Band(first, middle, last, pairs, inner, scores, operand, column)


def _used(index: Index) -> set[int]:
    return {d for expr in index for d in expr.used_dims()}


def _is_large(band: Band, least: int) -> bool:
    """Whether the first contraction's result exceeds the cache while one row of it fits."""
    sizes = extents(band.scores)
    bytes = _bytes(element(band.scores.outputs[0]))
    if sizes[band.column] * bytes > ROW:
        return False
    parallel = [n for n, p in zip(sizes, is_parallel(band.scores), strict=True) if p]
    return DYNAMIC_INDEX in parallel or prod(parallel) * bytes >= least


def _bytes(kind: Attribute) -> int:
    return getattr(kind, "bitwidth", 64) // 8


def in_order(band: Band) -> tuple[linalg.GenericOp, list[int]]:
    """Copy the operand of the columns into contiguous panels.

    Return the copy, and those of its loops that count the batches and the panels.
    """
    op, operand = band.scores, band.operand
    index, value = indices(op)[operand], op.inputs[operand]
    loops = [d for expr in index if (d := plain(expr)) is not None]
    parallel = is_parallel(op)
    batch = sorted(d for d in loops if parallel[d] and d != band.column)
    order = [*batch, band.column, *sorted(d for d in loops if not parallel[d])]
    made: list[Operation] = []
    sizes = [_size(value, loops.index(d), made) for d in order]
    static = [shape(value)[loops.index(d)] for d in order]
    static[len(batch)] = -(-static[len(batch)] // COLUMNS)
    kind = element(value)
    empty = tensor.EmptyOp(
        [s for s in sizes if s is not None], TensorType(kind, [*static, COLUMNS])
    )
    made.append(empty)
    if extents(op)[band.column] % COLUMNS:
        zero = arith.ConstantOp(_zero(kind))
        made += [zero, linalg.FillOp([zero.result], [empty.tensor], [empty.tensor.type])]
    into = made[-1].results[0]
    block = Block(arg_types=[kind, kind])
    block.add_op(linalg.YieldOp(block.args[0]))
    source: Index = tuple(AffineDimExpr(order.index(d)) for d in loops)
    maps = array_of_maps(len(order), [source, _panel_index(range(len(order)), len(batch))])
    copy = linalg.GenericOp(
        [value], [into], Region(block), maps, [PARALLEL] * len(order), [into.type]
    )
    copy.results[0].name_hint = value.name_hint
    assert op.parent is not None
    for new in (*made, copy):
        locate(new, op.location)
        op.parent.insert_op_before(new, op)
    where: list[Index] = list(indices(op))
    where[operand] = _panel_index(order, len(batch))
    op.operands[operand] = copy.results[0]
    op.properties["indexing_maps"] = array_of_maps(len(op.iterator_types), where)
    return copy, list(range(len(batch) + 1))


def _panel_index(loops: Sequence[int], column: int) -> Index:
    """Return the packed index of an element whose column is loop number ``column`` of ``loops``."""
    exprs: list[AffineExpr] = [AffineDimExpr(d) for d in loops]
    number = exprs[column]
    exprs[column] = number // COLUMNS
    return (*exprs, number % COLUMNS)


def _zero(kind: Attribute) -> FloatAttr | IntegerAttr:
    if isinstance(kind, AnyFloat):
        return FloatAttr(0.0, kind)
    assert isinstance(kind, IntegerType)
    return IntegerAttr(0, kind)


def _size(value: SSAValue, axis: int, made: list[Operation]) -> SSAValue | None:
    """Return the size of an axis where it is dynamic."""
    if shape(value)[axis] != DYNAMIC_INDEX:
        return None
    number = arith.ConstantOp(IntegerAttr(axis, IndexType()))
    dim = tensor.DimOp(value, number.result)
    made += [number, dim]
    return dim.result
