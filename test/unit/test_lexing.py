"""The quick lexer gives what xDSL's lexer gives, on every text we have and on odd ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from stepwell.dialects.lexing import QuickLexer

ROOT = Path(__file__).parent.parent
ODD = (
    "",
    " \n",
    "// only words",
    "//x\n//y\r\n\t a",
    "%0#1 %a.b$c-d %-x % y",
    "{-# #-} {- -> - -1 -->",
    "... .. .",
    'é ß "ü\\0A" @a @"b c" #x !y ^z',
    "0x1F 1.5e-3 4x4xf32 1:2 a:b a-b a.b.c",
    "[]{}()<>=+/*?|",
    "a//b\n/c",
    "\x0b\x0c a",
)


def tokens(lexer: MLIRLexer) -> list[tuple[MLIRTokenKind | str, int, int]]:
    found: list[tuple[MLIRTokenKind | str, int, int]] = []
    while not found or found[-1][0] != MLIRTokenKind.EOF:
        try:
            token = lexer.lex()
        except ParseError as error:
            return [*found, (error.msg, error.span.start, error.span.end)]
        found.append((token.kind, token.span.start, token.span.end))
    return found


@pytest.mark.parametrize("text", ODD)
def test_odd_texts(text: str) -> None:
    assert tokens(QuickLexer(Input(text, ""))) == tokens(MLIRLexer(Input(text, "")))


def test_every_file() -> None:
    files = sorted(ROOT.rglob("*.mlir"))
    assert len(files) > 20
    for file in files:
        text = file.read_text(errors="replace")[:20_000]
        assert tokens(QuickLexer(Input(text, ""))) == tokens(MLIRLexer(Input(text, ""))), file
