"""kernel.stack: stack tensors of one type as padded rows of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
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

    * (C1) There is at least one part; all have the same type, with axes of known sizes.
    * (C2) The result has two axes: a row for each part, at least as long as a part has elements.
    """

    name = "kernel.stack"
    parts = var_operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, parts: Sequence[SSAValue], result: Attribute) -> None:
        super().__init__(operands=[list(parts)], result_types=[result])

    @property
    def elements(self) -> int:
        """The number of elements of a part."""
        type = self.operands[0].type
        assert isinstance(type, TensorType)
        return prod(type.get_shape())

    def verify_(self) -> None:
        """Check C1 and C2."""
        types = set(self.parts.types)
        type, result = next(iter(types), None), self.result.type
        if len(types) != 1 or not isinstance(type, TensorType):  # kernel_stack_c1
            raise VerifyException("there must be parts, all of one type")
        if not type.get_shape() or DYNAMIC_INDEX in type.get_shape():  # kernel_stack_c1
            raise VerifyException(f"a part must have axes, of known sizes, not be {type}")
        assert isinstance(result, TensorType)
        sizes = result.get_shape()
        rows = len(sizes) == 2 and sizes[0] == len(self.parts) and sizes[1] >= self.elements
        if not rows or result.element_type != type.element_type:  # kernel_stack_c2
            many = len(self.parts)
            least = f"{many} rows of {self.elements} elements or more, not {result}"
            raise VerifyException(f"{many} parts of type {type} make {least}")

    @classmethod
    def parse(cls, parser: Parser) -> StackOp:
        """Parse ``%a, %b {attributes} : T -> R``."""
        names = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        op = StackOp([parser.resolve_operand(name, type) for name in names], result)
        op.attributes = dict(attributes)
        return op

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_list(self.parts, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.parts[0].type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
