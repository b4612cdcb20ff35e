"""Values computed once for each key, even if several threads request them at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_making: ContextVar[bool] = ContextVar("making", default=False)


@contextmanager
def making() -> Generator[None]:
    """Declare that other threads may wait for this block: `Once` does not wait inside it."""
    token = _making.set(True)
    try:
        yield
    finally:
        _making.reset(token)


class Once(Generic[K, V]):
    """Values by key: the first thread that requests one computes it, the others wait for it.

    A thread that is computing a value does not wait: two threads that need each other's value would
    deadlock. It computes its own copy instead, and the first finished one is kept.

    >>> squares = Once()
    >>> squares.get(3, lambda: 9), squares.get(3, lambda: 10)
    (9, 9)
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # comparing keys may run user code
        self._made: dict[K, V] = {}
        self._begun: dict[K, threading.Event] = {}

    def known(self, key: K) -> V | None:
        """Return the value of ``key``, None if it has not been computed."""
        return self._made.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of ``key``, computed by ``make`` if necessary."""
        while True:
            with self._lock:
                if (found := self._made.get(key)) is not None:
                    return found
                if (begun := self._begun.get(key)) is None:
                    mine = self._begun[key] = threading.Event()
                    break
            if _making.get():
                return self._make(key, make)
            begun.wait()  # then look again: the other thread's ``make`` may have failed
        try:
            return self._make(key, make)
        finally:
            with self._lock:
                del self._begun[key]
            mine.set()

    def _make(self, key: K, make: Callable[[], V]) -> V:
        with making():
            value = make()
        return self._made.setdefault(key, value)
