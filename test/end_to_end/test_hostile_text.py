"""Text of a module is never code: hostile strings wherever a string can stand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

import stepwell as sw
import stepwell.numpy as snp
from stepwell.api.compiled import Compiled
from stepwell.core.escape import literal, mangled, quoted
from stepwell.core.locks import Lock, Tuned, parse_lock
from stepwell.driver.pass_pipeline import Step
from stepwell.driver.reproducer import pipeline_of, write_reproducer
from stepwell.lowering.emit.c_spelling.values import SHUFFLE
from stepwell.testing.opencl import TARGETS
from stepwell.tools.main import main

CODE = 'int injected(void) { __builtin_printf("%n"); }'
HOSTILE = [
    f"a\n{CODE}\n#pragma z",
    f"a\r{CODE}\r",
    f"*/ {CODE} /*",
    f"*/{CODE}//",
    "ends in a star *",
    "/ begins with a slash",
    f"a??/\n{CODE}",
    "line goes on ??/",
    "line goes on \\",
    f"\u2028{CODE}\u2029\x85{CODE}",
    f"\v{CODE}\f\x1c{CODE}",
    f"\0{CODE}",
    "\x1b[31m\x07",
    "\u202e turned around",
    "../../x",
    "a(){",
    'a"b',
    "%s%n",
    "é ü 漢",
    "",
    "0",
    "int",
    "main",
    "kernel",
    "stepwell_main",
    "x" * 5000,
    "é" * 5000,
]
NAMES = [
    *HOSTILE[:3],
    *HOSTILE[8:12],
    "../../x",
    "a(){",
    "é ü 漢",
    "",
    "0",
    "int",
    "stepwell_main",
    "x" * 5000,
]
"""Enough of them where each takes a compilation."""
X = np.zeros(3, np.float32)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def function(name: str, op: str = "exp", about: str = "") -> str:
    return f"""\
func.func @{literal(name)}(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %y = "nd.{op}"(%x) {about} : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}}
"""


def check_text(text: str) -> None:
    """Nothing hostile stands outside of comments, as any compiler reads them."""
    assert all(letter == "\n" or letter.isprintable() for letter in text)
    assert "\\" not in text.replace(SHUFFLE, "") and "??" not in text
    assert not re.search(r"\binjected\b", _COMMENT.sub(" ", text))


def check_saved(folder: Path) -> None:
    """A strict C compiler that knows trigraphs takes header and text."""
    for file in folder.glob("program.[ch]*"):
        check_text(file.read_text(encoding="utf-8"))
    json.loads((folder / "program.json").read_text(encoding="ascii"))
    if (folder / "program.c").exists() and (cc := shutil.which("cc")):
        source = folder / "all.c"
        source.write_text('#include "program.h"\n')
        strict = "-std=c11", "-trigraphs", "-Wcomment", "-Werror", "-fsyntax-only"
        done = subprocess.run([cc, *strict, str(source)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        done = subprocess.run(
            [cc, "-std=gnu11", *strict[1:], str(folder / "program.c")],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        source.unlink()


def check(compiled: Compiled, folder: Path) -> None:
    """A program computes exp, saved and loaded too."""
    compiled.save(folder)
    check_saved(folder)
    for program in (compiled, sw.load(folder)):
        np.testing.assert_array_equal(program(X), X + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_locations(target: str, tmp_path: Path) -> None:
    ops = [
        f'  %{k + 1} = "nd.abs"(%{k}) : (tensor<?xf32>) -> tensor<?xf32> loc({literal(name)}:7:1)\n'
        for k, name in enumerate(HOSTILE)
    ]
    head = '  %0 = "nd.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>\n'
    last = f"  func.return %{len(ops)} : tensor<?xf32>\n}}\n"
    text = f"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{\n{head}{''.join(ops)}{last}"
    check(sw.compile(text, target=target), tmp_path)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: quoted(name, 30))
@pytest.mark.parametrize("target", TARGETS)
def test_functions(target: str, name: str, tmp_path: Path) -> None:
    known = quoted(name) if not name.isascii() and name != "é ü 漢" else name
    known = name if len(name) == 5000 else known  # what `literal` writes
    check(sw.compile(function(name), known, target=target), tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["a.b", "a_b", "f", "f_shapes", "f.shapes", "f_arena"])
def test_names_that_meet(entry: str, target: str, tmp_path: Path) -> None:
    names = ("a.b", "a_b", "a b", "f", "f_shapes", "f.shapes", "f_arena", "f.constants")
    others = [function(name, "neg") for name in names if name != entry]
    if entry == "f":  # whose sizes `f.shapes` would tell
        with pytest.raises(sw.CompileError, match=r"@f\.shapes is what tells the sizes"):
            sw.compile("".join([*others, function(entry)]), entry, target=target)
        others = [each for each in others if "f.shapes" not in each]
    check(sw.compile("".join([*others, function(entry)]), entry, target=target), tmp_path)


def test_mangled_names_differ() -> None:
    parts = ["", "_", "0x", "_0x", "28_", "(", ".", "shapes", ".shapes", "_shapes", "\0", "é", "x"]
    names = {a + b + c + d for a in parts for b in parts for c in parts for d in parts}
    names |= {"x" * n for n in range(230, 260)} | {"x" * 300 + end for end in ("", "y", "_0x_")}
    found = {mangled(name) for name in names}
    assert len(found) == len(names)
    assert all(re.fullmatch(r"\w*", name, re.ASCII) and len(name) < 300 for name in found)
    assert len({quoted(name) for name in (*names, *HOSTILE)}) == len({*names, *HOSTILE})


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_weights_and_attributes(target: str, tmp_path: Path) -> None:
    names = [name for name in HOSTILE if name.isascii() and name != "main"]
    kernels, launches, weights = "", "", ""
    resources: dict[str, Any] = {}
    for k, name in enumerate(names):
        kernels += f"""\
