"""Measure what this machine can do at most and print it: `python bench/limits.py [THREADS...]`."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from stepwell.core.machine import thread_count
from stepwell.runtime.limits import Limits, measure_again


def spell_limits(limits: Limits) -> str:
    """Return the limits in words."""
    threads = "1 thread" if limits.threads == 1 else f"{limits.threads} threads"
    return (
        f"{threads}: {limits.fma:.0f} GFLOP/s of f32 multiply-adds; "
        f"reading {limits.read:.1f} GB/s, copying {limits.copy:.1f}, triad {limits.triad:.1f}; "
        f"reading from the second caches {limits.read_l2:.0f}, from the third {limits.read_l3:.0f}"
    )


def processor() -> str:
    """Return what the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


if __name__ == "__main__":
    for count in [int(a) for a in sys.argv[1:]] or sorted({1, thread_count()}):
        print(spell_limits(measure_again(count)))
