"""The Machine of an OpenCL device: properties that its driver reports, and measured ones.

As for processors, schedules depend on reported properties and on machine files, never on measured
ones: the load of the device does not change a program.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from stepwell.core.files import write_whole
from stepwell.core.known_machines import known_machines
from stepwell.core.machine import PROPERTIES, Machine, known_machine
from stepwell.core.targets import with_lanes
from stepwell.runtime.cache import cache_root, digest
from stepwell.runtime.opencl.device import Device, OpenCLError, open_device
from stepwell.runtime.opencl.lanes import lanes_on
from stepwell.runtime.private import make_private

ASSUMED = "gpu"
"""The machine file for devices that have no file of their own."""
MOST_THREADS = 256
WARPS = ("warp_size_nv", "wavefront_width_amd", "preferred_work_group_size_multiple")
"""Driver queries for the work-items that run in lockstep; the last one is of OpenCL 3."""
STREAM = 64 << 20
"""Limit, in bytes, on the arrays that measure bandwidth: more than the caches of devices hold."""
ROUNDS = 5
LAUNCHES = 200
MEASURED = ("memory_rate_all", "transfer", "launch", "wake")
"""The properties of a device that are measured."""
_COPY = """\
__kernel void copy(__global const float4 *x, __global float4 *y, long n) {
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = x[i];
}
__kernel void nothing(__global float4 *x) {}
"""


def machine_on(text: str, host: Machine) -> Machine:
    """Return the machine of the device that ``text`` names; that of a CPU is based on ``host``.

    If ``text`` is "" and there is no device, its vectors are those that any driver computes right:
    a program can be compiled for a device that is not present.
    """
    try:
        return machine_of(open_device(text), host)
    except OpenCLError:
        if text:
            raise
        return with_lanes(host)


def machine_of(device: Device, host: Machine) -> Machine:
    """Return the machine of a device: reported properties, the rest from its machine file."""
    reported = reported_by(device)
    if device.is_cpu:
        own = {name: reported[name] for name in ("compute_units", "local_memory")}
        return _with(with_lanes(host, lanes_on(device)), own)
    return _with(known_machine(file_of(device)), reported)


def file_of(device: Device) -> str:
    """Return the name of the machine file that matches a device, else `ASSUMED`."""
    title = device.title.lower()
    names = (n for n in known_machines() if n in title and known_machine(n).kind == "device")
    return next(names, ASSUMED)


def reported_by(device: Device) -> dict[str, int]:
    """Return the properties that a device's driver reports."""
    handle = device.handle
    units = max(int(handle.max_compute_units), 1)
    steps = (_query(handle, name) for name in WARPS)
    return {
        "compute_units": units,
        "cores": units,
        "threads": min(units, MOST_THREADS),
        "clock": int(handle.max_clock_frequency),
        "local_memory": int(handle.local_mem_size),
        "lanes": 1 if device.is_cpu else next(filter(None, steps), 0),
        "l2": int(handle.global_mem_cache_size),
        "l2_line": int(handle.global_mem_cacheline_size),
        "l2_shared_by": units,
    }


def _query(handle: Any, name: str) -> int:
    """Return the answer of a driver to an optional query, 0 if it does not support it."""
    with suppress(Exception):  # each driver raises another error
        return int(getattr(handle, name))
    return 0


def _with(machine: Machine, reported: Mapping[str, int]) -> Machine:
    """Return a machine with reported properties; drivers report unknown ones as 0."""
    known = {n: v for n, v in reported.items() if v > 0 and PROPERTIES[n].holds(v)}
    return replace(machine, **known)


def measured(device: Device, again: bool = False) -> Mapping[str, int]:
    """Return the measured properties of a device, from the cache if they are there.

    again : measure even if the cache has them
    """
    place = cache_root() / "machine" / f"device-{digest(device.id, _COPY)}.json"
    if not again:
        with suppress(OSError, ValueError):
            kept = json.loads(place.read_text(encoding="utf-8"))
            if {*kept} == {*MEASURED} and all(_is_figure(n, v) for n, v in kept.items()):
                return kept
    found = measure(device)
    with suppress(OSError):  # without the file, the next process measures again
        make_private(place.parent)
        write_whole(place, json.dumps(found, indent=1) + "\n")
    return found


def _is_figure(name: str, value: object) -> bool:
    return type(value) is int and PROPERTIES[name].holds(value)


def measure(device: Device) -> dict[str, int]:
    """Measure bandwidth, transfers and launches, in about half a second."""
    cl, queue = device.cl, device.queue
    bytes = min(STREAM, int(device.handle.max_mem_alloc_size) // 4) // 4096 * 4096
    host = np.zeros(bytes, np.uint8)
    flags = cl.mem_flags.READ_WRITE
    x, y = (cl.Buffer(device.context, flags, bytes) for _ in range(2))
    program = device.built(cl.Program(device.context, _COPY))
    copy, nothing = cl.Kernel(program, "copy"), cl.Kernel(program, "nothing")
    copy.set_args(x, y, np.int64(bytes // 16))
    nothing.set_args(x)
    items = (int(device.handle.max_compute_units) * (1 if device.is_cpu else 2048),)

    def transfer() -> None:
        cl.enqueue_copy(queue, x, host, is_blocking=False)

    def stream() -> None:
        cl.enqueue_nd_range_kernel(queue, copy, items, None)

    def launches() -> None:
        for _ in range(LAUNCHES):
            cl.enqueue_nd_range_kernel(queue, nothing, (1,), (1,))

    def launch() -> None:
        cl.enqueue_nd_range_kernel(queue, nothing, (1,), (1,))

    found = {
        "transfer": bytes / _seconds(queue, transfer) / 1e6,
        "memory_rate_all": 2 * bytes / _seconds(queue, stream) / 1e6,
        "launch": _seconds(queue, launches) / LAUNCHES * 1e9,
        "wake": _seconds(queue, launch) * 1e9,
    }
    return {name: max(round(found[name]), 1) for name in MEASURED}


def _seconds(queue: Any, task: Callable[[], None]) -> float:
    """Return the median time until the device has finished the work that a task enqueues."""
    times: list[float] = []
    for _ in range(ROUNDS + 1):  # the first round compiles the kernel and does not count
        queue.finish()
        start = time.perf_counter()
        task()
        queue.finish()
        times.append(time.perf_counter() - start)
    return median(times[1:])
