"""How a program calls Python: through one function of C, which asks `core.host_functions`."""

from __future__ import annotations

import ctypes
from typing import Any

from stepwell.core.host_functions import known, serve


def _host(name: bytes, memory: Any, strides: Any) -> int:
    """Serve a call that a program makes; ctypes has taken the lock of the interpreter."""
    key = name.decode()
    try:
        host = known(key)
        arrays = (*host.inputs, *host.outputs)
        count, axes = len(arrays), sum(len(shape) for _, shape in arrays)
    except RuntimeError:
        count = axes = 0  # serve says what is wrong
    addresses = [memory[k] or 0 for k in range(count)]
    return int(serve(key, addresses, [strides[k] for k in range(axes)]))


_POINTER = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int64),
)
_SERVED = _POINTER(_host)
"""It lives as long as the process: libraries know its address."""


def set_host(library: ctypes.CDLL, name: str) -> None:
    """Tell a library whom its programs call."""
    getattr(library, name)(_SERVED)
