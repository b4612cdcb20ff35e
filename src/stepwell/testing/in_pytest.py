"""Run lit's files in pytest. One line of conftest.py suffices:

    from stepwell.testing.in_pytest import pytest_collect_file as pytest_collect_file

Each RUN line is a test, which runs in this process if possible (`run_lines`), else by lit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.testing.requirements import need
from stepwell.testing.run_lines import RunFailure, in_process, run_line

need("filecheck", "lit's files inside pytest")


LIT = "from lit.main import main; main()"
"""The code of the script `lit`; `-m lit.main` does nothing."""


class LitFile(pytest.File):
    """One .mlir file: a test for each RUN line, or a single one if lit has to run them."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the tests of the file."""
        lines = in_process(self.path)
        if lines is None:
            yield LitShell.from_parent(self, name="lit")
            return
        for number, line in enumerate(lines, 1):
            yield LitLine.from_parent(self, name=f"RUN {number}", line=line)


class _OutputItem(pytest.Item):
    """A test whose failure shows the output of its commands, not a traceback."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None):
        """Return the output of the commands."""
        if isinstance(excinfo.value, RunFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class LitLine(_OutputItem):
    """One RUN line, run in this process."""

    def __init__(self, *, line: str, **rest: object) -> None:
        super().__init__(**rest)  # pyright: ignore[reportArgumentType, reportUnknownMemberType]
        self.line = line

    def runtest(self) -> None:
        """Run the commands of the line."""
        run_line(self.line, self.path)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location and name of the line."""
        return self.path, None, f"{self.path.name}: {self.line}"


class LitShell(_OutputItem):
    """A file whose commands need a shell."""

    def runtest(self) -> None:
        """Run the file by lit."""
        need("lit", "commands that need a shell")
        done = subprocess.run(
            [sys.executable, "-c", LIT, "-v", str(self.path)], capture_output=True, text=True
        )
        if done.returncode:
            raise RunFailure(done.stdout)
        if "UNSUPPORTED" in done.stdout:
            pytest.skip("a tool that the test requires is not installed")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a .mlir file; those in folders named Inputs are read by tests."""
    if file_path.suffix == ".mlir" and os.sep + "Inputs" + os.sep not in str(file_path):
        return LitFile.from_parent(parent, path=file_path)
    return None
