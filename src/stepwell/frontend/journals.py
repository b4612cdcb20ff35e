"""Changes inside a region that is being traced, which are undone outside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stepwell.frontend.handle import State
from stepwell.frontend.tensor import Tensor


@dataclass
class Journal:
    """The changes in a region, undone outside it until the region's results replace them."""

    states: dict[int, tuple[Tensor, State]] = field(default_factory=dict[int, Any])
    """Changed values by id, with their previous states."""
    written: dict[int, Tensor] = field(default_factory=dict[int, Tensor])

    def undo(self) -> None:
        """Restore every value's previous state."""
        for value, state in self.states.values():
            value.state = state

    def outside(self, region: int) -> list[Tensor]:
        """Return the arrays made outside of ``region`` that were written to."""
        changed = [(value, self.states[key][1]) for key, value in self.written.items()]
        return [value for value, before in changed if max(before.scope, value.born) < region]
