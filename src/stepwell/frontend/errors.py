"""Errors of tracing."""

from __future__ import annotations

from typing import Any


class TraceError(TypeError):
    """An operation needs the numbers of a traced value before the program runs."""

    ends: int | None = None
    """The number of the region that a user's exception ends, if the error stands for one."""
    asks_for_numbers = False
    """Whether a function that is not traced asked for the numbers of a traced value."""


def untraceable(function: Any, error: TraceError) -> TraceError | None:
    """Return an error that names ``function``, if it asked for numbers and is not NumPy's."""
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    known = module.partition(".")[0] in ("", "builtins", "numpy")
    if known or not name or not error.asks_for_numbers:
        return None
    return TraceError(
        f"'{module}.{name}' cannot be traced, and needs numbers that a traced value does not have "
        "yet; the program can call a function when it runs: sw.callback(function, like, ...), with "
        "the shape and dtype of `like`"
    )
