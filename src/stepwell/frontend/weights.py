"""Immutable copies of captured arrays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_SHARED_BYTES = 1 << 20
"""The least size in bytes of an array that two threads copy."""


def kept(array: NDArray[Any]) -> NDArray[Any]:
    """Return an immutable contiguous array, or an immutable copy.

    An array that is read-only already is not copied.

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
    half = source.size // 2 if source.size >= MIN_SHARED_BYTES else 0
    other = threading.Thread(target=np.copyto, args=(to[:half], source[:half]))
    if half:
        other.start()
    np.copyto(to[half:], source[half:])
    if half:
        other.join()


class _Frozen:
    """Owns the memory of a frozen array; views of it can never be made writeable."""

    __slots__ = ("_array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface = dict(self._array.__array_interface__)
        interface["data"] = interface["data"][0], True
        return interface


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return an immutable copy of an array; the array itself if it is one."""
    if is_frozen(array):
        return array
    copy = np.empty(array.shape, array.dtype)
    if array.flags.c_contiguous and array.size:
        _copy(copy.reshape(-1).view(np.uint8), array.reshape(-1).view(np.uint8))
    else:
        copy[...] = array
    return np.asarray(_Frozen(copy)).view(array.dtype)


def is_frozen(array: NDArray[Any]) -> bool:
    """Whether an array was returned by `frozen`, or is a view of one."""
    base: Any = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, _Frozen)
