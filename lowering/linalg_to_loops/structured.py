"""The loops of a linalg op: iterators, accesses, combiners, its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineExpr,
)

from stepwell.analysis.combiners import COMBINERS, Combiner
from stepwell.analysis.levels import NO_LANES, Lanes
from stepwell.analysis.structured import dims_of, shape, yielded
from stepwell.dialects.kernel.levels import PEEL
from stepwell.dialects.kernel.sharing import parts_of
from stepwell.lowering.linalg_to_loops.writer import Index, Writer
from stepwell.transforms.passes import fail


@dataclass(frozen=True)
class Access:
    """One operand and the elements of it that an iteration touches."""

    buffer: SSAValue
    exprs: tuple[AffineExpr, ...]
    begin: tuple[tuple[int, Index], ...] = ()
    """Loops that do not count from 0, each with the index that is added to its own."""

    def at(self, writer: Writer, indices: Sequence[Index | None]) -> list[Index]:
        """Return the index of each dimension at the given indices of the loops.

        The two loops after the last one have no index of their own, only a beginning.
        """
        if self.begin:
            indices = [*indices, None, None]
            for k, by in self.begin:
                indices[k] = (indices[k] or Index()) + by
        return [writer.affine(e, indices) for e in self.exprs]


@dataclass(eq=False)
class Structured:
    """One linalg.generic, linalg.fill or memref.copy as loops around a scalar body."""

    op: Operation
    reductions: tuple[bool, ...]
    """For each iterator, whether it is a reduction."""
    inputs: tuple[Access, ...]
    outputs: tuple[Access, ...]
    body: Block | None
    """None where the one output is the one input, or ``value``."""
    value: SSAValue | None = None
    """The value that a fill writes."""
    axis: int = -1
    """The vectorised iterator."""
    width: int = 1
    interleave: int = 1
    tail: str = PEEL
    """How the vectorised iterator ends."""
    nontemporal: tuple[int, ...] = ()
    """The outputs that are written with nontemporal stores."""
    initial: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The scalar that fills each output before this op, where that fill is folded in."""
    within: dict[int, tuple[Index, Index]] = field(default_factory=dict[int, tuple[Index, Index]])
    """The part of each loop outside of which the op changes nothing, where there is one."""

    def parallel_after(self, shared: int) -> list[int]:
        """Return the parallel iterators that are not among the first ``shared``."""
        return [k for k, r in enumerate(self.reductions) if k >= shared and not r]

    def uses(self, number: int) -> bool:
        """Whether the body uses an input."""
        return self.body is None or self.body.args[number].first_use is not None

    @property
    def reduced(self) -> list[int]:
        """The reduction iterators."""
        return [k for k, r in enumerate(self.reductions) if r]

    @property
    def carried(self) -> list[int]:
        """The outputs whose element is the same in all iterations of the reduction loops."""
        reduced = self.reduced
        if not reduced:
            return []
        return [i for i, o in enumerate(self.outputs) if not dims_of(o.exprs) & set(reduced)]

    def argument(self, output: int) -> SSAValue | None:
        """Return the body's argument that holds the old value of an output, where used."""
        if self.body is None:
            return None
        arg = self.body.args[len(self.inputs) + output]
        return arg if arg.first_use is not None else None

    def combiner(self, output: int) -> Combiner | None:
        """Return the associative op with which ``output`` accumulates, if there is one."""
        arg = self.argument(output)
        if self.body is None or arg is None or not arg.has_one_use():
            return None
        new = yielded(self.body)[output]
        owner = new.owner
        if not isinstance(owner, Operation) or not new.has_one_use():
            return None
        if isinstance(owner, math.FmaOp) and owner.c is arg:
            return COMBINERS[arith.AddfOp]
        return COMBINERS.get(type(owner)) if arg in owner.operands else None

    def name(self, output: int) -> str | None:
        """Return the name of an output's accumulator."""
        arg = self.argument(output)
        return (arg.name_hint if arg is not None else None) or self.outputs[output].buffer.name_hint

    @property
    def unordered(self) -> bool:
        """Whether the reduction loops may run in any order."""
        return all(self.combiner(k) is not None for k in self.carried)


def read(op: Operation, lanes: Lanes = NO_LANES) -> Structured | None:
    """Return the loops of ``op``, None where it has none of its own."""
    match op:
        case linalg.GenericOp():
            found = _read_generic(op)
        case linalg.FillOp():
            found = _read_fill(op)
        case memref.CopyOp():
            source, target = op.operands
            rank = len(shape(target))
            maps = tuple(AffineExpr.dimension(i) for i in range(rank))
            found = Structured(
                op, (False,) * rank, (Access(source, maps),), (Access(target, maps),), None
            )
        case _:
            return None
    found.axis, found.width, found.interleave, found.tail, found.nontemporal = lanes
    found.within = {
        loop: (Index.of(op.operands[low]), Index.of(op.operands[high]))
        for loop, low, high in parts_of(op)
    }
    return found


def _read_generic(op: linalg.GenericOp) -> Structured:
    for value in op.operands:
        if not isinstance(value.type, MemRefType) and value in op.outputs:
            fail(
                op, f"linalg.generic works on {value.type}", "run bufferize before linalg-to-loops"
            )
    maps = [m.data for m in op.indexing_maps]
    accesses = [Access(v, tuple(m.results)) for v, m in zip(op.operands, maps, strict=True)]
    count = len(op.inputs)
    reductions = tuple(k.data == IteratorType.REDUCTION for k in op.iterator_types)
    found = Structured(
        op, reductions, tuple(accesses[:count]), tuple(accesses[count:]), op.body.block
    )
    reduced = set(found.reduced)
    for i, output in enumerate(found.outputs):
        if (some := dims_of(output.exprs) & reduced) and some != reduced:
            fail(op, f"output {i} of linalg.generic varies with some of the reduction loops only")
    return found


def _read_fill(op: linalg.FillOp) -> Structured:
    (value,), (target,) = op.inputs, op.outputs
    if not isinstance(target.type, MemRefType):
        fail(op, f"linalg.fill works on {target.type}", "run bufferize before linalg-to-loops")
    rank = target.type.get_num_dims()
    identity = tuple(AffineExpr.dimension(i) for i in range(rank))
    return Structured(op, (False,) * rank, (), (Access(target, identity),), None, value)
