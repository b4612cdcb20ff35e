"""How quick OpenCL programs are beside ours of C: python bench/opencl.py [NAME ...].

Both run on the same processor where the device is one, as with PoCL; arrays are where each has
them. Calls are timed in turn, the least of many counts; a pause before each lets other threads
sleep, where time passes on the clock of the wall.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import stepwell as sw

PAUSE = 0.003
"""Seconds: longer than threads of ours wait for the next call before they sleep."""
SECONDS = 1.5
"""Of each row."""
ROUNDS = (10, 100)

Program = tuple[str, tuple[tuple[int, ...], ...]]


def _of(body: str, result: str, **arguments: str) -> Program:
    taken = ", ".join(f"%{name}: tensor<{shape}xf32>" for name, shape in arguments.items())
    kind = f"tensor<{result}>"
    text = f"func.func @main({taken}) -> {kind} {{\n{body}\n  func.return %z : {kind}\n}}\n"
    return text, tuple(tuple(map(int, shape.split("x"))) for shape in arguments.values())


LONG, SQUARE, ROWS, IMAGE, VAST = "4194304", "512x512", "1024x1024", "1x64x56x56", "16777216"
PROGRAMS: dict[str, Program] = {
    "product 512": _of(
        "  %z = nd.matmul %x, %y : (tensor<512x512xf32>, tensor<512x512xf32>) -> "
        "tensor<512x512xf32>",
        f"{SQUARE}xf32",
        x=SQUARE,
        y=SQUARE,
    ),
    "softmax 1024": _of(
        "  %z = nd.softmax %x {axis = 1} : tensor<1024x1024xf32>", f"{ROWS}xf32", x=ROWS
    ),
    "layer norm 1024": _of(
        "  %z = nd.layer_norm %x, %g, %b {axis = 1, eps = 1.0e-5} : (tensor<1024x1024xf32>, "
        "tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024x1024xf32>",
        f"{ROWS}xf32",
        x=ROWS,
        g="1024",
        b="1024",
    ),
    "gelu chain 4M": _of(
        "  %a = nd.add %x, %y : tensor<4194304xf32>\n  %g = nd.gelu %a : tensor<4194304xf32>\n"
        "  %z = nd.mul %g, %y : tensor<4194304xf32>",
        f"{LONG}xf32",
        x=LONG,
        y=LONG,
    ),
    "add 4M": _of("  %z = nd.add %x, %y : tensor<4194304xf32>", f"{LONG}xf32", x=LONG, y=LONG),
    "transpose 1024": _of(
        "  %z = nd.transpose %x {permutation = [1, 0]} : (tensor<1024x1024xf32>) -> "
        "tensor<1024x1024xf32>",
        f"{ROWS}xf32",
        x=ROWS,
    ),
    "sum(a*b) 16M": _of(
        "  %a = nd.mul %x, %y : tensor<16777216xf32>\n"
        "  %z = nd.reduce_sum %a {axes = [0]} : (tensor<16777216xf32>) -> tensor<f32>",
        "f32",
        x=VAST,
        y=VAST,
    ),
    "columns 1024": _of(
        "  %z = nd.reduce_sum %x {axes = [0]} : (tensor<1024x1024xf32>) -> tensor<1024xf32>",
        "1024xf32",
        x=ROWS,
    ),
    "convolution 56": _of(
        "  %z = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<1x64x56x56xf32>, "
        "tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>",
        f"{IMAGE}xf32",
        x=IMAGE,
        w="64x64x3x3",
    ),
}


def least(
    calls: list[Callable[[], Any]], clock: Callable[[], float], pause: float = PAUSE
) -> list[float]:
    """Return the least time of each call, in seconds, all timed in turn."""
    found = [float("inf")] * len(calls)
    end, rounds = time.monotonic() + SECONDS, 0
    while rounds < ROUNDS[0] or (rounds < ROUNDS[1] and time.monotonic() < end):
        for number, call in enumerate(calls):
            time.sleep(pause)
            start = clock()
            call()
            found[number] = min(found[number], clock() - start)
        rounds += 1
    return found


def _call(program: Any, arguments: Sequence[Any]) -> Callable[[], Any]:
    """Return a call on arrays that lie on the device, which is waited for."""
    return lambda: program(*arguments).block_until_ready()


def main(arguments: list[str]) -> int:
    """Print a table of times in milliseconds."""
    parser = argparse.ArgumentParser(prog="bench/opencl.py")
    parser.add_argument("names", nargs="*", help="what begins so; all where none is given")
    parser.add_argument("--machine", default="", help="compile the OpenCL programs for it")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="time of the processor, for busy machines: with STEPWELL_THREADS=1 and "
        "POCL_MAX_PTHREAD_COUNT=1",
    )
    options = parser.parse_args(arguments)
    clock = time.process_time if options.processor_time else time.perf_counter
    pause = 0.0 if options.processor_time else PAUSE  # there is one thread, and none to wait for
    chosen = {
        name: each
        for name, each in PROGRAMS.items()
        if not options.names or name.startswith(tuple(options.names))
    }
    print("| program | C ms | the same, AVX2 | OpenCL | C / OpenCL | AVX2 / OpenCL |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (text, shapes) in chosen.items():
        rng = np.random.default_rng(1)
        x = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        device: dict[str, Any] = {"machine": options.machine} if options.machine else {}
        programs = [
            sw.compile(text),
            sw.compile(text, machine="vector_bits=256,vector_registers=16"),
            sw.compile(text, target="opencl", **device),
        ]
        want = programs[0](*x)
        put = [sw.device_put(each) for each in x]
        for got in (programs[1](*x), np.asarray(programs[2](*put))):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-2)
        out = {"out": np.empty_like(want)} if want.ndim else {}
        calls = [*(partial(p, *x, **out) for p in programs[:2]), _call(programs[2], put)]
        c, narrow, opencl = (1e3 * seconds for seconds in least(calls, clock, pause))
        print(
            f"| {name} | {c:.3f} | {narrow:.3f} | {opencl:.3f} | {c / opencl:.2f} | "
            f"{narrow / opencl:.2f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
