"""How long a loop may be that Python goes round: each iteration is written to the program."""

from __future__ import annotations

from stepwell.frontend.errors import TraceError
from stepwell.frontend.tracing import active_trace

LIMIT = 5000
"""Ops of a loop that cannot be one loop of the program: more take longer to compile, some 3 ms
each, than anybody waits."""
SAMPLE = LIMIT // 5
"""Ops after which it is estimated how many all iterations come to."""
MARGIN = 2
"""How many times too large the estimate may be: iterations that get shorter (triangles)."""


class Unrolled:
    """Counts the ops of a loop that Python goes round."""

    def __init__(self, steps: int | None = None, reason: Exception | None = None) -> None:
        """Begin to count.

        steps : how many iterations there are, where none is left out
        reason : why it cannot be one loop of the program
        """
        self.trace = active_trace()
        self.steps, self.reason = steps, reason
        self.ops = self.turns = 0
        self.seen = len(self.trace.lines) if self.trace is not None else 0

    def turn(self) -> None:
        """Count an iteration; raise where they come to too many ops."""
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
