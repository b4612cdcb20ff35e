"""Saved programs are loaded whole or not at all: whatever is wrong with one is one clear error."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.description import OWN, read
from stepwell.core.description import _digest as digest_of_object  # pyright: ignore[reportPrivateUsage]
from stepwell.testing.opencl import TARGETS

TEXT = """\
func.func @main(%x: tensor<?x4xf32>, %z: tensor<?x4xf32>, %n: tensor<i32>) -> (tensor<?x4xf32>, tensor<4xf32>) {
  %w = nd.constant #nd.resource<"w"> : tensor<4x4xf32>
  %v = nd.constant #nd.resource<"v"> : tensor<4x4xf32>
  %wv = nd.matmul %w, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = nd.matmul %x, %wv : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
  %b = nd.add %a, %z : tensor<?x4xf32>
  %s = nd.reduce_sum %b {axes = [0]} : tensor<?x4xf32> -> tensor<4xf32>
  %zero = nd.constant dense<0> : tensor<i32>
  %one = nd.constant dense<1> : tensor<i32>
  %i, %r = nd.while (%i = %zero, %r = %s) : tensor<i32>, tensor<4xf32> {
    %go = nd.lt %i, %n : tensor<i32> -> tensor<i1>
    nd.condition %go
  } do (%j, %t) {
    %k = nd.add %j, %one : tensor<i32>
    %u = nd.add %t, %t : tensor<4xf32>
    nd.yield %k, %u : tensor<i32>, tensor<4xf32>
  }
  func.return %b, %r : tensor<?x4xf32>, tensor<4xf32>
}
"""
OTHER = """\
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = nd.exp %x : tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
"""
WEIGHTS = {name: np.arange(16, dtype=np.float32).reshape(4, 4) for name in "wv"}
X = np.ones((3, 4), np.float32)
ARGUMENTS = X, X, np.int32(2)

Change: TypeAlias = Callable[[Any], object]


@pytest.fixture(scope="module", params=TARGETS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a saved program, `other` beside it being that of another."""
    folder = tmp_path_factory.mktemp("saved") / "saved"
    sw.compile(TEXT, target=request.param, resources=WEIGHTS).save(folder)
    sw.compile(OTHER, target=request.param).save(folder.parent / "other")
    return folder


@pytest.fixture
def damaged(saved: Path, tmp_path: Path) -> Path:
    """Return a copy of the saved program to be damaged."""
    return Path(shutil.copytree(saved, tmp_path / "damaged"))


def code(folder: Path) -> Path:
    """Return the file that is run."""
    library = folder / "program.so"
    return library if library.exists() else folder / "program.cl"


def refused(folder: Path, words: str = "") -> str:
    """Load a program that cannot be loaded; return the one sentence that says so."""
    with pytest.raises(sw.CompileError) as caught:
        sw.load(folder)
    said = str(caught.value)
    assert said.startswith(f"error: cannot load the program in {folder}: "), said
    assert said.count("\n   help: ") == 1, said
    assert len(said) < 400 + len(str(folder))
    assert words in said, said
    return said


def flipped(path: Path, at: float) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 4
    path.write_bytes(data)


