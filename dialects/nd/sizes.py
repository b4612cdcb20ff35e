"""Sizes as values: nd.dim reads one from a tensor, nd.from_index converts one to a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from stepwell.core.shapes.shape import checked_axis
from stepwell.dialects.nd.groups import INDEX
from stepwell.dialects.nd.syntax import SpelledOp, int_attr, parse_fields, print_fields, shape_of
from stepwell.dialects.readings import Array, gradient, reference, shape


@irdl_op_definition
class DimOp(SpelledOp):
    """n = the number of elements of ``x`` along ``axis``.

    * (C1) axis is one of the axes of x.
    """

    name = "nd.dim"
    x = operand_def(TensorType)
    n = result_def(IndexType)
    axis = prop_def(IntegerAttr[I64])

    def __init__(self, x: SSAValue, axis: int) -> None:
        super().__init__(operands=[x], result_types=[INDEX], properties={"axis": int_attr(axis)})

    @classmethod
    def parse(cls, parser: Parser) -> DimOp:
        """Parse ``%x {axis = 0} : T``."""
        at = parser.pos
        x = parser.parse_unresolved_operand()
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(x, parser.parse_type())
        axis = fields.pop("axis", None)
        if axis is None:
            parser.raise_error("nd.dim needs {axis = ...}", at)
        return cls.create(
            operands=[value],
            result_types=[INDEX],
            properties={"axis": axis},
            attributes=fields,
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.x)
        print_fields(printer, {**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.x.type)


@shape(DimOp)
def _dim_shape(op: DimOp) -> Sequence[Attribute]:
    checked_axis(len(shape_of(op.x)), op.axis.value.data)  # dim_c1
    return (INDEX,)


@reference(DimOp)
def _dim_reference(op: DimOp, operands: Sequence[Array]) -> Array:
    (x,) = operands
    return np.asarray(x.shape[op.axis.value.data], np.int64)[()]


gradient.none(DimOp, reason="a size is no tensor")


@irdl_op_definition
class FromIndexOp(SpelledOp):
    """y = the size ``n`` as a 0-d i64 tensor, for arithmetic."""

    name = "nd.from_index"
    n = operand_def(IndexType)
    y = result_def(TensorType)

    def __init__(self, n: SSAValue) -> None:
        super().__init__(operands=[n], result_types=[TensorType(i64, [])])


@shape(FromIndexOp)
def _from_index_shape(op: FromIndexOp) -> Sequence[Attribute]:
    return (TensorType(i64, []),)


@reference(FromIndexOp)
def _from_index_reference(op: FromIndexOp, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0], np.int64)


gradient.none(FromIndexOp, reason="a size is no tensor")

OPS = (DimOp, FromIndexOp)
