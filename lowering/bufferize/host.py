"""Write a host function on buffers, each tensor in the place that `analysis` gave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.types import UNKNOWN, locate, tensor_type
from stepwell.lowering.bufferize.analysis import analysis_of
from stepwell.lowering.bufferize.blocks import blocks_around, maker
from stepwell.lowering.bufferize.constants import Constants
from stepwell.lowering.bufferize.edges import around
from stepwell.lowering.bufferize.facts import Facts
from stepwell.lowering.bufferize.places import Storage, is_view, slice_of
from stepwell.lowering.bufferize.sweeping import sweep
from stepwell.lowering.bufferize.ties import Loop
from stepwell.lowering.bufferize.views import Steps, contiguous, join
from stepwell.transforms.passes import fail, remark
from stepwell.transforms.sizes import Size, SizeWriter

Variant = Callable[[kernel.LaunchOp, Sequence[Attribute]], str]
"""Gives the name of a kernel for arguments of these types."""


class HostWriter:
    """Writes one function; ``values`` holds what stands for each old scalar."""

    def __init__(
        self,
        function: func.FuncOp,
        facts: Callable[[kernel.LaunchOp], Facts],
        variant: Variant,
        constants: Constants,
    ) -> None:
        self.function, self.variant, self.constants = function, variant, constants
        self.analysis = analysis_of(function, facts)
        self.places, self.sizes = self.analysis.places, self.analysis.sizes
        self.values: dict[SSAValue, SSAValue] = {}
        self.roots: dict[Storage, SSAValue] = {}
        self.views: list[dict[tuple[Storage, Steps], SSAValue]] = [{}]
        self.entry: list[Operation] = []
        self.ops: list[Operation] = []
        self.open: dict[Block, list[Operation]] = {function.body.block: self.entry}
        """For each old block being written, what goes before everything else in the new one."""
        self.source: Operation = function
        self.block = Block()
        self.at_entry = SizeWriter(self.sizes, self._dim, self._put_at_entry)

    # -- the function

    def write(self) -> func.FuncOp:
        """Return the function on buffers."""
        old = self.function.body.block
        attributes: list[DictionaryAttr] = []
        for number, argument in enumerate(old.args):
            attributes.append(self._argument(number, argument))
        last = old.last_op
        assert last is not None
        for value, output in zip(last.operands, self.analysis.outputs, strict=True):
            now = self.block.insert_arg(output.type, len(self.block.args))
            now.name_hint = output.name or value.name_hint
            self.roots[output] = now
            attributes.append(self._output(len(attributes) - len(old.args)))
        self.body(old)
        self.block.add_ops([*self.entry, *self.ops])
        sweep(self.block)
        done = func.FuncOp(
            self.function.sym_name.data,
            FunctionType.from_lists(list(self.block.arg_types), []),
            Region(self.block),
            self.function.sym_visibility,
            arg_attrs=ArrayAttr(attributes),
        )
        done.attributes, done.location = dict(self.function.attributes), self.function.location
        return done

    def _argument(self, number: int, argument: BlockArgument) -> DictionaryAttr:
        attributes = self.function.arg_attrs
        given = dict(attributes.data[number].data) if attributes is not None else {}
        if not isinstance(argument.type, TensorType):
            fail(self.function, "bufferize wants tensors as arguments and results of a function")
        storage, _ = self.places.of(argument)
        now = self.block.insert_arg(storage.type, number)
        now.name_hint, now.location = argument.name_hint, argument.location
        self.roots[storage] = now
        return DictionaryAttr({**given, "kernel.role": StringAttr(storage.kind)})

    def _output(self, number: int) -> DictionaryAttr:
        attributes = self.function.res_attrs
        given = dict(attributes.data[number].data) if attributes is not None else {}
        return DictionaryAttr({**given, "kernel.role": StringAttr("output")})

    def shapes(self) -> func.FuncOp | None:
        """Return the function that tells the results' `?`, None where there is none."""
        wanted = [n for o in self.analysis.outputs for n in o.sizes if n.number is None]
        if not wanted:
            return None
        index = IndexType()
        block = Block(arg_types=[index] * len(self.sizes.dims))
        write = SizeWriter(self.sizes, lambda n: block.args[n], block.add_op)
        for number, argument in enumerate(block.args):
            argument.name_hint = f"d{number}"
        for size in wanted:
            self._check_told(size)
        block.add_op(func.ReturnOp(*(write(n) for n in wanted)))
        name = f"{self.function.sym_name.data}.shapes"
        type = FunctionType.from_lists([index] * len(block.args), [index] * len(wanted))
        told = func.FuncOp(name, type, Region(block))
        locate(told, self.function.location)
        return told

    def _check_told(self, size: Size) -> None:
        for value in self.sizes.unknowns(size):
            owner = value.owner
            at = owner if isinstance(owner, Operation) else owner.parent_op() or self.function
            fail(at, "a size depends on what the program computes", "make it depend on shapes only")

    # -- writing

    def put(self, op: Operation) -> Operation:
        """Append ``op``, which stands for the op being written."""
        if op.location == UNKNOWN:
            op.location = self.source.location
        self.ops.append(op)
        return op

    def _put_at_entry(self, op: Operation) -> None:
        if op.location == UNKNOWN:
            op.location = self.source.location
        self.entry.append(op)

    def _dim(self, number: int) -> SSAValue:
        argument, axis = self.sizes.dims[number]
        op = memref.DimOp(self.block.args[argument], self.at_entry(Size.of(axis)))
        self._put_at_entry(op)
        return op.result

    def index(self, size: Size) -> SSAValue:
        """Return ``size`` as a value, written at the function's entry where it is known there."""
        local = SizeWriter(
            self.sizes, self.at_entry.dim, self._append, self.at_entry, lambda v: self.values[v]
        )
        return local(size)

    def _append(self, op: Operation) -> None:
        self.put(op)

    def body(self, block: Block) -> None:
        """Write all ops of ``block``."""
        for op in block.ops:
            self.source = op
            if (rule := _WRITE.get(type(op))) is not None:
                rule(self, op)
            elif not is_view(op) or op in self.places.copied:
                self.scalar(op)

    def scalar(self, op: Operation) -> None:
        """Copy an op on scalars, or a view that must be a copy."""
        if op in self.places.copied:
            storage, _ = self.places.of(op.results[0])
            self.copy(op.operands[0], storage, (), "its elements do not lie in order")
        else:
            new = self.put(op.clone(self.values))
            self.values.update(zip(op.results, new.results, strict=True))

    def nested(self, block: Block, arguments: Sequence[SSAValue]) -> Nested:
        """Open the block that stands for ``block``; its scalars come first, then ``arguments``."""
        return Nested(self, block, arguments)

    # -- places

    def memory(self, storage: Storage, steps: Steps) -> SSAValue:
        """Return a view of ``storage`` as a value."""
        for known in self.views:
            if (value := known.get((storage, steps))) is not None:
                return value
        if not steps:
            return self._root(storage)
        source = self.memory(storage, steps[:-1])
        assert isinstance(source.type, MemRefType)
        type = steps[-1].result(source.type)
        assert type is not None
        value = self.put(steps[-1].write(source, type, self.index)).results[0]
        value.name_hint = storage.name
        self.views[-1][storage, steps] = value
        return value

    def _root(self, storage: Storage) -> SSAValue:
        if (value := self.roots.get(storage)) is None:
            op: Operation
            if storage.kind == "constant":
                owner = storage.members[0][0].owner
                assert isinstance(owner, arith.ConstantOp)
                op = self.constants.read(owner)
                self.entry.append(op)
            else:
                for size in storage.sizes:
                    self._check_told(size)
                rows = zip(storage.sizes, storage.type.get_shape(), strict=True)
                dynamic = [self.at_entry(n) for n, known in rows if known == DYNAMIC_INDEX]
                op = memref.AllocOp(dynamic, [], storage.type)
                self.open[self._home(storage)].append(op)
            op.location = self.source.location
            value = self.roots[storage] = op.results[0]
            value.name_hint = storage.name
        return value

    def _home(self, storage: Storage) -> Block:
        """Return the innermost block that all tensors of ``storage`` are made in."""
        blocks = [maker(v).parent_block() for v, _ in storage.members]
        blocks += [storage.beside.parent_block()] if storage.beside is not None else []
        common: list[Block] = []
        for number, block in enumerate(blocks):
            around = blocks_around(block)
            common = around if not number else [b for b in common if b in around]
        return common[0] if common else self.function.body.block

    def place(self, value: SSAValue) -> SSAValue:
        """Return the buffer, or view of one, that holds ``value``."""
        return self.memory(*self.places.of(value))

    def copy(self, value: SSAValue, storage: Storage, steps: Steps, why: str) -> None:
        """Copy ``value`` to a place unless it is there, or holds nothing."""
        if value in self.places.undefined or self.places.of(value) == (storage, steps):
            return
        name = f"%{value.name_hint}" if value.name_hint else "a tensor"
        remark(self.source, f"{name} is copied because {why}")
        self.put(memref.CopyOp(self.place(value), self.memory(storage, steps)))

    def why(self, at: Operation, value: SSAValue, into: SSAValue) -> str:
        """Return why ``value`` could not go on as ``into`` in place."""
        return self.analysis.broken.get((at, value, into), "its place is taken")

    def fitted(self, value: SSAValue, type: TensorType[Attribute]) -> SSAValue:
        """Return a buffer as a kernel takes it: contiguous, or strided at any offset."""
        has = value.type
        assert isinstance(has, MemRefType)
        layout = NoneAttr()
        if not contiguous(has):
            layout = StridedLayoutAttr(has.get_strides() or [], None)
        want = MemRefType(type.element_type, type.get_shape(), layout)
        return value if want == has else self.put(memref.CastOp.get(value, want)).results[0]

    # -- ops

    def launch(self, op: kernel.LaunchOp) -> None:
        """Write a launch, its destinations where the results live."""
        facts = self.analysis.facts(op)
        for number, (into, result) in enumerate(zip(op.outputs, op.results, strict=True)):
            if facts.reads_destination[number]:
                self.copy(into, *self.places.of(result), self.why(op, into, result))
        inputs = [self._operand(v) for v in op.inputs]
        outputs = [self.fitted(self.place(r), tensor_type(r)) for r in op.results]
        outputs += [self.memory(s, ()) for s in self.analysis.extras[op]]
        name = self.variant(op, [v.type for v in (*inputs, *outputs)])
        new = kernel.LaunchOp(name, inputs, outputs)
        new.attributes = dict(op.attributes)
        self.put(new)

    def _operand(self, value: SSAValue) -> SSAValue:
        if not isinstance(value.type, TensorType):
            return self.values[value]
        return self.fitted(self.place(value), tensor_type(value))

    def insert_slice(self, op: tensor.InsertSliceOp) -> None:
        """Write an insertion: nothing, where both tensors are in place."""
        storage, steps = self.places.of(op.result)
        if op not in self.analysis.there:
            self.copy(op.dest, storage, steps, self.why(op, op.dest, op.result))
        part = join(steps, (slice_of(self.sizes, op),))
        self.copy(op.source, storage, part, self.why(op, op.source, op.result))

    def insert(self, op: tensor.InsertOp) -> None:
        """Write one element."""
        self.copy(op.dest, *self.places.of(op.result), self.why(op, op.dest, op.result))
        indices = [self.values[v] for v in op.indices]
        self.put(memref.StoreOp.get(self.values[op.scalar], self.place(op.result), indices))

    def extract(self, op: tensor.ExtractOp) -> None:
        """Read one element."""
        indices = [self.values[v] for v in op.indices]
        new = self.put(memref.LoadOp.get(self.place(op.tensor), indices))
        new.results[0].name_hint = op.result.name_hint
        self.values[op.result] = new.results[0]

    def dim(self, op: tensor.DimOp) -> None:
        """Give a size."""
        self.values[op.result] = self.index(self.sizes.of(op.result))

    def constant(self, op: arith.ConstantOp) -> None:
        """Copy a scalar constant; a tensor is a global, read where it is needed."""
        if not isinstance(op.result.type, TensorType):
            self.scalar(op)

    def made(self, op: tensor.FromElementsOp | tensor.SplatOp) -> None:
        """Write scalars one by one."""
        shape = tensor_type(op.result).get_shape()
        count = 1
        for n in shape:
            count *= n
        elements = list(op.operands) if isinstance(op, tensor.FromElementsOp) else None
        if elements is None and (count != 1 or len(op.operands) != 1):
            fail(op, "bufferize takes tensor.splat of one element only on the host")
        into = self.place(op.result)
        for number in range(count):
            at, rest = list[SSAValue](), number
            for n in reversed(shape):
                at.insert(0, self.at_entry(Size.of(rest % n)))
                rest //= n
            element = self.values[op.operands[number]]
            self.put(memref.StoreOp.get(element, into, at))

    def branch(self, op: scf.IfOp) -> None:
        """Write a branch; each side leaves its tensors in the results' places."""
        regions: list[Region] = []
        for region in op.regions:
            with self.nested(region.block, []) as inside:
                self.body(region.block)
                last = region.block.last_op
                assert last is not None
                self.source = last
                for value, result in zip(last.operands, op.output, strict=True):
                    if isinstance(result.type, TensorType):
                        self.copy(value, *self.places.of(result), self.why(last, value, result))
                self.put(scf.YieldOp(*self.scalars(last.operands)))
            regions.append(Region(inside.block))
        self.source = op
        scalars = [r for r in op.output if not isinstance(r.type, TensorType)]
        new = scf.IfOp(self.values[op.cond], [r.type for r in scalars], regions[0], regions[1])
        self._results(op, new, scalars)

    def scalars(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Return what stands for those of ``values`` that are no tensors."""
        return [self.values[v] for v in values if not isinstance(v.type, TensorType)]

    def _results(self, op: Operation, new: Operation, scalars: Sequence[SSAValue]) -> None:
        new.attributes = dict(op.attributes)
        self.put(new)
        for old, now in zip(scalars, new.results, strict=False):
            now.name_hint = old.name_hint
            self.values[old] = now

    def _begin(self, loop: Loop, inits: Sequence[SSAValue]) -> list[SSAValue]:
        """Put the first values where the loop expects them; return what it carries."""
        for init, slot in zip(inits, loop.slots, strict=True):
            if isinstance(slot.type, TensorType):
                number = loop.number.get(slot)
                if number is None:
                    place = self.places.of(slot)
                else:
                    place = self.places.root(loop.outside[number], ())
                self.copy(init, *place, self.why(loop.op, init, slot))
        outside = [self.memory(*self.places.root(s, ())) for s in loop.outside]
        self._begin_edges(loop, inits)
        return [*self.scalars(inits), *outside]

    def _begin_edges(self, loop: Loop, inits: Sequence[SSAValue]) -> None:
        """Put what the loop leaves as it is into the second of two buffers that it exchanges."""
        for number, slot, boxes in loop.edges:
            init = inits[loop.slots.index(slot)]
            if init in self.places.undefined:
                continue
            old, path = self.places.of(init)
            new, steps = self.places.root(loop.outside[number], ())
            for box in around(boxes, self.sizes.shape(slot)):
                source = self.memory(old, join(path, (box,)))
                self.put(memref.CopyOp(source, self.memory(new, join(steps, (box,)))))

    def _turn(self, loop: Loop) -> list[SSAValue]:
        """Put the next values where the loop expects them; return what it carries."""
        pairs = [(t.value, t) for t in loop.ties if t.broken]
        taken = [self.places.of(t.into)[0] for _, t in pairs]
        held: dict[SSAValue, SSAValue] = {}
        for value, tie in pairs:
            others = [s for (_, t), s in zip(pairs, taken, strict=True) if t is not tie]
            if self.places.of(value)[0] in others:
                aside = self.places.storage(value)
                aside.beside = tie.at
                self.copy(value, aside, (), "two carried tensors are exchanged")
                held[value] = self.memory(aside, ())
        for value, tie in pairs:
            storage, steps = self.places.of(tie.into)
            if value in held:
                self.put(memref.CopyOp(held[value], self.memory(storage, steps)))
            else:
                self.copy(value, storage, steps, tie.broken)
        carried = [self.roots[loop.carried[n]] for n in loop.following]
        return [*self.scalars(loop.yields.operands), *carried]

    def for_loop(self, op: scf.ForOp) -> None:
        """Write a loop that carries scalars, and buffers only where it exchanges them."""
        loop = self.analysis.loops[op]
        inits = self._begin(loop, op.iter_args)
        carried = inits[len(inits) - len(loop.carried) :]
        with self.nested(op.body.block, carried) as inside:
            self._carry(loop, inside.block)
            self.body(op.body.block)
            self.source = loop.yields
            self.put(scf.YieldOp(*self._turn(loop)))
        self.source = op
        bounds = [self.values[v] for v in (op.lb, op.ub, op.step)]
        new = scf.ForOp(bounds[0], bounds[1], bounds[2], inits, inside.block)
        scalars = [r for r in op.res if not isinstance(r.type, TensorType)]
        self._results(op, new, scalars)
        self._ends(loop, op.res, loop.slots, new)

    def _carry(self, loop: Loop, block: Block) -> None:
        first = len(block.args) - len(loop.carried)
        for storage, argument in zip(loop.carried, block.args[first:], strict=True):
            self.roots[storage] = argument
            argument.name_hint = storage.name

    def _ends(
        self,
        loop: Loop,
        results: Sequence[SSAValue],
        slots: Sequence[SSAValue],
        new: Operation,
    ) -> None:
        """Note which buffer each exchanged tensor ended in."""
        first = len(new.results) - len(loop.carried)
        for result, slot in zip(results, slots, strict=True):
            if (number := loop.number.get(slot)) is not None:
                storage, _ = self.places.of(result)
                if storage.kind == "result":
                    self.roots[storage] = new.results[first + number]

    def while_loop(self, op: scf.WhileOp) -> None:
        """Write a while; its condition hands on scalars and exchanged buffers."""
        loop = self.analysis.loops[op]
        before, after = op.before_region.block, op.after_region.block
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        inits = self._begin(loop, op.arguments)
        carried = inits[len(inits) - len(loop.carried) :]
        with self.nested(before, carried) as first:
            self._carry(loop, first.block)
            self.body(before)
            self.source = condition
            for value, argument in zip(condition.args, after.args, strict=True):
                if isinstance(value.type, TensorType):
                    place = self.places.of(argument)
                    self.copy(value, *place, self.why(condition, value, argument))
            handed = [*self.scalars(condition.args), *(self.roots[s] for s in loop.carried)]
            self.put(scf.ConditionOp(self.values[condition.condition], *handed))
        with self.nested(after, carried) as second:
            self._carry(loop, second.block)
            self.body(after)
            self.source = loop.yields
            self.put(scf.YieldOp(*self._turn(loop)))
        self.source = op
        types = [v.type for v in handed]
        new = scf.WhileOp(inits, types, Region(first.block), Region(second.block))
        scalars = [r for r in op.res if not isinstance(r.type, TensorType)]
        self._results(op, new, scalars)
        self._ends(loop, op.res, condition.args, new)

    def leave(self, op: func.ReturnOp) -> None:
        """Copy what is not in its output yet, and return nothing."""
        rows = zip(op.operands, self.analysis.outputs, self.analysis.returned, strict=True)
        for value, output, why in rows:
            self.copy(value, output, (), why)
        self.put(func.ReturnOp())


class Nested:
    """A block being written; ops and views of it are its own."""

    def __init__(self, writer: HostWriter, old: Block, arguments: Sequence[SSAValue]) -> None:
        self.writer = writer
        scalars = [a for a in old.args if not isinstance(a.type, TensorType)]
        self.block = Block(arg_types=[v.type for v in (*scalars, *arguments)])
        for was, now in zip(scalars, self.block.args, strict=False):
            now.name_hint = was.name_hint
            writer.values[was] = now
        self._old = old
        self._outer: list[Operation] = []

    def __enter__(self) -> Nested:
        self._outer, self.writer.ops = self.writer.ops, []
        self.writer.open[self._old] = []
        self.writer.views.append({})
        return self

    def __exit__(self, *_: object) -> None:
        self.block.add_ops([*self.writer.open.pop(self._old), *self.writer.ops])
        self.writer.ops = self._outer
        self.writer.views.pop()


_WRITE: dict[type[Operation], Callable[[HostWriter, Any], None]] = {
    kernel.LaunchOp: HostWriter.launch,
    tensor.EmptyOp: lambda writer, op: None,
    tensor.InsertSliceOp: HostWriter.insert_slice,
    tensor.InsertOp: HostWriter.insert,
    tensor.ExtractOp: HostWriter.extract,
    tensor.DimOp: HostWriter.dim,
    tensor.FromElementsOp: HostWriter.made,
    tensor.SplatOp: HostWriter.made,
    arith.ConstantOp: HostWriter.constant,
    scf.IfOp: HostWriter.branch,
    scf.ForOp: HostWriter.for_loop,
    scf.WhileOp: HostWriter.while_loop,
    scf.YieldOp: lambda writer, op: None,
    scf.ConditionOp: lambda writer, op: None,
    func.ReturnOp: HostWriter.leave,
}
