"""Tracebacks of the user's own lines: exceptions leave the package without its frames.

`STEPWELL_TRACEBACK=full` keeps them all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

VARIABLE = "STEPWELL_TRACEBACK"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = ("xdsl", "numpy", "ml_dtypes", "pyopencl", *sys.stdlib_module_names)
"""Modules whose frames are removed where our code called them, and kept where the user's did."""

P = ParamSpec("P")
T = TypeVar("T")


def entrance(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap an entry point: its exceptions have only the frames of its caller and user callees.

    A bare ``raise`` adds no frame, so that none of ours is left.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return call


def trim(error: BaseException) -> None:
    """Remove our frames from the traceback of an exception and of its causes and contexts.

    A context raised and handled only in our frames is dropped.
    """
    if os.environ.get(VARIABLE) == "full":
        return
    error.__traceback__ = _trimmed(error.__traceback__)
    seen = {id(error)}
    while True:
        behind = error.__cause__ or error.__context__
        if behind is None or id(behind) in seen:
            return
        seen.add(id(behind))
        ours = behind.__traceback__ is not None
        behind.__traceback__ = _trimmed(behind.__traceback__)
        if ours and behind.__traceback__ is None and error.__cause__ is None:
            error.__context__ = behind.__context__
        else:
            error = behind


def _trimmed(first: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    ours = False
    while first is not None:
        ours = _is_hidden(first, ours)
        if not ours:
            if kept and _is_part(first, kept[-1]):
                kept.pop()
            kept.append(first)
        first = first.tb_next
    after = None
    for entry in reversed(kept):
        entry.tb_next, after = after, entry
    return after


def _is_part(entry: TracebackType, before: TracebackType) -> bool:
    """Whether a frame is that of a branch or loop that rewriting turned into a function."""
    code, outer = entry.tb_frame.f_code, before.tb_frame.f_code
    parent, _, own = code.co_qualname.rpartition(".<locals>.")
    return own.startswith("__") and own != code.co_name and parent == outer.co_qualname


def _is_hidden(entry: TracebackType, after_ours: bool) -> bool:
    """Whether a frame is ours, or that of a library called by ours."""
    frame = entry.tb_frame
    if frame.f_code.co_filename.startswith(PACKAGE):
        return True
    module = str(frame.f_globals.get("__name__", ""))
    return after_ours and module.partition(".")[0] in _LIBRARIES
