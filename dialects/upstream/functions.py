"""Declarations of functions keep the attributes of their arguments and results.

xDSL drops those of unnamed arguments when it reads, and prints a declaration by its type alone; for
other users of xDSL it still does. Here the syntax is
``func.func private @f(f32 {llvm.noalias}) -> (i32 {llvm.zeroext})``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from xdsl.dialects import utils
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.utils import format
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from stepwell.dialects.parsing import LocatedParser
from stepwell.dialects.printing import ElidingPrinter

_xdsl_parse: Any = format.parse_func_op_like
_xdsl_print: Any = format.print_func_op_like


class _Listening:
    """A parser that records the attributes after types and names of arguments."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.nameless: list[dict[str, Attribute]] = []
        self._waiting = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.parser, name)

    def parse_optional_type(self) -> Any:
        """Parse the type of an unnamed argument."""
        self._waiting = True
        return self.parser.parse_optional_type()

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        """Parse attributes, and record those of an unnamed argument."""
        found = self.parser.parse_optional_dictionary_attr_dict()
        if self._waiting:
            self.nameless.append(found)
        self._waiting = False
        return found


def _parse(parser: Any, *, reserved_attr_names: Sequence[str], **options: Any) -> Any:
    if not isinstance(parser, LocatedParser):
        return _xdsl_parse(parser, reserved_attr_names=reserved_attr_names, **options)
    listening = _Listening(parser)
    found = list(_xdsl_parse(listening, reserved_attr_names=reserved_attr_names, **options))
    if found[5] is None and any(listening.nameless):
        found[5] = ArrayAttr([DictionaryAttr(each) for each in listening.nameless])
    return tuple(found)


def _print(
    printer: Printer,
    sym_name: Any,
    function_type: Any,
    body: Any,
    attributes: Any,
    *,
    arg_attrs: Any = None,
    res_attrs: Any = None,
    is_variadic: bool = False,
    **options: Any,
) -> None:
    """Print as xDSL does, but a declaration with attributes of arguments or results in full."""
    notes = {"arg_attrs": arg_attrs, "res_attrs": res_attrs}
    ours = isinstance(printer, ElidingPrinter)
    if not ours or body.blocks or is_variadic or not any(notes.values()):
        rest = {**notes, "is_variadic": is_variadic, **options}
        _xdsl_print(printer, sym_name, function_type, body, attributes, **rest)
        return
    printer.print_string(" ")
    printer.print_symbol_name(sym_name.data)
    with printer.in_parens():
        _print_types(printer, function_type.inputs.data, arg_attrs)
    if outputs := function_type.outputs.data:
        printer.print_string(" -> ")
        with printer.in_parens():
            _print_types(printer, outputs, res_attrs)
    printer.print_op_attributes(
        attributes, reserved_attr_names=options["reserved_attr_names"], print_keyword=True
    )


def _print_types(printer: Printer, types: Sequence[Attribute], notes: Any) -> None:
    given = notes.data if notes is not None else [None] * len(types)
    pairs = [*zip(types, given, strict=True)]
    printer.print_list(pairs, lambda pair: format.print_func_output(printer, *pair))


def _install() -> None:
    """Replace both functions in their module and wherever they have been imported."""
    for module in [format, utils, *sys.modules.values()]:
        if not getattr(module, "__name__", "").startswith("xdsl."):
            continue
        for name, old, new in (
            ("parse_func_op_like", _xdsl_parse, _parse),
            ("print_func_op_like", _xdsl_print, _print),
        ):
            if module.__dict__.get(name) is old:
                setattr(module, name, new)


_install()
