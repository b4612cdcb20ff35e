"""How a tool ends: at once."""

from __future__ import annotations

import atexit
import gc
from functools import cache


@cache
def leave_quickly() -> None:
    """Let Python look for no garbage when this process ends: a compiler's classes are many."""
    atexit.register(gc.freeze)
