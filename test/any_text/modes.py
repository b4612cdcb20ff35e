"""Ways to give the tools a text, and what is wrong with what they answer."""

from __future__ import annotations

import io
import random
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import stepwell as sw
from stepwell.driver.pipeline import STAGE_NAMES
from stepwell.driver.universe import OVERRIDES, PASSES
from stepwell.tools.main import main as stepwell
from stepwell.tools.opt import main as opt

_ENTRY = re.compile(r"func\.func (?:public )?@([A-Za-z_]\w*)\(")
MOST_SAID = 12_000
"""Characters of all messages about one text: more is an echo of what was given."""
READING = ("--allow-unregistered-dialect",)
PIPELINES = tuple(f"through({name})" for name in STAGE_NAMES)


@dataclass(frozen=True)
class Answer:
    """What a tool answered."""

    code: int
    out: str
    said: str


def answer(tool: str, arguments: Sequence[str | Path], text: str, path: Path) -> Answer:
    """Run a tool of this process on ``text``, written into ``path``; its exceptions pass."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    out, said = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(said):
            code = (opt if tool == "opt" else stepwell)([str(a) for a in arguments])
    finally:
        sys.stdin = stdin
    return Answer(code, out.getvalue(), said.getvalue())


def fault(found: Answer) -> str:
    """Return what is wrong with an answer, empty if it is a result or a clear refusal."""
    said = found.said
    for word in ("Traceback", "crashed:", "compiler bug", "{first_char}"):
        if word in said:
            return word
    if found.code not in (0, 1):
        return f"exit code {found.code}"
    if found.code and "error: " not in said:
        return "no message"
    return "too many words" if len(said) > MOST_SAID else ""


def tried(mode: str, text: str, path: Path) -> tuple[str, Answer]:
    """Give ``text`` to the tools in one of the ways; return what is wrong, and the last answer."""
    match mode.split(" "):
        case ["read"]:
            return _read_again(text, path, ())
        case ["generic"]:
            return _read_again(text, path, ("--print-op-generic",))
        case ["locations"]:
            found = answer("opt", (path, *READING, "--print-debuginfo"), text, path)
        case ["check", passes]:
            found = answer("opt", (path, *READING, "-p", passes, "--check"), text, path)
        case ["passes", passes]:
            found = answer("opt", (path, *READING, "-p", passes), text, path)
        case ["target", target]:
            found = answer("opt", (path, *READING, "-t", target), text, path)
        case ["stage", stage]:
            found = answer("stepwell", ("compile", path, "--stage", stage), text, path)
        case ["api" | "run" | "explain" | "build" as entry]:
            return _entered(entry, text, path)
        case ["opencl"]:
            found = answer("stepwell", ("compile", path, "--target", "opencl"), text, path)
        case _:
            raise ValueError(mode)
    return fault(found), found


def _entered(entry: str, text: str, path: Path) -> tuple[str, Answer]:
    """Give ``text`` to what compiles; where that refuses, nothing is left behind."""
    if entry == "api":
        return _compiled(text)
    name = _ENTRY.search(text)
    called = ("--entry", name[1]) if name else ()
    folder = path.parent / "built"
    made = {
        "run": ("run", path, *called, "--random", "--size", "3"),
        "explain": ("explain", path, *called),
        "build": ("compile", path, *called, "-o", folder),
    }
    found = answer("stepwell", made[entry], text, path)
    left = sorted(each.name for each in path.parent.iterdir() if each != path)
    shutil.rmtree(folder, ignore_errors=True)
    if left and found.code:
        return f"leaves {left}", found
    return fault(found), found


def _compiled(text: str) -> tuple[str, Answer]:
    """Compile ``text`` as a user's program does; its one exception is told as a tool tells it."""
    name = _ENTRY.search(text)
    try:
        sw.compile(text, name[1] if name else "main")
    except sw.CompileError as error:
        found = Answer(1, "", str(error))
        return fault(found), found
    return "", Answer(0, "", "")


def _read_again(text: str, path: Path, options: Sequence[str]) -> tuple[str, Answer]:
    """Read and print; what is printed must be read again, and be the same."""
    first = answer("opt", (path, *READING, *options), text, path)
    if (wrong := fault(first)) or first.code:
        return wrong, first
    again = answer("opt", (path, *READING, *options), first.out, path)
    if again.code:
        return fault(again) or "cannot read what it printed", again
    if again.out != first.out:
        return "reads again as something else", Answer(0, f"{first.out}\n-- again\n{again.out}", "")
    return "", again


COMMON = (
    "read",
    "generic",
    "locations",
    "check canonicalize,cse",
    "check through(loops)",
    "passes canonicalize,cse,dce",
    "passes through(loops)",
    "target c",
    "stage loops",
    "opencl",
)
ENTRIES = ("api", "run", "explain", "build")
"""What compiles and runs: a second each, where a text is valid."""
RARE = tuple(f"passes {name}" for name in (*PIPELINES, *PASSES, *OVERRIDES))


def any_mode(rng: random.Random) -> str:
    """Return one of the ways."""
    kind = rng.random()
    return rng.choice(COMMON if kind < 0.7 else RARE if kind < 0.93 else ENTRIES)
