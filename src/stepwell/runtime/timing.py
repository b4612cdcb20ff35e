"""One call of a program whose launches are timed, whatever clock does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepwell.core.signature import Kernel
from stepwell.runtime.limits import Limits

KEPT = 1 << 16
"""Launches of a call that are kept."""
LAUNCH = np.dtype([(name, np.int64) for name in ("begin", "end", "kernel", "thread")])


@dataclass(frozen=True)
class Run:
    """One call: nanoseconds on the clock that the launches are told by."""

    begin: int
    end: int
    launches: NDArray[Any]
    tiny: NDArray[Any]
    """How often each copy ran that is only counted."""

    @property
    def busy(self) -> float:
        """Seconds of all launches."""
        return int((self.launches["end"] - self.launches["begin"]).sum()) / 1e9

    @property
    def inside(self) -> int:
        """Nanoseconds from the first launch to the end of the last."""
        if not len(self.launches):
            return 0
        return int(self.launches["end"].max() - self.launches["begin"].min())


class Timed(Protocol):
    """A program with clocks in it."""

    copies: tuple[Kernel, ...]
    where: str
    """What it runs on, if that is not the host."""

    def plain(self, arguments: Sequence[Any]) -> None:
        """Call the program without clocks, and wait until it has run."""
        ...

    def call(self, arguments: Sequence[Any]) -> None:
        """Call the program with clocks, and wait until it has run."""
        ...

    def run(self, arguments: Sequence[Any]) -> Run:
        """Call it once, and say when each launch ran."""
        ...

    def limits(self, again: bool = False) -> Limits:
        """Return what it runs on can do at most."""
        ...
