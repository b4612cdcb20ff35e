"""Text that somebody might write: a result, or one message at its place, whatever the tool does."""

from __future__ import annotations

import io
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from stepwell.tools.opt import main

DIGITS = "9" * 5000


@dataclass(frozen=True)
class Refused:
    """A text and what is said of it: the place, and a part of the message."""

    text: str
    place: str
    message: str
    more: tuple[str, ...] = ()
    """Options."""


def body(*lines: str, arguments: str = "") -> str:
    """Return a function of these lines."""
    return "\n".join((f"func.func @f({arguments}) {{", *lines, "func.return", "}"))


REFUSED = {
    "load without indices": Refused(
        body("%v = memref.load %m[] : memref<4xf32>", arguments="%m: memref<4xf32>"),
        "2:1",
        "expected an index for each dimension",
    ),
    "float of too many bits": Refused(
        body("%v = arith.constant 0xFFFFFFFFFFFFFFFFFF : f32"), "2:21", "a number is too large"
    ),
    "integer out of range": Refused(
        body("%v = arith.constant 99999999999999999999999999 : i64"),
        "2:21",
        "is out of range for type i64",
    ),
    "integer of many digits": Refused(
        body(f"%v = arith.constant {DIGITS} : i64"), "2:21", "too many digits"
    ),
    "size of many digits": Refused(
        f"func.func private @f(tensor<{DIGITS}xf32>)", "1:22", "too many digits"
    ),
    "width of many digits": Refused(
        f"func.func private @f(i{DIGITS})", "1:22", "is wider than any may be"
    ),
    "dense of many digits": Refused(
        f'"test.op"() {{a = dense<{DIGITS}> : tensor<2xi32>}} : () -> ()', "1:18", "too many digits"
    ),
    "map of many digits": Refused(
        f'"test.op"() {{a = affine_map<(d0)->(d0 + {DIGITS})>}} : () -> ()',
        "1:18",
        "too many digits",
    ),
    "product in a map": Refused(
        '"test.op"() {a = affine_map<(d0)[s0] -> (d0 * s0)>} : () -> ()',
        "1:18",
        "an affine map can multiply only by constants",
    ),
    "product in an alias": Refused(
        '#m = affine_map<(d0)[s0] -> (d0 * s0)>\n"test.op"() {a = #m} : () -> ()',
        "1:6",
        "an affine map can multiply only by constants",
    ),
    "named op without region": Refused(
        body(
            '%z = "linalg.add"(%x, %x, %x) <{operandSegmentSizes = array<i32: 2, 1>}>'
            " : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            arguments="%x: tensor<4xf32>",
        ),
        "2:1",
        "it has 0 regions, there must be 1",
    ),
    "splat without end": Refused(
        body("%v = arith.constant dense<1.0> : tensor<1099511627776xf32>"),
        "2:21",
        "4398046511104 bytes",
    ),
    "type that does not fit": Refused(
        body("%v = arith.addf %b, %b : i32", arguments="%b: i32"),
        "2:26",
        "'arith.addf': i32 is not allowed here",
    ),
    "op without custom format": Refused(
        body("%v = foo.bar %b : f32", arguments="%b: f32"),
        "2:6",
        "unknown op 'foo.bar': only its generic form is read",
        ("--allow-unregistered-dialect",),
    ),
    "name that is none": Refused('"test.op"() {a = @} : () -> ()', "1:18", "@ identifier expected"),
    "suffix that is none": Refused('"test.op"(%) : () -> ()', "1:11", "suffix identifier after %"),
    "nested without end": Refused('"test.op"() ({\n' * 5000, "", "nested too deeply"),
    "list without end": Refused(
        '"test.op"() {a = ' + "[" * 100_000 + "} : () -> ()", "1:", "nested too deeply"
    ),
    "external resources": Refused(
        '"test.op"() : () -> ()\n{-# external_resources: {a: {b: "0x00"}} #-}',
        "2:25",
        "external_resources cannot be read",
    ),
    "resource that is none": Refused(
        '"test.op"() : () -> ()\n{-# dialect_resources: {builtin: {b: "zz"}} #-}',
        "2:38",
        "hex digits",
    ),
    "use in a block beside": Refused(
        body("cf.cond_br %c, ^a, ^b", "^a:", '%x = "test.op"() : () -> i32', "cf.br ^b", "^b:")
        .replace("@f()", "@f(%c: i1)")
        .replace("func.return", '"test.op"(%x) : (i32) -> ()\nfunc.return'),
        "7:1",
        "%x is used before it is defined",
    ),
    "use before definition": Refused(
        body('%a = "test.op"(%b) : (i32) -> i32', '%b = "test.op"() : () -> i32'),
        "2:1",
        "%b is used before it is defined",
    ),
}

