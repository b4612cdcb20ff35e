"""MLIR's custom syntax for upstream ops that xDSL can only read and print in generic form.

It covers scf.parallel, memref.global, memref.copy, memref.cast, and linalg.generic with several
results. mlir-opt reads the printed text; xDSL's own printer is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from stepwell.dialects.printing import PRINTERS


def _install(op: type[Operation], parse: Any, print: Any = None) -> None:
    setattr(op, "parse", classmethod(parse))  # noqa: B010  assigning would not type-check
    if print is not None:
        PRINTERS[op.name] = print


# scf.parallel (%i) = (%lo) to (%hi) step (%by) init (%x) -> f32 { ... } {attributes}


def _print_parallel(self: scf.ParallelOp, printer: Printer) -> None:
    def values(label: str, operands: Sequence[SSAValue]) -> None:
        printer.print_string(label)
        with printer.in_parens():
            printer.print_list(operands, printer.print_ssa_value)

    values(" ", self.body.block.args)
    values(" = ", self.lowerBound)
    values(" to ", self.upperBound)
    values(" step ", self.step)
    if self.initVals:
        values(" init ", self.initVals)
        printer.print_string(" -> ")
        printer.print_list(self.res.types, printer.print_attribute)
    printer.print_string(" ")
    printer.print_region(self.body, print_entry_block_args=False)
    printer.print_op_attributes(self.attributes)


def _parse_parallel(cls: type[scf.ParallelOp], parser: Parser) -> scf.ParallelOp:
    paren = parser.Delimiter.PAREN

    def values() -> list[UnresolvedOperand]:
        return parser.parse_comma_separated_list(paren, parser.parse_unresolved_operand)

    def indices() -> Sequence[SSAValue]:
        position = parser.pos
        names = values()
        return parser.resolve_operands(names, [IndexType()] * len(names), position)

    arguments = parser.parse_comma_separated_list(
        paren, lambda: parser.parse_argument(expect_type=False)
    )
    parser.parse_punctuation("=")
    lower = indices()
    parser.parse_keyword("to")
    upper = indices()
    parser.parse_keyword("step")
    step = indices()
    initial: Sequence[SSAValue] = ()
    if parser.parse_optional_keyword("init"):
        position, names = parser.pos, values()
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        initial = parser.resolve_operands(names, types, position)
    body = parser.parse_region([a.resolve(IndexType()) for a in arguments])
    if body.block.last_op is None or not isinstance(body.block.last_op, scf.ReduceOp):
        body.block.add_op(scf.ReduceOp())
    op = cls(lower, upper, step, body, initial)
    op.attributes |= parser.parse_optional_attr_dict()
    return op


# memref.global "private" constant @name : memref<2xf32> = dense<...> {attributes}


def _print_global(self: memref.GlobalOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_string_literal(self.sym_visibility.data)
    printer.print_string(" ")
    if self.constant is not None:
        printer.print_string("constant ")
    printer.print_symbol_name(self.sym_name.data)
    printer.print_string(" : ")
    printer.print_attribute(self.type)
    printer.print_string(" = ")
    if isinstance(value := self.initial_value, DenseIntOrFPElementsAttr):
        printer.print_string("dense<")
        _print_elements(value, printer)
        printer.print_string(">")
    else:
        printer.print_string("uninitialized")
    extra = dict(self.attributes)
    if self.alignment is not None:
        extra["alignment"] = self.alignment
    printer.print_op_attributes(extra)


def _print_elements(value: DenseIntOrFPElementsAttr[Any], printer: Printer) -> None:
    """Print the elements as the attribute does, without its ``dense<`` and type."""
    printer.print_string(str(value).removeprefix("dense<").rpartition("> : ")[0])


def _parse_global(cls: type[memref.GlobalOp], parser: Parser) -> memref.GlobalOp:
    visibility = parser.parse_optional_str_literal() or "public"
    constant = UnitAttr() if parser.parse_optional_keyword("constant") else None
    name = parser.parse_symbol_name()
    parser.parse_punctuation(":")
    position = parser.pos
    type = parser.parse_type()
    if not isinstance(type, MemRefType):
        parser.raise_error("the type of a memref.global must be a memref", position)
    if parser.parse_optional_punctuation("=") is None:
        parser.raise_error(
            "a memref.global without a value, defined elsewhere, cannot be read", position
        )
    value: Attribute = UnitAttr()
    if not parser.parse_optional_keyword("uninitialized"):
        tensor = TensorType(type.element_type, type.get_shape())
        parser.parse_keyword("dense")
        value = parser.parse_dense_int_or_fp_elements_attr(tensor)
    attributes = parser.parse_optional_attr_dict()
    alignment: Any = attributes.pop("alignment", None)
    op = cls.get(name, type, value, StringAttr(visibility), constant, alignment)
    op.attributes |= attributes
    return op


# memref.copy %a, %b : memref<4xf32> to memref<4xf32>        memref.cast %a : A to B


def _print_types(printer: Printer, *types: Attribute) -> None:
    printer.print_string(" : ")
    printer.print_list(types, printer.print_attribute, " to ")


def _parse_types(parser: Parser) -> tuple[Attribute, Attribute]:
    parser.parse_punctuation(":")
    before = parser.parse_type()
    parser.parse_keyword("to")
    return before, parser.parse_type()


def _print_copy(self: memref.CopyOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(self.operands, printer.print_ssa_value)
    printer.print_op_attributes(self.attributes)
    _print_types(printer, self.source.type, self.destination.type)


def _parse_copy(cls: type[memref.CopyOp], parser: Parser) -> memref.CopyOp:
    position = parser.pos
    source = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    destination = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    types = _parse_types(parser)
    op = cls(*parser.resolve_operands([source, destination], types, position))
    op.attributes |= attributes
    return op


def _print_cast(self: memref.CastOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(self.source)
    printer.print_op_attributes(self.attributes)
    _print_types(printer, self.source.type, self.dest.type)


def _parse_cast(cls: type[memref.CastOp], parser: Parser) -> memref.CastOp:
    name = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    before, after = _parse_types(parser)
    op = cls.build(operands=[parser.resolve_operand(name, before)], result_types=[after])
    op.attributes |= attributes
    return op


# linalg.generic {...} ins(...) outs(...) attrs = {...} { ... } -> (A, B)


def _parse_generic(cls: type[linalg.GenericOp], parser: Parser) -> linalg.GenericOp:
    position = parser.pos
    attributes = parser.parse_optional_attr_dict()
    for needed in ("indexing_maps", "iterator_types"):
        if needed not in attributes:
            parser.raise_error(f"linalg.generic needs {needed}", position, parser.pos)
    maps, iterators = attributes.pop("indexing_maps"), attributes.pop("iterator_types")
    if not isinstance(maps, ArrayAttr) or not isinstance(iterators, ArrayAttr):
        parser.raise_error("indexing_maps and iterator_types must be lists", position, parser.pos)
    kinds = [_iterator(kind, parser, position) for kind in iterators]
    inputs = _parse_generic_operands(parser, "ins")
    outputs = _parse_generic_operands(parser, "outs")
    extra: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("attrs"):
        parser.parse_punctuation("=")
        extra = parser.parse_optional_attr_dict()
    body = parser.parse_region()
    results: Sequence[Attribute] = ()
    if parser.parse_optional_punctuation("->"):
        results = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        ) or [parser.parse_type()]
    doc: Any = attributes.pop("doc", None)
    call: Any = attributes.pop("library_call", None)
    op = cls(inputs, outputs, body, maps, kinds, results, doc, call)
    op.attributes |= attributes | extra
    return op


def _iterator(kind: Attribute, parser: Parser, position: int) -> IteratorTypeAttr:
    if isinstance(kind, IteratorTypeAttr):
        return kind
    if isinstance(kind, StringAttr) and kind.data in list(IteratorType):
        return IteratorTypeAttr(IteratorType(kind.data))
    parser.raise_error(f"unknown iterator type {kind}", position, parser.pos)


def _parse_generic_operands(parser: Parser, keyword: str) -> Sequence[SSAValue]:
    position = parser.pos
    if not parser.parse_optional_keyword(keyword):
        return ()
    none = parser.Delimiter.NONE
    with parser.in_parens():
        names = parser.parse_comma_separated_list(none, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(none, parser.parse_type)
    return parser.resolve_operands(names, types, position)


_install(scf.ParallelOp, _parse_parallel, _print_parallel)
_install(memref.GlobalOp, _parse_global, _print_global)
_install(memref.CopyOp, _parse_copy, _print_copy)
_install(memref.CastOp, _parse_cast, _print_cast)
_install(linalg.GenericOp, _parse_generic)
