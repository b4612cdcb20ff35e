"""A limit on loops that Python executes while tracing, which unrolls them."""

from __future__ import annotations

from stepwell.frontend.errors import TraceError
from stepwell.frontend.tracing import active_trace

LIMIT = 5000
"""The most ops of an unrolled loop: compiling takes about 3 ms an op, so a larger program would
take too long."""
SAMPLE = LIMIT // 5
"""The number of ops after which the size of the whole loop is estimated."""
MARGIN = 2
"""The factor by which the estimate may be too large: later iterations may be shorter."""


class Unrolled:
    """Counts the ops of a loop that is unrolled."""

    def __init__(self, steps: int | None = None, reason: Exception | None = None) -> None:
        """Begin to count.

        steps : the number of iterations, if none is skipped
        reason : why it cannot be a loop of the program
        """
        self.trace = active_trace()
        self.steps, self.reason = steps, reason
        self.ops = self.turns = 0
        self.seen = len(self.trace.lines) if self.trace is not None else 0

    def turn(self) -> None:
        """Count an iteration; raise if the iterations have too many ops."""
        if self.trace is None:
            return
        self.turns += 1
        lines = self.trace.lines
        self.ops += sum(1 + text.count("\n") for text in lines[self.seen :])
        self.seen = len(lines)
        if self.ops <= SAMPLE:
            return
        expected = self.ops * (self.steps or self.turns) // self.turns
        if self.ops > LIMIT or expected > MARGIN * LIMIT:
            self._refuse()

    def _refuse(self) -> None:
        steps = f" of {self.steps} steps" if self.steps is not None else ""
        why = "" if self.reason is None else f": {self.reason}"
        raise TraceError(
            f"this loop{steps} cannot be one loop of the program, "
            f"and is too long to be repeated in it{why}"
        )
