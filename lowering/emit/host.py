"""The host part of a program as a schedule: launches, copies, branches and loops as data.

See `stepwell.core.host_schedule` for the format of a schedule. It covers only the host ops of this
floor: numbers, views, launches, copies, accesses of single elements, control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.core.diagnostics import CompileError
from stepwell.core.host_schedule import Step, Tree
from stepwell.dialects import kernel
from stepwell.lowering.emit import host_guards as guards
from stepwell.lowering.emit.arith import constant
from stepwell.lowering.emit.device import OpenCLUnit, Part, row_axes, scratch
from stepwell.lowering.emit.entry import Entry
from stepwell.lowering.emit.guard_numbers import Guards
from stepwell.lowering.emit.host_callbacks import called
from stepwell.lowering.emit.host_numbers import NUMBERS, constant_bytes
from stepwell.lowering.emit.kinds import Kind, element_name
from stepwell.lowering.emit.memref import kept_axes
from stepwell.lowering.emit.places import Place, add, count, moved_as, multiply, passed, row_major
from stepwell.transforms.passes import fail


@dataclass
class Host:
    """Walks a public function and records its steps."""

    unit: OpenCLUnit
    steps: list[Step] = field(default_factory=list[Step])
    trees: dict[SSAValue, Tree] = field(default_factory=dict[SSAValue, Tree])
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    names: int = 0
    yields: Sequence[str] = ()
    yielded: Sequence[SSAValue] = ()
    returned: list[Tree] = field(default_factory=list[Tree])
    calling: list[Operation] = field(default_factory=list[Operation])
    """The call stack of the functions being walked."""

    def schedule(self, entry: Entry) -> list[Step]:
        """Return the schedule of one public function."""
        inputs = [n for a in entry.of_role("input") for n in a.shape]
        dims = [f"d{k}" for k in range(sum(n < 0 for n in inputs))]
        sizes = self._call_results(entry.shapes, dims) if entry.shapes is not None else []
        arena: Tree = entry.signature.arena
        if arena is None:
            if entry.arena is None:
                fail(entry.op, f"the arena has no size known now and no @{entry.name}.arena")
            (arena,) = self._call_results(entry.arena, dims)
        first = [{"do": "sizes", "sizes": sizes}, {"do": "arena", "bytes": arena}]
        unknown = {"input": iter(dims), "output": iter(sizes)}
        for argument, value in zip(entry.arguments, entry.op.args, strict=True):
            rest: Iterator[Tree] = unknown.get(argument.role, iter(()))
            shape = tuple(next(rest, 0) if n < 0 else n for n in argument.shape)
            name = argument.role
            if name != "arena":
                name += str(sum(place.buffer.startswith(name) for place in self.places.values()))
            element = self._element(entry.op, value)
            self.places[value] = Place(name, 0, element, shape, row_major(shape))
        first += guards.prepared(self, entry, arena)
        self.block(entry.op.body.block)
        return [*first, *self.steps]

    def _call_results(self, op: func.FuncOp, arguments: Sequence[Tree]) -> list[Tree]:
        """Walk a function of numbers; return its results."""
        self.trees.update(zip(op.args, arguments, strict=True))
        self.block(op.body.block)
        return self.returned

    def _element(self, op: Operation, value: SSAValue) -> str:
        assert isinstance(value.type, MemRefType)
        element = element_name(value.type.element_type)
        if element is None:
            fail(op, f"elements of type {value.type.element_type} have no place in memory")
        return element

    @property
    def guards(self) -> Guards | None:
        """The guards of the program, if it has its own addresses."""
        return self.unit.guards

    # walking

    def block(self, block: Block) -> None:
        """Record every op of a block."""
        for op in block.ops:
            rule = _RULES.get(type(op))
            if rule is None:
                fail(op, f"{op.name} cannot run on the host of an OpenCL program")
            rule(self, op)

    def inside(self, block: Block, yields: Sequence[str] = ()) -> list[Step]:
        """Return the steps of a region, whose terminator sets ``yields``."""
        outer, outer_yields = self.steps, self.yields
        self.steps, self.yields = [], yields
        self.block(block)
        found, self.steps, self.yields = self.steps, outer, outer_yields
        return found

    def fresh(self, letter: str = "v") -> str:
        """Return a new variable's name."""
        self.names += 1
        return f"{letter}{self.names}"

    def set(self, names: Sequence[str], values: Sequence[Tree]) -> None:
        """Append an assignment."""
        if names:
            self.steps.append({"do": "set", "names": list(names), "values": list(values)})

    def hand(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """Assign ``values`` to ``names``, buffers first."""
        pairs = list(zip(names, values, strict=True))
        buffers = [(name, self.places[v]) for name, v in pairs if v in self.places]
        if buffers:
            places = [[place.buffer, place.skip] for _, place in buffers]
            self.steps.append({"do": "bind", "names": [n for n, _ in buffers], "places": places})
        numbers = [(name, self.trees[v]) for name, v in pairs if v not in self.places]
        self.set([n for n, _ in numbers], [tree for _, tree in numbers])

    # launches

    def launch(self, op: kernel.LaunchOp) -> None:
        """Append one launch for each part of the kernel."""
        callee = self.unit.symbols.get(op.callee.string_value())
        if not isinstance(callee, kernel.FuncOp):
            fail(op, f"no kernel {op.callee} in the module")
        for argument, operand in zip(callee.body.block.args, op.operands, strict=True):
            self._bind(argument, operand)
        parts = self.unit.parts_of(callee)
        operands = [*callee.body.block.args, *scratch(callee)]
        for each in callee.body.block.ops:
            rule = _RULES.get(type(each))
            if isinstance(each, memref.AllocOp | memref.AllocaOp):
                _allocate(self, each)
            elif rule is not None and type(each) in _KNOWN and self._known(each):
                with suppress(CompileError):  # reported later, if a loop's bounds need it
                    rule(self, each)
        for part in parts:
            self._launch(part, operands, self._items(part), self.unit.numbers[callee])

    def _known(self, op: Operation) -> bool:
        return all(v in self.trees or v in self.places for v in op.operands)

    def _bind(self, value: SSAValue, other: SSAValue) -> None:
        if other in self.places:
            self.places[value] = self.places[other]
        else:
            self.trees[value] = self.trees[other]

    def _items(self, part: Part) -> Tree:
        if part.loop is None:
            return 1
        loop = part.loop
        for bound in (loop.lowerBound[0], loop.upperBound[0], loop.step[0]):
            if bound not in self.trees:
                fail(loop, "the host cannot tell how often this loop runs")
        low, high, step = (self.trees[v[0]] for v in (loop.lowerBound, loop.upperBound, loop.step))
        guards.check_loop(self, loop, low, high, step)
        span = high if low == 0 else ["-", high, low]
        return span if step == 1 else ["ceil/", span, step]

    def _launch(
        self, part: Part, operands: Sequence[SSAValue], items: Tree, of: int | None = None
    ) -> None:
        arguments: list[dict[str, Any]] = []
        for p in part.parameters:
            if p.part == "fault":
                arguments.append({"buffer": "fault", "skip": 0})
                continue
            operand = operands[p.operand]
            if p.part == "value":
                kind = p.kind or Kind("index")
                arguments.append({"value": self.trees[operand], "dtype": passed(kind)})
                continue
            place = self.places[operand]
            if p.part == "pointer":
                arguments.append({"buffer": place.buffer, "skip": place.skip})
            else:
                shape = place.sizes if p.part == "size" else place.strides
                arguments.append({"value": shape[p.axis], "dtype": "i64"})
        step = {"do": "launch", "kernel": part.name, "of": of, "lanes": part.lanes}
        self.steps.append({**step, "items": items, "arguments": arguments})


Rule: TypeAlias = Callable[[Host, Any], None]


def _number(h: Host, op: Operation) -> None:
    h.trees[op.results[0]] = NUMBERS[type(op)](op, [h.trees[v] for v in op.operands])


# buffers


def _dim(h: Host, op: memref.DimOp) -> None:
    axis = constant(op.index)
    if axis is None:
        fail(op, "the axis of memref.dim must be a constant")
    h.trees[op.result] = h.places[op.source].sizes[axis]


def _mixed(h: Host, static: Any, dynamic: Sequence[SSAValue]) -> list[Tree]:
    values = iter(dynamic)
    return [h.trees[next(values)] if n == DYNAMIC_INDEX else n for n in static.get_values()]


def _view(h: Host, op: memref.ViewOp) -> None:
    source, type = h.places[op.source], op.result.type
    assert isinstance(type, MemRefType)
    sizes = iter(op.sizes)
    shape = tuple(h.trees[next(sizes)] if n < 0 else n for n in type.get_shape())
    skip = add(source.skip, h.trees[op.byte_shift])
    element = h._element(op, op.result)  # pyright: ignore[reportPrivateUsage]
    h.places[op.result] = Place(source.buffer, skip, element, shape, row_major(shape))
    guards.check_bytes(h, op, source, h.trees[op.byte_shift], h.places[op.result])


def _subview(h: Host, op: memref.SubviewOp) -> None:
    source, type = h.places[op.source], op.result.type
    assert isinstance(type, MemRefType)
    offsets = _mixed(h, op.static_offsets, op.offsets)
    sizes = _mixed(h, op.static_sizes, op.sizes)
    steps = _mixed(h, op.static_strides, op.strides)
    guards.check_part(h, op, source, offsets, sizes, steps)
    kept = kept_axes(op.static_sizes.get_values(), type.get_shape())
    if kept is None:
        fail(op, f"cannot tell which axes {type} leaves out")
    buffer, skip = source.moved(offsets)
    strides = [multiply(a, b) for a, b in zip(steps, source.strides, strict=True)]
    h.places[op.result] = Place(
        str(buffer),
        skip,
        source.element,
        tuple(sizes[k] for k in kept),
        tuple(strides[k] for k in kept),
    )


def _reinterpret_cast(h: Host, op: memref.ReinterpretCastOp) -> None:
    source = h.places[op.source]
    (start,) = _mixed(h, op.static_offsets, op.offsets)
    sizes = tuple(_mixed(h, op.static_sizes, op.sizes))
    strides = tuple(_mixed(h, op.static_strides, op.strides))
    guards.check_reinterpreted(h, op, source, start, sizes, strides)
    h.places[op.result] = replace(
        source,
        skip=add(source.skip, multiply(start, source.bytes)),
        sizes=sizes,
        strides=strides,
    )


def _cast(h: Host, op: Any) -> None:
    guards.check_cast(h, op, h.places[op.source])
    h.places[op.dest] = h.places[op.source]


def _expand_shape(h: Host, op: memref.ExpandShapeOp) -> None:
    source = h.places[op.src]
    sizes = _mixed(h, op.static_output_shape, op.output_shape)
    guards.check_expanded(h, op, source, sizes)
    strides: list[Tree] = [1] * len(sizes)
    for old, group in enumerate(op.reassociation.data):
        stride = source.strides[old]
        for axis in reversed([k.value.data for k in group.data]):
            strides[axis] = stride
            stride = multiply(sizes[axis], stride)
    h.places[op.result] = replace(source, sizes=tuple(sizes), strides=tuple(strides))


def _collapse_shape(h: Host, op: memref.CollapseShapeOp) -> None:
    source = h.places[op.src]
    guards.check_collapsed(h, op, source)
    groups = [[k.value.data for k in group.data] for group in op.reassociation.data]
    sizes = tuple(count(source.sizes[k] for k in group) for group in groups)
    strides = tuple(
        source.strides[([k for k in group if source.sizes[k] != 1] or group)[-1]]
        for group in groups
    )
    h.places[op.result] = replace(source, sizes=sizes, strides=strides)


def _allocate(h: Host, op: Any) -> None:
    name, type = h.fresh("scratch:"), op.memref.type
    sizes = iter(op.dynamic_sizes)
    shape = tuple(h.trees[next(sizes)] if n < 0 else n for n in type.get_shape())
    element = h._element(op, op.memref)  # pyright: ignore[reportPrivateUsage]
    guards.check_sizes(h, op, shape)
    place = Place(name, 0, element, shape, row_major(shape))
    bytes = multiply(count(shape), place.bytes)
    h.steps.append({"do": "allocate", "buffer": name, "bytes": bytes})
    if h.unit.guards is not None:
        h.steps.append({"do": "zero", "buffer": name, "bytes": bytes})
    h.places[op.memref] = place


def _get_global(h: Host, op: memref.GetGlobalOp) -> None:
    symbol = h.unit.symbols.get(op.name_.string_value())
    if not isinstance(symbol, memref.GlobalOp):
        fail(op, f"no array {op.name_} in the module")
    name, type = h.fresh("constant:"), op.memref.type
    assert isinstance(type, MemRefType)
    element, shape = h._element(op, op.memref), type.get_shape()  # pyright: ignore
    h.steps.append({"do": "constant", "buffer": name, "bytes": constant_bytes(symbol).hex()})
    h.places[op.memref] = Place(name, 0, element, shape, row_major(shape))


def _nothing(h: Host, op: Operation) -> None:
    """Write nothing: scratch memory is freed at the end of the call."""


def _load(h: Host, op: memref.LoadOp) -> None:
    place, name = h.places[op.memref], h.fresh()
    indices = [h.trees[i] for i in op.indices]
    guards.check_element(h, op, place, indices)
    source = place.moved(indices)
    h.steps.append({"do": "read", "name": name, "source": source, "dtype": moved_as(place)})
    h.trees[op.res] = name


def _store(h: Host, op: memref.StoreOp) -> None:
    place = h.places[op.memref]
    indices = [h.trees[i] for i in op.indices]
    guards.check_element(h, op, place, indices)
    target = place.moved(indices)
    step = {"do": "write", "target": target, "value": h.trees[op.value], "dtype": moved_as(place)}
    h.steps.append(step)


def _copy(h: Host, op: memref.CopyOp) -> None:
    source, target = h.places[op.source], h.places[op.destination]
    guards.check_same_sizes(h, op, source, target)
    if source.contiguous and target.contiguous:
        ends = {"source": [source.buffer, source.skip], "target": [target.buffer, target.skip]}
        bytes = multiply(count(target.sizes), target.bytes)
        h.steps.append({"do": "copy", **ends, "bytes": bytes})
        return
    part = h.unit.copying(op)
    rows = target.sizes[: len(target.sizes) - row_axes(op.destination)]
    h._launch(part, [op.source, op.destination], count(rows))  # pyright: ignore


def _call(h: Host, op: func.CallOp) -> None:
    callee = h.unit.symbols.get(op.callee.string_value())
    if not isinstance(callee, func.FuncOp):
        fail(op, f"no function {op.callee} in the module")
    if callee in h.calling:
        fail(op, f"{op.callee} calls itself", "write a loop instead")
    h.calling.append(callee)
    for argument, operand in zip(callee.args, op.operands, strict=True):
        h._bind(argument, operand)  # pyright: ignore[reportPrivateUsage]
    h.block(callee.body.block)
    h.calling.pop()
    h.trees.update(zip(op.results, h.returned, strict=True))


def _return(h: Host, op: Operation) -> None:
    for number, value in enumerate(op.operands):
        if value not in h.trees:
            said = f"result {number} is no buffer of this function: it has no destination"
            fail(op, said, "write it into an argument of the function")
    h.returned = [h.trees[v] for v in op.operands]


# control flow


def _carry(h: Host, values: Sequence[SSAValue], starts: Sequence[SSAValue]) -> list[str]:
    """Return a variable for each carried number, and bind a buffer for each carried buffer."""
    names: list[str] = []
    for value, start in zip(values, starts, strict=True):
        if start in h.places:
            names.append(h.fresh("carried:"))
            h.places[value] = replace(h.places[start], buffer=names[-1], skip=0)
        else:
            names.append(h.fresh())
            h.trees[value] = names[-1]
    h.hand(names, starts)
    return names


def _for(h: Host, op: scf.ForOp) -> None:
    index, *carried = op.body.block.args
    guards.check_loop(h, op, h.trees[op.lb], h.trees[op.ub], h.trees[op.step])
    names = _carry(h, carried, op.iter_args)
    for result, argument in zip(op.res, carried, strict=True):
        h._bind(result, argument)  # pyright: ignore[reportPrivateUsage]
    name = h.trees[index] = h.fresh("i")
    bounds = {
        "name": name,
        "from": h.trees[op.lb],
        "to": h.trees[op.ub],
        "step": h.trees[op.step],
    }
    body = h.inside(op.body.block, names)
    h.steps.append({"do": "for", **bounds, "body": body})
    _check_shapes(h, op, carried)


def _concurrent(h: Host, op: kernel.ConcurrentOp) -> None:
    """Run one branch after the other: a device runs one launch at a time."""
    for branch in op.branches:
        h.block(branch.block)


def _while(h: Host, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    names = _carry(h, before.args, op.arguments)
    last = before.last_op
    assert isinstance(last, scf.ConditionOp)
    test = h.inside(before)
    outer, h.steps = h.steps, test
    carried = _carry(h, after.args, last.args)
    h.steps = outer
    for result, argument in zip(op.res, after.args, strict=True):
        h._bind(result, argument)  # pyright: ignore[reportPrivateUsage]
    step = {"do": "while", "test": test, "condition": h.trees[last.condition]}
    assert len(carried) == len(op.res)
    h.steps.append({**step, "body": h.inside(after, names)})
    _check_shapes(h, op, before.args)


def _if(h: Host, op: scf.IfOp) -> None:
    names = [h.fresh("chosen:" if _is_buffer(r) else "v") for r in op.output]
    then = h.inside(op.true_region.block, names)
    yielded = h.yielded
    other = op.false_region.blocks.first
    otherwise = h.inside(other, names) if other is not None else []
    step = {"do": "if", "condition": h.trees[op.cond], "then": then, "else": otherwise}
    h.steps.append(step)
    for name, result, value in zip(names, op.output, yielded, strict=True):
        if value in h.places:
            h.places[result] = replace(h.places[value], buffer=name, skip=0)
        else:
            h.trees[result] = name
    _check_shapes(h, op, op.output)


def _is_buffer(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType)


def _check_shapes(h: Host, op: Operation, values: Sequence[SSAValue]) -> None:
    """Check that yielded buffers have the layouts of the buffers they are bound to."""
    for value, new in zip(values, h.yielded, strict=True):
        if value in h.places:
            place, other = h.places[value], h.places[new]
            if (place.sizes, place.strides) != (other.sizes, other.strides):
                fail(op, "a buffer handed on changes its sizes", "copy into one buffer instead")


def _yield(h: Host, op: scf.YieldOp) -> None:
    h.yielded = list(op.operands)
    h.hand(h.yields, op.operands)


_KNOWN: dict[type[Any], Rule] = {
    **dict.fromkeys(NUMBERS, _number),
    memref.DimOp: _dim,
    memref.ViewOp: _view,
    memref.SubviewOp: _subview,
    memref.ReinterpretCastOp: _reinterpret_cast,
    memref.CastOp: _cast,
    memref.ExpandShapeOp: _expand_shape,
    memref.CollapseShapeOp: _collapse_shape,
}
"""Ops that a host can recompute for a kernel: numbers and views."""

_RULES: dict[type[Any], Rule] = {
    **_KNOWN,
    memref.AllocOp: _allocate,
    memref.AllocaOp: _allocate,
    memref.GetGlobalOp: _get_global,
    memref.DeallocOp: _nothing,
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.CopyOp: _copy,
    kernel.LaunchOp: Host.launch,
    kernel.ConcurrentOp: _concurrent,
    kernel.CheckOp: guards.check,
    kernel.CallbackOp: called,
    func.CallOp: _call,
    func.ReturnOp: _return,
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.IfOp: _if,
    scf.YieldOp: _yield,
    scf.ConditionOp: _nothing,
}
