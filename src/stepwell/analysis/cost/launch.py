"""Seconds of a launch's overhead, on one thread and on several."""

from __future__ import annotations

from stepwell.core.machine import Machine

CALL_CYCLES = 20
"""Cycles to call a function, save its registers and return: for empty kernels, `python
bench/predicted.py` measures 5 ns."""


def seconds(threads: int, machine: Machine) -> float:
    """Return the seconds of a launch by one thread on ``threads`` threads.

    The other threads see the start signal, and in the end the first sees that they are done.
    """
    shared = 2 * machine.launch * 1e-9 if threads > 1 else 0.0
    return CALL_CYCLES / (machine.clock * 1e6) + shared
