"""The interface of a kind of level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stepwell.dialects.kernel.levels import Level
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.nests.frame import Frame
from stepwell.lowering.nests.scope import Inner, Scope, State
from stepwell.lowering.nests.steps import Step


class Kind(NamedTuple):
    """One kind of level.

    check : returns why an op cannot have a level, "" where it can
    emit : writes one level around the code that ``inner`` writes
    neighbours : returns similar levels, for a search to try
    """

    check: Callable[[Structured, Step], str]
    emit: Callable[[Frame, Step, Scope, State, Inner], State]
    neighbours: Callable[[Level], Sequence[Level]]


def other_steps(level: Level) -> Sequence[Level]:
    """Return the level with half and with double its step."""
    halves = [level.step // 2] if level.step > 1 and level.step % 2 == 0 else []
    return [Level(level.kind, level.loop, n, 0, level.actions) for n in (*halves, level.step * 2)]
