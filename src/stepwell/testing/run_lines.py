"""Run the RUN lines of lit's files in this process, without starting tools or reloading modules.

A RUN line made of `%stepwell-opt`, `%stepwell`, `filecheck` and `not` joined by pipes runs here;
any other, and any file with REQUIRES, XFAIL or UNSUPPORTED, needs lit's shell.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

from stepwell.testing.requirements import need

_RUN = re.compile(r"//\s*RUN:\s*(.*)")
_CONDITION = re.compile(r"^// (REQUIRES|XFAIL|UNSUPPORTED):", re.MULTILINE)
TOOLS = {"%stepwell-opt": "stepwell.tools.opt", "%stepwell": "stepwell.tools.main"}
"""The modules whose `main` implements each command."""


class RunFailure(Exception):
    """A command of a RUN line failed; the message has the command and its output."""


def run_lines(text: str) -> list[str]:
    """Return the RUN lines of a file, continued lines joined.

    >>> run_lines("// RUN: a" + chr(92) + chr(10) + "// RUN: b" + chr(10) + "// RUN: c")
    ['ab', 'c']
    """
    lines: list[str] = []
    going_on = False
    for match in _RUN.finditer(text):
        line = match[1].rstrip()
        if going_on:
            lines[-1] += line.removesuffix("\\")
        else:
            lines.append(line.removesuffix("\\"))
        going_on = line.endswith("\\")
    return lines


def in_process(path: Path) -> list[str] | None:
    """Return a file's RUN lines, or None if one of them needs a shell."""
    text = path.read_text(encoding="utf-8")
    lines = run_lines(text)
    if _CONDITION.search(text) or not all(_commands(line, path) for line in lines):
        return None
    return lines


def run_line(line: str, path: Path) -> None:
    """Run the commands of a line, each with the output of the previous one as input.

    raises RunFailure : one of them failed
    """
    text = ""
    for command in _commands(line, path):
        code, text = _run(command, text)
        if code:
            raise RunFailure(f"{shlex.join(command)}\nended with {code}\n{text}")


def _commands(line: str, path: Path) -> list[list[str]]:
    """Return the commands of a RUN line; [] if some command cannot run in this process."""
    line = re.sub(r"%s\b(?!tepwell)", str(path), line).replace("%S", str(path.parent))
    try:
        parts = shlex.split(line, posix=True)
    except ValueError:
        return []
    commands: list[list[str]] = [[]]
    for part in parts:
        if part == "|":
            commands.append([])
        else:
            commands[-1].append(part)
    fine = all(_runs_in_process(command) for command in commands)
    return commands if fine else []


def _runs_in_process(command: Sequence[str]) -> bool:
    program = [c for c in command if c != "not"][:1]
    special = {";", "&&", "||", ">", "<", "2>", ">>"} & set(command)
    known = bool(program) and {"filecheck", *TOOLS}.issuperset(program)
    return known and not special and not any("%t" in c for c in command)


def _run(command: Sequence[str], text: str) -> tuple[int, str]:
    """Run one command on ``text``; return its exit code and its output."""
    negated = command[0] == "not"
    command = [c for c in command if c != "not"]
    both = "2>&1" in command
    arguments = [c for c in command[1:] if c != "2>&1"]
    if command[0] == "filecheck":
        code, output = _filecheck(arguments, text)
    else:
        main = import_module(TOOLS[command[0]]).main
        code, output = _tool(main, arguments, text, both)
    if negated:
        return (0, output) if code else (1, f"{output}\nit should have failed")
    return code, output


def _tool(
    main: Callable[[Sequence[str]], int], arguments: Sequence[str], text: str, both: bool
) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        with redirect_stdout(out), redirect_stderr(out if both else err):
            code = main(list(arguments))
    except SystemExit as end:  # argparse
        code = int(end.code or 0)
    finally:
        sys.stdin = stdin
    return code, out.getvalue() if both or not code else out.getvalue() + err.getvalue()


def _filecheck(arguments: Sequence[str], text: str) -> tuple[int, str]:
    need("filecheck", "lit tests")
    options = import_module("filecheck.options").parse_argv_options(["filecheck", *arguments])
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(said):
        parser = import_module("filecheck.parser").Parser.from_opts(options)
        given = import_module("filecheck.finput").FInput("<stdin>", text)
        code: int = import_module("filecheck.matcher").Matcher(options, given, parser).run()
    return code, said.getvalue() + (text if code else "")
