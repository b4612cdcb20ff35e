"""Arrays that exchange places in a loop."""

from __future__ import annotations

from stepwell.frontend.errors import TraceError


class Swapped(TraceError):
    """Raised when written arrays exchange places; after ``order`` iterations they are back."""

    def __init__(self, names: str, order: int) -> None:
        super().__init__(
            f"{names} change places in a loop that cannot say how often it went round; "
            "copy instead: u[:] = v"
        )
        self.order = order


def order_of(moved: dict[int, int]) -> int:
    """Return after how many iterations all arrays are back in their places."""
    at, order = dict(moved), 1
    while any(k != m for k, m in at.items()):
        at = {k: moved[m] for k, m in at.items()}
        order += 1
    return order
