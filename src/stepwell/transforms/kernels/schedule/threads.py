"""How much of the shared loops one parallel iteration takes."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.analysis.levels import Nesting

ELEMENTS = 1024
"""Elements of a vectorised loop, or of the last of several, that one parallel iteration takes where
nothing runs inside: enough cache lines of each operand that the loop around them costs nothing."""


def parallel_steps(
    nesting: Nesting, loops: Sequence[Sequence[bool]], slivers: int | None = None
) -> tuple[int, ...]:
    """Return how many iterations of each parallel loop one parallel iteration takes.

    loops : of each op
    slivers : columns of what an operand is laid out in, where that is all a kernel does
    """
    shared, last = nesting.shared, nesting.shared - 1
    if nesting.blocks:
        return (*(1 for _ in range(shared + 1 - len(nesting.blocks))), *nesting.blocks[:-1])
    found = [nesting.step(k) for k in range(nesting.parallel)]
    if nesting.stream[0]:
        return tuple(nesting.stream[0] if k == last else 1 for k in range(nesting.parallel))
    if slivers is not None:
        return tuple(slivers if k == last else 1 for k in range(nesting.parallel))
    if any(len(each) > shared for each in loops):
        return tuple(found)
    for k, step in enumerate(found):
        alone = nesting.axis < 0 and k == last > 0 and step == 1
        if k == nesting.axis or alone:
            found[k] = -(-ELEMENTS // step) * step
    return tuple(found)
