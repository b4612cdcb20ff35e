"""The ops by which reductions combine partial results, and their identities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation


@dataclass(frozen=True)
class Combiner:
    """How a reduction combines two partial results: a commutative, associative op."""

    op: type[Operation]
    kind: str
    """Its name in vector.reduction."""
    identity: Callable[[Attribute], FloatAttr | IntegerAttr]


def _float(value: float) -> Callable[[Attribute], FloatAttr]:
    def identity(type: Any) -> FloatAttr:
        return FloatAttr(value, type)

    return identity


def _integer(value: Callable[[int], int]) -> Callable[[Attribute], IntegerAttr]:
    def identity(type: Attribute) -> IntegerAttr:
        assert isinstance(type, IntegerType)
        return IntegerAttr(value(type.width.data), type)

    return identity


def _lowest(bits: int) -> int:
    return -(1 << (bits - 1))


def _highest(bits: int) -> int:
    return (1 << (bits - 1)) - 1


_INFINITY = float("inf")
COMBINERS: dict[type[Operation], Combiner] = {
    c.op: c
    for c in (
        Combiner(arith.AddfOp, "add", _float(-0.0)),
        Combiner(arith.MulfOp, "mul", _float(1.0)),
        Combiner(arith.MaximumfOp, "maximumf", _float(-_INFINITY)),
        Combiner(arith.MinimumfOp, "minimumf", _float(_INFINITY)),
        Combiner(arith.MaxnumfOp, "maxnumf", _float(-_INFINITY)),
        Combiner(arith.MinnumfOp, "minnumf", _float(_INFINITY)),
        Combiner(arith.AddiOp, "add", _integer(lambda bits: 0)),
        Combiner(arith.MuliOp, "mul", _integer(lambda bits: 1)),
        Combiner(arith.MaxSIOp, "maxsi", _integer(_lowest)),
        Combiner(arith.MinSIOp, "minsi", _integer(_highest)),
        Combiner(arith.MaxUIOp, "maxui", _integer(lambda bits: 0)),
        Combiner(arith.MinUIOp, "minui", _integer(lambda bits: -1)),
        Combiner(arith.AndIOp, "and", _integer(lambda bits: -1)),
        Combiner(arith.OrIOp, "or", _integer(lambda bits: 0)),
        Combiner(arith.XOrIOp, "xor", _integer(lambda bits: 0)),
    )
}