kernel.func @{literal(name)}(%x: tensor<3xf32>, %w: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32>
    attributes {{kernel.shared = 1 : i64, acme.note = {literal(name)}}} {{
  %r = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"], acme.note = {literal(name)}}} ins(%x, %w : tensor<3xf32>, tensor<3xf32>) outs(%y : tensor<3xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    %t = arith.mulf %s, %{"a" if k % 2 else "b"} : f32
    linalg.yield %t : f32
  }} -> tensor<3xf32>
  kernel.return %r : tensor<3xf32>
}}
"""
        weights += f", %w{k}: tensor<3xf32> {{nd.resource = {literal(f'w {name}')}}}"
        resources[f"w {name}"] = np.full(3, 0.5, np.float32)
        launches += f"""\
  %e{k} = tensor.empty() : tensor<3xf32>
  %v{k + 1} = kernel.launch @{literal(name)} ins(%v{k}, %w{k} : tensor<3xf32>, tensor<3xf32>) outs(%e{k} : tensor<3xf32>) -> tensor<3xf32>
"""
    main = f"""\
func.func @main(%v0: tensor<3xf32>{weights}) -> tensor<3xf32> attributes {{acme.note = {literal(HOSTILE[0])}}} {{
{launches}  func.return %v{len(names)} : tensor<3xf32>
}}
"""
    compiled = sw.compile(kernels + main, target=target, resources=resources)
    want = X
    for k in range(len(names)):
        want = (want + np.float32(0.5)) * (want if k % 2 else np.float32(0.5))
    compiled.save(tmp_path)
    check_saved(tmp_path)
    for program in (compiled, sw.load(tmp_path)):
        np.testing.assert_allclose(program(X), want, rtol=1e-6)
    check_profile(compiled)


def check_profile(compiled: Compiled) -> None:
    """Kernels with any names are told apart when their time is taken."""
    profile = compiled.profile(X, repeat=1)
    kernels = {kernel.name for kernel in compiled.kernels}
    assert {each.kernel.name for each in profile.kernels} == kernels
    assert all(row.isprintable() for row in str(profile).split("\n"))
    traced = json.loads(profile.trace())["traceEvents"]
    assert {event["name"] for event in traced[1:]} == kernels


@pytest.mark.parametrize("name", NAMES, ids=lambda name: quoted(name, 30))
def test_traced_functions(name: str, tmp_path: Path) -> None:
    space: dict[str, Any] = {"snp": snp}
    file = name.replace("\0", "")  # which Python itself takes in no name of a file
    exec(compile("def f(x):\n    return snp.exp(x)\n", file, "exec"), space)
    space["f"].__name__ = name
    check(sw.jit(space["f"]).trace(X).lower().compile(), tmp_path)
    keyed = sw.jit(lambda x: snp.exp(x[name]))
    np.testing.assert_array_equal(keyed({name: X}), X + 1)


def test_surrogates_of_names_that_are_no_text(tmp_path: Path) -> None:
    space: dict[str, Any] = {"snp": snp}
    exec(compile("def f(x):\n    return snp.exp(x)\n", "a\udcff.py", "exec"), space)
    check(sw.jit(space["f"]).trace(X).lower().compile(), tmp_path)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: quoted(name, 30))
def test_lock_files(name: str) -> None:
    tuned = Tuned(f'{name}"<k>"', "[for d0 by 4]", 1.0, 2.0, 3)
    lock = Lock({name: 1}, {"k": tuned, name: tuned})
    assert parse_lock(lock.to_json()) == lock


def test_reproducers_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r\n").mkdir()
    made = f"{tmp_path}/r\n// pipeline: dce\n.mlir"
    write_reproducer(made, ModuleOp([]), [Step((), CommonSubexpressionElimination())])
    assert pipeline_of(Path(made).read_text(), made) == "cse"
    for name in NAMES:
        if len(name) < 200 and "/" not in name and "\0" not in name:
            (tmp_path / f"{name}.mlir").write_text(function("main"))
            out = tmp_path / f"{name} out"
            assert main(["compile", str(tmp_path / f"{name}.mlir"), "-o", str(out)]) == 0
            check_saved(out)
    capsys.readouterr()
