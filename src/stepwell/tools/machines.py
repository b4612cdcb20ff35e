"""stepwell machine: the properties of a machine, their sources, and values derived from them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module

from stepwell.core.diagnostics import CompileError, Diagnostic, report
from stepwell.core.host import host_facts
from stepwell.core.known_machines import known_machines
from stepwell.core.machine import (
    PROPERTIES,
    VARIABLE,
    Machine,
    described_machine,
    known_machine,
    named,
    this_machine,
)
from stepwell.runtime import measuring

GROUPS: Mapping[str, tuple[str, ...]] = {
    "vectors": (
        *("instructions", "vector_bits", "vector_unit", "vector_lanes", "vector_registers"),
        *("fma", "signed_dots"),
    ),
    "core": (
        *("clock", "issue", "fma_ports", "fma_latency", "load_ports", "store_ports"),
        *("vector_ports", "shuffle_ports", "divide", "gather", "window", "mispredict"),
        "forwarding",
        *("cores", "threads_per_core", "sockets", "threads", "launch", "wake"),
    ),
    "caches": tuple(
        f"l{level}{what}"
        for level in (1, 2, 3)
        for what in ("", "_line", "_ways", "_shared_by", "_rate", "_rate_all", "_write")
        if what != "_write" or level == 2
    ),
    "waiting": ("l2_latency", "l3_latency", "memory_latency", "misses", "l2_misses"),
    "memory": (
        *("memory_rate", "burst", "streams", "memory_rate_all"),
        *("memory_write", "memory_write_all"),
    ),
    "device": (
        "kind",
        "compute_units",
        "lanes",
        "local_memory",
        "transfer",
        "hoist_constants",
        "versions",
    ),
}
"""Properties in the order they are printed; `name` is the heading, `features` is left out."""


@dataclass(frozen=True)
class Described:
    """A machine, and the source of each of its properties.

    machine : with measured values
    compiled : without them, as schedules use it
    """

    machine: Machine
    compiled: Machine
    about: str
    sources: Mapping[str, str]


def machine_command(options: argparse.Namespace) -> int:
    """Print the properties of a machine, measured first if requested or never done."""
    if options.list:
        for name, known in known_machines().items():
            print(f"{name:<16} {known.about}")
        return 0
    text = options.machine or ""
    if options.measure and (text or _asked()):
        message = "only this machine can be measured"
        help = f"omit the description and unset {VARIABLE}"
        raise CompileError(Diagnostic("error", message, help=help))
    found = described(text, options.measure)
    print(_as_json(found) if options.json else "\n".join(_lines(found)))
    return 0


def described(text: str, again: bool = False) -> Described:
    """Return the machine described by a text, or this one, with its measured values."""
    machine = described_machine().override(text)
    parts = [part for each in (_asked(), text) for part in named(each)[1]]
    given = {part.partition("=")[0]: "given" for part in parts}
    name = named(text)[0] or named(_asked())[0]
    if name:
        known = known_machines()[name]
        written = {each.partition("=")[0]: f"{name}.txt" for each in known.properties}
        written |= {each: f"{name}.txt: {source}" for each, source in known.sources}
        return Described(machine, machine, known.about, _whole(written) | given)
    figures = {k: v for k, v in _measured(again).items() if k not in given}
    sources = _whole(_assumed()) | dict.fromkeys(host_facts().read, "read")
    for each in figures:
        sources[each] = f"measured; {sources[each]}: {spelled(each, getattr(machine, each))}"
    sources |= {"threads": "read"} | given
    like = f", like {machine.name}" if machine.name else ""
    about = f"this processor{like}"
    return Described(replace(machine, **figures), machine, about, sources)


def _asked() -> str:
    return import_module("os").environ.get(VARIABLE, "")


def _whole(sources: Mapping[str, str]) -> dict[str, str]:
    return {name: sources.get(name, "assumed") for name in PROPERTIES}


def _assumed() -> dict[str, str]:
    """Return which properties of this machine are copied from a predefined one."""
    name = this_machine().name
    if not name:
        return {}
    known = [each.partition("=")[0] for each in known_machines()[name].properties]
    here, there = this_machine(), known_machine(name)
    return {
        each: f"assumed, as {name}"
        + ("" if getattr(here, each) == getattr(there, each) else " with as many cores")
        for each in known
    }


def _measured(again: bool) -> Mapping[str, int]:
    """Return the measured values; none, with a remark, if there is no C compiler."""
    try:
        return measuring.measure_again(this_machine()) if again else measuring.measured()
    except CompileError as error:
        said = f"nothing can be measured: {error.diagnostic.message.splitlines()[0]}"
        report(Diagnostic("warning", said, help=error.diagnostic.help))
        return {}


def _lines(found: Described) -> Iterator[str]:
    machine = found.machine
    yield f"machine {machine.name or 'unknown'}: {found.about}"
    for group, names in GROUPS.items():
        if group == "device" and machine.kind != "device":
            continue
        yield f"\n{group}:"
        for name in names:
            if name.startswith("l3_") and not machine.l3:
                continue
            value = spelled(name, getattr(machine, name))
            about = PROPERTIES[name].about
            yield f"  {name:<18} {value:>14}  {about} ({found.sources[name]})"
    yield "\nderived values that schedules use, without measured ones:"
    for name, value, about in derived(found.compiled):
        yield f"  {name:<18} {value:>14}  {about}"


def spelled(name: str, value: object) -> str:
    """Return the value of a property as text, with its unit."""
    unit = PROPERTIES[name].unit
    if not isinstance(value, int):
        return str(value) or "none"
    if unit == "bytes":
        return next(
            (f"{value >> shift:,} {word}" for shift, word in _SIZES if not value % (1 << shift)), ""
        )
    if unit == "MB/s":
        return f"{value / 1000:,.1f} GB/s"
    return f"{int(value):,} {unit}".rstrip()


_SIZES = ((20, "MiB"), (10, "KiB"), (0, "bytes"))


def derived(machine: Machine) -> Iterator[tuple[str, str, str]]:
    """Yield the values that schedules and cost models derive: name, value, meaning."""
    peak = machine.peak(threads=machine.threads) / 1e9
    yield "peak", f"{peak:,.0f} GFLOP/s", "f32 multiply-adds of all threads"
    yield "fma_rate", f"{machine.fma_rate:g} a cycle", "multiply-adds of whole vectors started"
    yield (
        "in_flight",
        str(machine.in_flight),
        "independent sums that saturate the multiply-add ports",
    )
    last = spelled("l3", machine.last_cache)
    yield "last_cache", last, "largest working set worth blocking for"
    if machine.kind == "cpu":
        yield from import_module("stepwell.transforms.kernels.schedule.on_machines").choices_on(
            machine
        )


def _as_json(found: Described) -> str:
    properties = {
        name: {
            "value": getattr(found.machine, name),
            "unit": PROPERTIES[name].unit,
            "source": found.sources[name],
        }
        for names in GROUPS.values()
        for name in names
    }
    whole = {
        "name": found.machine.name,
        "about": found.about,
        "properties": properties,
        "derived": {name: value for name, value, _ in derived(found.compiled)},
    }
    return json.dumps(whole, indent=1)
