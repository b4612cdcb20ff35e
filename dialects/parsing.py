"""Read textual IR: every op gets its line and column, every error one clear diagnostic."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import accumulate
from math import prod
from typing import Any, NoReturn, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    FloatAttr,
    IntAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    UnregisteredOp,
)
from xdsl.ir import Operation, SSAValue
from xdsl.parser import UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from stepwell.core.diagnostics import CompileError, Diagnostic, Place, did_you_mean
from stepwell.core.plugins import with_broken
from stepwell.dialects.completed_parser import CompletedParser, as_text, end_implicitly
from stepwell.dialects.faults import in_words, sentence
from stepwell.dialects.lexing import QuickLexer
from stepwell.dialects.lists import array_at, attributes_at, elements_at, fits
from stepwell.dialects.resources import keep_resources
from stepwell.dialects.spellings import RESPELLED
from stepwell.dialects.types import UNKNOWN, UNSUPPORTED_FLOATS

_T = r"tensor<[\w?]*>"
_TENSOR = re.compile(_T, re.ASCII)
_FUNCTION = re.compile(rf"\((?:{_T}(?:, {_T})*)?\) -> (?:{_T}|\({_T}(?:, {_T})*\))", re.ASCII)
_LOCATION = re.compile(r'loc\("[^"\\\n]*":\d+:\d+\)', re.ASCII)
"""A location; types and locations that repeat are parsed once."""
_OP_NAME = re.compile(r'(?:%[^=]*=\s*)?"?([\w.$]+)', re.ASCII)
"""The beginning of an op through its name."""
_UNEXPECTED = re.compile(r"unexpected attribute (.*)")
"""xDSL's message for a type or attribute that an op cannot have."""
_NO_CUSTOM_FORM = re.compile(r"Operation (\S+) does not have a custom format\.?")
_SPLAT = re.compile(r"<\s*[-\w.+]+\s*>\s*:", re.ASCII)
MOST_BYTES = 1 << 31
"""Maximum bytes of a constant in a text; a splat counts with all its elements."""
_BLOB = re.compile(r"0[xX](?:[0-9a-fA-F]{2})+")
_TOKEN = re.compile(
    r"^(un)?expected|expected$|could not parse|not registered|re-declaration", re.IGNORECASE
)
"""xDSL's messages about the next token; all others are about the text before it."""

_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?)?")
_WIDTH = re.compile(r"[su]?i(\d+)", re.ASCII)
WIDEST = 2**24 - 1
"""The maximum width in bits of an integer type, as in MLIR."""


