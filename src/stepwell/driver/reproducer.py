"""Reproducers: files with a module and the pipeline that failed on it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from itertools import takewhile

from xdsl.dialects.builtin import ModuleOp

from stepwell.core.diagnostics import CompileError, Diagnostic
from stepwell.core.escape import quoted
from stepwell.core.plugins import named
from stepwell.dialects.printing import text_of
from stepwell.driver.pass_pipeline import Step

HEAD = "// stepwell-opt --run-reproducer"
PIPELINE = "// pipeline: "
PLUGIN = "// plugin: "


def write_reproducer(path: str | None, module: ModuleOp, steps: Sequence[Step]) -> str:
    """Write a reproducer to ``path``, or to a new temporary file; return its path."""
    if path is None:
        handle, path = tempfile.mkstemp(prefix="stepwell-opt-", suffix=".mlir")
        os.close(handle)
    pipeline = ",".join(str(step) for step in steps)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{HEAD} {quoted(path)}\n{PIPELINE}{pipeline}\n")
        file.writelines(f"{PLUGIN}{place}\n" for place in named())
        file.write(text_of(module, locations=True))
    return path


def plugins_of(text: str) -> list[str]:
    """Return the plug-ins that `--plugin` named when a reproducer was written."""
    rows = takewhile(lambda row: row.startswith("//"), text.splitlines())
    return [row.removeprefix(PLUGIN) for row in rows if row.startswith(PLUGIN)]


def pipeline_of(text: str, file: str) -> str:
    """Return the pipeline named in a reproducer."""
    for row in text.splitlines():
        if row.startswith(PIPELINE):
            return row.removeprefix(PIPELINE)
    message = f"{file} is no reproducer: it has no line '{PIPELINE}...'"
    raise CompileError(Diagnostic("error", message))
