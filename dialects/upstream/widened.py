"""Vectors for ops that xDSL's arith restricts to scalars: compare, select, and integer casts.

In MLIR they work lane by lane on vectors; xDSL 0.74 verifies and builds them for scalars only. The
accepted and printed forms are those of mlir-opt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    IndexType,
    IntegerType,
    TensorType,
    VectorType,
    container_of,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AttrConstraint, OperandDef, ResultDef, base
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

_I1 = IntegerType(1)
_BOOLS = container_of(_I1)
_INTEGERS: AttrConstraint = container_of(IntegerType)
_INDICES: AttrConstraint = container_of(base(IntegerType) | base(IndexType))
_FLOATS: AttrConstraint = container_of(AnyFloatConstr)


def with_element(type: Attribute, element: Attribute) -> Attribute:
    """Return ``type`` with its scalars replaced by ``element``: a scalar or a shaped type."""
    if isinstance(type, VectorType):
        return VectorType(element, type.get_shape(), type.scalable_dims)
    if isinstance(type, TensorType):
        return TensorType(element, type.get_shape(), type.encoding)
    return element


def _element(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, VectorType | TensorType) else type


def _shape(type: Attribute) -> Sequence[int] | None:
    return type.get_shape() if isinstance(type, VectorType | TensorType) else None


def _accept(op: type[Operation], **fields: AttrConstraint) -> None:
    """Widen the constraints of the named operands and results of ``op``."""
    definition: Any = op.get_irdl_definition()  # pyright: ignore
    for rows, kind in ((definition.operands, OperandDef), (definition.results, ResultDef)):
        for i, (name, _) in enumerate(rows):
            if name in fields:
                rows[i] = (name, kind(fields[name]))


# compare


def _compare_init(op: type[Operation]) -> Any:
    """Return a comparison's constructor whose result has the shape of the operands."""
    narrow: Any = op.__init__

    def init(
        self: Any, lhs: SSAValue | Operation, rhs: SSAValue | Operation, arg: int | str, *rest: Any
    ) -> None:
        narrow(self, lhs, rhs, arg, *rest)
        result = with_element(SSAValue.get(lhs).type, _I1)
        if result != _I1:
            self.results[0]._type = result

    return init


def _verify_compare(self: Any) -> None:
    if self.lhs.type != self.rhs.type:
        raise VerifyException(f"compares {self.lhs.type} with {self.rhs.type}")
    if self.result.type != (want := with_element(self.lhs.type, _I1)):
        raise VerifyException(f"result must be {want}, got {self.result.type}")


# select: `arith.select %c, %a, %b : f32`, and `: vector<4xi1>, vector<4xf32>` lane by lane


def _print_select(self: arith.SelectOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(self.operands, printer.print_ssa_value)
    printer.print_op_attributes(self.attributes)
    printer.print_string(" : ")
    types = [self.result.type] if self.cond.type == _I1 else [self.cond.type, self.result.type]
    printer.print_list(types, printer.print_attribute)


def _parse_select(cls: type[arith.SelectOp], parser: Parser) -> arith.SelectOp:
    position = parser.pos
    none = parser.Delimiter.NONE
    names = parser.parse_comma_separated_list(none, parser.parse_unresolved_operand)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(none, parser.parse_type)
    condition = types[0] if len(types) == 2 else _I1
    types = [condition, types[-1], types[-1]]
    op = cls(*parser.resolve_operands(names, types, position))
    op.attributes |= attributes
    return op


def _verify_select(self: arith.SelectOp) -> None:
    chosen, condition = _shape(self.result.type), _shape(self.cond.type)
    if condition is not None and condition != chosen:
        raise VerifyException(
            f"a condition of type {self.cond.type} cannot choose between {self.result.type}"
        )


# casts


def _width(type: Attribute) -> int:
    element = _element(type)
    assert isinstance(element, IntegerType)
    return element.width.data


def _same_shape(self: Any) -> None:
    if _shape(self.input.type) != _shape(self.result.type):
        raise VerifyException(f"casts {self.input.type} to {self.result.type}, of other shape")


def _verify_narrower(self: Any) -> None:
    _same_shape(self)
    if _width(self.result.type) >= _width(self.input.type):
        raise VerifyException("Destination bit-width must be smaller than the input bit-width")


def _verify_wider(self: Any) -> None:
    _same_shape(self)
    if _width(self.result.type) <= _width(self.input.type):
        raise VerifyException("Destination bit-width must be larger than the input bit-width")


def _verify_index_cast(self: arith.IndexCastOp) -> None:
    _same_shape(self)
    ends = [isinstance(_element(v.type), IndexType) for v in (self.input, self.result)]
    if ends[0] == ends[1]:
        raise VerifyException(
            f"'arith.index_cast' op operand type '{self.input.type}' and result type "
            f"'{self.result.type}' are cast incompatible"
        )


def _install() -> None:
    for compare in (arith.CmpiOp, arith.CmpfOp):
        op: Any = compare
        _accept(op, result=_BOOLS)
        op.__init__ = _compare_init(op)
        op.verify_ = _verify_compare
    select: Any = arith.SelectOp
    _accept(select, cond=_BOOLS)
    select.print, select.parse = _print_select, classmethod(_parse_select)
    select.verify_ = _verify_select
    casts: Sequence[tuple[type[Operation], AttrConstraint, AttrConstraint, Any]] = (
        (arith.TruncIOp, _INTEGERS, _INTEGERS, _verify_narrower),
        (arith.ExtSIOp, _INTEGERS, _INTEGERS, _verify_wider),
        (arith.ExtUIOp, _INTEGERS, _INTEGERS, _verify_wider),
        (arith.IndexCastOp, _INDICES, _INDICES, _verify_index_cast),
        (arith.FPToSIOp, _FLOATS, _INTEGERS, _same_shape),
        (arith.FPToUIOp, _FLOATS, _INTEGERS, _same_shape),
        (arith.SIToFPOp, _INTEGERS, _FLOATS, _same_shape),
        (arith.UIToFPOp, _INTEGERS, _FLOATS, _same_shape),
    )
    for cast, source, target, verify in casts:
        op = cast
        _accept(op, input=source, result=target)
        op.verify_ = verify


_install()
