"""Attribute an unexpected exception: to an op, and to the package whose code failed."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from stepwell.core.diagnostics import Diagnostic
from stepwell.dialects.types import place_of

_OURS = frozenset({"stepwell", "xdsl", "numpy"})


class Blame(NamedTuple):
    """The facts about a crash."""

    what: str
    """The exception, in one line."""
    where: str
    """The function, its module and line: the innermost of another package's, else of all."""
    package: str
    """The package whose code failed, "" for our own."""
    op: Operation | None
    """The innermost op in a function of the traceback: its parameter or variable `op`."""

    def diagnostic(self, message: str, help: str = "") -> Diagnostic:
        """Return an error that begins with ``message``, at the op."""
        named = f", at {self.op.name}" if self.op is not None else ""
        place = place_of(self.op) if self.op is not None else None
        said = Diagnostic("error", f"{message}: {self.what}{named}", place, help=help)
        return said.with_note(f"in {self.where}")


def blame(error: BaseException) -> Blame:
    """Return the facts about an exception from its traceback."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    strange = [(frame, line) for frame, line in frames if _package(frame)]
    frame, line = (strange or frames)[-1]
    module = frame.f_globals.get("__name__", "?")
    file = os.path.basename(frame.f_code.co_filename)
    op = next((op for frame, _ in reversed(frames) for op in _ops(frame)), None)
    name = type(error).__name__
    what = f"{name}: {error}".splitlines()[0] if str(error) else name
    where = f"{frame.f_code.co_name} of {module} ({file}, line {line})"
    return Blame(what, where, _package(frame), op)


def _package(frame: FrameType) -> str:
    """Return the outermost package of a frame's code, "" if it is ours or Python's."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return "" if package in _OURS or package in sys.stdlib_module_names else package


def _ops(frame: FrameType) -> Iterator[Operation]:
    """Yield the ops of a frame: its variable `op`, and its parameters."""
    names = ["op", *frame.f_code.co_varnames[: frame.f_code.co_argcount]]
    for name in names:
        value = frame.f_locals.get(name)
        if not isinstance(value, Operation) or isinstance(value, ModuleOp):
            continue
        if place_of(value) is not None:
            yield value
