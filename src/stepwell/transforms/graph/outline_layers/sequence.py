"""Find the period with which the ops of a block repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.analysis.effects import is_pure
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.arithmetic import AddOp, MulOp, NegOp, SubOp
from stepwell.dialects.nd.base import NdOp
from stepwell.dialects.nd.bitwise import AndOp, NotOp, OrOp
from stepwell.dialects.nd.compare import Comparison, SelectOp
from stepwell.dialects.nd.contraction import ConvolutionOp, DotGeneralOp
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.creation import ConstantOp, FullOp, IotaOp
from stepwell.dialects.nd.pooling import PoolOp
from stepwell.dialects.nd.reduction import WindowOp
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, TransposeOp
from stepwell.dialects.types import times_again
from stepwell.transforms.structured.fuse.cost import CHEAP_OF_NOTHING, CHEAP_TO_REPEAT

_WINDOWS = (ConvolutionOp, PoolOp, WindowOp)
"""Ops whose layouts `propagate-layouts` chooses for the whole function."""
_FREE = (FullOp, IotaOp, BroadcastOp, ReshapeOp, TransposeOp)
"""Ops that every reader computes itself."""
_CHEAP = (AddOp, SubOp, MulOp, NegOp, Comparison, SelectOp, CastOp, AndOp, OrOp, NotOp)
"""Elementwise ops whose cost `fuse-elementwise` takes to be 1."""
PERIODS = 8
"""The number of periods that are tried: those at whose distance most ops are equal."""


@dataclass
class Run:
    """Ops from ``start`` on, each equal to the one ``period`` further, ``length`` times."""

    start: int
    period: int
    length: int

    @property
    def saved(self) -> int:
        """The number of ops in all periods but the first."""
        return self.length // self.period * self.period

    def rotations(self, ops: Sequence[Operation]) -> Iterator[list[int]]:
        """Yield the positions of periods, for each op that they may begin with."""
        end = self.start + self.length + self.period
        for start in range(self.start, self.start + self.period):
            if isinstance(ops[start], DotGeneralOp | ReshapeOp):
                yield list(range(start, end - self.period + 1, self.period))


@dataclass
class Sequences:
    """The ops of a block, those that layers copy apart."""

    ops: list[Operation] = field(default_factory=list[Operation])
    kinds: list[int] = field(default_factory=list[int])
    """A number for each of ``ops``; equal ops have equal ones."""
    copied: dict[Operation, None] = field(default_factory=dict[Operation, None])
    """Constants, and views and cheap functions of them and of arguments, such as masks: each layer
    has its own copy."""
    costs: dict[Operation | Block, _Cost] = field(default_factory=dict[Operation | Block, "_Cost"])
    """Of each op of ``copied``."""

    @classmethod
    def of(cls, block: Block, least: int) -> Sequences:
        """Return the sequence of a block; an empty one where no ``least`` ops may repeat."""
        found, numbers = cls(), dict[Hashable, int]()
        ops = list(block.ops)[:-1]
        if len(ops) <= least or any(isinstance(op, _WINDOWS) for op in ops):
            return found
        for n, op in enumerate(ops):
            if found._is_copied(op):
                found.copied[op] = None
                found.costs[op] = found._cost(op)
            elif not isinstance(op, ConstantOp):
                found.ops.append(op)
                key = signature(op) if _may_repeat(op) else n
                found.kinds.append(numbers.setdefault(key, len(numbers)))
        return found

    def _is_copied(self, op: Operation) -> bool:
        if not all(
            isinstance(v.owner, Block | ConstantOp) or v.owner in self.copied for v in op.operands
        ):
            return False
        if not isinstance(op, _CHEAP):
            return isinstance(op, _FREE)
        cost = self._cost(op)
        most = CHEAP_TO_REPEAT if cost.read else CHEAP_OF_NOTHING
        return cost.ops <= most and len(cost.read) <= 2 and not _feeds_product(op)

    def _cost(self, op: Operation) -> _Cost:
        above = [self.costs[v.owner] for v in op.operands if v.owner in self.costs]
        read = {v for v in op.operands if v.owner not in self.costs}
        ops = sum(each.ops for each in above) + isinstance(op, _CHEAP)
        return _Cost(ops, frozenset(read).union(*(each.read for each in above)))

    def runs(self) -> list[Run]:
        """Return the longest run of each period, first that which saves most ops.

        Of equal ones the first has the shortest period.
        """
        last, distances = dict[int, int](), Counter[int]()
        for n, kind in enumerate(self.kinds):
            if kind in last:
                distances[n - last[kind]] += 1
            last[kind] = n
        periods = sorted(distances, key=lambda d: -d * distances[d])[:PERIODS]
        runs = [run for period in sorted(periods) if (run := self._run(period)) is not None]
        return sorted(runs, key=lambda run: -run.saved)

    def _run(self, period: int) -> Run | None:
        best, length = None, 0
        for n, (kind, later) in enumerate(zip(self.kinds, self.kinds[period:], strict=False)):
            length = length + 1 if kind == later else 0
            if length >= period and (best is None or length > best.length):
                best = Run(n + 1 - length, period, length)
        return best


class _Cost(NamedTuple):
    """The cost of a chain of ops: elementwise ones, and the tensors that it reads."""

    ops: int
    read: frozenset[SSAValue]


def _feeds_product(op: Operation) -> bool:
    """Whether a product reads the result of an op, also through views."""
    readers = [use.operation for use in op.results[0].uses]
    return any(
        isinstance(each, DotGeneralOp) or (isinstance(each, _FREE) and _feeds_product(each))
        for each in readers
    )


def signature(op: Operation) -> Hashable:
    """Return all that determines an op but its operands."""
    return (
        type(op),
        tuple(op.properties.items()),
        tuple(op.attributes.items()),
        tuple(v.type for v in op.operands),
        tuple(v.type for v in op.results),
        times_again(op.location),
    )


def _may_repeat(op: Operation) -> bool:
    return (
        isinstance(op, NdOp)
        and not op.regions
        and is_pure(op)
        and all(_is_static(v.type) for v in (*op.operands, *op.results))
    )


def _is_static(kind: Attribute) -> bool:
    return isinstance(kind, TensorType) and DYNAMIC not in kind.get_shape()
