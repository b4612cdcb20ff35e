"""Memory beyond the L2 cache: its bandwidth, and the data that survives between calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import Vectors

LAST_CACHE_PART = 3, 4
"""The part of the last-level cache, 3/4, up to which an operand survives between calls: the other
data of a call takes the rest."""
MIN_L2_MULTIPLE = 24
"""Multiples of the L2 cache below which no operand is taken to come from memory: 3/4 of Zen 4's
last-level cache; for slow last-level caches there is no measurement."""
NEXT = "what is read next is asked for before, for it comes from memory"


class Arguments(NamedTuple):
    """Properties that the launches of a kernel tell about its arguments, by number."""

    ready: Collection[int] = ()
    """Arguments that are the same in every call: to pack them costs nothing."""
    idle: Mapping[int, float] = {}
    """Bytes that a program touches between two uses of an argument, where known."""

    def is_ready(self, value: SSAValue) -> bool:
        """Whether an operand is the same in every call."""
        return isinstance(value, BlockArgument) and value.index in self.ready

    def distance(self, value: SSAValue, bytes: int) -> float:
        """Return the bytes touched between two uses of an operand: at least its own ``bytes``."""
        known = self.idle.get(value.index, 0.0) if isinstance(value, BlockArgument) else 0.0
        return max(known, bytes)


NO_ARGUMENTS = Arguments()


def reads_in_place(l2: int) -> int:
    """Return the bytes of an operand up to which TLB misses do not matter."""
    return l2 // 4


def is_near(op: Operation, rows: int, bytes: int, machine: Vectors) -> bool:
    """Whether memory beyond the L2 cache is as fast as a tile consumes it.

    If so, the first tile may pack while it computes, and prefetching hides the rest. If it is
    slower, tiles wait for both: on Sapphire Rapids, which delivers 7 bytes in a cycle where a tile
    consumes 21, large products gain 13 to 25 % without them; on Zen 4, which delivers 25 where a
    tile consumes 11, they lose.

    bytes : of a vector
    """
    taken = machine.consumes(rows, bytes)
    if taken <= machine.far_bytes:
        return True
    said = f"{machine.far_bytes} bytes come in a cycle where a tile takes {taken:.0f}"
    explain_choice(
        op, lambda: f"nothing is packed while a tile computes, nor asked for before: {said}"
    )
    return False


def stays(machine: Vectors, l2: int) -> int:
    """Return the bytes below which data is still in a cache when a call reads it again."""
    part, of = LAST_CACHE_PART
    return max(machine.last_cache * part // of, MIN_L2_MULTIPLE * l2)


def is_beyond(op: Operation, distance: float, machine: Vectors, l2: int) -> bool:
    """Whether an operand comes from memory, not from the last-level cache, in every call.

    distance : the bytes that are touched between two uses of it
    """
    if distance < stays(machine, l2):
        return False
    explain_choice(op, lambda: NEXT)
    return True
