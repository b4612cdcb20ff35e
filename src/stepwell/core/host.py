"""The properties of the processor that Linux reports in ``/proc`` and ``/sys``.

Containers hide some. Missing, unreadable or implausible values are omitted; callers use defaults.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from stepwell.core.properties import INSTRUCTIONS, is_power

ROOT = Path("/")
SMALLEST, LARGEST = 1 << 10, 1 << 32
"""Bounds in bytes of the caches of existing processors."""
MOST_WAYS = 1 << 10
MOST_LINE = 1 << 12
MOST_CPUS = 1 << 13
"""Upper bound on processor numbers: larger ones are not from the kernel."""
MOST_READ = 1 << 16
"""Maximum characters read of a file: no relevant file has more for one processor."""
IDENTITIES = (("vendor_id", "cpu family", "model"), ("CPU implementer", "CPU part"))
DESCRIBING = (
    "vendor_id",
    "cpu family",
    "model",
    "flags",
    "CPU implementer",
    "CPU part",
    "Features",
)


@dataclass(frozen=True)
class Facts:
    """The values that were read.

    read : properties of `Machine`
    identity : vendor, family and model of x86, implementer and part of ARM; empty if unknown
    flags : features, as Linux lists them
    """

    read: Mapping[str, int | str] = field(default_factory=dict[str, "int | str"])
    identity: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()


@cache
def host_facts() -> Facts:
    """Return the facts of this processor."""
    return read_facts(ROOT, platform.machine())


def read_facts(root: Path, family: str) -> Facts:
    """Return the facts below ``root``; ``family`` is that of `platform.machine`."""
    info = _cpu_info(root / "proc/cpuinfo")
    features = " ".join(info[key] for key in DESCRIBING if key in info)
    if not info and root == ROOT:
        features = platform.processor()
    names = frozenset(features.split())
    identity = next(
        (tuple(info[k] for k in keys) for keys in IDENTITIES if all(map(info.get, keys))), ()
    )
    arm = family in ("aarch64", "arm64")
    read: dict[str, int | str] = {"features": f"{family} {features}"}
    read |= _vectors(names, identity, arm)
    read |= _caches(root / "sys/devices/system/cpu")
    read |= _topology(root / "sys/devices/system/cpu", affinity())
    return Facts(read, identity, names)


def _cpu_info(path: Path) -> dict[str, str]:
    """Return the entries of the first processor."""
    found: dict[str, str] = {}
    for line in (_text(path) or "").splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
        if not line.strip() and len(found) > 1:
            break
    found.pop("", None)
    return found


def _vectors(names: frozenset[str], identity: tuple[str, ...], arm: bool) -> dict[str, int | str]:
    """Return widths, registers and instruction sets, derived from the features."""
    wide = 512 if "avx512f" in names else 256 if "avx2" in names else 128
    sets = [
        name
        for name, word in INSTRUCTIONS.items()
        if word in names and arm == name.startswith(("neon", "sve"))
    ]
    halved = wide == 512 and identity[:2] == ("AuthenticAMD", "25")  # Zen 4's unit has 256 bits
    return {
        "vector_bits": wide,
        "vector_registers": 32 if arm or wide == 512 else 16,
        "vector_unit": 256 if halved else 0,
        "fma": arm or "fma" in names,
        "signed_dots": arm,
        "instructions": "+".join(sets),
    }


def _caches(cpus: Path) -> dict[str, int | str]:
    """Return size, line, ways and sharing of the first processor's data caches."""
    found: dict[str, int | str] = {}
    for index in _folders(cpus / "cpu0/cache", "index"):
        kind, level, size = (_text(index / name) for name in ("type", "level", "size"))
        if kind not in ("Data", "Unified") or level not in ("1", "2", "3"):
            continue
        bytes = _bytes(size or "")
        if not SMALLEST <= bytes <= LARGEST:
            continue
        line, ways = (
            _number(_text(index / name))
            for name in ("coherency_line_size", "ways_of_associativity")
        )
        shared = len(_cpu_list(_text(index / "shared_cpu_list") or ""))
        found[f"l{level}"] = bytes
        found |= {f"l{level}_line": line} if is_power(line) and line <= MOST_LINE else {}
        found |= {f"l{level}_ways": ways} if 0 < ways <= MOST_WAYS else {}
        found |= {f"l{level}_shared_by": shared} if shared else {}
    return found


