"""What changes while a region is written, and is as before outside of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stepwell.frontend.tensor import State, Tensor


@dataclass
class Journal:
    """What changed in a region, which is as before outside of it until the region's results are."""

    states: dict[int, tuple[Tensor, State]] = field(default_factory=dict[int, Any])
    """Values that changed, with what they were."""
    written: dict[int, Tensor] = field(default_factory=dict[int, Tensor])

    def undo(self) -> None:
        """Make every value what it was."""
        for value, state in self.states.values():
            value.state = state

    def outside(self, region: int) -> list[Tensor]:
        """Return what was written to, and had been made outside of ``region``."""
        return [v for k, v in self.written.items() if self.states[k][1].scope < region]
