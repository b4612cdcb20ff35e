"""Vectorise reductions in scalar code.

Before:  %s = scf.for %k = %a to %b iter_args(%acc = %s0) {
           %v = memref.load %x[%i, %k] ... arith.addf %acc, %v } {kernel.simd = 8}
After:   %p:2 = scf.for %k = %a to %m step 16 ... two vectors of eight
         %q = scf.for %k = %m to %n step 8 ... their sum
         %r = arith.addf %s0, vector.reduction <add>, %q
         %s = scf.for %k = %n to %b iter_args(%acc = %r) { the tail, one by one }

A loop that reads elements that are not contiguous, or has ops without a vector form, stays as it
is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from xdsl.dialects import arith, math, memref, scf, vector
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, MemRefType
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.dialects.kernel import choices
from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.lowering.linalg_to_loops.builder import vector_type

INDEX = IndexType()

INTERLEAVED_VECTORS = 2
"""Vectors of accumulators, which hide the latency of an addition."""

_COMBINED: Mapping[type[Operation], tuple[str, float]] = {
    arith.AddfOp: ("add", -0.0),
    arith.MulfOp: ("mul", 1.0),
    arith.MaximumfOp: ("maximumf", -inf),
    arith.MinimumfOp: ("minimumf", inf),
    arith.MaxnumfOp: ("maxnumf", -inf),
    arith.MinnumfOp: ("minnumf", inf),
}
"""The combining ops, with their names in vector.reduction and their identities."""
LANEWISE = (*_COMBINED, arith.SubfOp, arith.DivfOp, arith.NegfOp, math.SqrtOp, math.AbsFOp)


def vectorise_sums(block: Block) -> None:
    """Rewrite each loop of ``block``, nested ones too, that has the attribute `kernel.simd`."""
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                vectorise_sums(inner)
        lanes = choices.number(op, "kernel.simd")
        if lanes and isinstance(op, scf.ForOp) and _is_sum(op) and not _is_short(op, lanes):
            _Sum(op, lanes).write()


def _is_sum(loop: scf.ForOp) -> bool:
    """Whether a loop accumulates floats of one type and reads contiguous elements only."""
    body = loop.body.block
    *ops, last = body.ops
    types = {a.type for a in body.args[1:]}
    if len(types) != 1 or not isinstance(element := next(iter(types)), AnyFloat):
        return False
    for argument, value in zip(body.args[1:], last.operands, strict=True):
        made_by = value.owner
        if not isinstance(made_by, Operation) or type(made_by) not in _COMBINED:
            return False
        if argument not in made_by.operands or not argument.has_one_use():
            return False
    return all(_fits(op, loop, element) for op in ops)


def _fits(op: Operation, loop: scf.ForOp, element: AnyFloat) -> bool:
    """Whether an op of a body has a vector form over several iterations."""
    if isinstance(op, memref.LoadOp):
        steps = [step_of(v, loop) for v in op.indices]
        if op.results[0].type != element or any(steps[:-1]):
            return False
        return not steps or steps[-1] == 0 or (steps[-1] == 1 and is_dense(op.memref))
    if isinstance(op, LANEWISE):
        return op.results[0].type == element
    return all(isinstance(r.type, IndexType) for r in op.results) and touches_nothing(op)


def step_of(value: SSAValue, loop: scf.ForOp) -> int | None:
    """Return the stride of an index in an enclosing loop; None where unknown."""
    if value is loop.body.block.args[0]:
        return 1
    match value.owner:
        case Block():
            return 0
        case op if not loop.is_ancestor(op):
            return 0
        case arith.AddiOp(lhs=a, rhs=b) | arith.SubiOp(lhs=a, rhs=b) as op:
            steps = step_of(a, loop), step_of(b, loop)
            if steps[0] is None or steps[1] is None:
                return None
            return steps[0] + steps[1] * (1 if isinstance(op, arith.AddiOp) else -1)
        case op:
            return 0 if all(step_of(v, loop) == 0 for v in op.operands) else None


def is_dense(buffer: SSAValue) -> bool:
    """Whether the last axis of a buffer is contiguous."""
    assert isinstance(buffer.type, MemRefType)
    strides = buffer.type.get_strides()
    return strides is not None and strides[-1] == 1


def _is_short(loop: scf.ForOp, lanes: int) -> bool:
    """Whether a loop has fewer iterations than a vector has lanes."""
    low, high = (_number(v) for v in (loop.lb, loop.ub))
    return high is not None and high - (low or 0) < lanes


def _number(value: SSAValue) -> int | None:
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return number.data
        case _:
            return None


class _Sum:
    """Writes a vectorised copy of a loop before it."""

    def __init__(self, loop: scf.ForOp, lanes: int) -> None:
        self.loop, self.lanes = loop, lanes
        self.body = loop.body.block
        self.ends = list(_yielded(self.body))
        parent = loop.parent
        assert parent is not None
        self.block = parent
        self.at: Operation | None = loop

    def put(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert an op; return its first result."""
        op.location = self.loop.location
        if self.at is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.at)
        for result in op.results:
            result.name_hint = hint
        return op.results[0]

    def index(self, number: int) -> SSAValue:
        """Insert an index constant."""
        return self.put(arith.ConstantOp(IntegerAttr(number, INDEX)))

    def write(self) -> None:
        """Write a loop of two vectors, one of single vectors; the scalar loop takes the tail."""
        loop, lanes = self.loop, self.lanes
        fast = arith.FastMathFlagsAttr("none")
        starts = [self._splat(v) for v in self.ends]
        middle = self._whole(loop.lb, loop.ub, lanes * INTERLEAVED_VECTORS)
        first = self._loop(loop.lb, middle, INTERLEAVED_VECTORS, starts * INTERLEAVED_VECTORS)
        sums = first[: len(starts)]
        for k in range(1, INTERLEAVED_VECTORS):
            more = first[k * len(starts) : (k + 1) * len(starts)]
            sums = [
                self.put(_combining_op(e, a, b))
                for e, a, b in zip(self.ends, sums, more, strict=True)
            ]
        end = self._whole(middle, loop.ub, lanes)
        sums = self._loop(middle, end, 1, sums)
        for k, (value, found) in enumerate(zip(self.ends, sums, strict=True)):
            kind = _COMBINED[type(value.owner)][0]  # pyright: ignore
            across = vector.ReductionOp.create(
                operands=[found],
                result_types=[value.type],
                properties={
                    "kind": CombiningKindAttr(CombiningKindFlag(kind)),
                    "fastmath": fast,
                },
            )
            start = loop.iter_args[k]
            whole = self.put(_combining_op(value, start, self.put(across)), start.name_hint)
            loop.operands[3 + k] = whole
        loop.operands[0] = end
        del loop.attributes["kernel.simd"]

    def _splat(self, value: SSAValue) -> SSAValue:
        neutral = _COMBINED[type(value.owner)][1]  # pyright: ignore
        number = self.put(arith.ConstantOp(FloatAttr(neutral, value.type)))  # pyright: ignore
        return self._broadcast(number)

    def _broadcast(self, value: SSAValue) -> SSAValue:
        return self.put(vector.BroadcastOp(value, vector_type(value.type, self.lanes)))

    def _whole(self, low: SSAValue, high: SSAValue, step: int) -> SSAValue:
        """Return the end of the whole steps from ``low``, which is ``low`` or less without any."""
        away = self.put(arith.SubiOp(high, low))
        size = self.index(step)
        times = self.put(arith.DivSIOp(away, size))
        return self.put(arith.AddiOp(low, self.put(arith.MuliOp(times, size))))

    def _loop(
        self, low: SSAValue, high: SSAValue, abreast: int, starts: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        step = self.index(self.lanes * abreast)
        block = Block(arg_types=[INDEX, *(v.type for v in starts)])
        block.args[0].name_hint = self.body.args[0].name_hint
        outer, at = self.block, self.at
        self.block, self.at = block, None
        count, ends = len(self.ends), list[SSAValue]()
        for k in range(abreast):
            index: SSAValue = block.args[0]
            if k:
                index = self.put(arith.AddiOp(index, self.index(k * self.lanes)))
            ends += self._vectors(index, block.args[1 + k * count : 1 + (k + 1) * count])
        self.terminate(scf.YieldOp(*ends))
        self.block, self.at = outer, at
        loop = scf.ForOp(low, high, step, list(starts), Region(block))
        self.put(loop)
        return loop.results

    def terminate(self, op: Operation) -> None:
        """Append the terminator of the current block."""
        op.location = self.loop.location
        self.block.add_op(op)

    def _vectors(self, index: SSAValue, given: Sequence[SSAValue]) -> list[SSAValue]:
        """Write as many iterations as there are lanes, from ``index`` on."""
        known: dict[SSAValue, SSAValue] = dict(zip(self.body.args, (index, *given), strict=True))
        *ops, _ = self.body.ops
        for op in ops:
            new = self._vector(op, known)
            known[op.results[0]] = new
        return [known[v] for v in self.ends]

    def _vector(self, op: Operation, known: dict[SSAValue, SSAValue]) -> SSAValue:
        operands = [known.get(v, v) for v in op.operands]
        hint = op.results[0].name_hint
        if isinstance(op, memref.LoadOp):
            if op.indices and step_of(op.indices[-1], self.loop) == 1:
                type = vector_type(op.results[0].type, self.lanes)
                return self.put(vector.LoadOp.create(operands=operands, result_types=[type]), hint)
            return self.put(op.clone(known), hint)
        if not isinstance(op, LANEWISE):
            return self.put(op.clone(known), hint)
        wide = [v.type != op.results[0].type for v in operands]
        if any(wide):
            operands = [v if w else self._broadcast(v) for v, w in zip(operands, wide, strict=True)]
        new = op.create(
            operands=operands, result_types=[operands[0].type], properties=op.properties
        )
        return self.put(new, hint)


def _combining_op(value: SSAValue, a: SSAValue, b: SSAValue) -> Operation:
    """Return the op that accumulates ``value``, applied to two other operands."""
    op = value.owner
    assert isinstance(op, Operation)
    return op.create(operands=[a, b], result_types=[a.type], properties=op.properties)


def _yielded(body: Block) -> Sequence[SSAValue]:
    assert body.last_op is not None
    return body.last_op.operands
