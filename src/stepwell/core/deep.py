"""Run a function that recurses deeply, such as a walk of deeply nested regions."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from stepwell.core.once import making

T = TypeVar("T")

STACK_BYTES = 512 << 20
"""Bytes reserved for the stack; pages are allocated only when the recursion reaches them."""
DEPTH = 40_000

_lock = threading.Lock()
_here = threading.local()
"""Has ``deep`` set in a thread that already has a large stack."""


def with_deep_stack(function: Callable[[], T]) -> T:
    """Return the result (or raise the exception) of ``function``, run on a large stack.

    >>> def depth(n: int) -> int:
    ...     return 0 if n == 0 else 1 + depth(n - 1)
    >>> with_deep_stack(lambda: depth(20_000))
    20000
    """
    if getattr(_here, "deep", False):  # a nested call, by a rule or pass that compiles
        return function()
    results: list[T] = []
    errors: list[BaseException] = []
    context = copy_context()

    def created() -> T:
        with making():  # the thread that waits for the lock may be computing a value needed here
            return function()

    def work() -> None:
        _here.deep = True
        try:
            results.append(context.run(created))
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
