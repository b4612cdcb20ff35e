"""The interface of timed programs: one call with a record of its launches, for any clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepwell.core.signature import Kernel
from stepwell.runtime.limits import Limits

KEPT = 1 << 16
"""Maximum number of launches recorded in a call."""
LAUNCH = np.dtype([(name, np.int64) for name in ("begin", "end", "kernel", "thread")])


@dataclass(frozen=True)
class Run:
    """One call: nanoseconds on the clock of the launches."""

    begin: int
    end: int
    launches: NDArray[Any]
    tiny: NDArray[Any]
    """The number of executions of each copy that is only counted."""

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
    """A program with clock readings."""

    copies: tuple[Kernel, ...]
    where: str
    """The device that it runs on, if it is not the host."""

    def plain(self, arguments: Sequence[Any]) -> None:
        """Call the original program, and wait until it has finished."""
        ...

    def call(self, arguments: Sequence[Any]) -> None:
        """Call the program with clock readings, and wait until it has finished."""
        ...

    def run(self, arguments: Sequence[Any]) -> Run:
        """Call it once, and return the times of all launches."""
        ...

    def limits(self, again: bool = False) -> Limits:
        """Return the peak rates of the processor or device it runs on."""
        ...
