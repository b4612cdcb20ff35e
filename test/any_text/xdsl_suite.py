"""Run xDSL's own lit files with Stepwell imported and without: ``python -m any_text.xdsl_suite FOLDER``.

Each RUN line made of xdsl-opt and filecheck runs in one process without Stepwell and in another one
after `import stepwell.dialects.upstream`; what differs in any exit code or output is told. FOLDER is
``tests/filecheck`` of xDSL's source distribution.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

SUBSTITUTIONS = {
    "XDSL_ROUNDTRIP": "xdsl-opt %s --print-op-generic --split-input-file"
    " | xdsl-opt --split-input-file | filecheck %s",
    "XDSL_GENERIC_ROUNDTRIP": "xdsl-opt %s --print-op-generic --split-input-file"
    " | filecheck %s --check-prefix=CHECK-GENERIC",
}
INTERMITTENT = {
    "transforms/linalg-to-csl.mlir": "the order of a set of values, which depends on addresses",
    "transforms/transform-interpreter-match.mlir": "sets are printed: six runs of xdsl-opt, six outputs",
}
"""Files that end one way or another, and why: see docs/upstream.md; they break nothing."""
_RUN = re.compile(r"//\s*RUN:\s*(.*?)(\\?)$", re.MULTILINE)


def commands(path: Path) -> list[list[list[str]]]:
    """Return the RUN lines of a file as commands; those of other tools are left out."""
    lines, going_on = list[str](), False
    for line, more in _RUN.findall(path.read_text("utf-8", errors="replace")):
        if going_on:
            lines[-1] += line
        else:
            lines.append(line)
        going_on = bool(more)
    found: list[list[list[str]]] = []
    for line in lines:
        for short, long in SUBSTITUTIONS.items():
            line = re.sub(rf"\b{short}\b", long, line)
        line = re.sub(r"%s\b", str(path), line).replace("%S", str(path.parent))
        try:
            piped = [shlex.split(each) for each in line.split("|")]
        except ValueError:
            continue
        if all(map(_known, piped)):
            found.append(piped)
    return found


def _known(command: Sequence[str]) -> bool:
    words = [word for word in command if word not in ("not", "2>&1")]
    odd = {";", "&&", ">", "<", ">>", "2>", "%t"}
    return bool(words) and words[0] in ("xdsl-opt", "filecheck") and not odd & {*command}


def ran(command: Sequence[str], text: str) -> tuple[int, str]:
    """Run one command in this process on ``text``; return its exit code and output."""
    negated, both = "not" in command, "2>&1" in command
    words = [word for word in command if word not in ("not", "2>&1")]
    out, said = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO(text)
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(out if both else said):
            if words[0] == "filecheck":
                options = parse_argv_options(words)
                code = Matcher(options, FInput("<stdin>", text), Parser.from_opts(options)).run()
            else:
                import_module("xdsl.xdsl_opt_main").xDSLOptMain(args=words[1:]).run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        code = 1
        out.write(type(error).__name__)
    finally:
        sys.stdin = stdin
    return (int(not code) if negated else code), out.getvalue()


def results(folder: Path) -> dict[str, str]:
    """Return for each RUN line how it ended: each command's exit code and a hash of its output."""
    warnings.simplefilter("ignore")
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.mlir")):
        for number, piped in enumerate(commands(path)):
            text, ends = "", list[str]()
            for command in piped:
                code, text = ran(command, text)
                stable = re.sub(r"0x[0-9a-f]{6,}", "0x", text)  # addresses of objects
                ends.append(f"{code}:{hashlib.sha256(stable.encode()).hexdigest()[:12]}")
            found[f"{path.relative_to(folder)}:{number}"] = " ".join(ends)
    return found


def main() -> int:
    """Run both processes and compare."""
    parser = argparse.ArgumentParser("xdsl_suite", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--with", dest="imported", default=None, help="only this, as JSON")
    options = parser.parse_args()
    if options.imported is not None:
        if options.imported:
            import_module(options.imported)
        print(json.dumps(results(options.folder)))
        return 0
    made: list[dict[str, str]] = []
    for name in ("", "stepwell.dialects.upstream"):
        command = [
            sys.executable,
            "-m",
            "any_text.xdsl_suite",
            str(options.folder),
            f"--with={name}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        made.append(json.loads(done.stdout))
    theirs, ours = made
    passed = [sum(end.split()[-1].startswith("0:") for end in each.values()) for each in made]
    differing = [name for name in theirs if theirs[name] != ours[name]]
    print(f"{len(theirs)} RUN lines: {passed[0]} pass without Stepwell, {passed[1]} with it;")
    broken = [
        name
        for name in differing
        if theirs[name].split()[-1][:2] == "0:" != ours[name].split()[-1][:2]
        and name.rpartition(":")[0] not in INTERMITTENT
    ]
    print(f"{len(broken)} fail that passed, {len(differing)} print something else")
    for name in differing:
        print(f"  {name}: {theirs[name]} | {ours[name]}{'  BROKEN' if name in broken else ''}")
        if why := INTERMITTENT.get(name.rpartition(":")[0]):
            print(f"    known: {why}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
