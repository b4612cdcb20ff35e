"""What the compiler must know of the processor it compiles for."""

from __future__ import annotations

import operator
import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from stepwell.core.diagnostics import CompileError, Diagnostic


@dataclass(frozen=True)
class Machine:
    """A processor, as far as schedules depend on it. Sizes are bytes, for one core."""

    vector_bits: int = 128
    vector_lanes: int = 64
    """How many elements a vector has at most."""
    vector_registers: int = 16
    vector_unit: int = 0
    """How many bits of a vector are computed with at once, where that is less than all; else 0."""
    fma: bool = False
    signed_dots: bool = False
    """Whether an instruction adds up products of signed bytes, not only of unsigned by signed."""
    threads: int = 1
    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 8 << 20
    ahead: int = 1
    """Whether what only weights decide may be computed when a program is loaded."""
    features: str = ""
    """What the C compiler's -march=native depends on; part of every cache key."""

    def override(self, text: str, source: str = "") -> Machine:
        """Return this with some fields changed, as in 'vector_bits=256,threads=1'.

        source : where the text is from, for messages

        >>> Machine().override("vector_bits=256,fma=1").vector_bits
        256
        """
        kinds = {f.name: f.type for f in fields(self)}
        changes: dict[str, int | str] = {}
        for part in filter(None, text.replace(" ", ",").split(",")):
            name, _, value = part.partition("=")
            if name not in kinds or (kinds[name] != "str" and not _is_number(value)):
                message = f"cannot read '{part[:SHOWN]}' as a property of the machine"
                raise CompileError(
                    Diagnostic(
                        "error",
                        f"{source}: {message}" if source else message,
                        help=f"write NAME=NUMBER with one of {', '.join(kinds)}",
                    )
                )
            changes[name] = value if kinds[name] == "str" else int(value)
        changed = replace(self, **changes)
        changed._check(changes, source)
        return changed

    def _check(self, names: Iterable[str], source: str) -> None:
        """Fail where one of the named properties is of no machine."""
        wrong: dict[str, tuple[int, str, Callable[[int], bool]]] = {
            "vector_bits": (self.vector_bits, "a power of two from 32 to 2048", _is_width),
            "vector_lanes": (self.vector_lanes, "a power of two", _is_power),
            "vector_registers": (self.vector_registers, "1 or more", lambda n: n > 0),
            "vector_unit": (
                self.vector_unit,
                "0 or as vector_bits",
                lambda n: not n or _is_width(n),
            ),
            "threads": (self.threads, "from 1 to 256", lambda n: 0 < n <= 256),
            "fma": (self.fma, "0 or 1", lambda n: n <= 1),
            "signed_dots": (self.signed_dots, "0 or 1", lambda n: n <= 1),
            "ahead": (self.ahead, "0 or 1", lambda n: n <= 1),
        }
        for name in names:
            value, allowed, holds = wrong.get(name, (0, "", lambda _: True))
            if not holds(value):
                message = f"a machine with {name}={value} cannot be compiled for"
                message = f"{source}: {message}" if source else message
                raise CompileError(Diagnostic("error", message, help=f"{name} is {allowed}"))


SHOWN = 60
"""So many characters of a property that cannot be read are repeated in the message."""
DIGITS = 15
"""More digits has no size in bytes of any machine."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= DIGITS


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _is_width(bits: int) -> bool:
    return _is_power(bits) and 32 <= bits <= 2048


def this_machine() -> Machine:
    """Describe the processor this process runs on; whatever cannot be found out is a safe guess."""
    return _with_threads(thread_count())


@cache
def _with_threads(threads: int) -> Machine:
    features = _features()
    names = set(features.split())
    wide = 512 if "avx512f" in names else 256 if "avx2" in names else 128
    arm = platform.machine() in ("aarch64", "arm64")
    sizes = _cache_sizes()
    return Machine(
        vector_bits=wide,
        vector_registers=32 if arm or wide == 512 else 16,
        vector_unit=256 if wide == 512 and _halves_vectors(features) else 0,
        fma=arm or "fma" in names,
        signed_dots=arm,
        threads=threads,
        l1=sizes.get(1, Machine.l1),
        l2=sizes.get(2, Machine.l2),
        l3=sizes.get(3, Machine.l3),
        features=f"{platform.machine()} {features}",
    )


VARIABLE = "STEPWELL_MACHINE"


def described_machine() -> Machine:
    """Return the machine that is compiled for unless told otherwise.

    This one, with what STEPWELL_MACHINE says of it, in the words of ``Machine.override``.
    """
    return _described(os.environ.get(VARIABLE, ""), this_machine())


@cache
def _described(text: str, host: Machine) -> Machine:
    return host.override(text, VARIABLE)


def thread_count() -> int:
    """Return how many threads programs use: STEPWELL_THREADS, or the cores we may run on."""
    asked = os.environ.get("STEPWELL_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return min(int(asked), 256)
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), 256)
    return min(os.cpu_count() or 1, 256)


def thread_limit(threads: int | None) -> int:
    """Return how many threads a program uses that was told to use at most so many, None for any.

    raises TypeError, ValueError : that is no number of threads
    """
    if threads is None:
        return thread_count()
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads must be a whole number or None, got {threads!r}")
    if operator.index(threads) < 1:
        raise ValueError(f"threads must be 1 or more, got {threads}")
    return min(operator.index(threads), thread_count())


def _features() -> str:
    """Return model and feature flags of the first processor that Linux lists."""
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                found.setdefault(key.strip(), value.strip())
                if not line.strip() and found:
                    break
    except OSError:
        return platform.processor()
    keys = ("vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU part", "Features")
    return " ".join(found[k] for k in keys if k in found)


def _halves_vectors(features: str) -> bool:
    """Whether vectors of 512 bits are computed with in two halves, as Zen 4 does."""
    return features.startswith("AuthenticAMD 25 ")


def _cache_sizes() -> dict[int, int]:
    """Return bytes of data cache by level, from sysfs."""
    sizes: dict[int, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = (
                (index / name).read_text().strip() for name in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind != "Instruction" and size[-1:] in ("K", "M"):
            sizes[int(level)] = int(size[:-1]) << (10 if size[-1] == "K" else 20)
    return sizes