def _topology(cpus: Path, mine: set[int]) -> dict[str, int | str]:
    """Return the number of usable cores, of threads per core, and of chips."""
    cores = _groups(cpus, mine, "thread_siblings_list")
    chips = _groups(cpus, mine, "core_siblings_list")
    if not cores or not chips:
        return {}
    threads = min(max(map(len, cores)), 64)
    return {"cores": len(cores), "threads_per_core": threads, "sockets": len(chips)}


def _groups(cpus: Path, mine: set[int], name: str) -> list[set[int]]:
    """Return the groups that contain the processors ``mine``; none if one has no group."""
    found: list[set[int]] = []
    left = set(mine)
    while left:
        group = _cpu_list(_text(cpus / f"cpu{min(left)}/topology/{name}") or "")
        if min(left) not in group:
            return []
        found.append(group)
        left -= group
    return found


def affinity() -> set[int]:
    """Return the numbers of the processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def usable_threads() -> int:
    """Return how many threads can run at once: usable processors, or the CPU quota."""
    return max(min(len(affinity()), _quota()), 1)


@cache
def _quota() -> int:
    return cgroup_quota(ROOT)


def cgroup_quota(root: Path) -> int:
    """Return the CPU quota of a container's control group in processors, rounded up.

    The minimum over the visible groups of the process; `MOST_CPUS` without a limit.
    """
    groups = root / "sys/fs/cgroup"
    found = [MOST_CPUS]
    for place in _own_groups(root):
        if (said := _text(groups / place / "cpu.max")) is not None:
            found += _processors(*said.split()[:2])
        for below in ("cpu", "cpu,cpuacct"):
            time, period = (
                _text(groups / below / place / f"cpu.cfs_{name}_us") for name in ("quota", "period")
            )
            if time is not None and period is not None:
                found += _processors(time, period)
    return min(found)


def _own_groups(root: Path) -> list[str]:
    """Return the folders, from the process's own one up, that may hold its limits."""
    found = [""]
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" or "cpu" in controllers.split(","):
            parts = [part for part in path.split("/") if part not in ("", "..")]
            found += ["/".join(parts[:k]) for k in range(len(parts), 0, -1)]
    return list(dict.fromkeys(found))


def _processors(time: str = "", period: str = "") -> list[int]:
    """Return the number of processors equal to ``time`` per ``period``; none without a limit."""
    given, of = _number(time), _number(period)
    return [-(-given // of)] if given > 0 and of > 0 else []


def _folders(folder: Path, prefix: str) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if name.startswith(prefix)]


def _text(path: Path) -> str | None:
    """Return the contents of a small file; None if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MOST_READ).strip()
    except (OSError, ValueError):
        return None


def _number(text: str | None) -> int:
    """Return the number that a text spells; 0 if it spells none."""
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) <= 15
    return int(text) if text is not None and is_number else 0


def _bytes(text: str) -> int:
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
    return _number(text[:-1] if shift else text) << shift


def _cpu_list(text: str) -> set[int]:
    """Return the numbers of a list like '0-3,8'; none if it is malformed.

    >>> sorted(_cpu_list("0-3,8"))
    [0, 1, 2, 3, 8]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, is_run, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if is_run else not last)):
            return set()
        low, high = _number(first), _number(last) if is_run else _number(first)
        if not low <= high < MOST_CPUS:
            return set()
        found |= set(range(low, high + 1))
    return found
