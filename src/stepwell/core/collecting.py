"""Pause the garbage collector while a compiler works: most of its objects live to the end."""

from __future__ import annotations

import atexit
import gc
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

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
_at_exit = False
"""Whether `freeze_unless_finalized` is registered."""


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
    global _paused, _at_exit
    with _lock:
        if not _at_exit:
            _at_exit = True
            atexit.register(freeze_unless_finalized)
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


def freeze_unless_finalized() -> None:
    """Exclude all objects from the collections of a process that ends, if no object needs them.

    Python collects cycles before and after it clears all modules. The classes of a compiler are
    cycles: freeing them takes an eighth of a process that compiles five operations. But an object
    in a cycle is finalized only if it is collected, and a file that is then closed has all its
    text. So nothing is excluded if an object other than the standard streams has a finalizer.
    """
    files = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    streams = {id(part) for file in files for part in _parts(file)}
    objects = gc.get_objects()
    finalized = {kind for kind in set(map(type, objects)) if _has_finalizer(kind)}
    if not any(type(each) in finalized and id(each) not in streams for each in objects):
        gc.freeze()


def _parts(file: Any) -> list[Any]:
    """Return a stream with its buffer and what that writes to."""
    buffer = getattr(file, "buffer", None)
    return [file, buffer, getattr(buffer, "raw", None)]


def _has_finalizer(kind: type[Any]) -> bool:
    """Whether a class has one, also of C; metaclasses are not asked, they may run any code."""
    return any("__del__" in vars(each) for each in kind.__mro__)
