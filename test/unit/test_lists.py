"""Long lists are read and printed at once, and are what xDSL makes of them token by token."""

from __future__ import annotations

import io
import random

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.test import Test
from xdsl.parser import Parser
from xdsl.printer import Printer

from stepwell.core.diagnostics import CompileError
from stepwell.dialects.lists import array_at, attributes_at, elements_at
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.printing import text_of

INTEGERS = [*range(-40, 40), 0, -0, 127, -128]
FLOATS = [k / 7 for k in range(-40, 40)] + [1e20, -1e-20, 0.0]


def context() -> Context:
    known = Context()
    known.load_dialect(Builtin)
    known.load_dialect(Test)
    return known


def listed(values: list[int] | list[float], kind: str = "") -> str:
    return ", ".join(f"{v:.6e}{kind}" if isinstance(v, float) else f"{v}{kind}" for v in values)


GOOD = {
    "integers": f"[{listed(INTEGERS)}]",
    "typed": f"[{listed(INTEGERS, ' : i32')}]",
    "index": f"[{listed(INTEGERS, ' : index')}]",
    "floats": f"[{listed(FLOATS)}]",
    "f32": f"[{listed(FLOATS, ' : f32')}]",
    "mixed": f"[{listed(INTEGERS)}, {listed(FLOATS, ' : f32')}]",
    "dense": f"dense<[{listed(INTEGERS)}]> : tensor<{len(INTEGERS)}xi8>",
    "dense floats": f"dense<[{listed(FLOATS[:80])}]> : tensor<80xf16>",
    "dense square": "dense<[" + ", ".join(["[1, 2, 3, 4, 5]"] * 20) + "]> : tensor<20x5xi64>",
    "vector": f"dense<[{listed(FLOATS)}]> : vector<{len(FLOATS)}xf64>",
    "array": f"array<i32: {listed(INTEGERS)}>",
    "array of floats": f"array<f32: {listed(FLOATS)}>",
    "booleans": f"[{', '.join(['true'] * 80)}]",
    "one bit": f"dense<[{', '.join(['1', '0'] * 40)}]> : tensor<80xi1>",
}
WRONG = {
    "shape": f"dense<[{listed(INTEGERS)}]> : tensor<3xi8>",
    "range": f"dense<[{listed([*INTEGERS, 300])}]> : tensor<{len(INTEGERS) + 1}xi8>",
    "integers for floats": f"array<f32: {listed(INTEGERS)}, x>",
    "ragged": "dense<[" + ", ".join(["[1, 2, 3, 4, 5]"] * 20) + ", [1]]> : tensor<21x5xi64>",
    "no point": f"dense<[{', '.join(['1e5'] * 40)}]> : tensor<40xf32>",
    "list that is cut": f"[{listed(INTEGERS)}",
    "too large": f"[{listed(INTEGERS)}, 99999999999999999999999]",
    "array range": f"array<i8: {listed([*INTEGERS, 1000])}>",
}


def ours(text: str) -> ModuleOp:
    return parse_module(context(), f'"test.op"() {{a = {text}}} : () -> ()', "list")


def theirs(text: str) -> ModuleOp:
    return Parser(context(), f'"test.op"() {{a = {text}}} : () -> ()').parse_module()


@pytest.mark.parametrize("name", GOOD)
def test_same(name: str) -> None:
    want, got = theirs(GOOD[name]), ours(GOOD[name])
    assert got.body.block.first_op is not None and want.body.block.first_op is not None
    assert got.body.block.first_op.attributes == want.body.block.first_op.attributes
    stream = io.StringIO()
    Printer(stream).print_op(want)
    assert text_of(got) == f"{stream.getvalue()}\n"


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    with pytest.raises(CompileError):
        ours(WRONG[name])


def test_plain_lists_are_read_at_once() -> None:
    quick = [
        attributes_at(GOOD["mixed"], 0),
        elements_at(GOOD["dense square"] + " :", len("dense")),
        array_at(GOOD["array"], len("array")),
    ]
    assert all(quick)
    assert attributes_at("[1, 2]", 0) is None


def test_any_numbers() -> None:
    rng = random.Random(1)
    for _ in range(50):
        kind, bits = rng.choice((("i8", 7), ("i16", 15), ("i32", 31), ("i64", 63), ("ui8", 8)))
        low = 0 if kind == "ui8" else -(2**bits)
        values = [rng.choice((low, 2**bits - 1, rng.randint(low, 2**bits - 1))) for _ in range(99)]
        text = f"dense<[{listed(values)}]> : tensor<99x{kind}>"
        assert text_of(ours(text)) == text_of(theirs(text))
