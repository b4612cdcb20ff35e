"""kernel.stack: stack tensors of one type as padded rows of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class StackOp(IRDLOperation):
    """Row ``k`` of the result begins with the elements of part ``k``, in row-major order.

    The rest of a row is undefined. The op stands for one `tensor.insert_slice` per part, flattened,
    into a `tensor.empty`; the slices do not overlap.

    * (C1) There is at least one part; all have the same type, with axes.
    * (C2) The result has two axes: a row for each part, at least as long as a part has elements.
    * (C3) Where the parts have `?`, so has the row, and ``length`` says how long it is.
    """

    name = "kernel.stack"
    parts = var_operand_def(TensorType)
    length = opt_operand_def(IndexType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, parts: Sequence[SSAValue], result: Attribute, length: SSAValue | None = None
    ) -> None:
        super().__init__(operands=[list(parts), length], result_types=[result])

    def verify_(self) -> None:
        """Check C1 to C3."""
        types = set(self.parts.types)
        type, result = next(iter(types), None), self.result.type
        if len(types) != 1 or not isinstance(type, TensorType):  # kernel_stack_c1
            raise VerifyException("there must be parts, all of one type")
        if not type.get_shape():  # kernel_stack_c1
            raise VerifyException(f"a part must have axes, not be {type}")
        assert isinstance(result, TensorType)
        sizes, many = result.get_shape(), len(self.parts)
        unknown = DYNAMIC_INDEX in type.get_shape()
        elements = prod(type.get_shape())
        rows = len(sizes) == 2 and sizes[0] == many and (unknown or sizes[1] >= elements)
        if not rows or result.element_type != type.element_type:  # kernel_stack_c2
            least = f"{many} rows of {'?' if unknown else elements} elements or more, not {result}"
            raise VerifyException(f"{many} parts of type {type} make {least}")
        if {unknown} != {sizes[1] == DYNAMIC_INDEX, self.length is not None}:  # kernel_stack_c3
            raise VerifyException("parts, rows and the length must all be known, or none of them")

    @classmethod
    def parse(cls, parser: Parser) -> StackOp:
        """Parse ``%a, %b [by %length] {attributes} : T -> R``."""
        names = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        by = parser.parse_optional_keyword("by")
        length = parser.parse_operand(type=IndexType()) if by else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        op = StackOp([parser.resolve_operand(name, type) for name in names], result, length)
        op.attributes = dict(attributes)
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_list(self.parts, printer.print_ssa_value)
        if self.length is not None:
            printer.print_string(" by ")
            printer.print_ssa_value(self.length)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.parts[0].type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
