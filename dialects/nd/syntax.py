"""The syntax of ops of `nd`: ``nd.name %a, %b {axis = 1} : types``.

Integers are i64 and lists of integers dense arrays, so that ``{axis = 1, low = [0, 1]}`` needs no
types. If all types are equal, one is written, otherwise a function type.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Self, TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import base
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRTokenKind

from stepwell.core.shapes import Shape
from stepwell.dialects.nd.base import NdOp

Axes: TypeAlias = "DenseArrayBase[Any]"
AXES = base(DenseArrayBase[IntegerType])
"""The constraint of properties that list axes or sizes."""


def axes_attr(numbers: Sequence[int]) -> Axes:
    """Return ``numbers`` as the property of an op."""
    return DenseArrayBase.from_list(i64, list(numbers))


def lists(**numbers: Sequence[int] | None) -> dict[str, Attribute]:
    """Return the lists that are given, as properties of an op."""
    return {name: axes_attr(each) for name, each in numbers.items() if each is not None}


def int_attr(number: int) -> IntegerAttr[IntegerType]:
    """Return ``number`` as the property of an op."""
    return IntegerAttr(number, i64)


def axes_or(attribute: Axes | None, usual: Shape) -> Shape:
    """Return the numbers of a property, or ``usual`` if it is missing."""
    return usual if attribute is None else axes(attribute)


def axes(attribute: Axes) -> Shape:
    """Return the numbers of a property made by `axes_attr`."""
    return tuple(attribute.get_values())


def element(value: SSAValue) -> Attribute:
    """Return the element type of a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type.element_type


def shape_of(value: SSAValue) -> Shape:
    """Return the shape of a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type.get_shape()


_INSERTED = ", not values; nd.dynamic_update_slice puts x into an nd.full whose sizes a call tells"
_SAID_BY = {
    "low": _INSERTED,
    "high": _INSERTED,
    "sizes": ", not values; sizes that a call tells are written sizes(4, %n), before the braces",
}
"""The suggestion for each attribute if a list contains SSA values instead of numbers."""


def parse_fields(parser: Parser) -> dict[str, Attribute]:
    """Parse ``{axis = 1, low = [0, 1], reverse}`` if present."""

    def parse_field() -> tuple[str, Attribute]:
        name = parser.parse_identifier()
        if parser.parse_optional_punctuation("=") is None:
            return name, UnitAttr()
        try:
            return name, _dense(parser.parse_attribute())
        except ParseError:
            token = parser._current_token  # pyright: ignore[reportPrivateUsage]
            if token.kind is MLIRTokenKind.PERCENT_IDENT:
                parser.raise_error(f"{name} holds numbers{_SAID_BY.get(name, '')}")
            raise

    fields = parser.parse_optional_comma_separated_list(parser.Delimiter.BRACES, parse_field)
    return dict(fields or ())


def print_fields(printer: Printer, fields: Mapping[str, Attribute]) -> None:
    """Print the form that `parse_fields` reads; nothing for no fields."""
    if not fields:
        return

    def print_field(field: tuple[str, Attribute]) -> None:
        name, value = field
        printer.print_string(name)
        if not isinstance(value, UnitAttr):
            printer.print_string(" = ")
            _print_value(printer, value)

    printer.print_string(" {")
    printer.print_list(fields.items(), print_field)
    printer.print_string("}")


def _dense(value: Attribute) -> Attribute:
    """Return a list of plain integers as a dense array, any other attribute unchanged."""
    if not isinstance(value, ArrayAttr):
        return value
    numbers = [n.value.data for n in value if isinstance(n, IntegerAttr) and n.type == i64]
    return axes_attr(numbers) if len(numbers) == len(value) else value


def _print_value(printer: Printer, value: Attribute) -> None:
    if isinstance(value, IntegerAttr) and value.type == i64:
        printer.print_string(str(value.value.data))
    elif isinstance(value, DenseArrayBase):
        printer.print_string(f"[{', '.join(map(str, value.get_values()))}]")
    elif isinstance(value, FloatAttr) and value.type == f64 and isfinite(value.value.data):
        number, e, power = repr(value.value.data).partition("e")
        printer.print_string(f"{number}{e and '.0' * ('.' not in number)}{e}{power}")
    else:
        printer.print_attribute(value)


class SpelledOp(NdOp, ABC):
    """An op without regions in the usual syntax.

    Properties equal to their `defaults` are not printed.
    """

    @classmethod
    def defaults(cls) -> Mapping[str, Attribute]:
        """Return the defaults of properties."""
        properties = cls.get_irdl_definition().properties
        return {k: p.default_value for k, p in properties.items() if p.default_value is not None}

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b {fields} : types``."""
        at = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        inputs, outputs = parse_types(parser, len(operands or ()))
        values = parser.resolve_operands(operands or (), inputs, at)
        known = set(cls.get_irdl_definition().properties)
        return cls.create(
            operands=values,
            result_types=outputs,
            properties=dict(cls.defaults()) | {k: v for k, v in fields.items() if k in known},
            attributes={k: v for k, v in fields.items() if k not in known},
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        plain = self.defaults()
        written = {k: v for k, v in self.properties.items() if plain.get(k) != v}
        print_fields(printer, {**written, **self.attributes})
        printer.print_string(" : ")
        print_types(printer, self.operand_types, self.result_types)


def parse_types(parser: Parser, operands: int) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    """Parse ``T`` (all equal), ``T -> R`` (one operand) or a function type."""
    type = parser.parse_optional_type()
    if type is None:  # only for a parenthesis that opens no type, which xDSL reports itself
        parser.raise_error("type expected")
    if isinstance(type, FunctionType):
        return type.inputs.data, type.outputs.data
    if operands == 1 and parser.parse_optional_punctuation("->"):
        return (type,), (parser.parse_type(),)
    return (type,) * operands, (type,)


def print_types(
    printer: Printer, operands: Sequence[Attribute], results: Sequence[Attribute]
) -> None:
    """Print the form that `parse_types` reads."""
    if len(results) == 1 and all(t == results[0] for t in operands):
        printer.print_attribute(results[0])
    elif len(results) == 1 and len(operands) == 1:
        printer.print_attribute(operands[0])
        printer.print_string(" -> ")
        printer.print_attribute(results[0])
    else:
        printer.print_function_type(list(operands), list(results))
