"""Bytes read from each level of memory, depending on what caches hold while loops run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from xdsl.ir import SSAValue

from stepwell.analysis.cost.accesses import Access, without_overlaps
from stepwell.analysis.cost.compute import crossing
from stepwell.analysis.cost.nest import Nest
from stepwell.core.machine import Level, Machine

PREFETCHED_LINES = 4
"""Consecutive lines after which hardware prefetches the next (Intel's and AMD's guides: two to
four)."""
MAX_STREAMS = 16
"""Streams that hardware prefetchers follow at a time (Intel's and AMD's guides: 16 to 32)."""

LOST_OVER = 10 / 3
"""A cache that loses a part of its size little by little, because pages lie anywhere in it, has
lost all after so many times that part: from 0.7 to 1.7 of the size on a Xeon (note 112)."""
HIDDEN_PART = 0.5
"""Where computing and memory take equally long, half of the shorter is hidden by the longer; where
much is computed for each byte, prefetching hides all (figures of `python bench/predicted.py`)."""


def overlapped(compute: float, memory: float) -> float:
    """Return the time of computing beside transfers that take so long alone."""
    visible = HIDDEN_PART * min(compute, memory) * min(memory / compute, 1.0) if compute else 0.0
    return max(compute, memory) + visible


@dataclass
class Missed:
    """Bytes of the misses of one level of cache, of all threads together."""

    read: float = 0.0
    written: float = 0.0
    scattered: float = 0.0
    """Missed lines that hardware does not prefetch."""
    stored: float = 0.0
    """Those of them that are written."""
    crossed: float = 0.0
    """Bytes read by loads that cross the ends of lines; they are among those read."""
    packed: dict[Access, float] = field(default_factory=dict[Access, float])
    """Bytes that packing reads, by operand; they are not among those read."""

    def beyond(self, other: Missed) -> Missed:
        """Return the misses that hit the next cache, whose own misses are ``other``."""
        return Missed(
            max(self.read - other.read, 0.0),
            max(self.written - other.written, 0.0),
            max(self.scattered - other.scattered, 0.0),
            max(self.stored - other.stored, 0.0),
            max(self.crossed - other.crossed, 0.0),
            {a: max(n - other.packed.get(a, 0.0), 0.0) for a, n in self.packed.items()},
        )


@dataclass(frozen=True)
class Source:
    """A level of memory, as one thread of several sees it."""

    name: str
    bytes: float
    """Bytes that come from it in a cycle."""
    latency: float
    """Cycles until it answers."""
    missed: Missed
    """What is read from it."""
    crossing: float = 1.0
    """How many times as long loads take that cross the ends of lines."""

    def cycles(self, machine: Machine) -> float:
        """Return the cycles of all transfers by one thread, except those of packing."""
        scattered = self.missed.scattered * machine.l1_line
        streamed = max(self.missed.read + self.missed.written - scattered, 0.0)
        streamed += self.missed.crossed * (self.crossing - 1)
        lines = self.missed.scattered * self._each(machine)
        return streamed / self.bytes + lines + self._written_back(machine)

    def storing(self, machine: Machine) -> float:
        """Return those cycles of scattered stores: in order, they hold up the loads behind them."""
        return self.missed.stored * self._each(machine)

    @property
    def is_near(self) -> bool:
        """Whether it is the L2 cache."""
        return self.name == "L2"

    def _each(self, machine: Machine) -> float:
        """Return the cycles of a scattered line."""
        at_once = machine.misses if self.is_near else machine.l2_misses
        return max(self.latency / at_once, machine.l1_line / self.bytes)

    def _written_back(self, machine: Machine) -> float:
        """Return the cycles in which the L2 cache takes lines that were written."""
        if not self.is_near or not machine.l2_write:
            return 0.0
        each = machine.clock / machine.l2_write - 1 / self.bytes
        return self.missed.written * max(each, 0.0)


def sources(
    nests: Sequence[Nest],
    machine: Machine,
    levels: Sequence[Level],
    idle: Mapping[int, float],
    threads: int,
) -> list[Source]:
    """Return the levels of memory beyond the L1 cache, with what is read from each.

    idle : the bytes touched between two uses of an argument, by its number
    """
    cores = max(min(machine.threads, machine.cores), 1)
    sizes = _Sizes(nests, machine)
    missed: list[Missed] = []
    for level in levels[:-1]:
        caches = max(-(-cores * machine.threads_per_core // level.shared_by), 1)
        kept = machine.l2_kept / 100 if level.name == "L2" else 1.0
        missed.append(_missed(sizes, _Cache(level.size, caches, kept), idle))
    missed.append(Missed())
    latencies = {"L2": machine.l2_latency, "L3": machine.l3_latency}
    found: list[Source] = []
    for level, (near, far) in zip(levels[1:], pairwise(missed), strict=True):
        rate = min(level.rate, max(level.rate_all, level.rate) / threads) / machine.clock
        latency = latencies.get(level.name, machine.memory_latency)
        again = 100 / machine.l2_crossing if level.name == "L2" else 1.0
        found.append(Source(level.name, rate, latency, near.beyond(far), again))
    return found


@dataclass(frozen=True)
class _Cache:
    """A cache of each core, or one of several."""

    size: int
    caches: int
    """How many of them the threads have together."""
    kept: float
    """The part of its size up to which it keeps all that is touched."""

    def lost(self, bytes: float) -> float:
        """Return the part of what it holds that it loses while so many bytes are touched."""
        beyond, over = bytes / self.size - self.kept, LOST_OVER * (1 - self.kept)
        return min(beyond / over, 1.0) if 0 < beyond < over else float(beyond > 0)

    def fetched(
        self, fitting: Sequence[tuple[int, float]], whole: float, since: float
    ) -> list[tuple[int, float]]:
        """Return after how many levels which parts of an array are fetched again.

        fitting : the levels below which parts of what a launch touches stay
        whole : the bytes of a launch
        since : those from the last use of the array to this launch; less than 0 if it comes with
            another array
        """
        if since < 0:
            return []
        gone = self.lost(max(since, whole) / self.caches)
        later = [(depth, part) for depth, part in fitting if depth]
        again = sum(part for _, part in later)
        if gone < again:
            return [(depth, part * gone / again) for depth, part in later] if gone else []
        return [(0, gone - again), *later] if gone > again else later


@dataclass
class _Sizes:
    """Footprints of the steps of a kernel: bytes touched, each counted once."""

    nests: Sequence[Nest]
    machine: Machine
    known: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    runs: dict[Access, float] = field(default_factory=dict[Access, float])

    @property
    def line(self) -> int:
        """The bytes of a line."""
        return self.machine.l1_line

    def crossed(self, nest: Nest, found: Sequence[Access]) -> float:
        """Return the part of an array's lines that are read by loads across their ends."""
        read = [a for a in found if not a.written and nest.axis in a.loops]
        if nest.width == 1 or not read:
            return 0.0
        loads = max(self.line / min(self.machine.unit_bits // 8, nest.width * read[0].bytes), 1.0)
        return min(crossing(nest, read[0], self.machine) * loads, 1.0)

    def of(self, nest: Nest | None, depth: int) -> float:
        """Return the footprint of one step of ``depth`` levels: of one op, or of all for None."""
        key = id(nest), depth
        if key not in self.known:
            beside = self.nests if nest is None else [nest]
            self.known[key] = sum(_touched(beside, depth, self.line).values())
        return self.known[key]

    def run(self, nest: Nest, access: Access) -> float:
        """Return the length in bytes of the runs of an access, as far as prefetchers follow."""
        if access not in self.runs:
            self.runs[access] = _in_turn(nest, access)
        return self.runs[access]

    def fitting(self, nest: Nest, cache: _Cache) -> list[tuple[int, float]]:
        """Return the numbers of levels below which parts of what is touched stay in a cache."""
        found: list[tuple[int, float]] = []
        before = 1.0
        for depth in range(len(nest.steps) + 1):
            bytes = self.of(None if depth <= nest.shared else nest, depth)
            lost = cache.lost(bytes) if depth < len(nest.steps) else 0.0
            if lost < before:
                found.append((depth, before - lost))
                before = lost
            if not lost:
                break
        return found


def _missed(sizes: _Sizes, cache: _Cache, idle: Mapping[int, float]) -> Missed:
    """Return the misses of a cache.

    idle : the bytes touched between two uses of an argument, by its number
    """
    missed, seen, whole = Missed(), dict[SSAValue, float](), sizes.of(None, 0)
    for nest in sizes.nests:
        fitting, here = sizes.fitting(nest, cache), dict[SSAValue, float]()
        for array, found in nest.arrays.items():
            since = idle.get(found[0].argument, 0.0)
            within = [nest.packed[a.operand] for a in found if a.operand in nest.packed]
            for depth, part in cache.fetched(fitting, whole, since):
                shared = depth <= nest.shared
                if found[0].local and shared:
                    continue
                at = min([depth, *within])
                parts = without_overlaps(found, nest.ranges(at))
                bytes = part * sum(_through(nest, access, at, sizes.line) for access in parts)
                here[array] = here.get(array, 0.0) + bytes
                new = max(bytes - seen.get(array, 0.0), 0.0) if shared else bytes
                _count(missed, new, sizes, nest, found)
        for array, bytes in here.items():
            seen[array] = max(bytes, seen.get(array, 0.0))
        for access in nest.accesses:
            for depth, part in fitting:
                if access.is_copy and depth > nest.packed[access.operand]:
                    missed.read += part * _through(nest, access, depth, sizes.line)
    return missed


def _count(missed: Missed, new: float, sizes: _Sizes, nest: Nest, found: Sequence[Access]) -> None:
    """Add ``new`` bytes of an array to the misses of a cache."""
    if all(access.operand in nest.packed for access in found):
        missed.packed[found[0]] = missed.packed.get(found[0], 0.0) + new
        return
    run, line = sizes.run(nest, found[0]), sizes.line
    alone = min(line * PREFETCHED_LINES / run, 1.0)
    asked = nest.prefetches and not nest.packs  # a block prefetches what it packs alone
    if not asked or alone > 0.5:  # else software asks for what hardware does not
        missed.scattered += new / line * alone
    if any(access.written for access in found):
        missed.written += new
        missed.stored += new / line * alone
    if not all(access.written for access in found):
        missed.read += new
        missed.crossed += new * sizes.crossed(nest, found)


def _touched(nests: Sequence[Nest], depth: int, line: int) -> dict[SSAValue, float]:
    """Return the bytes of each array that one step of ``depth`` levels touches."""
    found: dict[SSAValue, float] = {}
    for nest in nests:
        at = min(depth, len(nest.steps))
        ranges = nest.ranges(at)
        for array, accesses in nest.arrays.items():
            here = [a for a in accesses if at < nest.packed.get(a.operand, len(nest.steps) + 1)]
            bytes = sum(a.footprint(ranges, line) for a in without_overlaps(here, ranges))
            found[array] = max(found.get(array, 0.0), bytes)
        for access in nest.accesses:
            if access.is_copy and at >= nest.packed[access.operand]:
                found[access.array] += access.footprint(ranges, line)
    return found


def _through(nest: Nest, access: Access, depth: int, line: int) -> float:
    """Return the bytes of an access fetched into a cache that holds a step of ``depth`` levels.

    Data that two consecutive steps both touch stays in the cache.
    """
    while depth and nest.steps[depth - 1].loop not in access.loops:
        depth -= 1
    depth = max(depth - 1, 0)
    bytes = access.footprint(nest.ranges(depth), line)
    return bytes * nest.repeats(depth, access)


def _in_turn(nest: Nest, access: Access) -> float:
    """Return the length in bytes of the runs of an access, as far as prefetchers follow them."""
    ranges = [1.0] * len(nest.sizes)
    for loop, unit in nest.units.items():
        ranges[loop] = float(unit)
    bytes = access.run(ranges)
    streams = prod(ranges[k] for k in access.loops) * access.bytes / bytes
    for step in reversed(nest.steps):
        if step.loop not in access.loops:
            continue
        ranges[step.loop] *= step.trips
        longer = access.run(ranges)
        streams *= step.trips * bytes / longer
        if streams > MAX_STREAMS:
            break
        bytes = longer
    return bytes
