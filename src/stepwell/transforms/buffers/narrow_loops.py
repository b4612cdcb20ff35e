"""Record which part of a loop has an effect, where a kernel's launch determines it.

Before:  linalg.generic {one reduction} ins(%i, %x : memref<i64>, memref<99xf64>) outs(%s) {
           %j = linalg.index 0 ... %c = arith.cmpi slt, %j, %i
           %t = arith.select %c, %x, 0.0 ... arith.addf %s, %t }
After:   %n = memref.load %i[] ... %high = arith.minsi, arith.maxsi: from 0 to 99
         linalg.generic ins(%i, %x, %low, %high : memref<i64>, memref<99xf64>, index, index)
           outs(%s) attrs = {kernel.within = [array<i64: 0, 2, 3>]} { the same }

The pass finds ops whose body has no effect outside an interval of some loop, where a number that
the kernel is launched with is a bound of the interval. Afterwards the two bounds are operands of
the op, and an attribute lists the loop and the numbers of both operands. linalg-to-loops runs only
that interval, rounded to vectors. The op computes the same with and without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import array_of_maps, constant_of, extents, indices
from stepwell.analysis.windows import Limit, Window, lift, windows
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.sharing import WITHIN
from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.transforms.kernels.kernel_signature import launches_of
from stepwell.transforms.passes import Pass

Pairs: TypeAlias = frozenset[tuple[SSAValue, SSAValue]]

INDEX = IndexType()
SHORTEST = 16
"""The trip count below which a loop is not narrowed."""


@dataclass(frozen=True)
class NarrowLoops(Pass):
    """Record on structured ops of kernels the intervals in which their loops have an effect."""

    name = "narrow-loops"
    one_block = True
    expects_work: ClassVar[bool] = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Narrow the loops of each kernel's ops."""
        launches = launches_of(op)
        for function in op.ops:
            if not isinstance(function, kernel.FuncOp):
                continue
            one = _in_place(function, launches.get(function.sym_name.data, ()))
            for each in list(function.body.block.ops):
                if isinstance(each, linalg.GenericOp) and WITHIN not in each.attributes:
                    _narrow(function, each, one)


def _narrow(function: kernel.FuncOp, op: linalg.GenericOp, one: Pairs) -> None:
    maps, count, sizes = indices(op), len(op.inputs), extents(op)

    def in_place(input: int, output: int) -> bool:
        read, written = op.inputs[input], op.outputs[output]
        same = read is written or (read, written) in one
        return same and maps[input] == maps[count + output]

    limits = _Limits(function, op)
    numbers: list[tuple[int, SSAValue, SSAValue]] = []
    for loop, window in windows(op, in_place).items():
        if sizes[loop] == DYNAMIC_INDEX or sizes[loop] >= SHORTEST:
            bounds = limits.bounds(loop, sizes[loop], window)
            numbers += [(loop, *bounds)] if bounds is not None else []
    if numbers:
        _append_bounds(op, numbers)


def _append_bounds(op: linalg.GenericOp, numbers: Sequence[tuple[int, SSAValue, SSAValue]]) -> None:
    """Append the bounds of the intervals to the operands of ``op``."""
    count, maps = len(op.inputs), indices(op)
    given = [value for _, *ends in numbers for value in ends]
    body = op.detach_region(op.body)
    for k in range(len(given)):
        body.block.insert_arg(INDEX, count + k)
    loops = len(op.iterator_types)
    new = linalg.GenericOp(
        [*op.inputs, *given],
        list(op.outputs),
        body,
        array_of_maps(loops, [*maps[:count], *(() for _ in given), *maps[count:]]),
        op.iterator_types,
    )
    new.attributes.update(op.attributes)
    places = [(loop, count + 2 * k, count + 2 * k + 1) for k, (loop, *_) in enumerate(numbers)]
    new.attributes[WITHIN] = ArrayAttr(DenseArrayBase.from_list(i64, each) for each in places)
    new.location = op.location
    block = op.parent
    assert block is not None
    block.insert_op_before(new, op)
    op.detach()
    op.erase()


def _in_place(function: kernel.FuncOp, launches: Sequence[kernel.LaunchOp]) -> Pairs:
    """Return the pairs of arguments that are the same array in every launch of the kernel."""
    args, count = function.body.block.args, len(function.body.block.args)
    if not launches:
        return frozenset()
    return frozenset(
        (args[a], args[b])
        for a, b in choices.aliases(function)
        if max(a, b) < count and all(_is_one(o.operands[a], o.operands[b]) for o in launches)
    )


def _is_one(a: SSAValue, b: SSAValue) -> bool:
    """Whether two buffers are the same: one value, or equal views of the same buffer."""
    if a is b:
        return True
    one, other = a.owner, b.owner
    if not isinstance(one, Operation) or not isinstance(other, Operation):
        return False
    same = type(one) is type(other) and one.properties == other.properties and a.type == b.type
    if not same or isinstance(one, memref.AllocOp | memref.AllocaOp) or not touches_nothing(one):
        return False
    if len(one.results) != 1 or len(one.operands) != len(other.operands):
        return False
    return all(_is_one(x, y) for x, y in zip(one.operands, other.operands, strict=True))


