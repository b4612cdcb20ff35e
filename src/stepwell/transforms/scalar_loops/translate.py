"""Write the ops of a loop on tensors as scalar code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.types import tensor_type
from stepwell.transforms.scalar_loops.code import Code, refuse, truth
from stepwell.transforms.scalar_loops.flow import (
    is_number,
    is_single,
    is_within,
    origin,
)
from stepwell.transforms.structured import cost, indices, inverse, is_parallel, yielded

Rule: TypeAlias = Callable[["Translation", Any], None]


class Translation:
    """Writes the ops of blocks of a graph; ``root`` is the loop that all of it is inside of."""

    def __init__(self, code: Code, root: Operation, rules: Mapping[type[Operation], Rule]) -> None:
        self.code, self.root, self.rules = code, root, rules
        self.done: set[Operation] = set()
        self.views: dict[SSAValue, Callable[[Sequence[SSAValue]], SSAValue]] = {}
        """Arrays that are never made, and what computes an element of each."""
        self.depth = 0
        """How many loops are around what is being written."""
        self.loops: list[Sequence[SSAValue]] = []
        """Where in its loops each structured op is that is being written."""
        self.active: set[Operation] = set()

    # values

    def value(self, old: SSAValue) -> SSAValue:
        """Return what stands for a value: a number for a tensor of one element."""
        if (known := self.code.values.get(old)) is not None:
            return known
        if is_within(old, self.root):
            refuse(self.root, "a value is used before it is there")
        found = self._from_outside(old)
        self.code.values[old] = found
        return found

    def _from_outside(self, old: SSAValue) -> SSAValue:
        """Return a value of the host: arrays are only read, a number is read once, at first."""
        if not isinstance(old.type, TensorType):
            match old.owner:
                case arith.ConstantOp():
                    return self.code.number(old.owner.clone())
                case Operation() as made_by if isinstance(
                    above := made_by.parent_op(), linalg.GenericOp
                ):  # seen through what it is yielded to, which is what the host has
                    return self.value(above.results[list(yielded(above.body.block)).index(old)])
                case _:
                    return old
        if not is_number(old):
            return old
        filled = origin(old)
        if not isinstance(filled.type, TensorType):
            match filled.owner:
                case arith.ConstantOp():
                    return self.code.number(filled.owner.clone())
                case _:
                    pass
        if isinstance(old.owner, tensor.EmptyOp):
            return self.code.zero(tensor_type(old).element_type)
        code = self.code
        zeros = [code.index(0) for _ in tensor_type(old).get_shape()]
        read = tensor.ExtractOp(old, zeros, tensor_type(old).element_type)
        with code.inside(code.top):
            code.put(read, [old.name_hint])
        first = code.top.first_op
        assert first is not None
        if first is not read:
            read.detach()
            code.top.insert_op_before(read, first)
        return read.result

    def readable(self, old: SSAValue, op: Operation) -> SSAValue:
        """Return an array as it is now."""
        found = self.value(old)
        if self.code.arrays.is_stale(found):
            refuse(op, "an array is read as it was before an element was written")
        return found

    # ops

    def block(self, block: Block) -> Operation:
        """Write the ops of a block; return the one that ends it."""
        *ops, last = block.ops
        for op in ops:
            self.op(op)
        return last

    def op(self, op: Operation) -> None:
        """Write an op, unless it is written already."""
        if op in self.done:
            return
        self.done.add(op)
        self.active.add(op)
        self._hurry(op)
        code = self.code
        outer, code.source = code.source, op
        if (rule := self.rules.get(type(op))) is not None:
            rule(self, op)
        elif op.dialect_name() in ("arith", "math") and not op.regions:
            self._scalar(op)
        else:
            refuse(op, f"{op.name} works on whole arrays")
        code.source = outer
        self.active.discard(op)

    def _hurry(self, op: Operation) -> None:
        """Write what reads, later in the block, arrays as they are before ``op`` changes them."""
        if not any(not is_number(r) for r in op.results):
            return
        block = op.parent_block()
        assert block is not None
        used = {v for each in op.walk() for v in each.operands if not is_number(v)}
        for value in used:
            for use in list(value.uses):
                reader = block.find_ancestor_op_in_block(use.operation)
                if reader is not None and reader not in self.done and op.is_before_in_block(reader):
                    self._early(reader)

    def _early(self, op: Operation) -> bool:
        """Write a number that is read later now, if nothing stands in the way."""
        if op in self.active:
            return False
        if op in self.done:
            return True
        simple = is_single(op) if isinstance(op, linalg.GenericOp) else not op.regions
        if not simple or not op.results or not all(map(is_number, op.results)):
            return False
        block = op.parent_block()
        assert block is not None
        for value in [v for each in op.walk() for v in each.operands]:
            if not isinstance(made_by := value.owner, Operation):
                continue
            if made_by.parent_block() is block and not self._early(made_by):
                return False
        self.op(op)
        return True

    def _scalar(self, op: Operation) -> None:
        if any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            refuse(op, f"{op.name} works on whole arrays")
        new = op.clone({v: self.value(v) for v in op.operands})
        self.bind(op.results[0], self.code.number(new, op.results[0].name_hint))

    def bind(self, old: SSAValue, new: SSAValue) -> None:
        """Let ``new`` stand for ``old``."""
        self.code.values[old] = new

    # elements

    def element(self, op: Operation, array: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
        """Return an element of an array, or the only one."""
        if is_number(array):
            return self.value(array)
        if (view := self.views.get(array)) is not None:
            return view(at)
        source = self.readable(array, op)
        read = tensor.ExtractOp(source, at, tensor_type(array).element_type)
        return self.code.put(read, [op.results[0].name_hint if op.results else None]).results[0]

    def write(self, op: Operation, array: SSAValue, at: Sequence[SSAValue], new: SSAValue) -> None:
        """Write an element; the result of ``op`` is the array with it."""
        into, code = self.readable(array, op), self.code
        if into not in code.arrays.of:
            refuse(op, "an array is written to that the loop does not carry")
        made = code.put(tensor.InsertOp(new, into, at), [op.results[0].name_hint]).results[0]
        code.arrays.change(into, made)
        self.bind(op.results[0], made)

    def places(self, static: Any, dynamic: Sequence[SSAValue]) -> list[SSAValue]:
        """Return offsets as indices."""
        rest = iter(dynamic)
        return [
            self.value(next(rest)) if n == DYNAMIC_INDEX else self.code.index(n)
            for n in static.get_values()
        ]

    def iteration(self, op: linalg.GenericOp, loops: Sequence[SSAValue]) -> list[SSAValue]:
        """Write an iteration of a structured op; return what it gives."""
        body = op.body.block
        code = self.code
        outer, code.source = code.source, op
        for argument, value, map in zip(body.args, op.operands, indices(op), strict=True):
            if argument.first_use is not None:
                at = [] if is_number(value) else [code.affine(e, loops) for e in map]
                self.bind(argument, self.element(op, value, at))
        self.loops.append(loops)
        self.done.difference_update(body.walk())
        last = self.block(body)
        self.loops.pop()
        code.source = outer
        return [self.value(v) for v in last.operands]


def _check(t: Translation, op: kernel.CheckOp) -> None:
    """Write a check, unless it always holds; what it says is known from there on."""
    condition = t.value(op.condition)
    if truth(condition):
        return
    t.code.put(op.clone({v: t.value(v) for v in op.operands}))
    t.code.bounds.assume(condition)


def _extract(t: Translation, op: tensor.ExtractOp) -> None:
    t.bind(op.result, t.element(op, op.tensor, [t.value(v) for v in op.indices]))


def _insert(t: Translation, op: tensor.InsertOp) -> None:
    if is_number(op.dest):
        t.bind(op.result, t.value(op.scalar))
    else:
        t.write(op, op.dest, [t.value(v) for v in op.indices], t.value(op.scalar))


def _extract_slice(t: Translation, op: tensor.ExtractSliceOp) -> None:
    offsets = [] if is_number(op.source) else t.places(op.static_offsets, op.offsets)
    if is_number(op.result):
        t.bind(op.result, t.element(op, op.source, offsets))
        return
    steps = t.places(op.static_strides, op.strides)
    kept = _kept_axes(op.static_sizes.get_values(), op.result.type.get_shape())
    if kept is None:
        refuse(op, "a part of an array is taken, without some of its axes")

    def element(at: Sequence[SSAValue]) -> SSAValue:
        places = list(offsets)
        for axis, i in zip(kept, at, strict=True):
            places[axis] = t.code.add(offsets[axis], t.code.times(i, steps[axis]))
        return t.element(op, op.source, places)

    t.views[op.result] = element


def _kept_axes(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """Return which axes of a part with these sizes its type, with this shape, has."""
    if len(sizes) == len(shape):
        return list(range(len(sizes)))
    kept = [axis for axis, n in enumerate(sizes) if n != 1]
    return kept if [sizes[a] for a in kept] == list(shape) else None


def _insert_slice(t: Translation, op: tensor.InsertSliceOp) -> None:
    if not is_number(op.source):
        refuse(op, "a part of an array is written")
    if is_number(op.dest):
        t.bind(op.result, t.value(op.source))
    else:
        t.write(op, op.dest, t.places(op.static_offsets, op.offsets), t.value(op.source))


def _reshape(t: Translation, op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> None:
    if is_number(op.results[0]):
        t.bind(op.results[0], t.value(op.operands[0]))
        return
    source, result = (tensor_type(v).get_shape() for v in (op.operands[0], op.results[0]))
    inner = max(source, result, key=len)
    groups = [[k.value.data for k in group.data] for group in op.reassociation.data]
    if any(sum(inner[k] != 1 for k in group) > 1 for group in groups):
        refuse(op, "an array is reshaped")
    kept = [next((k for k in group if inner[k] != 1), group[0]) for group in groups]

    def element(at: Sequence[SSAValue]) -> SSAValue:
        if len(source) < len(result):
            return t.element(op, op.operands[0], [at[k] for k in kept])
        places = [t.code.index(0) for _ in source]
        for k, i in zip(kept, at, strict=True):
            places[k] = i
        return t.element(op, op.operands[0], places)

    t.views[op.results[0]] = element


def _empty(t: Translation, op: tensor.EmptyOp) -> None:
    """Nobody asks for an element before it is written."""
    zero = t.code.zero(tensor_type(op.tensor).element_type)
    if is_number(op.tensor):
        t.bind(op.tensor, zero)
    else:
        t.views[op.tensor] = lambda at: zero


def _fill(t: Translation, op: linalg.FillOp | tensor.SplatOp) -> None:
    filled = t.value(op.operands[0])
    if is_number(op.results[0]):
        t.bind(op.results[0], filled)
    else:
        t.views[op.results[0]] = lambda at: filled


def _constant(t: Translation, op: arith.ConstantOp) -> None:
    if isinstance(op.result.type, TensorType):
        refuse(op, "an array is made of constants")
    t.bind(op.result, t.code.number(op.clone()))


def _dim(t: Translation, op: tensor.DimOp) -> None:
    """The size of what a loop carries is that of what it began with."""
    source, arrays = t.value(op.source), t.code.arrays
    if source in arrays.of:
        source = arrays.newest[arrays.of[source]]
    made = t.code.put(tensor.DimOp(source, t.value(op.index)), [op.result.name_hint])
    t.code.bounds.note(made.results[0], (0, _MOST))
    t.bind(op.result, made.results[0])


_MOST = 1 << 48
"""No axis of an array in memory is longer."""


_CHEAP = 4
"""An element that costs no more additions is computed again wherever it is read."""


def _generic(t: Translation, op: linalg.GenericOp) -> None:
    """Write the body of a structured op of one iteration; let others be computed where read."""
    if is_single(op):
        zero = t.code.index(0)
        ends = t.iteration(op, [zero] * len(op.iterator_types))
        for result, value in zip(op.results, ends, strict=True):
            t.bind(result, value)
        return
    loops, depth = len(op.iterator_types), t.depth
    again = cost(op.body.block) <= _CHEAP
    for number, result in enumerate(op.results):
        index = indices(op)[len(op.inputs) + number]
        place = inverse(index, loops)
        if not all(is_parallel(op)) or place is None:
            refuse(op, "all elements of an array are computed with")

        def element(
            at: Sequence[SSAValue], number: int = number, place: Sequence[int] = place
        ) -> SSAValue:
            if t.depth > depth and not again:
                refuse(op, "what a loop reads would be computed again in each iteration")
            return t.iteration(op, [at[axis] for axis in place])[number]

        t.views[result] = element


def _index(t: Translation, op: linalg.IndexOp) -> None:
    t.bind(op.result, t.loops[-1][op.dim.value.data])


ELEMENTS: Mapping[type[Operation], Rule] = {
    arith.ConstantOp: _constant,
    tensor.ExtractOp: _extract,
    tensor.InsertOp: _insert,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.InsertSliceOp: _insert_slice,
    tensor.CollapseShapeOp: _reshape,
    tensor.ExpandShapeOp: _reshape,
    tensor.EmptyOp: _empty,
    tensor.SplatOp: _fill,
    tensor.DimOp: _dim,
    linalg.FillOp: _fill,
    linalg.GenericOp: _generic,
    linalg.IndexOp: _index,
    kernel.CheckOp: _check,
}
"""What computes numbers, and reads and writes elements."""
