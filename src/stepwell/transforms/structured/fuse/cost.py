"""The recomputation that merging a producer causes, compared with the memory traffic it saves."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue

from stepwell.analysis.structured import (
    CASTS,
    EXPENSIVE,
    Index,
    contracts_in_groups,
    cost,
    extents,
    indices,
    is_elementwise,
    linear,
)

CHEAP_TO_REPEAT = 4
"""The cost of a chain of producers, in additions, up to which each consumer may recompute it."""
CHEAP_PER_ELEMENT = 2
"""The cost of a chain up to which it may be recomputed for each element it is broadcast to."""
CHEAP_OF_NOTHING = 12
"""The same for a chain whose inputs are all broadcast, such as a mask made of loop indices: stored,
it would cost each reader memory traffic, and attention its band of rows."""
MAX_TENSORS = 24
"""The most tensors that a loop reads; beyond that a merge gains nothing."""


@dataclass(frozen=True)
class Chain:
    """A producer with all elementwise producers above it."""

    cost: int
    read: frozenset[SSAValue]
    """The inputs of the chain, without those broadcast along a loop or filled with a number;
    at most MAX_TENSORS."""

    @property
    def leaves(self) -> int:
        """The number of input tensors of the chain."""
        return len(self.read)

    def most(self, cheap: int) -> int:
        """Return the cost up to which this chain may be repeated, ``cheap`` for most chains."""
        return cheap if self.leaves else max(cheap, CHEAP_OF_NOTHING)


@dataclass
class Costs:
    """The chains of one block, found in one forward walk."""

    chains: dict[linalg.GenericOp, Chain] = field(default_factory=dict[linalg.GenericOp, Chain])

    def walk(self, block: Block) -> None:
        """Find the chain of each elementwise generic of ``block``."""
        for op in block.ops:
            if isinstance(op, linalg.GenericOp) and is_elementwise(op):
                self.chains[op] = self._chain(op)

    def chain(self, op: linalg.GenericOp) -> Chain:
        """Return the chain of ``op``, whose producers have been walked."""
        if op not in self.chains:
            self.chains[op] = self._chain(op)
        return self.chains[op]

    def _chain(self, op: linalg.GenericOp) -> Chain:
        total, read = cost(op.body.block), set[SSAValue]()
        seen: set[SSAValue] = set()
        sizes = extents(op)
        for value, argument, index in zip(
            op.inputs, op.body.block.args, indices(op)[: len(op.inputs)], strict=False
        ):
            if argument.first_use is None or value in seen:
                continue
            seen.add(value)
            maker = value.owner
            above = self.chains.get(maker) if isinstance(maker, linalg.GenericOp) else None
            again = repeats(index, sizes)
            if above and above.cost > CHEAP_PER_ELEMENT and again:
                above = None  # it stays a separate op, such as a mean that is broadcast
            if above and not value.has_one_use() and stays_with_contraction(value):
                above = None
            total += above.cost if above else 0
            if above:
                read |= above.read
            elif not again and not isinstance(maker, linalg.FillOp):
                read.add(value)
        return Chain(min(total, 10 * EXPENSIVE), frozenset(islice(read, MAX_TENSORS)))


def is_view(op: linalg.GenericOp) -> bool:
    """Whether ``op`` only copies one operand, through a map."""
    return all(type(inner) is linalg.YieldOp for inner in op.body.block.ops)


def is_cast(op: linalg.GenericOp) -> bool:
    """Whether ``op`` only copies its input, or widens it."""
    kinds = {type(inner) for inner in op.body.block.ops}
    return kinds <= {*CASTS, linalg.YieldOp} and arith.TruncFOp not in kinds


def is_made_of_nothing(op: linalg.GenericOp) -> bool:
    """Whether ``op`` is cheap and reads no memory, such as iota."""
    block = op.body.block
    return (
        all(argument.first_use is None for argument in block.args)
        and cost(block) <= CHEAP_TO_REPEAT
        and not any(isinstance(inner, tensor.ExtractOp) for inner in block.ops)
    )


def finishes_contraction(op: linalg.GenericOp) -> bool:
    """Whether ``op`` is, also indirectly, the only reader of a contraction: there it is free."""
    above = [op]
    while above:
        for value in above.pop().inputs:
            maker = value.owner
            if isinstance(maker, linalg.GenericOp) and value.has_one_use():
                if contracts_in_groups(maker):
                    return True
                if is_elementwise(maker):
                    above.append(maker)
    return False


def stays_with_contraction(value: SSAValue) -> bool:
    """Whether ``value`` is computed in the epilogue of a contraction, for all of its readers."""
    return isinstance(value.owner, linalg.GenericOp) and finishes_contraction(value.owner)


def repeats(index: Index, extents: list[int]) -> bool | None:
    """Whether reading at ``index`` repeats elements; None where an expression mixes loops."""
    used: set[int] = set()
    for expr in index:
        form = linear(expr)
        if form is None or len(form[0]) > 1:
            return None
        used.update(form[0])
    return any(loop not in used and extent != 1 for loop, extent in enumerate(extents))
