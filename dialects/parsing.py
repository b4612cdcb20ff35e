"""Read textual IR: every op gets its line and column, every error one clear diagnostic."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NoReturn, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnregisteredOp,
)
from xdsl.ir import Operation, SSAValue
from xdsl.parser import UnresolvedOperand
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Input, Span

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.core.plugins import with_broken
from stepwell.dialects.attribute_parser import AttributeParser, Source
from stepwell.dialects.completed_parser import end_implicitly
from stepwell.dialects.faults import in_words, sentence
from stepwell.dialects.resources import keep_resources
from stepwell.dialects.spellings import RESPELLED
from stepwell.dialects.types import UNKNOWN

_OP_NAME = re.compile(r'(?:%[^=]*=\s*)?"?([\w.$]+)', re.ASCII)
"""The beginning of an op through its name."""
_UNEXPECTED = re.compile(r"unexpected attribute (.*)")
"""xDSL's message for a type or attribute that an op cannot have."""
_NO_CUSTOM_FORM = re.compile(r"Operation (\S+) does not have a custom format\.?")
_BLOB = re.compile(r"0[xX](?:[0-9a-fA-F]{2})+")


class LocatedParser(AttributeParser):
    """xDSL's parser, which also records the location of each op and each undefined value."""

    def __init__(self, ctx: Context, source: Source) -> None:
        super().__init__(ctx, source)
        self._file = StringAttr(source.name)
        self._uses: dict[str, Any] = {}
        self._definitions: dict[str, Any] = {}
        self.resources: dict[tuple[str, str], str] = {}
        self._generic: Operation | None = None

    def parse_operation(self) -> Operation:
        """Parse one op and set its location, unless its text gives another one."""
        start = self._current_token.span.start
        try:
            op = super().parse_operation()
        except (ParseError, CompileError, RecursionError):
            raise
        except Exception as error:  # a parser failed on input that it does not handle
            self._refuse_op(start, error)
        if op.regions and op is not self._generic:
            end_implicitly(op)
        if op.attributes or op.properties:
            _attributes_to_properties(op)
            self._check_names(op, start)
        if op.location == UNKNOWN:
            line, column = self.source.position(start)
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        return op

    def _parse_generic_operation(self, op_type: Any) -> Operation:
        """Parse as xDSL does, but with MLIR's names of properties."""
        kind = op_type.kind if isinstance(op_type, _CustomSyntax) else op_type
        op = self._generic = super()._parse_generic_operation(kind)
        if (respelled := RESPELLED.get(op.name)) is not None:
            op.properties = respelled.as_xdsl(op.properties)
            op.attributes = respelled.as_xdsl(op.attributes)
        return op

    def _check_names(self, op: Operation, start: int) -> None:
        """Refuse an attribute that is a misspelt property.

        Any op may have discardable attributes. One whose name resembles a missing property is
        refused; for upstream ops, where xDSL may lack a property, only if it is very similar.
        """
        known = _property_names(type(op))
        if known is None or (known.issuperset(op.attributes) and known.issuperset(op.properties)):
            return
        cutoff = 0.8 if is_upstream(type(op)) else 0.6
        for name in (*op.properties, *op.attributes):
            if name in known or "." in name:
                continue
            missing = sorted(known - op.properties.keys() - op.attributes.keys() - _SEGMENTS)
            if help := did_you_mean(name, missing, cutoff):
                found = re.compile(rf"\b{re.escape(name)}\b").search(self.source.text, start)
                span = self.here if found is None else Span(*found.span(), self.here.input)
                self.source.fail(f"'{op.name}' has no property '{name}'", span, help)

    def _refuse_op(self, start: int, error: Exception) -> NoReturn:
        """Raise an error at the op that begins at ``start``, or at the part the error names."""
        said, end = in_words(error), self._end_before_here(start)
        match = _OP_NAME.match(self.source.text, start)
        first, last = match.span(1) if match else (start, start + 1)
        name = match[1] if match else "op"
        if (named := _UNEXPECTED.fullmatch(said)) is not None:
            said = f"{named[1]} is not allowed here"
            found = self.source.text.rfind(named[1], last, end)
            if found >= 0:
                first, last = found, found + len(named[1])
        where = self.source.place(type(self.here)(first, last, self.here.input))
        raise CompileError(Diagnostic("error", f"'{name}': {said}", where)) from error

    def resolve_operand(self, operand: UnresolvedOperand, type: Any) -> SSAValue[Any]:
        """Resolve as xDSL does, and record the first use of an undefined value."""
        name = operand.operand_name
        if name not in self.ssa_values:
            self._uses.setdefault(name, operand.span)
        elif operand.index < len(values := self.ssa_values[name]):
            known = values[operand.index].type
            if known != type:
                self.source.fail(
                    f"%{name} has type {known}, but is used here as {type}", operand.span
                )
        return super().resolve_operand(operand, type)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Any) -> None:
        if name in self.ssa_values and name in self._definitions:
            error = Diagnostic("error", f"%{name} is defined twice", self.source.place(span))
            before = self.source.place(self._definitions[name])
            raise CompileError(error.with_note("it was first defined here", before))
        self._definitions[name] = span
        super()._register_ssa_definition(name, values, span)

    def _parse_resource(self, dialect_name: str, interface: Any) -> None:
        start = self.here
        key = self._parse_dialect_resource_handle(dialect_name, interface)
        self.parse_punctuation(":")
        at, value = self.here, self.parse_str_literal()
        if not _BLOB.fullmatch(value):
            self.source.fail(f"a resource is hex digits behind 0x, '{key}' is not", at)
        if (dialect_name, key) in self.resources:
            self.source.fail(f"there are two resources '{key}'", start)
        self.resources[dialect_name, key] = value

    def _parse_external_resources(self) -> None:
        self.source.fail("external_resources cannot be read, only dialect_resources", self.here)

    def check_all_defined(self) -> None:
        """Raise an error at the first use of a value that is never defined."""
        for name, span in self._uses.items():
            if name in self.forward_ssa_references:
                help = did_you_mean(f"%{name}", [f"%{known}" for known in self._definitions])
                self.source.fail(f"%{name} is used but never defined", span, help)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is not None and not issubclass(found, UnregisteredOp):
            read = READERS.get(found.name)
            return found if read is None else cast(Any, _CustomSyntax(found, read))
        here = self._current_token.span
        start = here.input.content.rfind(name, 0, here.start)
        span = type(here)(start, start + len(name), here.input)
        if found is not None:
            if here.input.content[start - 1 : start] != '"':
                help = f'write "{name}"(...) : (...) -> ...'
                self.source.fail(f"unknown op '{name}': only its generic form is read", span, help)
            return found
        dialect, _, _ = name.partition(".")
        if dialect not in self.ctx.registered_dialect_names:
            help = did_you_mean(dialect, self.ctx.registered_dialect_names)
            message = f"unknown op '{name}': there is no dialect '{dialect}'"
            unknown = Diagnostic("error", message, self.source.place(span), help=help)
            raise CompileError(with_broken(unknown))
        ops = [op.name for op in self.ctx.get_dialect(dialect).operations]
        self.source.fail(f"unknown op '{name}'", span, did_you_mean(name, ops))


