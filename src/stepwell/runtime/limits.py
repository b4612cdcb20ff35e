"""The peak rates of this machine: measured once by limits.c, then kept in the cache."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from stepwell.core.machine import this_machine
from stepwell.runtime.cache import cache_root, digest, disk_cache
from stepwell.runtime.private import make_private
from stepwell.runtime.toolchain import find_compiler

SOURCE = Path(__file__).with_name("limits.c")
FMA, READ, COPY, TRIAD, WRITE = range(5)
"""The kinds of measurements of limits.c."""

MEMORY = 256 << 20
"""Bytes of arrays larger than any cache."""


@dataclass(frozen=True)
class Limits:
    """Rates of all threads together: 1e9 operations a second, and 1e9 bytes a second."""

    threads: int
    fma: float
    """f32 operations; a fused multiply-add counts as two."""
    read_l2: float
    """Reads from the cores' second caches."""
    read_l3: float
    read: float
    """Reads from memory."""
    copy: float
    triad: float
    """Reads of two arrays and writes of a third."""
    l2: int
    """Bytes of the second caches of all threads."""
    l3: int

    def bandwidth(self, bytes: int) -> float:
        """Return the rate of reading or writing ``bytes`` bytes repeatedly."""
        if bytes <= self.l2:
            return max(self.read_l2, self.read)
        memory = max(self.read, self.copy, self.triad)
        return max(self.read_l3, memory) if bytes <= self.l3 else memory

    def seconds(self, flops: float, bytes: int, bits: int = 32) -> float:
        """Return the minimum time of ``flops`` on ``bits``-bit floats that access ``bytes``."""
        peak = self.fma * min(1.0, 32 / bits)
        return max(flops / (peak * 1e9), bytes / (self.bandwidth(bytes) * 1e9))


@cache
def machine_limits(threads: int) -> Limits:
    """Return the cached limits of this machine, measured if they are missing."""
    try:
        return Limits(**json.loads(_notes(threads).read_text()))
    except (OSError, ValueError, TypeError):
        return measure_again(threads)


def measure_again(threads: int) -> Limits:
    """Measure, and return the highest rates ever measured here: load only lowers them."""
    found, notes = measure_limits(threads), _notes(threads)
    try:
        known = Limits(**json.loads(notes.read_text()))
        greatest = {k: max(v, getattr(known, k)) for k, v in asdict(found).items()}
        found = Limits(**greatest)
    except (OSError, ValueError, TypeError):
        pass
    with suppress(OSError):  # without the file they are only measured again
        make_private(notes.parent)
        partly = notes.with_suffix(f".{os.getpid()}")
        partly.write_text(json.dumps(asdict(found), indent=1) + "\n")
        partly.replace(notes)
    return found


def _notes(threads: int) -> Path:
    """Return the file of the measurements."""
    machine = this_machine()
    about = str((machine.l2, machine.l3, threads))
    key = digest(SOURCE.read_bytes(), machine.features, about)
    return cache_root() / "limits" / f"{key}.json"


def measure_limits(threads: int) -> Limits:
    """Measure for a second or two; other processes lower the result."""
    machine, limit = this_machine(), limit_function()
    l2, l3 = machine.l2 * threads, machine.l3

    def rate(kind: int, bytes: int) -> float:
        return round(limit(kind, threads, bytes), 2)

    return Limits(
        threads,
        fma=rate(FMA, 0),
        read_l2=rate(READ, l2 // 2),
        read_l3=rate(READ, max(l3 // 4, l2)),
        read=rate(READ, max(MEMORY, 4 * l3)),
        copy=rate(COPY, max(MEMORY, 4 * l3)),
        triad=rate(TRIAD, max(MEMORY, 4 * l3)),
        l2=l2,
        l3=max(l2, l3),
    )


def limit_function() -> Callable[[int, int, int], float]:
    """Return `sw_limit` of limits.c: kind, threads, bytes -> 1e9 a second."""
    return limits_code().sw_limit


@cache
def limits_code() -> ctypes.CDLL:
    """Return the functions of limits.c, built if necessary."""
    code = ctypes.CDLL(str(limits_library()))
    number, bytes = ctypes.c_int, ctypes.c_int64
    code.sw_limit.argtypes = [number, number, bytes]
    code.sw_rate.argtypes = [number, number, bytes, number, bytes]
    code.sw_start_of.argtypes = [number, number]
    code.sw_clock.argtypes = code.sw_latency.argtypes = []
    for name in ("limit", "rate", "start_of", "clock", "latency"):
        getattr(code, f"sw_{name}").restype = ctypes.c_double
    return code


def limits_library() -> Path:
    """Return limits.c as a library, built if necessary."""
    compiler = find_compiler()
    flags = [*(f for f in compiler.optional if f != "-nostdlib"), "-O3", "-pthread"]

    def build(folder: Path) -> None:
        compiler.build_library(SOURCE, folder / "limits.so", flags)

    sources = SOURCE.read_bytes(), SOURCE.with_name("pool.h").read_bytes()
    key = digest(*sources, *flags, compiler.id, this_machine().features)
    return disk_cache().fetch("limits-library", key, build) / "limits.so"
