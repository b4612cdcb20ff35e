"""Time chains of ops in bands of rows beside the same ops one after the other: `bench/bands.py`.

Each chain is compiled with the bands that the cost model chooses (or that ROWS forces, as in
`bench/bands.py 8`) and without; both run in turn, and the least processor time of each counts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ["STEPWELL_CACHE"] = tempfile.mkdtemp()  # the programs without bands are no one else's
os.environ.setdefault("STEPWELL_THREADS", "1")

import numpy as np

import stepwell as sw
import stepwell.numpy as snp
from stepwell.transforms.structured import bands

ROUNDS = 8
RANDOM = np.random.default_rng(0)


def random(*shape: int) -> Any:
    """Return normal numbers, scaled by the products that they are summed in."""
    return (RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def residual(stride: int) -> Callable[..., Any]:
    """Return the three convolutions of an inverted residual."""

    def block(x: Any, expand: Any, each: Any, project: Any) -> Any:
        h = sw.nn.relu6(sw.nn.conv(x, expand))
        h = sw.nn.conv(h, each, padding=1, stride=stride, groups=each.shape[0])
        return sw.nn.conv(sw.nn.relu6(h), project)

    return block


def images(n: int, features: int, size: int, wide: int, out: int) -> Sequence[Any]:
    """Return images and the filters of an inverted residual."""
    filters = random(wide, features, 1, 1), random(wide, 1, 3, 3), random(out, wide, 1, 1)
    return random(n, features, size, size), *filters


def pooled(x: Any, v: Any, w: Any) -> Any:
    """Return two convolutions and the greatest of each 2x2 window."""
    h = sw.nn.relu(sw.nn.conv(x, v, padding=1))
    return sw.nn.max_pool(sw.nn.relu(sw.nn.conv(h, w, padding=1)), 2)


def layers(x: Any, *weights: Any) -> Any:
    """Return products with gelu between them."""
    for w in weights[:-1]:
        x = sw.nn.gelu(x @ w)
    return x @ weights[-1]


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return what queries weigh."""
    return sw.nn.softmax(q @ snp.swapaxes(k, -1, -2) * 0.1) @ v


CHAINS: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {
    "residual 8x16x112x112, 96, stride 2": (residual(2), images(8, 16, 112, 96, 24)),
    "residual 1x16x112x112, 96, stride 2": (residual(2), images(1, 16, 112, 96, 24)),
    "residual 16x64x14x14, 384": (residual(1), images(16, 64, 14, 384, 64)),
    "residual 32x160x7x7, 960": (residual(1), images(32, 160, 7, 960, 160)),
    "residual 1x24x56x56, 144": (residual(1), images(1, 24, 56, 144, 24)),
    "convolutions, pool 4x3x224x224, 16": (
        pooled,
        (random(4, 3, 224, 224), random(16, 3, 3, 3), random(16, 16, 3, 3)),
    ),
    "layers 65536, 32-128-128-32": (
        layers,
        (random(65536, 32), random(32, 128), random(128, 128), random(128, 32)),
    ),
    "layers 512, 768-3072-768": (layers, (random(512, 768), random(768, 3072), random(3072, 768))),
    "layers 1, 768-3072-768": (layers, (random(1, 768), random(768, 3072), random(3072, 768))),
    "attention 8x512x64": (attention, (random(1, 8, 512, 64),) * 3),
    "attention 8x1024x64": (attention, (random(1, 8, 1024, 64),) * 3),
    "attention 12x128x64": (attention, (random(1, 12, 128, 64),) * 3),
    "attention 16x12x128x64": (attention, (random(16, 12, 128, 64),) * 3),
}


def compiled(function: Callable[..., Any], arrays: Sequence[Any], rows: int) -> tuple[Any, Any]:
    """Return the program with bands, and the one without."""
    trace, least = sw.jit(function).trace(*arrays), bands.MIN_GAIN
    forced = [f"fuse-bands{{rows={rows}}}@before:outline-kernels"] if rows else []
    banded = trace.compile(passes=forced)
    bands.MIN_GAIN = float("inf")
    try:
        return banded, trace.compile(passes=["cse@before:outline-kernels"])
    finally:
        bands.MIN_GAIN = least


def main(rows: int) -> None:
    """Print the ratio of each chain."""
    for name, (function, arrays) in CHAINS.items():
        programs, times = compiled(function, arrays, rows), [np.inf, np.inf]
        for _ in range(ROUNDS):
            for n, program in enumerate(programs):
                program(*arrays)
                start = time.process_time()
                program(*arrays)
                times[n] = min(times[n], time.process_time() - start)
        had = "band" if " band = " in programs[0].source else "    "
        print(f"{name:38} {had} {times[0] * 1e3:8.2f} {times[1] * 1e3:8.2f} ms", end=" ")
        print(f"{times[0] / times[1]:.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
