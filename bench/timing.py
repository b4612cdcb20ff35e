"""Time a call and note what disturbed it; peers run this, so it needs the standard library only."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")
WARM_UP = 0.02
"""Seconds of calls before the clock counts: caches, pools of threads and frequencies settle."""
GROUP = 2e-4
"""Seconds that a group of calls lasts at least, so that the clock's own cost does not show."""


def batch(
    call: Callable[[], Any],
    seconds: float,
    pace: Callable[[], float],
    restore: Callable[[], Any] | None = None,
) -> dict[str, float]:
    """Call again and again; return what `measuring.Batch` is made of.

    restore : is called before each call, outside of its time
    """
    before = pace()
    each = _warm_up(call, restore)
    size = 1 if restore else max(1, int(GROUP / max(each, 1e-7)))
    times: list[float] = []
    worked, own, waited, start = _worked(), _own(), _waited(), time.perf_counter()
    while not times or time.perf_counter() - start < seconds:
        if restore:
            restore()
        begin = time.perf_counter()
        for _ in range(size):
            call()
        times.append((time.perf_counter() - begin) / size)
    wall = time.perf_counter() - start
    others = (_worked() - worked) - (_own() - own)
    return {
        "seconds": median(times),
        "least": min(times),
        "waited": max(0.0, _waited() - waited) / wall,
        "others": max(0.0, others) / wall,
        "pace": min(before, pace()),
    }


def quick(call: Callable[[], Any], restore: Callable[[], Any] | None = None) -> float:
    """Return about how long a call takes, to choose among several."""
    return batch(call, 0.05, lambda: 0.0, restore)["seconds"]


def _warm_up(call: Callable[[], Any], restore: Callable[[], Any] | None) -> float:
    """Call for a while; return how long one took on average."""
    start, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - start < WARM_UP:
        if restore:
            restore()
        call()
        count += 1
    return (time.perf_counter() - start) / count


def pacemaker(library: str) -> Callable[[], float]:
    """Return a function that says what one core gives right now: 1e9 operations a second."""
    if not library:
        return lambda: 0.0
    limit = ctypes.CDLL(library).sw_pace
    limit.restype = ctypes.c_double
    return limit


def resident_memory(peak: bool = False) -> float:
    """Return the memory this process has, or the most that it has had, in MB."""
    wanted = "VmHWM" if peak else "VmRSS"
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) / 1024
    return 0.0


def _worked() -> float:
    """Return the seconds that all processors have worked for anybody."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = file.readline().split()[1:9]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / TICK


def _own() -> float:
    return sum(os.times()[:4])


def _waited() -> float:
    """Return the seconds that threads of this process stood in line for a processor."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return total / 1e9


def alternate(
    calls: Sequence[Callable[[], object]], seconds: float, clock: Callable[[], float]
) -> list[float]:
    """Return the least time of each call by a clock."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for n, call in enumerate(calls):
            start = clock()
            call()
            best[n] = min(best[n], clock() - start)
    return best
