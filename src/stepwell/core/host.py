"""What Linux says of the processor, below ``/proc`` and ``/sys``: in containers some of it.

What is missing, unreadable or not plausible is left out; whoever asks assumes something for it.
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
"""Bytes of a cache, as far as anybody has built one."""
MOST_WAYS = 1 << 10
MOST_LINE = 1 << 12
MOST_CPUS = 1 << 13
"""Numbers of processors beyond this are no list of a kernel."""
MOST_READ = 1 << 16
"""Characters of a file that are read: none that is meant has more for one processor."""
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
    """What was read.

    read : properties of `Machine`
    identity : vendor, family and model of x86, implementer and part of ARM; empty where unknown
    flags : features, as Linux lists them
    """

    read: Mapping[str, int | str] = field(default_factory=dict[str, "int | str"])
    identity: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()


@cache
def host_facts() -> Facts:
    """Return what this processor says of itself."""
    return read_facts(ROOT, platform.machine())


def read_facts(root: Path, family: str) -> Facts:
    """Return what lies below ``root``, of a processor of a family as `platform.machine` says it."""
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
    """Return what is said of the first processor."""
    found: dict[str, str] = {}
    for line in (_text(path) or "").splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
        if not line.strip() and len(found) > 1:
            break
    found.pop("", None)
    return found


def _vectors(names: frozenset[str], identity: tuple[str, ...], arm: bool) -> dict[str, int | str]:
    """Return widths, registers and instruction sets, as the features tell them."""
    wide = 512 if "avx512f" in names else 256 if "avx2" in names else 128
    there = [
        name
        for name, word in INSTRUCTIONS.items()
        if word in names and arm == name.startswith(("neon", "sve"))
    ]
    halved = wide == 512 and identity[:2] == ("AuthenticAMD", "25")  # as Zen 4 does
    return {
        "vector_bits": wide,
        "vector_registers": 32 if arm or wide == 512 else 16,
        "vector_unit": 256 if halved else 0,
        "fma": arm or "fma" in names,
        "signed_dots": arm,
        "instructions": "+".join(there),
    }


def _caches(cpus: Path) -> dict[str, int | str]:
    """Return bytes, line, ways and sharing of the caches of data, of the first processor's."""
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
    """Return how many cores we may run on, threads of each, and chips."""
    cores = _groups(cpus, mine, "thread_siblings_list")
    chips = _groups(cpus, mine, "core_siblings_list")
    if not cores or not chips:
        return {}
    threads = min(max(map(len, cores)), 64)
    return {"cores": len(cores), "threads_per_core": threads, "sockets": len(chips)}


def _groups(cpus: Path, mine: set[int], name: str) -> list[set[int]]:
    """Return the groups of processors that ``mine`` are in; none where one is in no group."""
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
    """Return how many threads may run at once: processors we may use, or time that we get."""
    return max(min(len(affinity()), _quota()), 1)


@cache
def _quota() -> int:
    return cgroup_quota(ROOT)


def cgroup_quota(root: Path) -> int:
    """Return how many processors' time a container's group of processes gets, rounded up.

    The tightest of the groups that the process is in, as far as they are to be seen; `MOST_CPUS`
    where none has a limit.
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
    """Return the folders, from the own one up, in which limits of this process may lie."""
    found = [""]
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" or "cpu" in controllers.split(","):
            parts = [part for part in path.split("/") if part not in ("", "..")]
            found += ["/".join(parts[:k]) for k in range(len(parts), 0, -1)]
    return list(dict.fromkeys(found))


def _processors(time: str = "", period: str = "") -> list[int]:
    """Return the processors that so much time of each period comes to; none without a limit."""
    given, of = _number(time), _number(period)
    return [-(-given // of)] if given > 0 and of > 0 else []


def _folders(folder: Path, prefix: str) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if name.startswith(prefix)]


def _text(path: Path) -> str | None:
    """Return what a small file holds; None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MOST_READ).strip()
    except (OSError, ValueError):
        return None


def _number(text: str | None) -> int:
    """Return the number that a file holds; 0 where it holds none."""
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) <= 15
    return int(text) if text is not None and is_number else 0


def _bytes(text: str) -> int:
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
    return _number(text[:-1] if shift else text) << shift


def _cpu_list(text: str) -> set[int]:
    """Return the numbers of a list as '0-3,8'; none where it is no such list.

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
