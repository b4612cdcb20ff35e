"""Answers that one process remembers, at most so many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class Remembered(Generic[T]):
    """Answers by key, for any number of threads; the oldest ones are forgotten.

    most : how many are kept

    >>> lengths = Remembered[int](1)
    >>> lengths.get("loop", lambda: 4), lengths.get("tile", lambda: 5), len(lengths.found)
    (4, 5, 1)
    """

    most: int
    found: dict[Hashable, T] = field(default_factory=dict[Hashable, T])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer for a key, by calling ``ask`` if it is not known."""
        try:
            return self.found[key]
        except KeyError:
            answer = ask()
        with self._lock:
            while len(self.found) >= self.most:
                del self.found[next(iter(self.found))]
            self.found[key] = answer
        return answer
