"""Arrays that a function closes over: each is hashed, and kept so that nobody can change it."""

from __future__ import annotations

import threading
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 20
"""Arrays of so many bytes are copied while they are hashed, by two threads."""


def kept(array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return the SHA-256 of a contiguous array, and it or a copy that nobody can change.

    An array that is read-only already is taken as it is.

    >>> digest, copy = kept(np.zeros(4, np.float32))
    >>> digest[:8], copy.flags.writeable
    ('374708ff', False)
    """
    flat = array.reshape(-1).view(np.uint8)
    if not array.flags.writeable:
        return sha256(flat.data).hexdigest(), array
    copy = np.empty_like(array)
    threads = _copying(copy.reshape(-1).view(np.uint8), flat)
    digest = sha256(flat.data).hexdigest()
    for thread in threads:
        thread.join()
    copy.flags.writeable = False
    return digest, copy


def _copying(to: NDArray[np.uint8], source: NDArray[np.uint8]) -> list[threading.Thread]:
    """Begin to copy; return the threads that do, none where it is done."""
    if source.size < LARGE:
        np.copyto(to, source)
        return []
    half = source.size // 2
    threads = [
        threading.Thread(target=np.copyto, args=(to[part], source[part]))
        for part in (slice(half), slice(half, None))
    ]
    for thread in threads:
        thread.start()
    return threads
