"""Exit a tool without garbage collection."""

from __future__ import annotations

import atexit
import gc
from functools import cache


@cache
def leave_quickly() -> None:
    """Disable the garbage collection at exit: a compiler has many classes."""
    atexit.register(gc.freeze)
