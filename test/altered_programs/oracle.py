"""What mlir-opt says of many programs at once, and what we say."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stepwell.core.diagnostics import CompileError
from stepwell.dialects import upstream
from stepwell.dialects.parsing import parse_module
from stepwell.dialects.verification import verify
from stepwell.driver.registry import registry

assert upstream, "imported for its patches of upstream syntax"

SPLIT = "// -----\n"
_ERROR = re.compile(r"^<stdin>:(\d+):\d+: error: (.*)$", re.MULTILINE)


def of_mlir(tool: str | Path, texts: Sequence[str]) -> list[str]:
    """Return for each text the first error of mlir-opt, "" where it takes the text."""
    said = [""] * len(texts)
    starts: list[int] = []
    line = 1
    for text in texts:
        starts.append(line)
        line += text.count("\n") + 1
    command = [str(tool), "--allow-unregistered-dialect", "--split-input-file"]
    command += ["--mlir-print-op-on-diagnostic=false", "-o", "/dev/null"]
    done = subprocess.run(command, input=SPLIT.join(texts), capture_output=True, text=True)
    if done.returncode not in (0, 1):  # it died: find of which
        if len(texts) == 1:
            return ["died"]
        half = len(texts) // 2
        return of_mlir(tool, texts[:half]) + of_mlir(tool, texts[half:])
    for match in _ERROR.finditer(done.stderr):
        number = sum(start <= int(match[1]) for start in starts) - 1
        said[number] = said[number] or match[2]
    return said


def of_ours(text: str) -> str:
    """Return our error, "" where we take the text."""
    context = registry().context(True)
    try:
        verify(parse_module(context, text, "altered"))
    except CompileError as error:
        return error.diagnostic.message
    return ""
