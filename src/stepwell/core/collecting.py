"""Pause the garbage collector while a compiler works: most of its objects live to the end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.Lock()
_paused = 0


@contextmanager
def uncollected() -> Generator[None]:
    """Disable garbage collection inside the context; several threads may be inside at once.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    global _paused
    with _lock:
        if not _paused and not gc.isenabled():
            paused = False  # the user has disabled it, and it stays disabled
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
