"""Vectorise loops of scalar code.

A loop whose iterations are independent, `kernel.columns`; the sum of each lane keeps its order:

Before:  scf.for %j = %a to %b {
           %s = scf.for %k = %c0 to %m iter_args(%acc = %zero) {
             ... memref.load %x[%i, %k] ... memref.load %y[%k, %j] ... arith.addf %acc, ... }
           memref.store %s, %z[%i, %j] } {kernel.columns = 8}
After:   scf.for %j = %a to %n step 16 { the same on vectors: %x[%i, %k] in every lane,
           %y[%k, %j] and its neighbours ... vector.store }
         scf.for %j = %n to %o step 8 { ... }
         scf.for %j = %o to %b { the tail, one by one }

A sum that may be taken in any order, `kernel.simd`:

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

from collections.abc import Sequence

from xdsl.dialects import arith, math, memref, scf, vector
from xdsl.dialects.builtin import AnyFloat, IndexType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.analysis.combiners import COMBINERS
from stepwell.analysis.structured import constant_of, yielded
from stepwell.dialects.kernel import choices
from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.lowering.linalg_to_loops.builder import vector_type
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, is_dense

INTERLEAVED_VECTORS = 2
"""Vectors computed side by side, which hides the latency of an addition."""

_COMBINED = (
    *(arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp),
    *(arith.MaxnumfOp, arith.MinnumfOp),
)
"""The ops that combine floats."""
LANEWISE = (*_COMBINED, arith.SubfOp, arith.DivfOp, arith.NegfOp, math.SqrtOp, math.AbsFOp)


def vectorise_columns(entry: Block, block: Block) -> None:
    """Rewrite each loop of ``block``, nested ones too, that has the attribute `kernel.columns`."""
    for op in list(block.ops):
        lanes = choices.number(op, "kernel.columns")
        op.attributes.pop("kernel.columns", None)
        if lanes and isinstance(op, scf.ForOp) and _has_columns(op):
            for many in (INTERLEAVED_VECTORS, 1):
                _steps(_before(op, entry), op, lanes, many, ())
            continue
        for region in op.regions:
            for inner in region.blocks:
                vectorise_columns(entry, inner)


def vectorise_sums(entry: Block, block: Block) -> None:
    """Rewrite each loop of ``block``, nested ones too, that has the attribute `kernel.simd`."""
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                vectorise_sums(entry, inner)
        lanes = choices.number(op, "kernel.simd")
        if lanes and isinstance(op, scf.ForOp) and _is_sum(op) and not _is_short(op, lanes):
            _sum(_before(op, entry), op, lanes)


# conditions for vectors


def _has_columns(loop: scf.ForOp) -> bool:
    """Whether every op of a loop that stores floats of one type has a vector form."""
    found = {op.value.type for op in loop.walk() if isinstance(op, memref.StoreOp)}
    type = found.pop() if len(found) == 1 else None
    return isinstance(type, AnyFloat) and all(_fits(op, loop, type) for op in loop.body.block.ops)


def _is_sum(loop: scf.ForOp) -> bool:
    """Whether a loop accumulates floats of one type and reads contiguous elements only."""
    body = loop.body.block
    *ops, last = body.ops
    types = {a.type for a in body.args[1:]}
    if len(types) != 1 or not isinstance(element := next(iter(types)), AnyFloat):
        return False
    for argument, value in zip(body.args[1:], last.operands, strict=True):
        found = value.owner
        if not isinstance(found, _COMBINED):
            return False
        if argument not in found.operands or not argument.has_one_use():
            return False
    changing = memref.StoreOp, scf.ForOp
    return all(not isinstance(op, changing) and _fits(op, loop, element) for op in ops)


def _fits(op: Operation, loop: scf.ForOp, element: Attribute) -> bool:
    """Whether an op has a vector form over several iterations of ``loop``."""
    match op:
        case memref.LoadOp():
            steps = [step_of(v, loop) for v in op.indices]
            if op.res.type != element or any(steps[:-1]):
                return False
            return not steps or steps[-1] == 0 or (steps[-1] == 1 and is_dense(op.memref))
        case memref.StoreOp():
            steps = [step_of(v, loop) for v in op.indices]
            moves = steps and not any(steps[:-1]) and steps[-1] == 1
            return bool(moves) and op.value.type == element and is_dense(op.memref)
        case scf.ForOp():
            fixed = all(step_of(v, loop) == 0 for v in (op.lb, op.ub))
            carried = all(v.type == element for v in op.iter_args)
            inside = all(_fits(each, loop, element) for each in op.body.block.ops)
            return fixed and carried and constant_of(op.step) is not None and inside
        case scf.YieldOp():
            return all(v.type == element for v in op.operands)
        case arith.ConstantOp():
            return True
        case _ if isinstance(op, LANEWISE):
            return op.results[0].type == element
        case _:
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


def _is_short(loop: scf.ForOp, lanes: int) -> bool:
    """Whether a loop has fewer iterations than a vector has lanes."""
    high = constant_of(loop.ub)
    return high is not None and high - (constant_of(loop.lb) or 0) < lanes


# vectorised copies before a loop, which remains for the tail


def _before(loop: scf.ForOp, entry: Block) -> Writer:
    """Return a writer of ops directly before ``loop``."""
    assert loop.parent is not None
    return Writer(loop.parent, entry, loop.location, loop)


def _sum(writer: Writer, loop: scf.ForOp, lanes: int) -> None:
    """Write two vectors at a time, then single ones; the loop begins with their sum."""
    ends = yielded(loop.body.block)
    kinds = [COMBINERS[type(v.owner)] for v in ends]  # pyright: ignore
    starts = [
        writer.splat(c.identity(value.type), lanes) for value, c in zip(ends, kinds, strict=True)
    ]
    state = _steps(writer, loop, lanes, INTERLEAVED_VECTORS, starts * INTERLEAVED_VECTORS)
    sums = state[: len(ends)]
    for first in range(len(ends), len(state), len(ends)):
        more = state[first : first + len(ends)]
        sums = [_combined(writer, e, a, b) for e, a, b in zip(ends, sums, more, strict=True)]
    sums = _steps(writer, loop, lanes, 1, sums)
    for k, (value, found) in enumerate(zip(ends, sums, strict=True)):
        total = loop.iter_args[k]
        whole = _combined(writer, value, total, writer.across(kinds[k].kind, found))
        whole.name_hint = total.name_hint
        loop.operands[3 + k] = whole
    del loop.attributes["kernel.simd"]


def _combined(writer: Writer, value: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
    """Apply the op that accumulates ``value`` to two other operands."""
    op = value.owner
    assert isinstance(op, Operation)
    return writer.result(
        op.create(operands=[a, b], result_types=[a.type], properties=op.properties)
    )


def _steps(
    writer: Writer, loop: scf.ForOp, lanes: int, many: int, state: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Write whole steps of ``many`` vectors; the loop takes the remaining iterations."""
    step, low, high = lanes * many, _index(loop.lb), _index(loop.ub)
    times = writer.divide(high - low, step, arith.DivSIOp)  # of an empty range negative or 0
    end = low + times * step
    block = loop.body.block

    def body(at: Index, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
        maps: list[dict[SSAValue, SSAValue]] = []
        count = len(state) // many
        for k in range(many):
            place = writer.value(at + k * lanes)
            own = state[k * count : (k + 1) * count]
            maps.append(dict(zip(block.args, [place, *own], strict=False)))
        vectors = _Vectors(writer, loop, lanes, maps)
        last = vectors.ops(block)
        return [vectors.wide(v, known) for known in maps for v in last]

    state = writer.loop((low, end), step, state, body, block.args[0].name_hint or "i")
    loop.operands[0] = writer.value(end)
    return state


class _Vectors:
    """Writes ops of a loop's body once for each of several vectors of iterations.

    maps : for each of the vectors, the value that replaces each scalar value
    """

    def __init__(
        self, writer: Writer, loop: scf.ForOp, lanes: int, maps: list[dict[SSAValue, SSAValue]]
    ) -> None:
        self.writer, self.loop, self.lanes, self.maps = writer, loop, lanes, maps

    def wide(self, value: SSAValue, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """Return the vector that replaces a value, broadcast if it is a scalar."""
        return self.writer.broadcast(known.get(value, value), self.lanes)

    def ops(self, block: Block) -> Sequence[SSAValue]:
        """Write the ops of a block but the terminator; return the terminator's operands."""
        *ops, last = block.ops
        for op in ops:
            if isinstance(op, scf.ForOp):
                self._inner(op)
                continue
            for known in self.maps:
                self._op(op, known)
        return last.operands

    def _op(self, op: Operation, known: dict[SSAValue, SSAValue]) -> None:
        given = [known.get(v, v) for v in op.operands]
        match op:
            case memref.LoadOp() if op.indices and step_of(op.indices[-1], self.loop) == 1:
                types = [vector_type(op.res.type, self.lanes)]
                new = vector.LoadOp.create(operands=given, result_types=types)
            case memref.StoreOp():
                operands = [self.wide(op.value, known), *given[1:]]
                self.writer.insert(vector.StoreOp.create(operands=operands))
                return
            case _ if isinstance(op, LANEWISE) and any(
                isinstance(v.type, VectorType) for v in given
            ):
                types = [vector_type(op.results[0].type, self.lanes)]
                operands = [self.wide(v, known) for v in op.operands]
                new = op.create(operands=operands, result_types=types, properties=op.properties)
            case _:
                new = op.clone(known)
        known[op.results[0]] = self.writer.result(new, op.results[0].name_hint)

    def _inner(self, op: scf.ForOp) -> None:
        """Write a nested loop, which carries each of its values once for each of the vectors."""
        old, count = op.body.block, len(op.iter_args)

        def bind(values: Sequence[SSAValue], found: Sequence[SSAValue]) -> None:
            for k, known in enumerate(self.maps):
                known.update(zip(values, found[k * count : (k + 1) * count], strict=True))

        def body(at: Index, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            for known in self.maps:
                known[old.args[0]] = self.writer.value(at)
            bind(old.args[1:], state)
            last = self.ops(old)
            return [self.wide(v, known) for known in self.maps for v in last]

        starts = [self.wide(v, known) for known in self.maps for v in op.iter_args]
        low, high = (_index(self.maps[0].get(v, v)) for v in (op.lb, op.ub))
        step, hint = constant_of(op.step) or 1, old.args[0].name_hint or "k"
        bind(op.results, self.writer.loop((low, high), step, starts, body, hint))


def _index(value: SSAValue) -> Index:
    number = constant_of(value)
    return Index.of(value if number is None else number)
