"""The syntax that control-flow ops share: bindings, results, groups of sizes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

INDEX = IndexType()


def parse_results(parser: Parser) -> Sequence[Attribute]:
    """Parse ``-> T, U`` if present."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def print_results(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print the form that `parse_results` reads."""
    if types:
        printer.print_string(" -> ")
        printer.print_list(types, printer.print_attribute)


def parse_attributes(parser: Parser) -> dict[str, Attribute]:
    """Parse ``attributes {...}`` if present."""
    found = parser.parse_optional_attr_dict_with_keyword()
    return dict(found.data) if found else {}


def parse_bindings(
    parser: Parser,
) -> tuple[list[Parser.UnresolvedArgument], list[UnresolvedOperand]]:
    """Parse ``(%inside = %outside, ...)``."""

    def binding() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        name = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return name, parser.parse_unresolved_operand()

    found = parser.parse_comma_separated_list(parser.Delimiter.PAREN, binding)
    return [name for name, _ in found], [value for _, value in found]


def print_bindings(
    printer: Printer, block: Block, values: Sequence[SSAValue], first: int = 0
) -> None:
    """Print the form that `parse_bindings` reads, from block argument ``first`` on."""

    def binding(pair: tuple[SSAValue, SSAValue]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(" = ")
        printer.print_ssa_value(pair[1])

    inside = block.args[first : first + len(values)]
    printer.print_string("(")
    printer.print_list(list(zip(inside, values, strict=True)), binding)
    printer.print_string(")")


def parse_group(parser: Parser, keyword: str) -> Sequence[SSAValue]:
    """Parse ``keyword(%n, %m)``, index values, if present."""
    if parser.parse_optional_keyword(keyword) is None:
        return []
    found = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_unresolved_operand
    )
    return [parser.resolve_operand(v, INDEX) for v in found]


def print_group(printer: Printer, keyword: str, values: Sequence[SSAValue]) -> None:
    """Print the form that `parse_group` reads; nothing without values."""
    if values:
        printer.print_string(f" {keyword}(")
        printer.print_list(values, printer.print_ssa_value)
        printer.print_string(")")
