"""A program that is compiled for its first call, and completed when other sizes are passed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stepwell.runtime.program import Program


@dataclass(eq=False)
class Completion:
    """Compiles the whole of a program once, and makes its first part run that code.

    Several threads may ask at once: one compiles, the others wait. If it fails, the next asks
    again.
    """

    build: Callable[[Program], Program]
    """Returns the whole of a part."""
    part: Program | None = None
    """Set after construction."""
    _whole: Program | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _process: int = field(default_factory=os.getpid)

    def __call__(self) -> Program:
        """Return the whole program, which the part runs from now on."""
        if os.getpid() != self._process:  # the thread that held the lock was not forked
            self._lock, self._process = threading.Lock(), os.getpid()
        assert self.part is not None
        with self._lock:
            if self._whole is None:
                whole = self.build(self.part)
                callee: Any = self.part.call
                callee.replace(whole.call)
                self._whole = whole
        return self._whole
