"""The quick lexer gives what xDSL's lexer gives, on every text we have and on odd ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from stepwell.dialects.lexing import QuickLexer
from stepwell.dialects.parsing import parse_module
from stepwell.driver.registry import registry

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


def test_properties_that_repeat() -> None:
    """They are looked up by their text, unless a comment may end it; each op has its own."""
    lines = [
        '%a = "nd.full"() <{value = 0.5 : f32}> : () -> tensor<f32>',
        '%b = "nd.full"() <{value = 0.5 : f32}> : () -> tensor<f32>',
        '%c = "nd.full"() <{value = 1.5 // }>\n : f32}> : () -> tensor<f32>',
        '%d = "nd.full"() <{value = 1.5 // }>\n : f64}> : () -> tensor<f64>',
    ]
    text = "\n".join(["func.func @f() {", *lines, "func.return", "}"])
    module = parse_module(registry().context(), text, "")
    ops = [op for op in module.walk() if op.name == "nd.full"]
    found = [str(op.properties["value"]) for op in ops]
    assert found == ["5.000000e-01 : f32"] * 2 + ["1.500000e+00 : f32", "1.500000e+00 : f64"]
    del ops[0].properties["value"]
    assert "value" in ops[1].properties
