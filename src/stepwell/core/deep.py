"""Run a function that recurses deeply, such as a walk of deeply nested regions.

One runs at a time: the limit of recursion is that of the whole process, and compilations share
tables. A caller that is interrupted, as by Ctrl-C, returns at once. Its function runs to its end,
because nothing in it expects to stop halfway, and the next call waits for it.
"""

from __future__ import annotations

import os
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
"""Held while a function runs: its thread releases it, which may outlive the caller's wait."""
_here = threading.local()
"""Has ``deep`` set in a thread that already has a large stack."""


def _renew_lock() -> None:
    """Forget the thread that holds the lock: a forked process does not have it."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


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

    held, claim = _lock, threading.Lock()
    held.acquire()
    limit = sys.getrecursionlimit()

    def end() -> None:
        sys.setrecursionlimit(limit)
        held.release()

    def work() -> None:
        if not claim.acquire(blocking=False):  # the caller was interrupted before this began
            return
        _here.deep = True
        try:
            results.append(context.run(created))
        except BaseException as error:
            errors.append(error)
        finally:
            end()

    try:
        thread = _started(work, limit)
    except BaseException:  # too little memory for the stack, or an interrupt
        if claim.acquire(blocking=False):
            end()
        raise
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _started(work: Callable[[], None], limit: int) -> threading.Thread:
    """Start a thread with a large stack, and allow deep recursion."""
    sys.setrecursionlimit(max(limit, DEPTH))
    size = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=work, name="stepwell-deep", daemon=True)
        thread.start()
    finally:
        threading.stack_size(size)
    return thread
