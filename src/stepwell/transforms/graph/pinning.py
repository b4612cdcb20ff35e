"""Pin the checked sizes of values that branches and loops yield, so that later passes know them.

Before:  nd.yield %y : tensor<?xf32>                      the other branch yields %x
After:   %n = nd.dim %x {axis = 0} : tensor<?xf32>        at the function's entry
         %p = nd.dynamic_slice %y, starts(%zero), sizes(%n) {axes = [0]} : ...
         nd.yield %p : tensor<?xf32>
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType
from xdsl.ir import Operation, SSAValue

from stepwell.core.formulas import Atom, Formula
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.indexing import DynamicSliceOp
from stepwell.dialects.nd.sizes import DimOp
from stepwell.dialects.sizing import Sizing

_BINARY: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "/": arith.DivSIOp,
    "%": arith.RemSIOp,
    "floor/": arith.FloorDivSIOp,
    "ceil/": arith.CeilDivSIOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
    "u/": arith.DivUIOp,
    "u%": arith.RemUIOp,
    "umin": arith.MinUIOp,
    "umax": arith.MaxUIOp,
}


def pin(function: func.FuncOp, sizing: Sizing) -> None:
    """Slice the values that branches and loops of ``function`` yield to their checked sizes."""
    writer = _Writer(function)
    for op, number, wanted, found in sizing.pins:
        if not _is_within(op, function):
            continue
        along = [axis for axis, (a, b) in enumerate(zip(wanted, found, strict=True)) if a != b]
        value = op.operands[number]
        assert isinstance(value.type, TensorType)
        along = [axis for axis in along if value.type.get_shape()[axis] == DYNAMIC]
        if not along or not all(writer.can_write(wanted[axis]) for axis in along):
            continue
        block = op.parent_block()
        assert block is not None
        starts = [writer.of(Formula())] * len(along)
        part = DynamicSliceOp(value, starts, along, [writer.of(wanted[axis]) for axis in along])
        part.location, part.y.name_hint = op.location, value.name_hint
        block.insert_op_before(part, op)
        op.operands[number] = part.y
    writer.finish()


def _is_within(op: Operation, function: func.FuncOp) -> bool:
    at: Operation | None = op
    while at is not None and at is not function:
        at = at.parent_op()
    return at is function


class _Writer:
    """Writes formulas at the entry of a function, one copy each."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.ops: list[Operation] = []
        self._dims = [
            (argument, axis)
            for argument in function.args
            if isinstance(argument.type, TensorType)
            for axis, n in enumerate(argument.type.get_shape())
            if n == DYNAMIC
        ]
        self._known: dict[str, SSAValue] = {}

    def can_write(self, formula: Formula) -> bool:
        """Whether index arithmetic can express ``formula``."""
        return all(
            -(1 << 63) <= factor < 1 << 63
            and all(
                (not atom.operands or atom.operator in _BINARY)
                and all(map(self.can_write, atom.operands))
                for atom in monomial
            )
            for monomial, factor in formula.terms
        )

    def of(self, formula: Formula) -> SSAValue:
        """Return ``formula`` as an index."""
        if (known := self._known.get(formula.key)) is None:
            known = self._known[formula.key] = self._sum(formula)
        return known

    def _sum(self, formula: Formula) -> SSAValue:
        total: SSAValue | None = None
        for monomial, factor in formula.terms:
            term: SSAValue | None = None
            for atom in monomial:
                value = self._atom(atom)
                term = value if term is None else self._put(arith.MuliOp(term, value))
            if term is None or factor != 1:
                number = self._put(arith.ConstantOp(IntegerAttr(factor, IndexType())))
                term = number if term is None else self._put(arith.MuliOp(term, number))
            total = term if total is None else self._put(arith.AddiOp(total, term))
        if total is None:
            return self._put(arith.ConstantOp(IntegerAttr(0, IndexType())))
        return total

    def _atom(self, atom: Atom) -> SSAValue:
        if not atom.operands:
            argument, axis = self._dims[int(atom.operator[1:])]
            return self._put(DimOp(argument, axis))
        a, b = (self.of(each) for each in atom.operands)
        return self._put(_BINARY[atom.operator](a, b))

    def _put(self, op: Operation) -> SSAValue:
        op.location = self.function.location
        self.ops.append(op)
        return op.results[0]

    def finish(self) -> None:
        """Insert the written ops at the beginning of the function."""
        first = self.function.body.block.first_op
        if self.ops and first is not None:
            self.function.body.block.insert_ops_before(self.ops, first)