class _Limits:
    """Writes the bounds of one op's intervals at the beginning of its kernel."""

    def __init__(self, function: kernel.FuncOp, op: linalg.GenericOp) -> None:
        self.op, self.block = op, function.body.block
        self.first = self.block.first_op
        self.done: dict[SSAValue, SSAValue] = {}
        self.numbers: dict[int, SSAValue] = {}
        self.written = set[SSAValue]()
        """Buffers that may have been written since the kernel began."""
        for each in self.block.ops:
            if each is op:
                break
            if isinstance(each, linalg.GenericOp | linalg.FillOp):
                self.written.update(each.outputs)
            elif not touches_nothing(each):
                self.written.update(each.operands)
        for pair in choices.aliases(function):
            ends = {self.block.args[n] for n in pair}
            self.written |= ends if ends & self.written else set()

    def bounds(self, loop: int, size: int, window: Window) -> tuple[SSAValue, SSAValue] | None:
        """Return the bounds of the interval in which a loop has an effect; None if unrestricted."""
        lows = [n for n in window.lows if self._restricts(n, 0)]
        highs = [n for n in window.highs if self._restricts(n, size)]
        if not lows and not highs:
            return None
        end = self._extent(loop, size)
        if end is None:
            return None
        low = self._most(arith.MaxSIOp, [self._clamped(n, end) for n in lows], "low")
        high = self._most(arith.MinSIOp, [self._clamped(n, end) for n in highs], "high")
        if low is not None and high is not None:
            high = self._put(arith.MaxSIOp(low, high), "high")
        return low or self._index(0), high or end

    def _most(
        self,
        kind: type[arith.MaxSIOp | arith.MinSIOp],
        numbers: Sequence[SSAValue],
        hint: str,
    ) -> SSAValue | None:
        found: SSAValue | None = None
        for number in numbers:
            found = number if found is None else self._put(kind(found, number))
        if found is not None:
            found.name_hint = hint
        return found

    def _restricts(self, limit: Limit, trivial: int) -> bool:
        """Whether a limit is known when the kernel begins, and restricts the loop."""
        if (number := constant_of(limit.value)) is not None:
            end = number + limit.offset
            return trivial == DYNAMIC_INDEX or (end > 0 if trivial == 0 else end < trivial)
        return self._is_known(limit.value)

    def _is_known(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            if value.owner is not self.op.body.block:
                return value.owner is self.block
            given = self.op.operands[value.index]
            if self._is_number(given):
                self.first = self.op
                return True
            return self._is_argument(given) and given not in self.written
        owner = value.owner
        if isinstance(owner, Operation) and owner.parent is self.op.body.block:
            return all(map(self._is_known, owner.operands))
        return isinstance(owner, arith.ConstantOp)

    def _is_number(self, value: SSAValue) -> bool:
        """Whether it is a scalar temporary that the kernel computes before the op."""
        one = isinstance(value.owner, memref.AllocOp) and value.owner.parent is self.block
        return one and isinstance(value.type, MemRefType) and not value.type.get_shape()

    def _is_argument(self, value: SSAValue) -> bool:
        return isinstance(value, BlockArgument) and value.owner is self.block

    def _leaf(self, value: SSAValue) -> SSAValue:
        """Return the value before the loops of an argument of the body."""
        if isinstance(value.owner, arith.ConstantOp):
            return self._put(value.owner.clone())
        if not isinstance(value, BlockArgument) or value.owner is self.block:
            return value
        given = self.op.operands[value.index]
        if not isinstance(given.type, MemRefType):
            return given
        places = [e.eval((), ()) for e in indices(self.op)[value.index]]
        at = [self._index(n) for n in places]
        return self._put(memref.LoadOp.get(given, at), value.name_hint)

    def _extent(self, loop: int, size: int) -> SSAValue | None:
        """Return the trip count of a loop, None where it is unknown when the kernel begins."""
        if size != DYNAMIC_INDEX:
            return self._index(size)
        for value, index in zip(self.op.operands, indices(self.op), strict=True):
            if not self._is_argument(value):
                continue
            for axis, expr in enumerate(index):
                if isinstance(expr, AffineDimExpr) and expr.position == loop:
                    return self._put(memref.DimOp(value, self._index(axis)))
        return None

    def _clamped(self, limit: Limit, end: SSAValue) -> SSAValue:
        """Return a limit as an index, clamped to 0 and the end of its loop, without overflow."""
        value = lift(self.op, limit.value, self._leaf, self._put_op, self.done)
        if value.type != INDEX:
            value = self._put(arith.IndexCastOp(value, INDEX))
        if not limit.offset:
            return self._put(arith.MaxSIOp(self._put(arith.MinSIOp(value, end)), self._index(0)))
        by = self._index(limit.offset)
        most = self._put(arith.SubiOp(end, by))
        value = self._put(arith.MinSIOp(value, most))
        value = self._put(arith.MaxSIOp(value, self._index(-limit.offset)))
        return self._put(arith.AddiOp(value, by))

    def _index(self, number: int) -> SSAValue:
        if (known := self.numbers.get(number)) is None:
            known = self.numbers[number] = self._put(arith.ConstantOp(IntegerAttr(number, INDEX)))
        return known

    def _put(self, op: Operation, hint: str | None = None) -> SSAValue:
        self._put_op(op)
        op.results[0].name_hint = hint
        return op.results[0]

    def _put_op(self, op: Operation) -> None:
        op.location = self.op.location
        assert self.first is not None
        self.block.insert_op_before(op, self.first)
