"""What merging a producer would repeat, and whether that is cheaper than a trip through memory."""

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
    contracts,
    cost,
    extents,
    indices,
    is_elementwise,
    linear,
)

CHEAP_TO_REPEAT = 4
"""A chain of producers of at most this cost may be computed once for each of its consumers."""
CHEAP_PER_ELEMENT = 2
"""A chain of at most this cost may be computed again for each element it is broadcast to."""
CHEAP_OF_NOTHING = 12
"""The same for a chain that reads nothing but what is repeated, as a mask made of loop numbers: to
keep it would cost each reader a trip through memory, and attention its band of rows."""
MAX_TENSORS = 24
"""A loop that reads more tensors than this gains nothing from reading still more."""


@dataclass(frozen=True)
class Chain:
    """A producer with all elementwise producers above it."""

    cost: int
    read: frozenset[SSAValue]
    """What the chain reads in the end, but what is repeated along a loop or filled with a number;
    no more than MAX_TENSORS."""

    @property
    def leaves(self) -> int:
        """How many tensors the chain reads in the end."""
        return len(self.read)

    def most(self, cheap: int) -> int:
        """Return up to which cost the chain may be repeated, where others may up to ``cheap``."""
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
        """Return the chain of ``op``, which has been walked or is made of walked ones."""
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
                above = None  # it will stay apart, as a mean that many elements are compared with
            if above and not value.has_one_use() and stays_with_contraction(value):
                above = None
            total += above.cost if above else 0
            if above:
                read |= above.read
            elif not again and not isinstance(maker, linalg.FillOp):
                read.add(value)
        return Chain(min(total, 10 * EXPENSIVE), frozenset(islice(read, MAX_TENSORS)))


def is_view(op: linalg.GenericOp) -> bool:
    """Whether ``op`` computes nothing: it copies one operand to another place."""
    return all(type(inner) is linalg.YieldOp for inner in op.body.block.ops)


def is_cast(op: linalg.GenericOp) -> bool:
    """Whether ``op`` at most widens what it copies."""
    kinds = {type(inner) for inner in op.body.block.ops}
    return kinds <= {*CASTS, linalg.YieldOp} and arith.TruncFOp not in kinds


def is_made_of_nothing(op: linalg.GenericOp) -> bool:
    """Whether ``op`` is cheap and reads no memory, as iota does."""
    block = op.body.block
    return (
        all(argument.first_use is None for argument in block.args)
        and cost(block) <= CHEAP_TO_REPEAT
        and not any(isinstance(inner, tensor.ExtractOp) for inner in block.ops)
    )


def finishes_contraction(op: linalg.GenericOp) -> bool:
    """Whether ``op`` alone reads a contraction, if by way of others: it costs nothing there."""
    above = [op]
    while above:
        for value in above.pop().inputs:
            maker = value.owner
            if isinstance(maker, linalg.GenericOp) and value.has_one_use():
                if contracts(maker):
                    return True
                if is_elementwise(maker):
                    above.append(maker)
    return False


def stays_with_contraction(value: SSAValue) -> bool:
    """Whether what makes ``value`` is computed where a contraction ends, for all that read it."""
    return isinstance(value.owner, linalg.GenericOp) and finishes_contraction(value.owner)


def repeats(index: Index, extents: list[int]) -> bool | None:
    """Whether reading at ``index`` meets an element more than once; None where loops mix in it."""
    used: set[int] = set()
    for expr in index:
        form = linear(expr)
        if form is None or len(form[0]) > 1:
            return None
        used.update(form[0])
    return any(loop not in used and extent != 1 for loop, extent in enumerate(extents))
