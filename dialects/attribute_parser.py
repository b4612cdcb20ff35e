"""Read attributes and types: errors at their text, long lists and repeated types quickly."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal
from itertools import accumulate
from math import prod
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    TensorType,
)
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from stepwell.core.diagnostics import CompileError, Diagnostic, Place
from stepwell.dialects.completed_parser import CompletedParser, as_text
from stepwell.dialects.faults import in_words, sentence
from stepwell.dialects.lexing import QuickLexer
from stepwell.dialects.lists import array_at, attributes_at, elements_at, fits
from stepwell.dialects.types import UNSUPPORTED_FLOATS

_T = r"tensor<[\w?]*>"
_TENSOR = re.compile(_T, re.ASCII)
_FUNCTION = re.compile(rf"\((?:{_T}(?:, {_T})*)?\) -> (?:{_T}|\({_T}(?:, {_T})*\))", re.ASCII)
_LOCATION = re.compile(r'loc\("[^"\\\n]*":\d+:\d+\)', re.ASCII)
_PROPERTIES = re.compile(r"<\{[^\"{}#!@/]*+\}>")
"""Properties without strings, aliases, nested dictionaries and comments. Types, locations and
properties that repeat are parsed once."""
_SPLAT = re.compile(r"<\s*[-\w.+]+\s*>\s*:", re.ASCII)
MOST_BYTES = 1 << 31
"""Maximum bytes of a constant in a text; a splat counts with all its elements."""
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


class AttributeParser(CompletedParser):
    """xDSL's parser of attributes and types, in a text whose lines are known."""

    def __init__(self, ctx: Context, source: Source) -> None:
        super().__init__(ctx, "", source.name)
        self._parser_state = ParserState(QuickLexer(Input(source.text, source.name)))
        self._read: dict[str, Any] = {}
        self.source = source

    @property
    def here(self) -> Any:
        """The span of the current token."""
        return self._current_token.span

    @property
    def at_end(self) -> bool:
        """Whether the whole text has been read."""
        return self._current_token.kind == MLIRTokenKind.EOF

    # The next three do what xDSL's do, without the calls of properties.

    def _consume_token(self, expected_kind: Any = None) -> Any:
        """Return the current token and read the next one."""
        state = self._parser_state
        token = state.current_token
        assert expected_kind is None or token.kind is expected_kind, f"unexpected {token}"
        state.current_token = state.lexer.lex()
        return token

    def _parse_optional_token(self, expected_kind: Any) -> Any:
        """Return the current token and read the next one, if it is of this kind."""
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def parse_optional_characters(self, text: str) -> str | None:
        """Return the text and read the next token, if it is that of the current one."""
        state = self._parser_state
        span = state.current_token.span
        if span.input.content[span.start : span.end] != text:
            return None
        state.current_token = state.lexer.lex()
        return text

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

    def parse_optional_properties_dict(self) -> dict[str, Any]:
        """Parse as xDSL does, but look up properties whose text was read before."""
        return {**self._cached(_PROPERTIES, super().parse_optional_properties_dict)}

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

    def _refuse_part(self, start: int, error: Exception) -> NoReturn:
        """Raise an error at the attribute or type that begins at ``start``."""
        if isinstance(error, CompileError | RecursionError):
            raise error
        if isinstance(error, ParseError) and self._is_about_the_token(error):
            raise error
        said = sentence(error.msg) if isinstance(error, ParseError) else in_words(error)
        raise self._refused(start, said) from error

    def _is_about_the_token(self, error: ParseError) -> bool:
        """Whether an error is about the current token, not about the text before it."""
        return error.span.start != self.here.start or bool(_TOKEN.search(error.msg))

    def _refused(self, start: int, message: str) -> CompileError:
        """Return an error about the text from ``start`` to the current position."""
        end = self._end_before_here(start)
        whole = type(self.here)(start, max(end, start + 1), self.here.input)
        return CompileError(Diagnostic("error", message, self.source.place(whole)))

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