READERS: dict[str, Callable[[Any, Any], Operation]] = {}
"""Parsers of custom syntax, by op name, for ops whose xDSL class has none or deviates from MLIR.
A function takes the class and the parser."""


@dataclass(frozen=True)
class _CustomSyntax:
    """A stand-in for an op's class whose custom syntax a function of `READERS` parses."""

    kind: type[Operation]
    read: Callable[[Any, Any], Operation]

    def parse(self, parser: Any) -> Operation:
        """Parse the custom form."""
        return self.read(self.kind, parser)

    def dialect_name(self) -> str:
        """Return the name of the dialect."""
        return self.kind.dialect_name()


def _attributes_to_properties(op: Operation) -> None:
    """Turn attributes that are declared as properties into properties."""
    known = _property_names(type(op))
    if known is None or known.isdisjoint(op.attributes):
        return
    for name in [*op.attributes]:
        if name in type(op).get_irdl_definition().properties and name not in op.properties:  # pyright: ignore
            op.properties[name] = op.attributes.pop(name)


_SEGMENTS = frozenset({"operandSegmentSizes", "resultSegmentSizes"})


@cache
def _property_names(kind: type[Operation]) -> frozenset[str] | None:
    """Return the names of an op's properties and attributes; None if it declares none."""
    definition: Any = getattr(kind, "get_irdl_definition", None)
    if definition is None or issubclass(kind, UnregisteredOp | ModuleOp):
        return None
    found = definition()
    return _SEGMENTS.union(found.properties, found.attributes)


def is_upstream(kind: type[Operation]) -> bool:
    """Whether an op's class is xDSL's, or ours for an op of MLIR that xDSL lacks."""
    return kind.__module__.startswith(("xdsl.", "stepwell.dialects.upstream."))


def parse_module(ctx: Context, text: str, name: str, first_line: int = 1) -> ModuleOp:
    """Parse the text of a module; raise `CompileError` if it is invalid.

    name : the file's name in locations and messages
    first_line : the line of the file at which ``text`` begins
    """
    source = Source(text, name, first_line)
    if not text.strip():
        return ModuleOp([])
    parser = None
    try:
        parser = LocatedParser(ctx, source)
        return _parse(parser)
    except CompileError:
        raise
    except MultipleSpansParseError as error:
        diagnostic = Diagnostic("error", sentence(error.msg), source.place(error.span))
        for span, message in error.refs:
            said = sentence(message or error.ref_text or "see")
            diagnostic = diagnostic.with_note(said, source.place(span))
        raise CompileError(diagnostic) from None
    except ParseError as error:
        if parser is not None and parser.at_end and error.span.start >= parser.here.start:
            end = len(text.rstrip())
            last: Any = replace(error.span, start=end - 1, end=end)
            source.fail("unexpected end of the file", last)
        if (match := _NO_CUSTOM_FORM.fullmatch(error.msg)) is not None:
            start = text.rfind(match[1], 0, error.span.start)
            span: Any = replace(error.span, start=start, end=start + len(match[1]))
            help = f'write "{match[1]}"(...) : (...) -> ...'
            source.fail(f"'{match[1]}' is read in generic form only", span, help)
        said = error.msg.replace("{first_char}", text[error.span.start : error.span.start + 1])
        diagnostic = Diagnostic("error", sentence(said), source.place(error.span))
        unknown = "registered" in error.msg  # an attribute or type that no dialect defines
        raise CompileError(with_broken(diagnostic) if unknown else diagnostic) from None
    except Exception as error:  # outside of all ops: an alias or the file metadata
        here = parser.here if parser is not None else Span(0, 1, Input(text, name))
        raise CompileError(Diagnostic("error", in_words(error), source.place(here))) from error


def _parse(parser: LocatedParser) -> ModuleOp:
    """Parse; report undefined values at their first use."""
    try:
        module = parser.parse_module()
    except ParseError as error:
        if error.msg.startswith("values used but not defined"):
            parser.check_all_defined()
        raise
    keep_resources(module, parser.resources)
    return module
