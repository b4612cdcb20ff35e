"""Values that are made once for each key, though several threads ask for them at once."""

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
    """Say that others may wait for what is done inside: nothing here waits for them in turn."""
    token = _making.set(True)
    try:
        yield
    finally:
        _making.reset(token)


class Once(Generic[K, V]):
    """Values by key: the first who asks for one makes it, whoever asks meanwhile waits for it.

    Nobody waits while he makes a value himself: of two threads that each need what the other
    makes, both would wait forever. He makes one of his own then, and the first to be ready is kept.

    >>> squares = Once()
    >>> squares.get(3, lambda: 9), squares.get(3, lambda: 10)
    (9, 9)
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # to compare keys may run anybody's code
        self._made: dict[K, V] = {}
        self._begun: dict[K, threading.Event] = {}

    def known(self, key: K) -> V | None:
        """Return the value of ``key``, None where there is none yet."""
        return self._made.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of ``key``, made by ``make`` if it has not been made."""
        while True:
            with self._lock:
                if (found := self._made.get(key)) is not None:
                    return found
                if (begun := self._begun.get(key)) is None:
                    mine = self._begun[key] = threading.Event()
                    break
            if _making.get():
                return self._make(key, make)
            begun.wait()  # and look again: whoever makes it may fail
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
