"""Run a function that recurses deeply, as whatever walks deeply nested regions does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from stepwell.core.once import making

T = TypeVar("T")

STACK_BYTES = 512 << 20
"""Only reserved; memory is touched as far as the recursion goes."""
DEPTH = 40_000

_lock = threading.Lock()
_here = threading.local()
"""Has ``deep`` in a thread whose stack is large already."""


def with_deep_stack(function: Callable[[], T]) -> T:
    """Return what ``function`` returns (or raise what it raises), run on a large stack.

    >>> def depth(n: int) -> int:
    ...     return 0 if n == 0 else 1 + depth(n - 1)
    >>> with_deep_stack(lambda: depth(20_000))
    20000
    """
    if getattr(_here, "deep", False):  # a rule or a pass that compiles something itself
        return function()
    results: list[T] = []
    errors: list[BaseException] = []
    context = copy_context()

    def made() -> T:
        with making():  # whoever waits for the lock may be making what this would wait for
            return function()

    def work() -> None:
        _here.deep = True
        try:
            results.append(context.run(made))
        except BaseException as error:
            errors.append(error)

    with _lock:
        limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(max(limit, DEPTH))
        try:
            thread = threading.Thread(target=work, name="stepwell-deep", daemon=True)
            thread.start()
        finally:
            threading.stack_size(size)
        try:
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]
