"""The kinds of levels: a module for each checks, emits and varies a level."""

from __future__ import annotations

from stepwell.dialects.kernel.levels import FOR, GROUP, LANE, UNROLL, VECTOR
from stepwell.lowering.nests.kinds import group, lane, loop, unroll, vector
from stepwell.lowering.nests.kinds.kind import Kind

KINDS: dict[str, Kind] = {
    GROUP: group.KIND,
    LANE: lane.KIND,
    FOR: loop.KIND,
    UNROLL: unroll.KIND,
    VECTOR: vector.KIND,
}
"""Each kind by its keyword in a schedule."""

__all__ = ["KINDS", "Kind"]
