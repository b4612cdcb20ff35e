"""The syntax of llvm.func as in MLIR, ``llvm.func weak hidden fastcc @f()``; max pooling's body.

xDSL puts the calling convention before the visibility, which MLIR cannot read; and its body of
linalg.pooling_nchw_max compares the image with the window instead of the previous result. Both are
corrected when Stepwell reads and prints text; xDSL's classes are unchanged.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.utils import format
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from stepwell.dialects.parsing import READERS
from stepwell.dialects.printing import PRINTERS

_OWN = ("sym_name", "function_type", "arg_attrs", "res_attrs")
_SPELLED = ("linkage", "CConv", "visibility_", "unnamed_addr")
"""Properties that are part of the heading, before and after the name."""
_VISIBILITIES = ("", "hidden", "protected")
_ADDRESSES = ("", "local_unnamed_addr", "unnamed_addr")


class _Heading:
    """Reads the keywords before the name in MLIR's or in xDSL's order; delegates all else."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._convention: Any = None
        self._visibility: Any = None
        self._address: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def _parse_linkage(self, parser: Parser) -> Any:
        linkage, early = self._kind._parse_linkage(parser), self._kind._parse_cconv(parser)
        self._visibility = self._kind._parse_llvm_visibility(parser)
        self._address = self._kind._parse_llvm_unnamed_addr(parser)
        late = self._kind._parse_cconv(parser)
        self._convention = early if early.convention.data != "ccc" else late
        return linkage

    def _parse_cconv(self, parser: Parser) -> Any:
        return self._convention

    def _parse_llvm_visibility(self, parser: Parser) -> Any:
        return self._visibility

    def _parse_llvm_unnamed_addr(self, parser: Parser) -> Any:
        return self._address


def _read_function(kind: Any, parser: Parser) -> Operation:
    return kind.parse.__func__(_Heading(kind), parser)


def _print_function(op: Any, printer: Printer) -> None:
    """Print a function of the llvm dialect with its keywords in MLIR's order."""
    address = op.unnamed_addr.value.data if op.unnamed_addr is not None else 0
    for word, silent in (
        (op.linkage.linkage.data, "external"),
        (_word(_VISIBILITIES, op.visibility_.value.data, "visibility"), ""),
        (_word(_ADDRESSES, address, "unnamed_addr"), ""),
        (op.CConv.convention.data, "ccc"),
    ):
        if word != silent:
            printer.print_string(f" {word}")
    output = op.function_type.output
    outputs = [] if output.name == "llvm.void" else [output]
    format.print_func_op_like(
        printer,
        op.sym_name,
        FunctionType.from_lists(op.function_type.inputs.data, outputs),
        op.body,
        {**op.attributes, **op.properties},
        arg_attrs=op.arg_attrs,
        res_attrs=op.res_attrs,
        reserved_attr_names=(*_OWN, *_SPELLED),
        is_variadic=op.function_type.is_variadic,
        print_empty_outputs=False,
    )


def _word(words: tuple[str, ...], number: int, what: str) -> str:
    if not 0 <= number < len(words):
        raise ValueError(f"there is no {what} {number}")
    return words[number]


def _read_pooling(kind: Any, parser: Parser) -> Operation:
    """Read as xDSL does; the body is the larger of the image's element and the result so far."""
    op = kind.parse(parser)
    block = op.regions[0].block
    block.first_op.operands[1] = block.args[-1]
    return op


READERS["llvm.func"] = _read_function
PRINTERS["llvm.func"] = _print_function
READERS["linalg.pooling_nchw_max"] = _read_pooling
