"""Arrays that a function closes over are kept so that nobody can change them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 20
"""Arrays of so many bytes are copied by two threads."""


def kept(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous array, or a copy of it, that nobody can change.

    An array that is read-only already is taken as it is.

    >>> kept(np.zeros(4, np.float32)).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    copy = np.empty_like(array)
    _copy(copy.reshape(-1).view(np.uint8), array.reshape(-1).view(np.uint8))
    copy.flags.writeable = False
    return copy


def _copy(to: NDArray[np.uint8], source: NDArray[np.uint8]) -> None:
    half = source.size // 2 if source.size >= LARGE else 0
    other = threading.Thread(target=np.copyto, args=(to[:half], source[:half]))
    if half:
        other.start()
    np.copyto(to[half:], source[half:])
    if half:
        other.join()
