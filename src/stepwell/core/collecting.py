"""Pause the garbage collector while a compiler works: most of what it makes lives to the end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.Lock()
_paused = 0


@contextmanager
def uncollected() -> Generator[None]:
    """Make no search for garbage within; several threads may be here at once.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    global _paused
    with _lock:
        if not _paused and not gc.isenabled():
            paused = False  # the user has switched it off, and it stays so
        else:
            paused = True
            _paused += 1
            gc.disable()
    try:
        yield
    finally:
        if paused:
            with _lock:
                _paused -= 1
                if not _paused:
                    gc.enable()
