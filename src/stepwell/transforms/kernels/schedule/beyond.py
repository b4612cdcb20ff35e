"""Memory beyond the L2 cache: its bandwidth, and the data that survives between calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from xdsl.ir import BlockArgument, Operation, SSAValue

from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.reasons import explain_choice

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
    unaligned: Collection[int] = ()
    """Arguments that a call gives, which may begin within a cache line."""

    def is_ready(self, value: SSAValue) -> bool:
        """Whether an operand is the same in every call."""
        return isinstance(value, BlockArgument) and value.index in self.ready

    def is_unaligned(self, value: SSAValue) -> bool:
        """Whether an operand may begin within a cache line."""
        return isinstance(value, BlockArgument) and value.index in self.unaligned

    def distance(self, value: SSAValue, bytes: int) -> float:
        """Return the bytes touched between two uses of an operand: at least its own ``bytes``."""
        known = self.idle.get(value.index, 0.0) if isinstance(value, BlockArgument) else 0.0
        return max(known, bytes)


NO_ARGUMENTS = Arguments()


def reads_in_place(machine: Machine) -> int:
    """Return the bytes of an operand up to which TLB misses do not matter."""
    return machine.l2 // 4


def stays(machine: Machine) -> int:
    """Return the bytes below which data is still in a cache when a call reads it again."""
    part, of = LAST_CACHE_PART
    return max(machine.last_cache * part // of, MIN_L2_MULTIPLE * machine.l2)


def is_hidden(bytes: float, machine: Machine) -> bool:
    """Whether a core computes on while it waits for an operand that a tile reads in long runs.

    Instructions in flight hide a latency if half of them take longer. Of three, two are
    multiply-adds; the others load their operands.

    bytes : what is touched between two uses of the operand
    """
    latency = machine.l3_latency if bytes < stays(machine) else machine.memory_latency
    return machine.window / 2 * 2 / 3 >= latency * machine.fma_rate


def is_beyond(op: Operation, distance: float, machine: Machine) -> bool:
    """Whether an operand comes from memory, not from the last-level cache, in every call.

    distance : the bytes that are touched between two uses of it
    """
    if distance < stays(machine):
        return False
    explain_choice(op, lambda: NEXT)
    return True
