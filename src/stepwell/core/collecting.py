"""Pause the garbage collector while a compiler works: most of its objects live to the end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

LEFT = 500_000
"""The most objects that compilations leave behind before a full collection. A large program leaves
250,000; collecting them takes 0.1 to 0.3 s, which a process with few compilations never spends."""

_lock = threading.Lock()
_paused = 0
_left = 0
"""Objects made old since the last full collection."""
_collections = 0
"""The number of full collections up to then."""
_frozen = False
"""Whether the user has ever frozen objects: counting them takes a tenth of a microsecond each."""


@contextmanager
def uncollected() -> Generator[None]:
    """Disable garbage collection inside the context; several threads may be inside at once.

    The objects created inside are then the concern of the next full collection: a collection of
    young objects would visit every one of them at once.

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
                    _make_old()
                    gc.enable()


def _make_old() -> None:
    """Make all objects old, in constant time; collect them if they have become many."""
    global _left, _collections, _frozen
    _frozen = _frozen or gc.get_freeze_count() > 0
    if _frozen:  # objects that the user has frozen stay frozen
        return
    done = gc.get_stats()[2]["collections"]
    _left = gc.get_count()[0] + (_left if done == _collections else 0)
    _collections = done
    if _left > LEFT:
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()
