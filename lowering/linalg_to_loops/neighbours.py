"""Vectorise loops of scalar code whose iterations are independent.

Before:  scf.for %j = %a to %b {
           %s = scf.for %k = %c0 to %m iter_args(%acc = %zero) {
             ... memref.load %x[%i, %k] ... memref.load %y[%k, %j] ... arith.addf %acc, ... }
           memref.store %s, %z[%i, %j] } {kernel.columns = 8}
After:   scf.for %j = %a to %n step 8 { the same on vector<8xf64>: %x[%i, %k] in every lane,
           %y[%k, %j] and its neighbours ... vector.store }
         scf.for %j = %n to %b { the tail, one by one }

The sum of each lane keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.dialects.kernel import choices
from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.lowering.linalg_to_loops.builder import vector_type
from stepwell.lowering.linalg_to_loops.sums import LANEWISE, is_dense, step_of

INDEX = IndexType()

INTERLEAVED_VECTORS = 2
"""Vectors computed side by side, which hides the latency of an addition."""


def vectorise_neighbours(block: Block) -> None:
    """Rewrite each loop of ``block``, nested ones too, that has the attribute `kernel.columns`."""
    for op in list(block.ops):
        lanes = choices.number(op, "kernel.columns")
        op.attributes.pop("kernel.columns", None)
        if lanes and isinstance(op, scf.ForOp):
            element = _element(op)
            if element is not None and _fits(op.body.block, op, element):
                _Several(op, lanes, INTERLEAVED_VECTORS).write()
                _Several(op, lanes, 1).write()
                continue
        for region in op.regions:
            for inner in region.blocks:
                vectorise_neighbours(inner)


def _element(loop: scf.ForOp) -> AnyFloat | None:
    """Return the one float type that a loop stores, if there is one."""
    found = {op.value.type for op in loop.walk() if isinstance(op, memref.StoreOp)}
    type = found.pop() if len(found) == 1 else None
    return type if isinstance(type, AnyFloat) else None


def _fits(block: Block, loop: scf.ForOp, element: AnyFloat) -> bool:
    """Whether every op of a block has a vector form."""
    return all(_fits_one(op, loop, element) for op in block.ops)


def _fits_one(op: Operation, loop: scf.ForOp, element: AnyFloat) -> bool:
    match op:
        case memref.LoadOp(memref=buffer) | memref.StoreOp(memref=buffer):
            steps = [step_of(v, loop) for v in op.indices]
            if any(steps[:-1]) or not steps:
                return isinstance(op, memref.LoadOp) and not steps and op.res.type == element
            least = 1 if isinstance(op, memref.StoreOp) else 0
            moves = steps[-1] == 1 and is_dense(buffer)
            type = op.res.type if isinstance(op, memref.LoadOp) else op.value.type
            return type == element and (moves or (steps[-1] == 0 and not least))
        case scf.ForOp():
            fixed = all(step_of(v, loop) == 0 for v in (op.lb, op.ub, op.step))
            carried = all(v.type == element for v in op.iter_args)
            return fixed and carried and _fits(op.body.block, loop, element)
        case scf.YieldOp():
            return all(v.type == element for v in op.operands)
        case arith.ConstantOp():
            return True
        case _ if isinstance(op, LANEWISE):
            return op.results[0].type == element
        case _:
            return all(isinstance(r.type, IndexType) for r in op.results) and touches_nothing(op)


def _is_wide(value: SSAValue) -> bool:
    return isinstance(value.type, VectorType)


class _Several:
    """Writes a vectorised copy of a loop before it."""

    def __init__(self, loop: scf.ForOp, lanes: int, abreast: int) -> None:
        self.loop, self.lanes, self.abreast = loop, lanes, abreast
        self.block = Block(arg_types=[INDEX])
        index = self.block.args[0]
        index.name_hint = loop.body.block.args[0].name_hint
        self.maps: list[dict[SSAValue, SSAValue]] = []
        """For each of the vectors, the value that replaces each scalar value."""
        for k in range(abreast):
            at = index
            if k:
                by = self.put(arith.ConstantOp(IntegerAttr(k * lanes, INDEX)))
                at = self.put(arith.AddiOp(index, by))
            self.maps.append({loop.body.block.args[0]: at})

    def write(self) -> None:
        """Write the loop over whole vectors; the scalar loop remains for the tail."""
        loop = self.loop
        parent = loop.parent
        assert parent is not None
        self._ops(loop.body.block)
        self._put(scf.YieldOp())
        away = arith.SubiOp(loop.ub, loop.lb)
        size = arith.ConstantOp(IntegerAttr(self.lanes * self.abreast, INDEX))
        times = arith.DivSIOp(away.result, size.result)
        way = arith.MuliOp(times.result, size.result)
        end = arith.AddiOp(loop.lb, way.result)
        new = scf.ForOp(loop.lb, end.result, size.result, [], Region(self.block))
        for op in (away, size, times, way, end, new):
            op.location = loop.location
            parent.insert_op_before(op, loop)
        loop.operands[0] = end.result

    def put(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert an op; return its first result."""
        self._put(op)
        for result in op.results:
            result.name_hint = hint
        return op.results[0]

    def _put(self, op: Operation) -> None:
        op.location = self.loop.location
        self.block.add_op(op)

    def _wide(self, value: SSAValue, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """Return the vector that replaces a value, broadcast if it is a scalar."""
        new = known.get(value, value)
        if isinstance(new.type, VectorType):
            return new
        return self.put(vector.BroadcastOp(new, vector_type(new.type, self.lanes)))

    def _ops(self, block: Block) -> Sequence[SSAValue]:
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
                new = vector.StoreOp.create(operands=[self._wide(op.value, known), *given[1:]])
                self._put(new)
                return
            case _ if isinstance(op, LANEWISE) and any(map(_is_wide, given)):
                types = [vector_type(op.results[0].type, self.lanes)]
                operands = [self._wide(v, known) for v in op.operands]
                new = op.create(operands=operands, result_types=types, properties=op.properties)
            case _:
                new = op.clone(known)
        known[op.results[0]] = self.put(new, op.results[0].name_hint)

    def _inner(self, op: scf.ForOp) -> None:
        """Write a nested loop, which carries each of its values once for each of the vectors."""
        starts = [self._wide(v, known) for known in self.maps for v in op.iter_args]
        old, count = op.body.block, len(op.iter_args)
        outer, self.block = self.block, Block(arg_types=[INDEX, *(v.type for v in starts)])
        self.block.args[0].name_hint = old.args[0].name_hint
        for k, known in enumerate(self.maps):
            own = self.block.args[1 + k * count : 1 + (k + 1) * count]
            for was, now in zip(old.args, (self.block.args[0], *own), strict=True):
                known[was] = now
        last = self._ops(old)
        ends = [self._wide(v, known) for known in self.maps for v in last]
        self._put(scf.YieldOp(*ends))
        inner, self.block = self.block, outer
        low, high, step = (self.maps[0].get(v, v) for v in (op.lb, op.ub, op.step))
        new = scf.ForOp(low, high, step, starts, Region(inner))
        self._put(new)
        for k, known in enumerate(self.maps):
            own = new.results[k * count : (k + 1) * count]
            known.update(zip(op.results, own, strict=True))
