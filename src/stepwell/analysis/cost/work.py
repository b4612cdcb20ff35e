"""Count the instructions of an op's body, and the latency of its dependence chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects import arith, math, memref, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from stepwell.analysis.structured import bits_of


@dataclass(frozen=True)
class Count:
    """Instructions, each of which is applied to one element or to a vector of them."""

    products: float = 0.0
    """Instructions that only the ports of multiply-adds execute."""
    others: float = 0.0
    """Instructions that any vector port executes."""
    divisions: float = 0.0
    """Divisions and square roots, in divisions of f32."""
    lookups: float = 0.0
    """Loads of one element each, at indices that the body computes."""
    chain: float = 0.0
    """Instructions on the longest dependence chain from an operand to the result."""

    def __add__(self, other: Count) -> Count:
        """Return the sum of code that runs one after the other."""
        return Count(
            self.products + other.products,
            self.others + other.others,
            self.divisions + other.divisions,
            self.lookups + other.lookups,
            self.chain + other.chain,
        )


SLOTS: Mapping[type[Operation], tuple[int, int]] = {
    math.ExpOp: (16, 34),
    math.Exp2Op: (16, 28),
    math.ExpM1Op: (30, 41),
    math.LogOp: (56, 68),
    math.Log2Op: (56, 79),
    math.Log10Op: (56, 79),
    math.Log1pOp: (63, 80),
    math.SinOp: (51, 71),
    math.CosOp: (48, 68),
    math.TanOp: (74, 96),
    math.AtanOp: (41, 62),
    math.Atan2Op: (60, 90),
    math.TanhOp: (43, 80),
    math.SinhOp: (42, 67),
    math.CoshOp: (36, 60),
    math.AsinOp: (41, 58),
    math.AcosOp: (41, 58),
    math.AsinhOp: (129, 169),
    math.AcoshOp: (120, 160),
    math.AtanhOp: (110, 150),
    math.CbrtOp: (90, 112),
    math.ErfOp: (59, 126),
    math.PowFOp: (187, 272),
    math.FPowIOp: (8, 8),
}
"""Vector instructions, or equally long work, of each function of f32 and of f64: the cycles of a
vector on a Zen 4 (`python bench/predicted.py --functions`), times its ports, by two passes."""
SIMPLE: Mapping[type[Operation], Count] = {
    math.SqrtOp: Count(divisions=1.7, chain=5),
    math.RsqrtOp: Count(divisions=2.7, chain=9),
    arith.DivfOp: Count(divisions=1, chain=3),
    math.FmaOp: Count(1, 0, 0, 0, 1),
    arith.MulfOp: Count(1, 0, 0, 0, 1),
    arith.MuliOp: Count(1, 0, 0, 0, 1),
    arith.DivSIOp: Count(0, 4, 4, 0, 8),
    arith.DivUIOp: Count(0, 4, 4, 0, 8),
    arith.RemSIOp: Count(1, 5, 4, 0, 9),
    arith.RemUIOp: Count(1, 5, 4, 0, 9),
    arith.FloorDivSIOp: Count(0, 8, 4, 0, 12),
    arith.CeilDivSIOp: Count(0, 8, 4, 0, 12),
}
NOTHING: tuple[type[Operation], ...] = (
    arith.ConstantOp,
    linalg.IndexOp,
    linalg.YieldOp,
    arith.IndexCastOp,
    arith.BitcastOp,
)
LOOKUPS = (tensor.ExtractOp, memref.LoadOp)
OTHER = Count(0, 1, 0, 0, 1)
CHAIN_PART = 0.4
"""The part of a function's instructions on its dependence chain: the steps of a polynomial depend
on each other, in two halves (exp of f32: 14 steps of 30 instructions)."""
DIVIDE_DOUBLE = 1.6
"""The cost of a division of f64 relative to a vector of f32: 9.1 of 6.0 cycles on Zen 4 (measured),
16 of 10 on Sapphire Rapids, 16 of 10 on Skylake (Agner Fog's tables)."""


def count(block: Block, fma: bool) -> Count:
    """Return the instructions of a body."""
    total = Count()
    fused = set(_fused(block)) if fma else set[Operation]()
    for op in block.ops:
        total += _of(op, fused)
        for region in op.regions:
            for inner in region.blocks:
                total += count(inner, fma)
    longest = max((_chain(value, {}) for value in _yielded(block)), default=0.0)
    return Count(total.products, total.others, total.divisions, total.lookups, longest)


def count_op(op: Operation) -> Count:
    """Return the instructions of one op without those in its regions."""
    return _of(op, set())


def chain_from(block: Block, value: SSAValue) -> float:
    """Return the instructions on the dependence chain from ``value`` to the body's results."""
    known: dict[SSAValue, float] = {value: 0.0}
    return max((_path(each, known) for each in _yielded(block)), default=0.0)


def _yielded(block: Block) -> Iterable[SSAValue]:
    return block.last_op.operands if block.last_op is not None else ()


def _of(op: Operation, fused: set[Operation]) -> Count:
    if isinstance(op, NOTHING) or op in fused:
        return Count()
    if isinstance(op, LOOKUPS):
        return Count(lookups=1, chain=2)
    double = any(bits_of(result.type) == 64 for result in op.results)
    if slots := SLOTS.get(type(op)):
        many = slots[double]
        return Count(many / 2, many / 2, chain=many * CHAIN_PART)
    found = SIMPLE.get(type(op), OTHER)
    if double and found.divisions:
        by = found.divisions * DIVIDE_DOUBLE
        found = Count(found.products, found.others, by, found.lookups, found.chain)
    return found


def _fused(block: Block) -> Iterable[Operation]:
    """Yield the additions that are fused with a product without other uses."""
    for op in block.ops:
        if not isinstance(op, arith.AddfOp | arith.SubfOp):
            continue
        product = next(
            (
                value.owner
                for value in op.operands
                if isinstance(value.owner, arith.MulfOp) and value.has_one_use()
            ),
            None,
        )
        if product is not None:
            yield op


def _chain(value: SSAValue, known: dict[SSAValue, float]) -> float:
    if value in known:
        return known[value]
    op = value.owner
    found = 0.0
    if isinstance(op, Operation):
        found = _of(op, set()).chain + max((_chain(v, known) for v in op.operands), default=0.0)
    known[value] = found
    return found


def _path(value: SSAValue, known: dict[SSAValue, float]) -> float:
    """Return the longest path to ``value`` from values of 0 in ``known``; less than 0 for none."""
    if value in known:
        return known[value]
    op = value.owner
    found = -1.0
    if isinstance(op, Operation):
        before = max((_path(v, known) for v in op.operands), default=-1.0)
        found = before + _of(op, set()).chain if before >= 0 else -1.0
    known[value] = found
    return found
