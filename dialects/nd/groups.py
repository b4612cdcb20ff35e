"""The syntax of ops whose last operands form a group: ``nd.name %x, sizes(%n, %m) {...} : T``."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from stepwell.core.shapes import Shape
from stepwell.dialects.nd.syntax import (
    SpelledOp,
    element,
    parse_fields,
    parse_types,
    print_fields,
    print_types,
)

INDEX = IndexType()


def like(x: SSAValue, shape: Shape) -> TensorType[Attribute]:
    """Return a tensor type with the element type of ``x`` and another shape."""
    return TensorType(element(x), shape)


class GroupedOp(SpelledOp, ABC):
    """An op whose last, variadic operand is written as a group after a keyword.

    A group called ``sizes`` holds `index` values, whose types are omitted.
    """

    GROUP: ClassVar[str] = "sizes"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b, group(%c, %d) {fields} : types``."""
        at = parser.pos
        first = [parser.parse_unresolved_operand()]
        last: list[Any] = []
        while parser.parse_optional_punctuation(","):
            if parser.parse_optional_keyword(cls.GROUP) is None:
                first.append(parser.parse_unresolved_operand())
                continue
            last = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )
            break
        fields = parse_fields(parser)
        parser.parse_punctuation(":")
        sized = cls.GROUP == "sizes"
        inputs, outputs = parse_types(parser, len(first) if sized else len(first) + len(last))
        types = [*inputs, *(INDEX for _ in last)] if sized else inputs
        known = set(cls.get_irdl_definition().properties)
        return cls.create(
            operands=parser.resolve_operands([*first, *last], types, at),
            result_types=outputs,
            properties=dict(cls.defaults()) | {k: v for k, v in fields.items() if k in known},
            attributes={k: v for k, v in fields.items() if k not in known},
        )

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        last = len(self.operands) - len(getattr(self, self.GROUP))
        printer.print_string(" ")
        printer.print_list(self.operands[:last], printer.print_ssa_value)
        if last < len(self.operands):
            printer.print_string(f", {self.GROUP}(")
            printer.print_list(self.operands[last:], printer.print_ssa_value)
            printer.print_string(")")
        written = {k: v for k, v in self.properties.items() if self.defaults().get(k) != v}
        print_fields(printer, {**written, **self.attributes})
        printer.print_string(" : ")
        types = self.operand_types[:last] if self.GROUP == "sizes" else self.operand_types
        print_types(printer, types, self.result_types)
