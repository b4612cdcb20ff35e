"""Measure the machine figures that cannot be read: at most a second, then kept in the cache.

Figures are rounded to eighths of an octave, and a new measurement replaces a kept figure only if it
is better by more than noise. Compiling never measures: `this_machine` assumes defaults for unknown
figures, so that a compiled program does not depend on the load of the machine.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from ctypes import CDLL
from dataclasses import replace
from functools import cache, partial
from math import log2
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from stepwell.core.files import write_whole
from stepwell.core.host import host_facts
from stepwell.core.known_machines import fitting
from stepwell.core.machine import PROPERTIES, Machine, this_machine
from stepwell.core.schema import fields, flag, parsed, whole
from stepwell.runtime.cache import cache_root, digest
from stepwell.runtime.limits import FMA, READ, SOURCE, WRITE, limits_code
from stepwell.runtime.private import make_private

LOG = logging.getLogger("stepwell")
FORMAT = 1
BUDGET = 0.7
"""Seconds after which no further measurement begins, so that all take at most a second."""
STEPS = 8
"""Steps per octave to which figures are rounded: 9 % each."""
NOISE = 2
"""Number of steps within which an improvement of a measured figure counts as noise."""
M = 1 << 20
LEAST, MOST = 64 * M, 256 * M
"""Bounds in bytes of the array for memory rates: the lower exceeds the caches of a few cores, and
an array above the upper takes too long to fill."""
LANES = {"avx512f": 16, "avx2": 8}
"""The f32 lanes of the vectors in limits.c by instruction set; 4 for others."""


Task: TypeAlias = tuple[tuple[str, ...], Callable[[], tuple[float, ...]]]
CORE = ("clock", "fma_ports", "fma_latency")
COUNTED = ("fma_ports", "fma_latency")
"""Figures that are counts and not rounded to steps."""
TIMES = ("fma_latency", "launch", "wake")
"""Figures for which smaller is better."""
_STREAMS = ("l1_rate", "l2_rate", "l3_rate", "memory_rate", "memory_write")
MEASURED = (*CORE, *_STREAMS, *(f"{name}_all" for name in _STREAMS), "launch", "wake")
"""The measured properties."""


class Stream(NamedTuple):
    """An array that is read or written repeatedly.

    each : the factor of its size for all cores, if each core has its own cache; 1 if it is shared
    moved : bytes between two readings of the clock, or the cost of moving the array once
    """

    name: str
    kind: int
    bytes: int
    each: int = 1
    rounds: int = 3
    moved: int = 0


class Kept(NamedTuple):
    """The cached measurements, and whether the machine was busy during them."""

    busy: bool = False
    measured: Mapping[str, int] = {}


@cache
def measured() -> Mapping[str, int]:
    """Return the measured properties of this machine; measure them if they are not cached.

    raises CompileError : there is no C compiler to build the measuring code
    """
    machine = this_machine()
    kept = read_kept(place_of(machine))
    return MappingProxyType(
        dict(kept.measured if kept.measured and not kept.busy else measure_again(machine))
    )


def measured_machine() -> Machine:
    """Return this machine with the measured properties in place of the assumed ones."""
    return replace(this_machine(), **measured())


def measure_again(machine: Machine) -> Mapping[str, int]:
    """Measure, and keep the better of the new and the kept figures.

    A figure that there was no time for keeps its old value, or is assumed. Figures of a busy
    machine are measured again at the next request.
    """
    place = place_of(machine)
    kept = read_kept(place)
    busy = is_busy(machine) and (kept.busy or not kept.measured)
    found = settled(measure(machine), kept.measured)
    about = {"format": FORMAT, "busy": busy, "measured": found}
    text = json.dumps(about, indent=1) + "\n"
    try:
        make_private(place.parent)
        write_whole(place, text)
    except OSError as error:  # the next process measures again
        LOG.info("nothing kept at %s: %s", place, error.strerror or error)
    return found


def place_of(machine: Machine) -> Path:
    """Return the file of the figures, one for each processor and number of threads."""
    caches = str((machine.l1, machine.l2, machine.l3, machine.threads, machine.cores))
    key = digest(SOURCE.read_bytes(), Path(__file__).read_bytes(), machine.features, caches)
    return cache_root() / "machine" / f"{key}.json"


def is_busy(machine: Machine) -> bool:
    """Whether other processes load the machine too much for measurements."""
    try:
        return os.getloadavg()[0] > machine.cores / 2
    except OSError:
        return False


def read_kept(place: Path) -> Kept:
    """Return the contents of a file; empty if it is missing or damaged."""
    readers = {"format": whole(FORMAT, FORMAT), "busy": flag, "measured": _figures}
    try:
        found = fields(readers)(parsed(place.read_text(encoding="utf-8")), "")
    except (OSError, ValueError, RecursionError):
        return Kept()
    return Kept(found["busy"], found["measured"])


def _figures(value: Any, place: str) -> dict[str, int]:
    if type(value) is not dict:
        raise ValueError(f"{place} must be an object")
    found: dict[str, int] = value
    for name, figure in found.items():
        known = name in MEASURED and type(figure) is int and PROPERTIES[name].holds(figure)
        if not known:
            raise ValueError(f"{place}.{name[:40]} is nothing that is measured")
    return found


def settled(found: Mapping[str, float], kept: Mapping[str, int]) -> dict[str, int]:
    """Return figures in steps; a kept one stays unless the new one is better by more than noise.

    Load of other processes lowers rates and raises times, so the best figure ever measured is the
    closest to the machine's.

    >>> settled({"l2_rate": 118_000.0, "clock": 4100.0}, {"clock": 3756})
    {'clock': 3756, 'l2_rate': 120194}
    """
    figures = {name: rounded(name, value) for name, value in found.items()}
    stay = {
        name: kept[name]
        for name in figures.keys() & kept.keys()
        if _is_as_good(name, figures, kept)
    }
    return {
        name: ({**kept, **figures} | stay)[name] for name in MEASURED if name in {*kept, *figures}
    }


def _is_as_good(name: str, found: Mapping[str, int], kept: Mapping[str, int]) -> bool:
    """Whether a kept figure equals or exceeds a new one, within noise."""
    gain = log2(found[name] / kept[name]) * STEPS
    return (-gain if name in TIMES else gain) <= NOISE + 0.5


def rounded(name: str, value: float) -> int:
    """Return a figure in steps; cycles and ports are rounded to whole numbers instead."""
    if name in COUNTED:
        return max(round(value), 1)
    return max(round(2 ** (round(log2(max(value, 1)) * STEPS) / STEPS)), 1)


def measure(machine: Machine) -> dict[str, float]:
    """Measure one task after another while there is time."""
    code = limits_code()  # built before the clock starts
    until = perf_counter() + BUDGET
    found: dict[str, float] = {}
    for names, task in tasks(machine, code):
        if perf_counter() > until:
            LOG.info("no time to measure %s: it is assumed", ", ".join(names))
            continue
        found |= {
            name: value
            for name, value in zip(names, task(), strict=True)
            if value > 0 and PROPERTIES[name].holds(rounded(name, value))
        }
    return found


def tasks(machine: Machine, code: CDLL) -> Iterator[Task]:
    """Yield the properties to measure and the functions that measure them, most wanted first.

    For a known processor, the ports and the latency in its file are better than a measurement.
    """
    if fitting(host_facts().identity) is None:
        yield CORE, partial(_core, machine, code)
    else:
        yield CORE[:1], lambda: (code.sw_clock() * 1e3,)
    cores = min(machine.cores, machine.threads)
    memory = min(max(2 * machine.l3, LEAST), MOST)
    beyond = min(max(machine.l3 // 4, 2 * machine.l2 * cores), LEAST)
    streams = (
        Stream("l3_rate", READ, beyond if machine.l3 > machine.l2 else 0, rounds=4, moved=32 * M),
        Stream("memory_rate", READ, memory),
        Stream("l2_rate", READ, machine.l2 // 2, each=cores, rounds=5, moved=16 * M),
        Stream("l1_rate", READ, machine.l1 // 2, each=cores, rounds=5, moved=8 * M),
        Stream("memory_write", WRITE, memory),
    )
    for stream in streams:
        if stream.bytes:
            yield (stream.name, f"{stream.name}_all"), partial(_rates, code, stream, cores)
    if machine.threads > 1:
        yield ("launch",), lambda: (code.sw_start_of(machine.threads, 0),)
        yield ("wake",), lambda: (code.sw_start_of(machine.threads, 1),)


def _core(machine: Machine, code: CDLL) -> tuple[float, ...]:
    """Return MHz, full-width multiply-adds per cycle, and the latency of one in cycles."""
    clock = code.sw_clock()
    elements = min(machine.unit_bits // 32, lanes(machine))
    operations = code.sw_rate(FMA, 1, 0, 4, 0) / clock  # a cycle; a multiply-add is two of each
    return clock * 1e3, operations / (2 * elements), code.sw_latency() * clock


def _rates(code: CDLL, stream: Stream, cores: int) -> tuple[float, ...]:
    """Return the rates of one core and of all cores in 10^6 bytes a second."""
    how = stream.rounds, stream.moved
    one = code.sw_rate(stream.kind, 1, stream.bytes, *how)
    bytes = stream.bytes * stream.each
    together = code.sw_rate(stream.kind, cores, bytes, *how) if cores > 1 else one
    return one * 1e3, max(one, together) * 1e3


def lanes(machine: Machine) -> int:
    """Return the number of f32 lanes of the vectors in limits.c."""
    return next((count for name, count in LANES.items() if machine.has(name)), 4)
