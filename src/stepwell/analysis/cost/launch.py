"""Seconds until a kernel has begun, on one thread and on several."""

from __future__ import annotations

from stepwell.core.machine import Machine

CALL = 20
"""Cycles to call a function, set up its registers and return: of kernels that do nothing,
`python bench/predicted.py` measures 5 ns."""


def seconds(threads: int, machine: Machine) -> float:
    """Return the seconds of a launch on so many threads that wait for one.

    The others see that they may begin, and in the end one sees that they are done.
    """
    shared = 2 * machine.launch * 1e-9 if threads > 1 else 0.0
    return CALL / (machine.clock * 1e6) + shared
