"""Measure calls and whole programs on an OpenCL device beside C: `make bench-devices`.

Of each the least time of calls made in turn. "waited" is until the device has done what a call
enqueued; "enqueued" is one of many calls of which only the last is waited for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from gradients import ROUNDS, alternate
from limits import processor
from measuring import spell_seconds
from peers.stepwell import StepwellOps
from workloads import Workload, chosen

import stepwell as sw
from stepwell.core.machine import thread_count
from stepwell.runtime.opencl.device import Device, open_device

MANY = 200
PROGRAMS = "gemm_512,gelu_chain_4m,softmax*,mlp_forward_b64,encoder_s128_d768,resnet18_224"
TEXT = """
__kernel void add(__global const float *x, __global const float *y, __global float *z) {
  for (int i = 0; i < 8; i++) z[i] = x[i] + y[i];
}
"""
Call = Callable[[], Any]


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="", help="as in gpu or cpu:0 (default: the best)")
    parser.add_argument("--programs", default=PROGRAMS, help="workloads, patterns with commas")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    device = open_device(options.device)
    print(f"{processor()}, {thread_count()} threads; {device.name}: {device.title}")
    rows = calls(device, options.rounds)
    rows += [program(each, device, options.rounds) for each in chosen(options.programs)]
    for row in rows:
        print(f"{row[0]:<34}", *(f"{cell:<16}" for cell in row[1:]))


def calls(device: Device, rounds: int) -> list[tuple[str, ...]]:
    """Return what a call of an add of eight elements costs."""
    x = np.ones(8, np.float32)
    held = sw.device_put(x, device)
    on_host, there = sw.jit(lambda x, y: x + y), sw.jit(lambda x, y: x + y, device=device)
    finish = device.queue.finish

    def one() -> None:
        there(held, held)
        finish()

    def many() -> None:
        for _ in range(MANY):
            there(held, held)
        finish()

    bare, bare_many = bare_calls(device)
    timed = {
        "C": lambda: on_host(x, x),
        "OpenCL, arrays of NumPy": lambda: there(x, x),
        "OpenCL, device arrays, waited": one,
        "OpenCL, device arrays, enqueued": many,
        "clEnqueueNDRangeKernel, waited": bare,
        "clEnqueueNDRangeKernel, enqueued": bare_many,
    }
    seconds = alternate(list(timed.values()), rounds)
    found = [("add of 8 elements", "a call", "of C's", "")]
    for name, time in zip(timed, seconds, strict=True):
        each = time / MANY if "enqueued" in name else time
        found.append((f"  {name}", spell_seconds(each), f"{each / seconds[0]:.0f}", ""))
    return [*found, ("program", "C", "NumPy", "device arrays")]


def bare_calls(device: Device) -> tuple[Call, Call]:
    """Return calls of the same kernel that a person would write: waited for, and many."""
    kernel = cl.Kernel(cl.Program(device.context, TEXT).build(), "add")
    queue = cl.CommandQueue(device.context)
    held = [cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 32) for _ in range(3)]

    def one() -> None:
        kernel.set_args(*held)
        cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()

    def many() -> None:
        kernel.set_args(*held)
        for _ in range(MANY):
            cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()

    return one, many


def program(workload: Workload, device: Device, rounds: int) -> tuple[str, ...]:
    """Return the times of a workload: in C, on the device with arrays of NumPy, and its own."""
    weights, inputs = workload.data()
    ops, arrays = StepwellOps(), [*inputs.values()]

    def model(p: Any, *given: Any) -> Any:
        return workload.model(ops, p, dict(zip(inputs, given, strict=True)))

    on_host, there = sw.jit(model), sw.jit(model, device=device)
    held_weights, *held = sw.device_put([weights, *arrays], device)
    check(on_host(weights, *arrays), there(weights, *arrays), workload.tolerance)

    def resident() -> None:
        there(held_weights, *held)
        device.queue.finish()

    timed: Sequence[Call] = (
        lambda: on_host(weights, *arrays),
        lambda: there(weights, *arrays),
        resident,
    )
    host, *others = alternate(timed, rounds)
    spelled = [f"{spell_seconds(each)} ({each / host:.2f})" for each in others]
    return (f"  {workload.name}", spell_seconds(host), *spelled)


def check(right: Any, found: Any, tolerance: float) -> None:
    """Compare what the device computed with what C did."""
    pairs = zip(_tuple(right), _tuple(found), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * float(np.abs(a).max()))


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


if __name__ == "__main__":
    main()
