"""Digests of files, which tie the description of a saved program to its code and weights."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import numpy as np

from stepwell.core.hashing import sha256

CHUNK = 8 << 20
"""Bytes that one thread digests at a time."""


def digest_of(path: Path, threads: int = 1) -> str:
    """Return the SHA-256 of a file, or for a larger one, of the SHA-256s of its 8 MiB chunks.

    OSError if it cannot be read, or is not a plain file: reading a pipe may block forever.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "it is no plain file")
    if status.st_size <= CHUNK:
        return sha256(path.read_bytes()).hexdigest()
    return (
        "8M:" + sha256(b"".join(_parts(np.memmap(path, np.uint8, "r").data, threads))).hexdigest()
    )


def _parts(data: memoryview, threads: int) -> list[bytes]:
    """Return the digest of each chunk, computed in parallel."""
    starts = range(0, len(data), CHUNK)
    found = [b""] * len(starts)
    rest = iter(range(len(starts)))  # its next() is atomic, so threads can share it

    def work() -> None:
        for number in rest:
            start = starts[number]
            found[number] = sha256(data[start : start + CHUNK]).digest()

    others = [threading.Thread(target=work) for _ in range(min(threads, len(starts)) - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    return found
