"""Fingerprints of large arrays."""

from __future__ import annotations

import numpy as np
import pytest

from stepwell.core.machine import thread_count
from stepwell.runtime.extension import load_extension
from stepwell.runtime.weights import KEY, QUICK, fingerprint

SIZES = [0, 1, 63, 1023, 1024, 1025, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1_000_003]


@pytest.fixture(autouse=True)
def extension() -> None:
    """The extension is there, or one test waits for it."""
    assert load_extension() is not None


@pytest.mark.parametrize("size", SIZES)
def test_every_byte_counts(size: int) -> None:
    random = np.random.default_rng(size)
    array = random.integers(0, 255, size, np.uint8)
    found = fingerprint(array)
    assert found.startswith(QUICK)
    for place in {0, size // 2, size - 1, *random.integers(0, max(size, 1), 50)} if size else ():
        for bit in (1, 128):
            array[place] ^= bit
            assert fingerprint(array) != found
            array[place] ^= bit
    assert fingerprint(array) == found


def test_lengths_of_zeros_differ() -> None:
    assert len({fingerprint(np.zeros(size, np.uint8)) for size in range(3000)}) == 3000


def test_places_differ() -> None:
    seen: set[str] = set()
    for place in range(0, 4096, 8):
        array = np.zeros(512 * 1024, np.uint8)
        array[place] = 1
        seen.add(fingerprint(array))
    assert len(seen) == 512


def test_what_lies_at_odd_addresses_is_the_same() -> None:
    array = np.random.default_rng(0).integers(0, 255, 700_001, np.uint8)
    assert fingerprint(array[1:].copy()) == fingerprint(array[1:])


def test_sums_are_what_they_are_said_to_be() -> None:
    extension = load_extension()
    assert extension is not None
    random = np.random.default_rng(1)
    key = random.integers(0, 1 << 32, KEY // 4, np.uint32)
    data = random.integers(0, 1 << 32, (3, 2048), np.uint32)
    found = np.frombuffer(extension.fingerprint(data.data, key.tobytes()), np.uint64)
    for block, sums in zip(data, found.reshape(3, 2), strict=True):
        for moved, total in zip((0, 4), sums, strict=True):
            halves = (block + key[moved : moved + 2048]).astype(np.uint64)  # each of 32 bits
            assert (halves[0::2] * halves[1::2]).sum(dtype=np.uint64) == total


def test_keys_have_their_length() -> None:
    extension = load_extension()
    assert extension is not None
    with pytest.raises(ValueError, match=f"a key has {KEY} bytes"):
        extension.fingerprint(b"x", b"x")


def test_any_number_of_threads() -> None:
    extension = load_extension()
    assert extension is not None
    array = np.random.default_rng(0).integers(0, 255, 5_000_001, np.uint8)
    found: set[str] = set()
    try:
        for threads in (1, 2, 3, 7):
            extension.set_threads(threads)
            found.add(fingerprint(array))
    finally:
        extension.set_threads(thread_count())
    assert len(found) == 1
