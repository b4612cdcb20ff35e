"""Move the ops of one cluster into a kernel.func and create the host's launch of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    IndexType,
    IntegerAttr,
    LocationAttr,
    ShapedType,
    UnitAttr,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.loop_order import loop_order
from stepwell.analysis.structured import array_of_maps, at, indices, shape
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.sharing import is_border
from stepwell.dialects.types import UNKNOWN, fuse_locations
from stepwell.lowering.outline_kernels.clusters import Cluster
from stepwell.transforms.passes import fail


@dataclass
class Kernel:
    """A kernel under construction, and the operands of its launch."""

    cluster: Cluster
    launch_before: Operation
    ops: list[Operation] = field(default_factory=list[Operation])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Maps a host value to its equivalent inside the kernel."""
    inputs: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    destinations: list[tuple[SSAValue, SSAValue, OpResult]] = field(
        default_factory=list[tuple[SSAValue, SSAValue, OpResult]]
    )
    """For each result: the host's tensor, the kernel's argument for it, the result it becomes."""

    def build(self) -> tuple[kernel.FuncOp, kernel.LaunchOp]:
        """Move the members into a new kernel and replace them by a launch of it."""
        members = self.cluster.members
        for op in members:
            self._member(op)
        returned = kernel.ReturnOp([self.values[result] for *_, result in self.destinations])
        location = fuse_locations(op.location for op in members)
        function = self._function([*self.ops, returned], location)
        launch = kernel.LaunchOp(
            "kernel", list(self.inputs), [outside for outside, *_ in self.destinations]
        )
        launch.location = location
        if any(isinstance(each, kernel.CheckOp) for op in members for each in op.walk()):
            launch.attributes["kernel.checks"] = UnitAttr()
        self._insert(launch)
        for op in reversed(members):
            op.detach()
            op.drop_all_references()
        for (*_, old), new in zip(self.destinations, launch.results_, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        return function, launch

    def _function(self, ops: list[Operation], location: LocationAttr) -> kernel.FuncOp:
        inside = [*self.inputs.values(), *(inner for _, inner, _ in self.destinations)]
        block = Block(arg_types=[v.type for v in inside])
        for old, new in zip(inside, block.args, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        for op in ops:
            _locate(op, location)
        block.add_ops(ops)
        results = [result.type for *_, result in self.destinations]
        kind = FunctionType.from_lists([v.type for v in inside], results)
        function = kernel.FuncOp("kernel", kind, Region(block))
        function.location = location
        first = self.cluster.members[0]
        function.attributes["kernel.shared"] = choices.spelled(len(self.cluster.loops[first]))
        if isinstance(first, scf.ForOp):
            function.attributes["kernel.scalar"] = UnitAttr()
        return function

    def _member(self, op: Operation) -> None:
        match op:
            case linalg.GenericOp():
                self._generic(op)
            case linalg.FillOp():
                self._fill(op, op.inputs[0], op.outputs[0])
            case tensor.SplatOp():
                self._fill(op, op.input, op.result)
            case scf.ForOp():
                self._copied(op, op.iter_args)
            case _:
                fail(op, f"{op.name} cannot be put into a kernel")

    def _generic(self, op: linalg.GenericOp) -> None:
        loops = list(range(len(op.iterator_types)))  # a border op shares no loop with the others
        order = loops if is_border(op) else loop_order(op, self.cluster.loops[op])
        inputs = [self._inside(value) for value in op.inputs]
        outputs = [
            self._destination(op, init, result)
            for init, result in zip(op.outputs, op.results, strict=True)
        ]
        self._capture(op)
        body, where, kinds = op.body, indices(op), op.iterator_types
        if order != list(range(len(order))):
            moved: list[AffineExpr] = [AffineDimExpr(order.index(d)) for d in range(len(order))]
            where = [at(index, moved) for index in where]
            kinds = [op.iterator_types.data[d] for d in order]
            for inner in body.block.ops:
                if isinstance(inner, linalg.IndexOp):
                    place = order.index(inner.dim.value.data)
                    inner.properties["dim"] = IntegerAttr(place, i64)
        maps = array_of_maps(len(order), where)
        types = [v.type for v in outputs]
        op.detach_region(body)
        new = linalg.GenericOp(inputs, outputs, body, maps, kinds, types)
        new.attributes.update(op.attributes)
        self._add(new, op)

    def _fill(self, op: Operation, scalar: SSAValue, like: SSAValue) -> None:
        inside = self._fresh(op, like, op.results[0])
        new = linalg.FillOp([self._inside(scalar)], [inside], [inside.type])
        new.attributes.update(op.attributes)
        self._add(new, op)

    def _copied(self, op: Operation, inits: Iterable[SSAValue]) -> None:
        """Copy an op that writes ``inits`` element by element."""
        written = [
            self._destination(op, init, result)
            for init, result in zip(inits, op.results, strict=True)
        ]
        first = len(op.operands) - len(written)
        read = dict.fromkeys((*op.operands[:first], *_read_inside(op)))
        mapped = {value: self._inside(value) for value in read}
        copy = op.clone(mapped)
        # the op reads the initial contents of a tensor even where that tensor is its destination
        copy.operands = [*copy.operands[:first], *written]
        self._add(copy, op)

    def _add(self, new: Operation, old: Operation) -> None:
        new.location = old.location
        self.ops.append(new)
        for was, now in zip(old.results, new.results, strict=True):
            now.name_hint = was.name_hint
            self.values[was] = now

    def _capture(self, op: Operation) -> None:
        """Replace the captured values of the body of ``op`` by the kernel's values."""
        outer = outer_values(op)
        for inner in op.regions[0].walk():
            if any(v in outer for v in inner.operands):
                inner.operands = [self._inside(v) if v in outer else v for v in inner.operands]

    def _inside(self, value: SSAValue) -> SSAValue:
        """Return the kernel's value for a host value: an argument, or a copy of a cheap op."""
        if value in self.values:
            return self.values[value]
        made_by = value.owner
        if isinstance(made_by, tensor.EmptyOp):
            copy = tensor.EmptyOp([self._inside(v) for v in made_by.dynamic_sizes], value.type)
            self._add(copy, made_by)
        elif isinstance(made_by, arith.ConstantOp) and not isinstance(value.type, ShapedType):
            self._add(made_by.clone(), made_by)
        else:
            self.values[value] = self.inputs[value] = _stand_in(value.type, value.name_hint)
        return self.values[value]

    def _destination(self, op: Operation, init: SSAValue, result: OpResult) -> SSAValue:
        """Return the tensor inside the kernel that is the destination of ``result`` of ``op``."""
        made_by = init.owner
        if isinstance(made_by, Operation) and made_by in self.cluster.loops:
            if self._is_needed(result):
                self._arrive(self._host_empty(op, init), result)
            return self.values[init]
        if isinstance(made_by, linalg.FillOp):
            inside = self._fresh(op, made_by.outputs[0], result)
            fill = linalg.FillOp([self._inside(made_by.inputs[0])], [inside], [inside.type])
            fill.location = made_by.location
            fill.results[0].name_hint = init.name_hint
            self.ops.append(fill)
            return fill.results[0]
        if isinstance(made_by, tensor.EmptyOp):
            return self._fresh(op, init, result)
        return self._arrive(init, result)

    def _fresh(self, op: Operation, like: SSAValue, result: OpResult) -> SSAValue:
        """Return an uninitialized tensor for ``result``, with the sizes of ``like``."""
        if self._is_needed(result):
            return self._arrive(self._host_empty(op, like), result)
        sizes = [self._inside(v) for v in self._sizes(like)]
        empty = tensor.EmptyOp(sizes, result.type)
        empty.location = op.location
        self.ops.append(empty)
        return empty.tensor

    def _arrive(self, outside: SSAValue, result: OpResult) -> SSAValue:
        """Make ``outside`` the destination of ``result``; return the kernel's argument for it."""
        inside = _stand_in(outside.type, result.name_hint)
        self.destinations.append((outside, inside, result))
        return inside

    def _host_empty(self, op: Operation, like: SSAValue) -> SSAValue:
        empty = tensor.EmptyOp(self._sizes(like), like.type)
        empty.location = op.location
        self._insert(empty)
        return empty.tensor

    def _sizes(self, like: SSAValue) -> list[SSAValue]:
        """Return the host's values of the dynamic sizes of ``like``."""
        if isinstance(like.owner, tensor.EmptyOp):
            return list(like.owner.dynamic_sizes)
        if isinstance(like.owner, tensor.SplatOp):
            return list(like.owner.dynamicSizes)
        if isinstance(like, OpResult) and isinstance(like.op, linalg.GenericOp | linalg.FillOp):
            return self._sizes(like.op.outputs[like.index])  # may be the result of a kernel
        found: list[SSAValue] = []
        for axis, size in enumerate(shape(like)):
            if size == DYNAMIC_INDEX:
                number = arith.ConstantOp(IntegerAttr(axis, IndexType()))
                dim = tensor.DimOp(like, number.result)
                self._insert(number)
                self._insert(dim)
                found.append(dim.result)
        return found

    def _insert(self, op: Operation) -> None:
        if op.location == UNKNOWN:
            op.location = self.launch_before.location
        assert self.launch_before.parent is not None
        self.launch_before.parent.insert_op_before(op, self.launch_before)

    def _is_needed(self, result: OpResult) -> bool:
        """Whether an op outside the cluster uses ``result``."""
        block = result.op.parent
        for use in result.uses:
            at: Operation | None = use.operation
            while at is not None and at.parent is not block:
                at = at.parent_op()
            if at is None or at not in self.cluster.loops:
                return True
        return False


def _stand_in(kind: Attribute, name: str | None) -> SSAValue:
    value = Block(arg_types=[kind]).args[0]
    value.name_hint = name
    return value


def outer_values(op: Operation) -> dict[SSAValue, None]:
    """Return the values that ``op`` and its nested ops use and that are defined outside it."""
    return dict.fromkeys((*op.operands, *_read_inside(op)))


def _read_inside(op: Operation) -> dict[SSAValue, None]:
    """Return the values that the nested ops of ``op`` use and that are defined outside it."""
    inside: set[SSAValue] = set()
    for each in op.walk():
        inside.update(each.results)
        for region in each.regions:
            for block in region.blocks:
                inside.update(block.args)
    return {
        v: None for each in op.walk() if each is not op for v in each.operands if v not in inside
    }


def _locate(op: Operation, location: LocationAttr) -> None:
    if op.location == UNKNOWN:
        op.location = location
