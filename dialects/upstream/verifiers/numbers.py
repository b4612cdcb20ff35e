"""arith and math: operand and result types of conversions, comparisons and selections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i1, i64
from xdsl.ir import Attribute, Operation

from stepwell.dialects.upstream.verifiers.table import checks
from stepwell.dialects.upstream.verifiers.types import (
    bits,
    element,
    form,
    is_float,
    is_integer,
    is_integer_or_index,
    refuse,
)

Kind = Callable[[Attribute], bool]


def _one_form(a: Attribute, b: Attribute) -> None:
    if isinstance(a, MemRefType) or isinstance(b, MemRefType):
        refuse(f"it works on numbers, vectors and tensors, not from {a} to {b}")
    if form(a) != form(b):
        refuse(f"operand and result must have one shape, not {a} and {b}")


def _kinds(op: Any, operand: tuple[Kind, str], result: tuple[Kind, str]) -> tuple[int, int]:
    """Check the elements of a conversion's operand and result; return their widths."""
    source, target = op.operands[0].type, op.results[0].type
    for (fits, words), type in ((operand, source), (result, target)):
        if not fits(element(type)):
            refuse(f"it goes from {operand[1]} to {result[1]}, but {type} is not of {words}")
    _one_form(source, target)
    return bits(element(source)), bits(element(target))


FLOATS: tuple[Kind, str] = (is_float, "floats")
INTEGERS: tuple[Kind, str] = (is_integer, "signless integers")


_RESIZED: dict[type[Operation], tuple[tuple[Kind, str], str]] = {
    arith.ExtFOp: (FLOATS, "wider"),
    arith.TruncFOp: (FLOATS, "narrower"),
    arith.ExtSIOp: (INTEGERS, "wider"),
    arith.ExtUIOp: (INTEGERS, "wider"),
    arith.TruncIOp: (INTEGERS, "narrower"),
}


@checks(*_RESIZED)
def _resized(op: Any) -> None:
    numbers, wanted = _RESIZED[type(op)]
    before, after = _kinds(op, numbers, numbers)
    if before == after or (before < after) != (wanted == "wider"):
        refuse(f"{op.results[0].type} is not {wanted} than {op.operands[0].type}")


@checks(arith.SIToFPOp, arith.UIToFPOp)
def _to_float(op: Any) -> None:
    _kinds(op, INTEGERS, FLOATS)


@checks(arith.FPToSIOp, arith.FPToUIOp)
def _to_integer(op: Any) -> None:
    _kinds(op, FLOATS, INTEGERS)


@checks(arith.IndexCastOp)
def _index_cast(op: arith.IndexCastOp) -> None:
    source, target = op.input.type, op.result.type
    pair = element(source), element(target)
    indices = [isinstance(each, IndexType) for each in pair]
    if sum(indices) != 1 or not all(map(is_integer_or_index, pair)):
        refuse(f"it goes from index to a signless integer or back, not from {source} to {target}")
    _one_form(source, target)


@checks(arith.BitcastOp)
def _bitcast(op: arith.BitcastOp) -> None:
    source, target = op.input.type, op.result.type
    pair = element(source), element(target)
    if not all(is_float(each) or is_integer(each) for each in pair):
        refuse(f"it takes bits of floats and signless integers, not {source} as {target}")
    _one_form(source, target)


@checks(arith.SelectOp)
def _select(op: arith.SelectOp) -> None:
    condition, kind = op.cond.type, op.result.type
    if op.lhs.type != kind or op.rhs.type != kind:
        refuse(f"it chooses one of two {kind}, not of {op.lhs.type} and {op.rhs.type}")
    if condition == i1:
        return
    if element(condition) != i1 or isinstance(condition, MemRefType):
        refuse(f"a choice is made by i1, not by {condition}")
    if form(condition) != form(kind):
        refuse(f"an elementwise condition must have the shape of the chosen values, {kind}")


def _predicate(op: Any, most: int) -> None:
    predicate = op.properties.get("predicate")
    if not isinstance(predicate, IntegerAttr) or predicate.type != i64:
        refuse("it needs a predicate")
    if not 0 <= predicate.value.data <= most:
        refuse(f"there is no predicate {predicate.value.data}")
    operands = [value.type for value in op.operands]
    if operands[0] != operands[1] or form(operands[0]) != form(op.result.type):
        refuse(f"{operands[0]} and {operands[1]} do not compare to {op.result.type}")
    if element(op.result.type) != i1:
        refuse(f"a comparison gives i1, not {op.result.type}")


@checks(arith.CmpiOp)
def _cmpi(op: arith.CmpiOp) -> None:
    _predicate(op, 9)
    if not is_integer_or_index(element(op.lhs.type)):
        refuse(f"it compares signless integers, not {op.lhs.type}")


@checks(arith.CmpfOp)
def _cmpf(op: arith.CmpfOp) -> None:
    _predicate(op, 15)
    if not is_float(element(op.lhs.type)):
        refuse(f"it compares floats, not {op.lhs.type}")


@checks(math.FPowIOp)
def _power(op: math.FPowIOp) -> None:
    if form(op.lhs.type) != form(op.rhs.type):
        refuse(f"base and exponent must have one shape, not {op.lhs.type} and {op.rhs.type}")
