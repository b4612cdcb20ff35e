"""The C callback by which programs call Python functions of `core.host_functions`."""

from __future__ import annotations

import ctypes
from typing import Any

from stepwell.core.host_functions import known, serve


def _host(name: bytes, memory: Any, strides: Any) -> int:
    """Serve a call of a program; ctypes has acquired the interpreter lock."""
    key = name.decode()
    try:
        host = known(key)
        arrays = (*host.inputs, *host.outputs)
        count, axes = len(arrays), sum(len(shape) for _, shape in arrays)
    except RuntimeError:
        count = axes = 0  # `serve` reports the error
    addresses = [memory[k] or 0 for k in range(count)]
    return int(serve(key, addresses, [strides[k] for k in range(axes)]))


_POINTER = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int64),
)
_SERVED = _POINTER(_host)
"""Alive as long as the process: libraries store its address."""


def set_host(library: ctypes.CDLL, name: str) -> None:
    """Set the callback of a library's programs."""
    getattr(library, name)(_SERVED)