def test_a_whole_program_runs(saved: Path) -> None:
    want_rows = X @ (WEIGHTS["w"] @ WEIGHTS["v"]) + X
    rows, summed = sw.load(saved)(*ARGUMENTS)
    np.testing.assert_allclose(rows, want_rows)
    np.testing.assert_allclose(summed, 4 * want_rows.sum(0))


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda f: shutil.rmtree(f), "there is no program.json"),
    "no description": (lambda f: (f / "program.json").unlink(), "there is no program.json"),
    "no code": (lambda f: code(f).unlink(), "there is no program."),
    "no weights": (lambda f: (f / "constants.bin").unlink(), "there is no constants.bin"),
    "empty description": (lambda f: (f / "program.json").write_text(""), "cannot be read"),
    "no text": (lambda f: (f / "program.json").write_bytes(b"\xff\xfe"), "cannot be read"),
    "empty code": (lambda f: code(f).write_bytes(b""), "not what was saved"),
    "empty weights": (lambda f: (f / "constants.bin").write_bytes(b""), "not what was saved"),
    "half of the code": (lambda f: os.truncate(code(f), 300), "program."),
    "half of the weights": (lambda f: os.truncate(f / "constants.bin", 32), "not what was saved"),
    "longer weights": (lambda f: os.truncate(f / "constants.bin", 65), "not what was"),
    "a bit of the weights": (lambda f: flipped(f / "constants.bin", 0.5), "not what was saved"),
    "first bit of the weights": (lambda f: flipped(f / "constants.bin", 0), "not what was saved"),
    "last bit of the weights": (lambda f: flipped(f / "constants.bin", 1), "not what was saved"),
    "a bit of the code": (lambda f: flipped(code(f), 0.5), "not what was saved"),
    "a bit of the head": (lambda f: flipped(code(f), 0), "program."),
    "another's code": (lambda f: shutil.copy(code(f.parent / "other"), code(f)), "another's"),
    "another's description": (
        lambda f: shutil.copy(f.parent / "other" / "program.json", f),
        "not what was saved",
    ),
    "a pipe for a description": (lambda f: piped(f / "program.json"), "no plain file"),
    "a pipe for code": (lambda f: piped(code(f)), "program."),
    "a pipe for weights": (lambda f: piped(f / "constants.bin"), "cannot be read"),
    "a folder for a description": (lambda f: into_folder(f / "program.json"), "no plain file"),
    "a folder for weights": (lambda f: into_folder(f / "constants.bin"), "cannot be read"),
}


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def into_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("what", FILES)
def test_files(what: str, saved: Path, damaged: Path) -> None:
    shutil.copytree(saved.parent / "other", damaged.parent / "other")
    damage, words = FILES[what]
    damage(damaged)
    refused(damaged, words)


def nested(depth: int) -> Any:
    tree: Any = "d0"
    for _ in range(depth):
        tree = ["+", tree, 1]
    return tree


FIELDS: dict[str, tuple[Change, str]] = {
    "a doubled argument": (lambda j: j["arguments"].append(j["arguments"][0]), ""),
    "an argument less": (lambda j: j["arguments"].pop(), ""),
    "no results": (lambda j: j["results"].clear(), ""),
    "a smaller result": (lambda j: j["results"][1].update(shape=[2]), ""),
    "a larger result": (lambda j: j["results"][1].update(shape=[1 << 40]), ""),
    "another dtype": (lambda j: j["results"][0].update(dtype="i32"), ""),
    "no constants": (lambda j: j["constants"].clear(), ""),
    "constants in another order": (
        lambda j: j["constants"].reverse() or j["constants"].append(0),
        "",
    ),
    "another arena": (lambda j: j.update(arena=j["arena"] + 64), ""),
    "another entry": (lambda j: j.update(entry="other"), ""),
    "no equal sizes": (
        lambda j: (j["equal"].clear(), j["checks"].clear(), j.update(loops=None)),
        "",
    ),
    "no dtype of ours": (lambda j: j["arguments"][0].update(dtype="f33"), "one of"),
    "a dtype that is a list": (lambda j: j["arguments"][0].update(dtype=["f32"]), "one of"),
    "a null shape": (lambda j: j["arguments"][0].update(shape=None), "must be a list"),
    "a null name": (lambda j: j["arguments"][0].update(name=None), "must be a text"),
    "a negative size": (lambda j: j["results"][1].update(shape=[-4]), "from 0"),
    "a size that is a float": (lambda j: j["results"][1].update(shape=[4.0]), "whole number"),
    "a size that is true": (lambda j: j["results"][1].update(shape=[True]), "whole number"),
    "a size that is a text": (lambda j: j["results"][1].update(shape=["4"]), "whole number"),
    "a size beyond 64 bits": (lambda j: j["results"][1].update(shape=[1 << 80]), "from 0"),
    "sizes beyond any memory": (
        lambda j: j["results"][1].update(shape=[1 << 40, 1 << 40]),
        "larger than any memory",
    ),
    "too many axes": (lambda j: j["results"][1].update(shape=[1] * 65), "0 to 64 elements"),
    "an unknown size of a weight": (
        lambda j: j["constants"][0].update(shape=[None, 4]),
        "known sizes",
    ),
    "a weight that nothing makes": (lambda j: j["constants"][0].update(made=7), "constants[0]"),
    "a negative weight": (lambda j: j["constants"][0].update(made=-1), "from 0"),
    "a negative arena": (lambda j: j.update(arena=-1), "from 0"),
    "an arena of text": (lambda j: j.update(arena="x"), "whole number"),
    "arguments that are an object": (lambda j: j.update(arguments={}), "must be a list"),
    "arguments that are null": (lambda j: j.update(arguments=None), "must be a list"),
    "an argument that is null": (lambda j: j.update(arguments=[None]), "must be an object"),
    "an argument that knows more": (lambda j: j["arguments"][0].update(x=1), "no field of it"),
    "an argument that knows less": (lambda j: j["arguments"][0].pop("dtype"), "has no 'dtype'"),
    "no arguments": (lambda j: j.pop("arguments"), "it has no 'arguments'"),
    "no kernels": (lambda j: j.pop("kernels"), "it has no 'kernels'"),
    "a field too many": (lambda j: j.update(x=1), "no field of it"),
    "an entry that is a list": (lambda j: j.update(entry=["main"]), "must be a text"),
    "a flag that is a number": (lambda j: j.update(loops=1), "true or false"),
    "another target": (lambda j: j.update(target="cuda"), "unknown target"),
    "a target that is null": (lambda j: j.update(target=None), "must be a text"),
    "an equal size too far": (lambda j: j.update(equal=[[0, 99]]), "names size 99"),
    "a negative equal size": (lambda j: j.update(equal=[[0, -1]]), "from 0"),
    "an equal size alone": (lambda j: j.update(equal=[[0]]), "2 to"),
    "a fixed size of three": (lambda j: j.update(fixed=[[0, 1, 2]]), "2 to 2 elements"),
    "a kernel without a line": (
        lambda j: j["kernels"][0].update(lines=["model.mlir"]),
        "a file and a line",
    ),
    "a kernel of no operator": (lambda j: j["kernels"][0].update(flops=["!", 1, 2]), "operator"),
    "a kernel with one operand": (lambda j: j["kernels"][0].update(flops=["+", 1]), "operator"),
    "a kernel of unknown sizes": (lambda j: j["kernels"][0].update(flops="d9"), "nothing has set"),
    "a kernel of an object": (lambda j: j["kernels"][0].update(bytes={}), "a number, a name"),
    "a nested kernel": (lambda j: j["kernels"][0].update(bytes=nested(300)), "too deeply"),
    "a very nested kernel": (lambda j: j["kernels"][0].update(bytes=nested(400)), "too deeply"),
    "a check of nothing": (
        lambda j: j.update(checks=[{"holds": "q", "words": ["x"], "values": [], "at": ""}]),
        "nothing has set",
    ),
    "a check without words": (
        lambda j: j.update(checks=[{"holds": 1, "words": [], "values": [], "at": ""}]),
        "1 to",
    ),
    "a format to come": (lambda j: j.update(format=9), "format 9"),
    "a format before": (lambda j: j.update(format=2), "format 2"),
    "no format": (lambda j: j.pop("format"), "states no format"),
    "digests that are none": (lambda j: j.update(digests=[]), "must be an object"),
}
UNSEALED = {"digests that are none"}


