"""The base classes of elementwise ops: operands, syntax, verification.

The ops are defined in `arithmetic`, `transcendental`, `bitwise`, `compare` and `convert`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from stepwell.core.dtypes import Kind
from stepwell.dialects.nd.base import NdOp, check_elements, element_dtype, tensor_of
from stepwell.dialects.nd.syntax import parse_fields, print_fields
from stepwell.dialects.readings import Array, reference, shape

OpT = TypeVar("OpT", bound="Elementwise")


class Elementwise(NdOp, ABC):
    """An op that acts on each element separately.

    Syntax: ``%y = nd.add %a, %b : tensor<4xf32>``: one type for operands and result. An op that
    changes the element type has two: ``nd.lt %a, %b : tensor<4xf32> -> tensor<4xi1>``.
    For f16 and bf16 an op computes in f32 and rounds once.

    * (C1) The operands have the same type.
    * (C2) The element type is of one of the kinds in ``ELEMENTS``.
    * (C3) The result has the shape of the operands, and their element type or the op's.
    """

    ELEMENTS: ClassVar[frozenset[Kind]]
    """The supported kinds of element types."""
    CONVERTS: ClassVar[bool] = False
    """Whether the result may have another element type than the operands."""

    y = result_def(TensorType)

    def verify_(self) -> None:
        """Check C1 and C2; C3 is the shape rule."""
        first = tensor_of(self.operands[0])
        for other in self.operands[1:]:
            if other.type is not first and other.type != first:  # elementwise_c1
                raise VerifyException(f"operands must have one type, got {first} and {other.type}")
        check_elements(first, self.ELEMENTS)  # elementwise_c2
        super().verify_()  # elementwise_c3

    @classmethod
    def types_from(cls, type: Attribute) -> Sequence[Attribute]:
        """Return the types of all operands, given the one that the syntax has."""
        return (type,) * len(cls.get_irdl_definition().operands)

    def written_type(self) -> Attribute:
        """Return the operand type that the syntax has."""
        return self.operands[0].type

    @classmethod
    def parse(cls: type[OpT], parser: Parser) -> OpT:
        """Parse ``%a, %b {attributes} : T`` or ``... : T -> R``."""
        start = parser.pos
        operands = parser.parse_comma_separated_list(
            Parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        attributes = parse_fields(parser)
        parser.parse_punctuation(":")
        written = parser.parse_type()
        types = cls.types_from(written)
        if len(types) != len(operands):
            parser.raise_error(
                f"{cls.name} takes {len(types)} operands, got {len(operands)}", start, parser.pos
            )
        result = written
        if cls.CONVERTS:
            parser.parse_punctuation("->")
            result = parser.parse_type()
        values = [parser.resolve_operand(o, t) for o, t in zip(operands, types, strict=True)]
        return cls.create(operands=values, result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        print_fields(printer, self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.written_type())
        if self.CONVERTS:
            printer.print_string(" -> ")
            printer.print_attribute(self.y.type)


class Unary(Elementwise, ABC):
    """An op with one operand and a result of its type."""

    x = operand_def(TensorType)

    def __init__(self, x: SSAValue) -> None:
        super().__init__(operands=[x], result_types=[x.type])


class Binary(Elementwise, ABC):
    """An op with two operands and a result of their type."""

    a = operand_def(TensorType)
    b = operand_def(TensorType)

    def __init__(self, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[a, b], result_types=[a.type])


def same_type(*ops: type[Operation]) -> None:
    """Register for ``ops`` the usual shape rule: the result has the type of the first operand."""
    shape(*ops)(lambda op: (op.operands[0].type,))


def in_numpy(meanings: Mapping[type[Operation], Callable[..., Any]]) -> None:
    """Register NumPy functions as the meaning of ops; f16 is computed in f32."""
    for op, meaning in meanings.items():
        reference(op)(_in_f32(meaning))


def _in_f32(meaning: Callable[..., Any]) -> Callable[[Any, Sequence[Array]], Array]:
    def rule(op: Elementwise, operands: Sequence[Array]) -> Array:
        wide = [np.asarray(v, np.float32 if v.dtype == np.float16 else None) for v in operands]
        with np.errstate(all="ignore"):
            result = np.asarray(meaning(*wide))
        return element_dtype(tensor_of(op.results[0])).round(result)

    return rule
