"""The properties of the processor or device that the compiler uses."""

from __future__ import annotations

import logging
import operator
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, NamedTuple

from stepwell.core.diagnostics import CompileError, Diagnostic, did_you_mean
from stepwell.core.host import Facts, host_facts, usable_threads
from stepwell.core.known_machines import Known, known_machines, most_like
from stepwell.core.properties import (
    INSTRUCTIONS,
    KINDS,
    Property,
    flag,
    number,
    power,
    property_of,
    width,
    word,
)


class Level(NamedTuple):
    """A cache, or main memory, which has no size, line and ways."""

    name: str
    size: int
    line: int
    ways: int
    shared_by: int
    """Hardware threads that share one."""
    rate: int
    """Read rate of one core in 10^6 bytes a second, ..."""
    rate_all: int
    """... and of all cores together."""


@dataclass(frozen=True)
class Machine:
    """The properties of a processor or device that schedules use; rates are 10^6 bytes a second.

    Cache sizes are those of a single cache: ``l2_shared_by`` hardware threads share it. The
    defaults are those of an unknown processor.
    """

    name: str = word(
        "", "this processor, or the record that supplies properties that cannot be read"
    )
    kind: str = word("cpu", "a processor or a device", KINDS)
    instructions: str = word("", "instruction sets", INSTRUCTIONS, True)
    vector_bits: int = width(128, "width of a vector register")
    vector_lanes: int = power(64, "", "maximum number of elements of a vector")
    vector_registers: int = number(16, "", "architectural vector registers", 1)
    vector_unit: int = width(0, "width of the execution units, if narrower than a register", True)
    fma: bool = flag(False, "whether there are fused multiply-adds")
    signed_dots: bool = flag(False, "whether there are dot products of signed by signed bytes")
    threads: int = number(1, "", "threads that programs use", 1, 256)
    l1: int = number(32 << 10, "bytes", "first-level data cache")
    l2: int = number(1 << 20, "bytes", "second-level cache; 0 forbids scratch buffers")
    l3: int = number(8 << 20, "bytes", "last-level cache")
    hoist_constants: int = flag(
        1, "whether values that depend only on weights are computed at load"
    )
    versions: int = flag(1, "whether a launch may choose among versions of a kernel by its sizes")
    clock: int = number(3000, "MHz", "frequency of a core under vector load", 1, 100_000)
    issue: int = number(4, "a cycle", "instructions issued", 1, 64)
    fma_ports: int = number(2, "a cycle", "full-width multiply-adds started", 1, 64)
    fma_latency: int = number(4, "cycles", "latency of a multiply-add", 1, 64)
    load_ports: int = number(2, "a cycle", "full-width loads", 1, 64)
    store_ports: int = number(1, "a cycle", "full-width stores", 1, 64)
    vector_ports: int = number(3, "a cycle", "full-width vector instructions", 1, 64)
    shuffle_ports: int = number(1, "a cycle", "full-width shuffles", 1, 64)
    divide: int = number(5, "cycles", "throughput of a full-width f32 division", 1, 1024)
    gather: int = number(3, "cycles", "cost of gathering one element into a vector", 1, 1024)
    broadcast: int = number(
        175, "%", "cost of a broadcasting load, relative to a vector load", 1, 1000
    )
    window: int = number(224, "", "reorder buffer: instructions in flight", 1, 1 << 16)
    mispredict: int = number(15, "cycles", "penalty of a mispredicted branch", 1, 1024)
    forwarding: int = number(
        30, "cycles", "wait of a load for stores that each wrote a part of what it reads", 1, 1024
    )
    misses: int = number(12, "", "outstanding misses of the first-level cache", 1, 1 << 16)
    l2_misses: int = number(12, "", "outstanding misses of the second-level cache", 1, 1 << 16)
    l2_latency: int = number(14, "cycles", "latency of the second-level cache", 1, 1 << 16)
    l3_latency: int = number(60, "cycles", "latency of the last-level cache", 1, 1 << 16)
    memory_latency: int = number(300, "cycles", "latency of memory", 1, 1 << 16)
    l1_line: int = power(64, "bytes", "line size of the first-level cache", 4096)
    l1_ways: int = number(8, "", "associativity of the first-level cache", 1, 1 << 16)
    l1_shared_by: int = number(1, "threads", "that share a first-level cache", 1, 1 << 16)
    l1_rate: int = number(150_000, "MB/s", "read by one core from the first-level cache", 1)
    l1_rate_all: int = number(150_000, "MB/s", "read by all cores from first-level caches", 1)
    l2_line: int = power(64, "bytes", "line size of the second-level cache", 4096)
    l2_ways: int = number(8, "", "associativity of the second-level cache", 1, 1 << 16)
    l2_shared_by: int = number(1, "threads", "that share a second-level cache", 1, 1 << 16)
    l2_rate: int = number(100_000, "MB/s", "read by one core from the second-level cache", 1)
    l2_rate_all: int = number(100_000, "MB/s", "read by all cores from second-level caches", 1)
    l2_crossing: int = number(83, "%", "of that rate if loads cross line boundaries", 1, 100)
    l2_write: int = number(0, "MB/s", "written by one core to it; 0: as fast as reads")
    l2_kept: int = number(
        100, "%", "of that cache's size up to which it keeps all that is touched", 1, 100
    )
    l3_line: int = power(64, "bytes", "line size of the last-level cache", 4096)
    l3_ways: int = number(16, "", "associativity of the last-level cache", 1, 1 << 16)
    l3_shared_by: int = number(1, "threads", "that share a last-level cache", 1, 1 << 16)
    l3_rate: int = number(96_000, "MB/s", "read by one core from the last-level cache", 1)
    l3_rate_all: int = number(96_000, "MB/s", "read by all cores from last-level caches", 1)
    memory_rate: int = number(20_000, "MB/s", "read by one core from memory", 1)
    burst: int = power(
        128, "bytes", "contiguous bytes read before the next row, for full memory rate", 1 << 16
    )
    streams: int = number(
        8, "", "runs of memory, read side by side, that hardware prefetches", 1, 1 << 10
    )
    memory_rate_all: int = number(20_000, "MB/s", "read by all cores from memory", 1)
    memory_write: int = number(15_000, "MB/s", "written by one core with non-temporal stores", 1)
    memory_write_all: int = number(
        15_000, "MB/s", "written by all cores with non-temporal stores", 1
    )
    cores: int = number(1, "", "cores available to programs", 1, 1 << 16)
    threads_per_core: int = number(1, "", "hardware threads of a core", 1, 64)
    sockets: int = number(1, "", "sockets, each with its own memory", 1, 1024)
    launch: int = number(
        1000, "ns", "starting a parallel loop on waiting threads, or a kernel on a device", 1
    )
    wake: int = number(20_000, "ns", "the same on sleeping threads", 1)
    compute_units: int = number(0, "", "of a device: units that run work-groups")
    lanes: int = number(0, "", "of a device: work-items in lockstep")
    local_memory: int = number(0, "bytes", "of a device: local memory of a work-group")
    transfer: int = number(0, "MB/s", "of a device: copies between its memory and the host's")
    features: str = word("", "CPU features that -march=native depends on; part of every cache key")

    def override(self, text: str, source: str = "") -> Machine:
        """Return a copy with some properties changed, as in 'vector_bits=256,threads=1'.

        A known machine may come first, as in 'zen4,threads=2'; it sets all properties except the
        instructions that can be executed (``features``). Sizes may end in K, M or G.

        source : the origin of the text, for messages

        >>> Machine().override("vector_bits=256,l2=512K").l2
        524288
        >>> Machine().override("haswell,threads=2").vector_registers
        16
        """
        name, rest = named(text)
        machine = _named(name, self.features, source) if name else self
        return machine._changed(rest, source)

    def _changed(self, parts: Iterable[str], source: str) -> Machine:
        """Return a copy with each ``NAME=VALUE`` of ``parts`` changed."""
        changes: dict[str, Any] = {}
        for part in parts:
            name, _, text = part.partition("=")
            known = PROPERTIES.get(name)
            value = known.read(text) if known and text else None
            if known is None or value is None:
                message = f"cannot read '{part[:SHOWN]}' as a property of the machine"
                raise _error(message, source, _property_help(name))
            if not known.holds(value):
                message = f"a machine with {name}={text[:SHOWN]} cannot be compiled for"
                raise _error(message, source, f"{name} is {known.allowed}")
            changes[name] = value
        return replace(self, **changes) if changes else self

    def has(self, instruction: str) -> bool:
        """Whether an instruction set, by its name in `INSTRUCTIONS`, is available.

        >>> Machine().override("sapphire-rapids").has("amx_int8")
        True
        """
        return instruction in self.instructions.split("+")

    @property
    def unit_bits(self) -> int:
        """The width in bits of the vector unit."""
        return min(self.vector_unit or self.vector_bits, self.vector_bits)

    def full_lanes(self, bits: int) -> int:
        """Return how many elements of ``bits`` fill a vector.

        >>> Machine(vector_bits=512, vector_lanes=16).full_lanes(8)
        16
        """
        return max(min(self.vector_bits // bits, self.vector_lanes), 1)

    @property
    def is_halved(self) -> bool:
        """Whether a vector takes two passes or more through the execution units."""
        return 2 * self.unit_bits <= self.vector_bits

    @property
    def fma_rate(self) -> float:
        """Full-vector multiply-adds that can start per cycle."""
        return self.fma_ports * self.unit_bits / self.vector_bits

    @property
    def in_flight(self) -> int:
        """The number of independent multiply-adds that keep the ports of a core busy."""
        return self.fma_ports * self.fma_latency

    @property
    def last_cache(self) -> int:
        """Bytes of the last cache worth blocking for: one much faster than memory."""
        quick = self.l3 > self.l2 and self.l3_rate > QUICK * self.memory_rate
        return self.l3 if quick else self.l2

    def peak(self, bits: int = 32, threads: int = 1) -> float:
        """Return the operations per second on floats of ``bits``; a multiply-add counts as two."""
        elements = self.unit_bits / bits * max(self.lanes, 1)
        return 2e6 * self.clock * self.fma_ports * elements * min(threads, self.cores)

    def levels(self) -> tuple[Level, ...]:
        """Return the caches, nearest first, and main memory.

        >>> [(level.name, level.size >> 10) for level in Machine().levels()]
        [('L1', 32), ('L2', 1024), ('L3', 8192), ('memory', 0)]
        """
        names = ("", "_line", "_ways", "_shared_by", "_rate", "_rate_all")
        caches = [
            Level(f"L{k}", *(getattr(self, f"l{k}{name}") for name in names)) for k in (1, 2, 3)
        ]
        memory = Level("memory", 0, 0, 0, self.threads, self.memory_rate, self.memory_rate_all)
        return (*(cache for cache in caches if cache.size), memory)

    def seconds(self, bytes: int) -> float:
        """Return the minimum time in which all threads read ``bytes`` bytes repeatedly."""
        cores = max(min(self.threads, self.cores), 1)

        def holds(level: Level) -> bool:
            caches = -(-cores * self.threads_per_core // level.shared_by) if level.size else 0
            return not level.size or bytes <= level.size * caches

        level = next(filter(holds, self.levels()))
        return bytes / (1e6 * min(level.rate * cores, max(level.rate_all, level.rate)))

    @property
    def described(self) -> str:
        """The text from which `override` makes this machine of an unknown one, without its name.

        >>> Machine(threads=2).described, Machine().override(Machine(l2=0).described).l2
        ('threads=2', 0)
        """
        usual = Machine()
        names = [name for name in PROPERTIES if name not in ("name", "features")]
        values = {name: getattr(self, name) for name in names}
        return ",".join(
            f"{name}={int(value) if isinstance(value, bool) else value}"
            for name, value in values.items()
            if value != getattr(usual, name)
        )

    def options(self) -> dict[str, Any]:
        """Return the values that passes may take as options: properties and derived ones."""
        known = PROPERTIES.keys() - {"name", "kind"}  # names that passes use for their own options
        found = {name: getattr(self, name) for name in (*known, "unit_bits")}
        return found | {"machine": self.described or f"threads={self.threads}"}


PROPERTIES: dict[str, Property] = {f.name: property_of(f) for f in fields(Machine)}
"""Every property of a machine by name."""
QUICK = 2
"""Blocking for the last-level cache pays only if it is faster than this multiple of memory's rate
for one core: Zen 4's is 3.6 times as fast, Zen 5's 2.3, Sapphire Rapids' 1.9 (measured)."""
GUEST = "hypervisor"
"""The flag of a processor that a virtual machine shows."""
SHOWN = 60
"""Characters of an unreadable property that the message repeats."""


def _property_help(name: str) -> str:
    near = did_you_mean(name, PROPERTIES) if name not in PROPERTIES else ""
    return near or "write NAME=VALUE with a property that `stepwell machine` lists"


def _error(message: str, source: str, help: str) -> CompileError:
    return CompileError(
        Diagnostic("error", f"{source}: {message}" if source else message, help=help)
    )


def named(text: str) -> tuple[str, list[str]]:
    """Return the machine name at the start of a description, "" without one, and the rest.

    >>> named("zen4, threads=2")
    ('zen4', ['threads=2'])
    """
    parts = [*filter(None, text.replace(" ", ",").split(","))]
    is_named = bool(parts) and "=" not in parts[0] and parts[0] not in PROPERTIES
    return (parts[0], parts[1:]) if is_named else ("", parts)


def machine_names() -> list[str]:
    """Return the names of the known machines."""
    return list(known_machines())


def known_machine(name: str) -> Machine:
    """Return a known machine by its name."""
    return _of_file(known_machines()[name])


def _named(name: str, features: str, source: str) -> Machine:
    """Return a known machine with ``features``, those that this processor executes."""
    if name not in known_machines():
        help = did_you_mean(name, machine_names())
        listed = f"the machines are {', '.join(machine_names())}; or write NAME=VALUE"
        raise _error(f"there is no machine '{name[:SHOWN]}'", source, help or listed)
    return replace(known_machine(name), features=features)


@cache
def _of_file(known: Known) -> Machine:
    said = Machine().override(",".join(known.properties), f"{known.name}.txt")
    return replace(said, name=known.name)


def this_machine() -> Machine:
    """Describe the processor of this process; properties that cannot be read are assumed."""
    return _with_threads(thread_count())


@cache
def _with_threads(threads: int) -> Machine:
    return machine_of(host_facts(), threads)


def machine_of(facts: Facts, threads: int) -> Machine:
    """Return the machine on which these facts were read; unknown properties are assumed.

    They are taken from the file of the processor or of the most similar one. Rates of all cores are
    the rate of one core times the number of cores: a container rarely has all cores of the file.
    """
    found = most_like(facts.identity, facts.flags)
    machine = _of_file(found) if found else Machine()
    assumed = machine.l3
    machine = replace(machine, **{"threads": threads, "cores": threads, **facts.read})
    if found and GUEST in facts.flags and machine.l3 // machine.l3_shared_by > assumed:
        machine = replace(machine, l3=assumed)  # a guest was told of all caches of its host
    shared = {
        f"{rate}_all": min(getattr(machine, rate) * machine.cores, getattr(machine, f"{rate}_all"))
        for rate in ("l3_rate", "memory_rate")
    }
    write = min(machine.memory_write * machine.cores, machine.memory_write_all)
    own = {f"{rate}_all": getattr(machine, rate) * machine.cores for rate in ("l1_rate", "l2_rate")}
    return replace(machine, **own, **shared, memory_write_all=write)


VARIABLE = "STEPWELL_MACHINE"
MOST_THREADS = 256
LOG = logging.getLogger("stepwell")


def described_machine() -> Machine:
    """Return the default machine of the compiler.

    This is the host, changed by STEPWELL_MACHINE in the syntax of ``Machine.override``.
    """
    return _described(os.environ.get(VARIABLE, ""), this_machine())


@cache
def _described(text: str, host: Machine) -> Machine:
    return host.override(text, VARIABLE)


def thread_count() -> int:
    """Return the number of threads of programs: STEPWELL_THREADS, or the usable cores."""
    asked = _asked_threads(os.environ.get("STEPWELL_THREADS", ""))
    return min(asked or usable_threads(), MOST_THREADS)


@cache
def _asked_threads(text: str) -> int:
    """Return the number in STEPWELL_THREADS; 0, with one warning, if it is none."""
    digits = text.strip().lstrip("0")
    if digits.isascii() and digits.isdecimal():
        return min(int(digits[:9]), MOST_THREADS)
    if text:
        LOG.warning(
            "STEPWELL_THREADS is to be a number from 1 to %d, got %.40r; all cores are used",
            MOST_THREADS,
            text,
        )
    return 0


def thread_limit(threads: int | None) -> int:
    """Return the number of threads of a program with the limit ``threads``, None for no limit.

    raises TypeError, ValueError : the limit is not a number of threads
    """
    if threads is None:
        return thread_count()
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads must be a whole number or None, got {threads!r}")
    if operator.index(threads) < 1:
        raise ValueError(f"threads must be 1 or more, got {threads}")
    return min(operator.index(threads), thread_count())
