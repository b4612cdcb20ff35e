"""Hashes that need no OpenSSL: to load it is 2.5 ms of a start from the cache."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

try:
    from _blake2 import blake2b  # what `hashlib` has under this name
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b", "sha256"]

MIN_OPENSSL_BYTES = 64 << 10
"""From this many bytes on, OpenSSL hashes so much faster that loading it pays."""


def sha256(data: Any) -> Any:
    """Return what `hashlib.sha256` does of bytes.

    >>> sha256(b"").hexdigest()[:16]
    'e3b0c44298fc1c14'
    """
    if len(data) < MIN_OPENSSL_BYTES:
        for name in ("_sha2", "_sha256"):  # of Python 3.12, of those before
            with suppress(ImportError):
                return import_module(name).sha256(data)
    return import_module("hashlib").sha256(data)
