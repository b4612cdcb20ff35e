"""Choose the iterations of the shared loops that one parallel iteration takes."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.analysis.levels import Nesting

ELEMENTS_PER_STEP = 1024
"""Elements of a vectorised loop, or of the last of several, in one parallel iteration without inner
loops: enough cache lines of each operand that the loop around them costs nothing."""


def parallel_steps(
    nesting: Nesting, loops: Sequence[Sequence[bool]], panels: int | None = None
) -> tuple[int, ...]:
    """Return the iterations of each parallel loop that one parallel iteration takes.

    loops : for each op, whether its loops are parallel
    panels : columns of a panel, in a kernel that only copies an operand into panels
    """
    shared, last = nesting.shared, nesting.shared - 1
    if nesting.blocks:
        return (*(1 for _ in range(shared + 1 - len(nesting.blocks))), *nesting.blocks[:-1])
    found = [nesting.step(k) for k in range(nesting.parallel)]
    if nesting.strip[0]:
        return tuple(nesting.strip[0] if k == last else 1 for k in range(nesting.parallel))
    if panels is not None:
        return tuple(panels if k == last else 1 for k in range(nesting.parallel))
    if any(len(each) > shared for each in loops):
        return tuple(found)
    for k, step in enumerate(found):
        alone = nesting.axis < 0 and k == last > 0 and step == 1
        if k == nesting.axis or alone:
            found[k] = -(-ELEMENTS_PER_STEP // step) * step
    return tuple(found)