def changed(folder: Path, change: Change, seal: bool) -> None:
    """Change the description; with a digest that says it is as it was saved, if told."""
    file = folder / "program.json"
    found = json.loads(file.read_text())
    change(found)
    if seal:
        digests = found.pop("digests")
        found["digests"] = digests | {OWN: digest_of_object(found)}
    file.write_text(json.dumps(found))


@pytest.mark.parametrize("what", FIELDS)
def test_fields(what: str, damaged: Path) -> None:
    changed(damaged, FIELDS[what][0], seal=False)
    refused(damaged)


@pytest.mark.parametrize("what", [w for w in FIELDS if FIELDS[w][1] and w not in UNSEALED])
def test_fields_with_a_digest_made_anew(what: str, damaged: Path) -> None:
    changed(damaged, FIELDS[what][0], seal=True)
    refused(damaged, FIELDS[what][1])


TEXTS = {
    "nested lists": ("[" * 100_000, "nested"),
    "nested objects": ('{"a":' * 100_000, "nested"),
    "a number of 5,000 digits": ('{"format": ' + "9" * 5000 + "}", "cannot be read"),
    "no number": ('{"format": 3, "arena": NaN}', "NaN"),
    "infinity": ('{"format": 3, "arena": -Infinity}', "Infinity"),
    "a list": ("[]", "not an object"),
    "null": ("null", "not an object"),
    "a text": ('"program"', "not an object"),
    "cut short": ('{"format": 3, "arena"', "cannot be read"),
    "two texts": ("{}{}", "cannot be read"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_texts(what: str, damaged: Path) -> None:
    (damaged / "program.json").write_text(TEXTS[what][0])
    refused(damaged, TEXTS[what][1])


DIGESTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "none": (lambda j: j.pop("digests"), "has no digests"),
    "none of the code": (
        lambda j: (j["digests"].pop("program.so", 0), j["digests"].pop("program.cl", 0)),
        "not what was saved",
    ),
    "none of the weights": (lambda j: j["digests"].pop("constants.bin"), "not what was saved"),
    "none of its own": (lambda j: j["digests"].pop(OWN), "its digest is another"),
    "another of its own": (lambda j: j["digests"].update({OWN: "0" * 64}), "its digest is another"),
    "a number": (lambda j: j["digests"].update({OWN: 0}), "must be a text"),
}


@pytest.mark.parametrize("what", DIGESTS)
def test_digests(what: str, damaged: Path) -> None:
    changed(damaged, DIGESTS[what][0], seal=False)
    refused(damaged, DIGESTS[what][1])


def test_text_and_header_may_be_missing_but_not_others(saved: Path, damaged: Path) -> None:
    if not (damaged / "program.so").exists():
        pytest.skip("the text of a program of OpenCL is its code")
    (damaged / "program.h").write_text("other")
    refused(damaged, "its program.h is damaged")
    (damaged / "program.h").unlink()
    loaded = sw.load(damaged)
    (damaged / "program.c").write_text("int x;")
    with pytest.raises(sw.CompileError, match=r"its program\.c is damaged"):
        assert loaded.source
    with pytest.raises(sw.CompileError, match=r"its program\.c is damaged"):
        loaded.profile(*ARGUMENTS)
    (damaged / "program.c").unlink()
    assert sw.load(damaged)(*ARGUMENTS)[1].shape == (4,)


def test_saving_again(saved: Path, tmp_path: Path) -> None:
    """A loaded program is saved as it was; over another one, nothing of that is left."""
    loaded = sw.load(saved)
    again = tmp_path / "again"
    loaded.save(again)
    for file in saved.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes()
    sw.load(again).save(again)
    sw.load(saved.parent / "other").save(again)
    assert not (again / "constants.bin").exists()
    assert sw.load(again)(X).shape == (3, 4)


def test_what_was_damaged_since_is_not_saved_as_whole(damaged: Path, tmp_path: Path) -> None:
    loaded = sw.load(damaged)
    flipped(code(damaged), 0.5)
    with pytest.raises(sw.CompileError, match="damaged"):
        loaded.save(tmp_path / "again")
    with pytest.raises(sw.CompileError, match=r"there is no program\.json"):
        sw.load(tmp_path / "again")


# the host's part of a program of OpenCL


def steps_of(found: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the first step that does ``what``, wherever it stands."""

    def walk(steps: list[Any]) -> list[Any]:
        inner = [
            s
            for each in steps
            for key in ("body", "test", "then", "else")
            for s in each.get(key, [])
        ]
        return steps + (walk(inner) if inner else [])

    return next(step for step in walk(found["host"]) if step["do"] == what)


def loop(times: Any, body: Any = ()) -> dict[str, Any]:
    return {"do": "for", "name": "q", "from": 0, "to": times, "step": 1, "body": list(body)}


def blocks(depth: int) -> dict[str, Any]:
    step = loop(1)
    for _ in range(depth):
        step = loop(1, [step])
    return step


SCHEDULES: dict[str, tuple[Change, str]] = {
    "nothing": (lambda j: j["host"].clear(), "the step 'sizes'"),
    "no sizes": (lambda j: j["host"].pop(0), "the step 'sizes'"),
    "no arena": (lambda j: j["host"].pop(1), "the step 'arena'"),
    "sizes again": (lambda j: j["host"].append(j["host"][0]), "must not be the step"),
    "sizes too few": (lambda j: j["host"][0]["sizes"].clear(), "sizes of results"),
    "sizes that are null": (lambda j: j["host"][0].update(sizes=None), "must be a list"),
    "a size of text": (lambda j: j["host"][0].update(sizes=["x"]), "nothing has set"),
    "a negative size": (lambda j: j["host"][0].update(sizes=[-1]), "an amount"),
    "a negative arena": (lambda j: j["host"][1].update(bytes=-1), "an amount"),
    "a null arena": (lambda j: j["host"][1].update(bytes=None), "a number, a name"),
    "a step that is null": (lambda j: j["host"].append(None), "must be a step"),
    "a step of nothing": (lambda j: j["host"].append({}), "one of sizes"),
    "another step": (lambda j: j["host"].append({"do": "exec"}), "one of sizes"),
    "no kernel": (lambda j: steps_of(j, "launch").pop("kernel"), "has no 'kernel'"),
    "items of nothing": (lambda j: steps_of(j, "launch").update(items="x"), "nothing has set"),
    "too many items": (lambda j: steps_of(j, "launch").update(items=1 << 50), "a number up to"),
    "no arguments": (lambda j: steps_of(j, "launch").update(arguments=[]), "arguments, not 0"),
    "another argument": (lambda j: steps_of(j, "launch").update(arguments=[1]), "an argument"),
    "another buffer": (
        lambda j: steps_of(j, "launch")["arguments"][0].update(buffer="input9"),
        "the buffer 'input9'",
    ),
    "a negative skip": (
        lambda j: steps_of(j, "launch")["arguments"][0].update(skip=-64),
        "an amount",
    ),
    "an argument of no dtype": (
        lambda j: steps_of(j, "launch")["arguments"].append({"value": 1, "dtype": "x"}),
        "one of",
    ),
    "a loop of 10^12": (lambda j: j["host"].append(loop(10**12)), "takes hours"),
    "loops of 10^12": (
        lambda j: j["host"].append(loop(10**6, [loop(10**6)])),
        "takes hours",
    ),
    "a loop that stands": (lambda j: j["host"].append(loop(1) | {"step": 0}), "above 0"),
    "loops in loops": (lambda j: j["host"].append(blocks(100)), "too deeply"),
    "loops in many loops": (lambda j: j["host"].append(blocks(200)), "too deeply"),
    "a loop for ever": (
        lambda j: j["host"].append({"do": "while", "test": [], "condition": True, "body": []}),
        "never ends",
    ),
    "a name of a loop behind it": (
        lambda j: j["host"].extend([loop(1), {"do": "set", "names": ["r"], "values": ["q"]}]),
        "nothing has set",
    ),
    "a name of one branch": (
        lambda j: j["host"].extend(
            [
                {
                    "do": "if",
                    "condition": ["==", 1, "d0"],
                    "then": [{"do": "set", "names": ["r"], "values": [1]}],
                    "else": [],
                },
                {"do": "set", "names": ["s"], "values": ["r"]},
            ]
        ),
        "nothing has set",
    ),
    "names and fewer values": (
        lambda j: j["host"].append({"do": "set", "names": ["r", "s"], "values": [1]}),
        "2 to 2 elements",
    ),
    "a shift of many bits": (
        lambda j: j["host"][1].update(bytes=["wrap", 1, 10**9]),
        "a number of bits",
    ),
    "bytes that are none": (
        lambda j: j["host"].append({"do": "constant", "buffer": "r", "bytes": "xy"}),
        "hexadecimal",
    ),
    "a nested arena": (lambda j: j["host"][1].update(bytes=nested(300)), "too deeply"),
    "an arena beyond any number": (lambda j: j["host"][1].update(bytes=1 << 70), "a number"),
}


@pytest.mark.parametrize("what", SCHEDULES)
def test_schedules(what: str, damaged: Path) -> None:
    if (damaged / "program.so").exists():
        pytest.skip("a program of C has none")
    changed(damaged, SCHEDULES[what][0], seal=True)
    refused(damaged, SCHEDULES[what][1])


def test_kernels_that_are_not_there(damaged: Path) -> None:
    if (damaged / "program.so").exists():
        pytest.skip("a program of C has none")
    changed(damaged, lambda j: steps_of(j, "launch").update(kernel="x"), seal=True)
    with pytest.raises(sw.CompileError, match="has made no kernel 'x'"):
        sw.load(damaged)


def test_numbers_that_grow_end_in_an_error(damaged: Path) -> None:
    """What only the run knows is an error of the call, not a wait without end."""
    if (damaged / "program.so").exists():
        pytest.skip("a program of C has none")
    tree: Any = ["+", "d0", 2]
    names = [f"r{k}" for k in range(200)]
    steps = [{"do": "set", "names": [names[0]], "values": [tree]}]
    for before, name in pairwise(names):
        steps.append({"do": "set", "names": [name], "values": [["*", before, before]]})
    changed(damaged, lambda j: j["host"].extend(steps), seal=True)
    loaded = sw.load(damaged)
    with pytest.raises(RuntimeError, match="a number has more than 128 bits"):
        loaded(*ARGUMENTS)


def test_what_is_written_is_read(saved: Path) -> None:
    signature, digests = read((saved / "program.json").read_text())
    assert signature == sw.load(saved).signature
    assert digests is not None and "constants.bin" in digests