KEPT = {
    "branches": """func.func @f(%c: i1) {
  cf.br ^bb1
^bb1:
  cf.cond_br %c, ^bb1, ^bb2
^bb2:
  func.return
}""",
    "blocks that are never reached": """func.func @f() {
  func.return
^bb1:
  "test.op"(%x) : (i32) -> ()
  cf.br ^bb2
^bb2:
  %x = "test.op"() : () -> i32
  cf.br ^bb1
}""",
    "loops of blocks": """func.func @f(%c: i1, %n: i32) {
  %x = "test.op"() : () -> i32
  cf.br ^bb1(%x : i32)
^bb1(%i: i32):
  %y = arith.addi %i, %x : i32
  cf.cond_br %c, ^bb2, ^bb3
^bb2:
  %z = arith.addi %y, %n : i32
  cf.cond_br %c, ^bb1(%z : i32), ^bb2
^bb3:
  "test.op"(%y) : (i32) -> ()
  func.return
}""",
    "attributes of declared arguments": """
func.func private @f(f32 {a.b}, i32 {a.c = 1 : i64}) -> (f32 {c.d})
func.func private @g(f32 {a.b}, i32) -> (f32 {c.d}, i32)
llvm.func @h(!llvm.ptr {llvm.noalias}, i32)""",
    "resources": """func.func @f() -> tensor<2xf32> {
  %v = arith.constant dense_resource<blob> : tensor<2xf32>
  func.return %v : tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F00000040"
    }
  }
#-}""",
    "graphs": """%x = "test.op"(%y) : (i32) -> i32
%y = "test.op"(%x) : (i32) -> i32""",
}

LARGE = {
    "calls": "\n".join(f"func.func @f{k}() {{ func.return }}" for k in range(4000))
    + body(*(f"func.call @f{k}() : () -> ()" for k in range(4000))),
    "blocks": "func.func @f(%c: i1) {\ncf.br ^b0\n"
    + "\n".join(f"^b{k}:\ncf.cond_br %c, ^b{k + 1}, ^b{k}" for k in range(4000))
    + "\n^b4000:\nfunc.return\n}",
    "nested conditions": body(
        *["scf.if %c {"] * 1500, '"test.op"() : () -> ()', *["}"] * 1500
    ).replace("@f()", "@f(%c: i1)"),
}
"""What took minutes when each op looked at all others."""
SECONDS = 40
"""For one of them, on a machine that is busy; it takes two to five."""


@pytest.mark.parametrize("name", LARGE)
def test_large(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    code, _, said = run(LARGE[name], ("-p", "canonicalize,cse,dce"), capsys)
    assert (code, said) == (0, "")
    assert time.perf_counter() - start < SECONDS


def run(
    text: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Run the tool on ``text``; return its code, what it printed and what it said."""
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        code = main(["-", *options])
    finally:
        sys.stdin = stdin
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = REFUSED[name]
    code, out, said = run(case.text, case.more, capsys)
    assert (code, out) == (1, "")
    assert "Traceback" not in said and len(said) < 3000
    first = said.splitlines()[0]
    assert first.startswith(f"<stdin>:{case.place}" if case.place else "") and case.message in first
    assert " error: " in first


@pytest.mark.parametrize("generic", [(), ("--print-op-generic",)])
@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, generic: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed says all that was read: read again, it is printed the same."""
    text = KEPT[name].strip()
    code, out, said = run(text, generic, capsys)
    assert (code, said) == (0, "")
    lines = {line.strip() for line in out.splitlines()}
    if not generic:
        assert {line.strip() for line in text.splitlines()} <= lines
    assert run(out, (), capsys)[1] == run(text, (), capsys)[1]


def test_a_declaration_keeps_as_many_attributes_as_arguments(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "func.func private @f(f32 {a.b} loc(unknown), i32) -> (f32 {c.d})"
    assert "@f(f32 {a.b}, i32) -> (f32 {c.d})" in run(text, (), capsys)[1]


def test_a_long_line_is_shown_about_its_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    text = '"test.op"() {a = "' + "x" * 1_000_000 + '", b = @} : () -> ()'
    code, _, said = run(text, (), capsys)
    assert code == 1 and len(said) < 1000
    _, shown, caret = said.splitlines()
    assert shown[caret.index("^")] == "@"


def test_each_module_has_its_resources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [KEPT["resources"], KEPT["resources"].replace("803F", "0040")]
    outs = [run(text, (), capsys)[1] for text in texts]
    assert "00000000803F00000040" in outs[0] and "00000000004000000040" in outs[1]
    assert all("dense_resource<blob>" in out for out in outs)
