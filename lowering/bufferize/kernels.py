"""Write a kernel on buffers: the same generics, fills and loops, each writing into its buffer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from stepwell.analysis.sizes import Size
from stepwell.dialects import kernel
from stepwell.dialects.types import UNKNOWN, tensor_type
from stepwell.lowering.bufferize.constants import Constants
from stepwell.lowering.bufferize.kernel_summary import Chain, KernelSummary
from stepwell.lowering.bufferize.views import Steps, buffer_of, buffer_type
from stepwell.transforms.kernels.schedule.tails import settle_tails
from stepwell.transforms.passes import fail


def kernel_on_buffers(
    summary: KernelSummary,
    name: str,
    types: Sequence[Attribute],
    constants: Constants,
    rows: Sequence[Steps] = (),
) -> kernel.FuncOp:
    """Return the kernel of ``summary`` on buffers, with arguments of ``types`` (extras included).

    rows : the view of each result, if all results are written into a single destination
    """
    writer = _KernelWriter(summary, types, constants, rows)
    old = summary.function
    for op in old.body.block.ops:
        writer.op(op)
    done = kernel.FuncOp(
        name, FunctionType.from_lists(list(types), []), Region(writer.block), dict(old.attributes)
    )
    first = len(summary.reads_input)
    alike = [
        (i, first + d)
        for i, d in summary.in_place
        if not rows and _may_be_one(types[i], types[first + d])
    ]
    if alike:
        pairs = [DenseArrayBase.from_list(i64, pair) for pair in alike]
        done.attributes["kernel.in_place"] = ArrayAttr(pairs)
    done.location = old.location
    settle_tails(done)
    return done


def _may_be_one(a: Attribute, b: Attribute) -> bool:
    """Whether two buffers of these types can alias element by element."""
    if not isinstance(a, MemRefType) or not isinstance(b, MemRefType):
        return False
    ours, theirs = a.get_strides(), b.get_strides()
    if a.get_shape() != b.get_shape() or ours is None or theirs is None:
        return True
    return all(None in (m, n) or m == n for m, n in zip(ours, theirs, strict=True))


class _KernelWriter:
    """Writes the body of one kernel; ``values`` maps old values to new ones."""

    def __init__(
        self,
        summary: KernelSummary,
        types: Sequence[Attribute],
        constants: Constants,
        rows: Sequence[Steps],
    ) -> None:
        self.summary, self.constants = summary, constants
        self.block = Block(arg_types=types)
        self.arguments: Sequence[SSAValue] = self.block.args
        self.values: dict[SSAValue, SSAValue] = {}
        self.memory: dict[Chain, SSAValue] = {}
        if rows:
            self._find_rows(len(summary.reads_input), rows)
        old = summary.function.body.block.args
        for was, now in zip(old, self.arguments, strict=False):
            now.name_hint, now.location = was.name_hint, was.location
            self.values[was] = now
        for chain, now in zip(summary.extras, self.arguments[len(old) :], strict=True):
            now.name_hint = _hint(chain)

    def _find_rows(self, number: int, rows: Sequence[Steps]) -> None:
        """Use views of argument ``number`` as the destinations."""
        whole = self.block.args[number]
        found: list[SSAValue] = []
        for steps in rows:
            part: SSAValue = whole
            for step in steps:
                type = step.result(buffer_type(part))
                assert type is not None
                op = self.put(step.write(part, type, _unknown), self.summary.function)
                part = op.results[0]
            found.append(part)
        self.arguments = [*self.arguments[:number], *found, *self.arguments[number + 1 :]]

    def put(self, op: Operation, source: Operation) -> Operation:
        """Append ``op``, which replaces ``source``."""
        if op.location == UNKNOWN:
            op.location = source.location
        for old, new in zip(source.results, op.results, strict=False):
            if new.name_hint is None:
                new.name_hint = old.name_hint
        self.block.add_op(op)
        return op

    def op(self, op: Operation) -> None:
        """Write one op on buffers."""
        match op:
            case tensor.EmptyOp():
                self._empty(op)
            case linalg.FillOp() | linalg.GenericOp():
                self._structured(op)
            case scf.ForOp():
                self._for(op)
            case scf.WhileOp():
                self._while(op)
            case scf.IfOp():
                self._if(op)
            case tensor.ExtractOp() | tensor.InsertOp() | tensor.DimOp():
                self._access(op)
            case arith.ConstantOp() if isinstance(op.result.type, TensorType):
                self.values[op.result] = self.put(self.constants.read(op), op).results[0]
            case kernel.ReturnOp():
                self.put(kernel.ReturnOp(), op)
            case _:
                self.put(op.clone(self.values), op)

    def place(self, value: SSAValue) -> SSAValue:
        """Return the buffer that holds ``value``."""
        chain = self.summary.chain_of.get(value)
        if chain is None or (chain.argument is None and chain not in self.memory):
            return self.values[value]
        return self.memory[chain] if chain.argument is None else self.arguments[chain.argument]

    def nested(self, old: Block, types: Sequence[Attribute], ops: Sequence[Operation]) -> Block:
        """Write ``ops`` of ``old`` into a new block with arguments of ``types``, and return it."""
        outer, self.block = self.block, Block(arg_types=types)
        scalars = [a for a in old.args if not isinstance(a.type, TensorType)]
        for was, now in zip(scalars, self.block.args, strict=True):
            now.name_hint = was.name_hint
            self.values[was] = now
        for op in ops:
            self.op(op)
        inner, self.block = self.block, outer
        return inner

    def _empty(self, op: tensor.EmptyOp) -> None:
        chain = self.summary.chain_of[op.tensor]
        if chain.argument is None and chain not in self.memory:
            sizes = [self.values[v] for v in op.dynamic_sizes]
            alloc = memref.AllocOp(sizes, [], buffer_of(tensor_type(op.tensor)))
            self.put(alloc, op)
            alloc.memref.name_hint = _hint(chain)
            self.memory[chain] = alloc.memref

    def _structured(self, op: linalg.FillOp | linalg.GenericOp) -> None:
        inputs = [self._operand(v) for v in op.inputs]
        outputs = [self.place(v) for v in op.outputs]
        if isinstance(op, linalg.FillOp):
            new = linalg.FillOp(inputs, outputs, [])
        else:
            old = op.body.block
            body = Region(self.nested(old, old.arg_types, list(old.ops)))
            new = linalg.GenericOp(
                inputs, outputs, body, op.indexing_maps, op.iterator_types, [], op.doc
            )
        new.attributes = dict(op.attributes)
        self.put(new, op)

    def _operand(self, value: SSAValue) -> SSAValue:
        return self.place(value) if isinstance(value.type, TensorType) else self.values[value]

    def _access(self, op: tensor.ExtractOp | tensor.InsertOp | tensor.DimOp) -> None:
        match op:
            case tensor.ExtractOp():
                indices = [self.values[v] for v in op.indices]
                new = self.put(memref.LoadOp.get(self.place(op.tensor), indices), op)
                self.values[op.result] = new.results[0]
            case tensor.InsertOp():
                _check_newest(op)
                indices = [self.values[v] for v in op.indices]
                into = self.place(op.dest)
                self.put(memref.StoreOp.get(self.values[op.scalar], into, indices), op)
                self.values[op.result] = into
            case tensor.DimOp():
                new = self.put(memref.DimOp(self.place(op.source), self.values[op.index]), op)
                self.values[op.result] = new.results[0]

    def _for(self, op: scf.ForOp) -> None:
        """Write a for loop that carries only scalars; its tensors are updated in place."""
        old = op.body.block
        for argument, init, result in zip(old.args[1:], op.iter_args, op.res, strict=True):
            if isinstance(init.type, TensorType):
                self.values[argument] = self.values[result] = self.place(init)
        *ops, last = old.ops
        slots = [self.values.get(a) for a in old.args[1:]]
        types = [a.type for a in old.args if not isinstance(a.type, TensorType)]
        body = self.nested(old, types, ops)
        self._end(body, last, slots)
        carried = [self.values[v] for v in op.iter_args if not isinstance(v.type, TensorType)]
        bounds = [self.values[v] for v in (op.lb, op.ub, op.step)]
        new = scf.ForOp(bounds[0], bounds[1], bounds[2], carried, body)
        new.attributes = dict(op.attributes)
        scalars = [r for r in op.res if not isinstance(r.type, TensorType)]
        self.put(new, op)
        self.values.update(zip(scalars, new.res, strict=True))

    def _while(self, op: scf.WhileOp) -> None:
        """Write a while loop that carries only scalars; its tensors are updated in place."""
        before, after = op.before_region.block, op.after_region.block
        *tests, condition = before.ops
        *ops, last = after.ops
        assert isinstance(condition, scf.ConditionOp)
        for argument, init in zip(before.args, op.arguments, strict=True):
            if isinstance(init.type, TensorType):
                self.values[argument] = self.place(init)
        slots = [self.values.get(a) for a in before.args]
        types = [
            [a.type for a in b.args if not isinstance(a.type, TensorType)] for b in (before, after)
        ]
        first = self.nested(before, types[0], tests)
        for value, argument, result in zip(condition.args, after.args, op.res, strict=True):
            if isinstance(value.type, TensorType):
                self.values[argument] = self.values[result] = self.place(value)
        handed = [self.values[v] for v in condition.args if not isinstance(v.type, TensorType)]
        end = scf.ConditionOp(self.values[condition.condition], *handed)
        end.location = condition.location
        first.add_op(end)
        second = self.nested(after, types[1], ops)
        self._end(second, last, slots)
        carried = [self.values[v] for v in op.arguments if not isinstance(v.type, TensorType)]
        new = scf.WhileOp(carried, types[1], Region(first), Region(second))
        self.put(new, op)
        scalars = [r for r in op.res if not isinstance(r.type, TensorType)]
        self.values.update(zip(scalars, new.res, strict=True))

    def _if(self, op: scf.IfOp) -> None:
        blocks: list[Block] = []
        for region in op.regions:
            *ops, last = region.block.ops
            body = self.nested(region.block, [], ops)
            for value, result in zip(last.operands, op.output, strict=True):
                if isinstance(result.type, TensorType):
                    self.values.setdefault(result, self.place(value))
            self._end(body, last, [self.values.get(r) for r in op.output])
            blocks.append(body)
        scalars = [r for r in op.output if not isinstance(r.type, TensorType)]
        regions = [Region(b) for b in blocks]
        new = scf.IfOp(self.values[op.cond], [r.type for r in scalars], regions[0], regions[1])
        self.put(new, op)
        self.values.update(zip(scalars, new.output, strict=True))

    def _end(self, body: Block, last: Operation, slots: Sequence[SSAValue | None]) -> None:
        """Terminate ``body``, and check that each yielded tensor is in the buffer of its slot."""
        scalars: list[SSAValue] = []
        for value, slot in zip(last.operands, slots, strict=True):
            if not isinstance(value.type, TensorType):
                scalars.append(self.values[value])
            elif self.place(value) is not slot:
                fail(last, "a loop of a kernel must hand on the tensor it updates")
        end = scf.YieldOp(*scalars)
        end.location = last.location
        body.add_op(end)


def _check_newest(op: tensor.InsertOp) -> None:
    """Fail if a later op reads the destination of ``op``: the insertion has overwritten it."""
    block = op.parent_block()
    assert block is not None
    later: set[Operation | None] = {op}
    at = op.next_op
    while at is not None:
        later.add(at)
        at = at.next_op
    for use in op.dest.uses:
        user: Operation | None = use.operation
        while user is not None and user.parent_block() is not block:
            user = user.parent_op()
        if user in later and use.operation is not op:
            fail(use.operation, "a kernel must not read a tensor as it was before an insert")


def _unknown(size: Size) -> SSAValue:
    raise AssertionError(f"where a row begins is a number, not {size}")


def _hint(chain: Chain) -> str | None:
    """Return the name of a temporary: the last name hint among its tensors."""
    names = [v.name_hint for v in chain.values if v.name_hint]
    return names[-1] if names else None
