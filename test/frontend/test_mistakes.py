"""Mistakes that people make, each refused in words at its line: mistakes.txt, asserted whole.

A mistake there is the body of `f(x, v, i, b, s)`, or one expression, then `=>`, the class of the
error and its message. The line at fault ends in `#!` where there are several. FILE stands for the
name of the file in messages. Errors of what a function returns are raised when it has returned.
To add one, write it with any message, and copy the one that the test then shows, if it is good.
"""

from __future__ import annotations

import linecache
import math
import re
import textwrap
import traceback
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

TABLE = Path(__file__).with_name("mistakes.txt")
ARGUMENTS = {
    "x": np.ones((2, 3), np.float32),
    "v": np.ones(3, np.float32),
    "i": np.arange(4, dtype=np.int32),
    "b": np.array([True, False, True, True]),
    "s": np.float32(1),
}
RETURNED = "(of what is returned) "


def rows() -> list[tuple[str, str]]:
    """Return what is written and what is said of each."""
    parts = re.split(r"^=> (.*)\n\n?", TABLE.read_text(), flags=re.MULTILINE)
    return list(zip((code.strip("\n") for code in parts[0::2]), parts[1::2], strict=False))


def run(code: str) -> tuple[str | None, int | None, int, str]:
    """Run a mistake; return the class of its error, its line, the line at fault, the message."""
    lines = code.splitlines()
    body = code if len(lines) > 1 else f"return {code}"
    source = f"def f({', '.join(ARGUMENTS)}):\n{textwrap.indent(body, '    ')}\n"
    fault = next((n for n, line in enumerate(lines) if line.endswith("#!")), 0) + 2
    name = f"mistake {crc32(code.encode())}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np, "snp": snp, "sw": sw, "math": math}
    exec(compile(source, name, "exec"), names)
    given = [np.array(value) if value.ndim else value for value in ARGUMENTS.values()]
    try:
        sw.jit(names["f"])(*given)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        found = [frame.lineno for frame in frames if frame.filename == name]
        said = str(error).replace(name, "FILE")
        return type(error).__name__, found[-1] if found else None, fault, said
    return None, None, fault, ""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("code, said", rows(), ids=[code.splitlines()[-1] for code, _ in rows()])
def test_a_mistake_is_refused_in_words_at_its_line(code: str, said: str) -> None:
    kind, line, fault, message = run(code)
    found = f"{RETURNED if line is None else ''}{kind}: {message}"
    one, other = (s.replace("required positional", "required") for s in (found, said))
    assert one == other  # NumPy before 2.4 tells no signature of some: the words are Python's
    assert line is None or line == fault


def test_there_are_many() -> None:
    assert len({code for code, _ in rows()}) == len(rows()) >= 330