class Source:
    """A text, or the part of a file that begins at ``first_line``; gives lines and columns."""

    def __init__(self, text: str, name: str, first_line: int) -> None:
        self.text = text
        self.name = name
        self._first_line = first_line
        self._line_starts = [0, *accumulate(len(row) for row in text.splitlines(keepends=True))]

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column, from 1, of an offset in the text."""
        row = bisect_right(self._line_starts, offset) - 1
        return row + self._first_line, offset - self._line_starts[row] + 1

    def fail(self, message: str, span: Any, help: str = "") -> NoReturn:
        """Raise an error at ``span``."""
        raise CompileError(Diagnostic("error", message, self.place(span), help=help))

    def place(self, span: Any) -> Place:
        """Return a span as a place, cut at the end of its line."""
        line, column = self.position(span.start)
        stop = self.text.find("\n", span.start)
        width = min(span.end, stop if stop >= 0 else len(self.text)) - span.start
        return Place(self.name, line, column, max(width, 1))


class LocatedParser(CompletedParser):
    """xDSL's parser, which also records the location of each op and each undefined value."""

    def __init__(self, ctx: Context, source: Source) -> None:
        super().__init__(ctx, "", source.name)
        self._parser_state = ParserState(QuickLexer(Input(source.text, source.name)))
        self._read: dict[str, Any] = {}
        self.source = source
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

    def parse_optional_attribute(self) -> Any:
        """Parse as xDSL does, but report errors at the attribute."""
        start = self._current_token.span.start
        if self._current_token.kind is MLIRTokenKind.L_SQUARE:
            found = attributes_at(self.source.text, start)
            if found is not None:
                self._resume_from(found[1])
                return found[0]
        try:
            found = super().parse_optional_attribute()
        except Exception as error:
            self._refuse_part(start, error)
        if type(found) is BytesAttr:
            return as_text(found)
        if type(found) is FloatAttr and isinstance(found.type, UNSUPPORTED_FLOATS):
            self._check_exact(found, start)
        return found

    def _check_exact(self, number: FloatAttr[Any], start: int) -> None:
        """Refuse a number that f64, in which xDSL stores all floats, cannot represent."""
        match = _DECIMAL.match(self.source.text, start)
        if match is None or Decimal(match[0]) != Decimal(number.value.data):
            here = Span(start, match.end() if match else start + 1, self.here.input)
            said = f"only numbers that f64 has too can be read as {number.type}"
            self.source.fail(said, here)

    def _refuse_part(self, start: int, error: Exception) -> NoReturn:
        """Raise an error at the attribute or type that begins at ``start``."""
        if isinstance(error, CompileError | RecursionError):
            raise error
        if isinstance(error, ParseError) and self._is_about_the_token(error):
            raise error
        said = sentence(error.msg) if isinstance(error, ParseError) else in_words(error)
        raise self._refused(start, said) from error

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> Any:
        """Parse as xDSL does, but expand a splat without a list of its elements."""
        if type is None and (found := self._long_dense()) is not None:
            return found
        if type is not None or _SPLAT.match(self.source.text, self.pos) is None:
            return super().parse_dense_int_or_fp_elements_attr(type)
        self.parse_punctuation("<")
        element = self._parse_tensor_literal_element()
        self.parse_punctuation(">")
        self.parse_punctuation(":")
        type = self._parse_dense_literal_type()
        one: Any = TensorType(type.element_type, [1])
        number: Any = element.to_type(self, type.element_type)
        value = DenseIntOrFPElementsAttr.from_list(one, [number])
        return DenseIntOrFPElementsAttr(type, BytesAttr(value.data.data * prod(type.get_shape())))

    def _long_dense(self) -> Any:
        """Return a dense attribute of many plain numbers, or None with no input consumed."""
        start = self.pos
        if (found := elements_at(self.source.text, start)) is None:
            return None
        shape, values, end = found
        self._resume_from(end)
        type = self._parse_dense_literal_type()
        if shape == [*type.get_shape()] and fits(values, type.element_type):
            numbers: Any = values
            return DenseIntOrFPElementsAttr.from_list(type, numbers)
        self._resume_from(start)
        return None

    def _parse_builtin_densearray_attr(self) -> Any:
        if (found := array_at(self.source.text, self.pos)) is None:
            return super()._parse_builtin_densearray_attr()
        kind, values, end = found
        self._resume_from(end)
        return DenseArrayBase.from_list(kind, values)

    def _parse_dense_literal_type(self) -> Any:
        found = super()._parse_dense_literal_type()
        size = prod(found.get_shape()) * found.element_type.compile_time_size
        if size > MOST_BYTES:
            said = f"a constant of {size} bytes, where {MOST_BYTES} are the most"
            self.raise_error(said)
        return found

    def _is_about_the_token(self, error: ParseError) -> bool:
        """Whether an error is about the current token, not about the text before it."""
        return error.span.start != self.here.start or bool(_TOKEN.search(error.msg))

    def _refused(self, start: int, message: str) -> CompileError:
        """Return an error about the text from ``start`` to the current position."""
        end = self._end_before_here(start)
        whole = type(self.here)(start, max(end, start + 1), self.here.input)
        return CompileError(Diagnostic("error", message, self.source.place(whole)))

    def _refuse_op(self, start: int, error: Exception) -> NoReturn:
        """Raise an error at the op that begins at ``start``, or at the part the error names."""
        said, end = in_words(error), self._end_before_here(start)
        match = _OP_NAME.match(self.source.text, start)
        first, last = match.span(1) if match else (start, start + 1)
        name = match[1] if match else "op"
        if (named := _UNEXPECTED.fullmatch(said)) is not None:
            said = f"{named[1]} is not what may stand here"
            found = self.source.text.rfind(named[1], last, end)
            if found >= 0:
                first, last = found, found + len(named[1])
        where = self.source.place(type(self.here)(first, last, self.here.input))
        raise CompileError(Diagnostic("error", f"'{name}': {said}", where)) from error

    def _end_before_here(self, start: int) -> int:
        """Return the end of the last token read since ``start``."""
        here, end = self.here.start, start
        lexer = QuickLexer(self.here.input)
        lexer.pos = start
        try:
            while (token := lexer.lex()).span.end <= here and token.kind != MLIRTokenKind.EOF:
                end = token.span.end
        except ParseError:  # already reported
            pass
        return end

    def parse_optional_type(self) -> Any:
        """Parse as xDSL does, but look up a tensor type whose text was read before."""
        start = self._current_token.span.start
        try:
            return self._cached(_TENSOR, super().parse_optional_type)
        except Exception as error:
            self._refuse_part(start, error)

    def parse_optional_function_type(self) -> Any:
        """Parse as xDSL does, but look up a type whose text was read before."""
        return self._cached(_FUNCTION, super().parse_optional_function_type)

    def parse_optional_location(self) -> Any:
        """Parse as xDSL does, but look up a location whose text was read before."""
        return self._cached(_LOCATION, super().parse_optional_location)

    def _parse_optional_integer_or_float_type(self) -> Any:
        """Parse as xDSL does, but limit the width of integers as MLIR does."""
        width = _WIDTH.match(self.source.text, self._current_token.span.start)
        if width is not None and (len(width[1]) > 8 or int(width[1]) > WIDEST):
            wide = f"an integer of {width[1][:20]} bits"
            self.source.fail(f"{wide} is wider than any may be, {WIDEST}", self._current_token.span)
        return super()._parse_optional_integer_or_float_type()

    def _cached(self, pattern: re.Pattern[str], parse: Callable[[], Any]) -> Any:
        """Return the cached result for this text, or parse it and cache the result."""
        match = pattern.match(self.source.text, self._current_token.span.start)
        if match is None:
            return parse()
        text = match.group()
        found = self._read.get(text)
        if found is None:
            found = self._read[text] = parse()
        else:
            self._resume_from(match.end())
        return found

    @property
    def here(self) -> Any:
        """The span of the current token."""
        return self._current_token.span

    @property
    def at_end(self) -> bool:
        """Whether the whole text has been read."""
        return self._current_token.kind == MLIRTokenKind.EOF

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
