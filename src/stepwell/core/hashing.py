"""Hashes without OpenSSL: loading it takes 2.5 ms of a start from the cache."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

try:
    from _blake2 import blake2b  # the function that `hashlib` exports
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b", "sha256"]

MIN_OPENSSL_BYTES = 64 << 10
"""Bytes from which on OpenSSL's faster hashing outweighs loading it."""


def sha256(data: Any) -> Any:
    """Return the hash object of `hashlib.sha256`.

    >>> sha256(b"").hexdigest()[:16]
    'e3b0c44298fc1c14'
    """
    if len(data) < MIN_OPENSSL_BYTES:
        for name in ("_sha2", "_sha256"):  # Python 3.12, earlier versions
            with suppress(ImportError):
                return import_module(name).sha256(data)
    return import_module("hashlib").sha256(data)
