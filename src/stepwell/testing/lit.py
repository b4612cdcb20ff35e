"""Run lit's files inside pytest, without a new process for each RUN line.

A RUN line made of `%stepwell-opt`, `filecheck` and `not` joined by pipes runs in this process; a
file with any other command is given to lit itself. `lit test` runs the same files the usual way.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from stepwell.tools.opt import main

_RUN = re.compile(r"//\s*RUN:\s*(.*)")


class LitFile(pytest.File):
    """One .mlir file: a test for each RUN line, or one for all where lit has to run them."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests of the file."""
        lines = _run_lines(self.path.read_text(encoding="utf-8"))
        if not lines:
            return
        if all(_commands(line, self.path) for line in lines) and not _requires(self.path):
            for number, line in enumerate(lines, 1):
                yield LitLine.from_parent(self, name=f"RUN {number}", line=line)
        else:
            yield LitShell.from_parent(self, name="lit")


class LitLine(pytest.Item):
    """One RUN line, run in this process."""

    def __init__(self, *, line: str, **rest: object) -> None:
        super().__init__(**rest)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
        self.line = line

    def runtest(self) -> None:
        """Run the commands of the line, each fed with the output of the one before."""
        text = ""
        for command in _commands(self.line, self.path):
            code, text = _run(command, text)
            if code:
                raise LitFailure(f"{shlex.join(command)}\nended with {code}\n{text}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None):
        """Show what the commands said, not how they were called."""
        if isinstance(excinfo.value, LitFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Say which line this is."""
        return self.path, None, f"{self.path.name}: {self.line}"


class LitShell(pytest.Item):
    """A file whose commands need a shell."""

    def runtest(self) -> None:
        """Run the file by lit."""
        done = subprocess.run(
            [sys.executable, "-m", "lit.main", "-v", str(self.path)], capture_output=True, text=True
        )
        if done.returncode:
            raise LitFailure(done.stdout)
        if "UNSUPPORTED" in done.stdout:
            pytest.skip("a tool that the test requires is not installed")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None):
        """Show what lit said."""
        if isinstance(excinfo.value, LitFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class LitFailure(Exception):
    """A command of a RUN line failed."""


def _run_lines(text: str) -> list[str]:
    """Return the RUN lines of a file, continued lines joined."""
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


def _requires(path: Path) -> bool:
    return (
        re.search(r"^// (REQUIRES|XFAIL|UNSUPPORTED):", path.read_text("utf-8"), re.M) is not None
    )


def _commands(line: str, path: Path) -> list[list[str]]:
    """Return the commands of a RUN line; none where some command cannot run in this process."""
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
    fine = all(_known(command) for command in commands)
    return commands if fine else []


def _known(command: Sequence[str]) -> bool:
    program = [c for c in command if c != "not"][:1]
    special = {";", "&&", "||", ">", "<", "2>", ">>"} & set(command)
    return program in (["%stepwell-opt"], ["filecheck"]) and not special and "%t" not in command


def _run(command: Sequence[str], text: str) -> tuple[int, str]:
    """Run one command on ``text``; return its exit code and its output."""
    negated = command[0] == "not"
    command = [c for c in command if c != "not"]
    both = "2>&1" in command
    arguments = [c for c in command[1:] if c != "2>&1"]
    if command[0] == "filecheck":
        code, output = _filecheck(arguments, text)
    else:
        code, output = _opt(arguments, text, both)
    if negated:
        return (0, output) if code else (1, f"{output}\nit should have failed")
    return code, output


def _opt(arguments: Sequence[str], text: str, both: bool) -> tuple[int, str]:
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
    options = parse_argv_options(["filecheck", *arguments])
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(said):
        parser = Parser.from_opts(options)
        code = Matcher(options, FInput("<stdin>", text), parser).run()
    return code, said.getvalue() + (text if code else "")


def collect(path: Path, parent: pytest.Collector) -> LitFile | None:
    """Return the collector of a .mlir file below test/."""
    if path.suffix == ".mlir" and os.sep + "Inputs" + os.sep not in str(path):
        return LitFile.from_parent(parent, path=path)
    return None
