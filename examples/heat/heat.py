"""A plate that a heater warms: Jacobi's method, a picture, and how strong the heater must be.

python examples/heat/heat.py [--size 64] [--steps 400] [--picture heat.png]

The edges of the plate are cold, a disc in it is heated, and every step each point becomes the mean
of its four neighbours and what the heater adds. How warm a point far from the heater becomes has a
derivative by the heater's strength: backward through all steps. Newton's method takes it to find
the strength that makes that point as warm as it is to be.
"""

from __future__ import annotations

import argparse
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stepwell as sw

TARGET = 20.0
"""How warm the point is to be."""

Array = NDArray[Any]


def heated(size: int) -> Array:
    """Return where the heater is: a disc in the upper left of the plate."""
    y, x = np.mgrid[:size, :size] / size
    return ((x - 0.3) ** 2 + (y - 0.3) ** 2 < 0.01).astype(np.float64)


def relax(plate: Any, heat: Any) -> Any:
    """Return the plate a step later."""
    inner = (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]) / 4
    return np.pad(inner + heat[1:-1, 1:-1], 1)


def warmed(strength: Any, heater: Any, steps: int) -> Any:
    """Return the plate after so many steps, cold at first."""
    heat = strength * heater
    cold = np.zeros_like(heater)
    return sw.lax.scan(lambda plate, _: (relax(plate, heat), None), cold, None, length=steps)[0]


def far_point(strength: Any, heater: Any, steps: int) -> Any:
    """Return how warm the point becomes."""
    at = 3 * heater.shape[0] // 4
    return warmed(strength, heater, steps)[at, at]


def png(plate: Array) -> bytes:
    """Return a picture: black where it is cold, by red and yellow to white."""
    level = plate / plate.max()
    rgb = np.stack([level * 3, level * 3 - 1, level * 3 - 2], axis=-1)
    rows = (np.clip(rgb, 0, 1) * 255).astype(np.uint8)
    height, width, _ = rows.shape
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(raw)),
        (b"IEND", b""),
    )
    found = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        check = zlib.crc32(kind + data)
        found += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
    return found


def main() -> int:
    """Find the strength, and draw the plate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    heater = heated(options.size)
    slope = sw.value_and_grad(lambda s, heater: far_point(s, heater, options.steps))
    strength = 1.0
    begun = time.perf_counter()
    for _ in range(3):  # the plate is linear in the strength: one step finds it, the next shows it
        warmth, d = slope(strength, heater)
        print(f"strength {strength:8.4f}: the point has {float(warmth):8.4f} degrees")
        strength -= (float(warmth) - TARGET) / float(d)
    print(f"found in {time.perf_counter() - begun:.2f} s, compiling included")
    plate = sw.jit(warmed, static_argnames=("steps",))(strength, heater, steps=options.steps)
    expected = np.zeros_like(heater)
    for _ in range(options.steps):
        expected = relax(expected, strength * heater)
    np.testing.assert_allclose(plate, expected, rtol=1e-9, atol=1e-9)
    at = 3 * options.size // 4
    assert abs(plate[at, at] - TARGET) < 1e-6
    if options.picture is not None:
        options.picture.write_bytes(png(plate))
        print(f"drawn: {options.picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
