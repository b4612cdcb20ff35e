"""What speech recognisers hear: the logarithm of the energy in mel bands, frame by frame.

The spectrum is a product with a matrix of cosines and sines; Stepwell has no FFT yet.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import stepwell as sw

RATE, FRAME, HOP, BANDS = 16000, 400, 160, 80


def tables() -> tuple[Any, Any, Any]:
    """Return the window's cosines and sines for each frequency, and the mel filters."""
    window = np.hanning(FRAME + 1)[:-1]
    angle = 2 * np.pi * np.outer(np.arange(FRAME), np.arange(FRAME // 2 + 1)) / FRAME
    mel = 2595 * np.log10(1 + np.linspace(0, RATE / 2, FRAME // 2 + 1) / 700)
    edges = np.linspace(0, mel[-1], BANDS + 2)
    rise = (mel[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - mel[:, None]) / (edges[2:] - edges[1:-1])
    filters = np.maximum(0, np.minimum(rise, fall))
    created = window[:, None] * np.cos(angle), window[:, None] * np.sin(angle), filters
    return (
        created[0].astype(np.float32),
        created[1].astype(np.float32),
        created[2].astype(np.float32),
    )


def log_mel(signal: Any, cosines: Any, sines: Any, filters: Any) -> Any:
    """Return the bands of each frame, clipped to what lies within 80 dB of the loudest."""
    count = 1 + (len(signal) - FRAME) // HOP
    at = np.arange(count)[:, None] * HOP + np.arange(FRAME)
    frames = signal[at]
    power = (frames @ cosines) ** 2 + (frames @ sines) ** 2
    bands = np.log10(np.maximum(power @ filters, np.float32(1e-10)))
    bands[bands < bands.max() - 8] = bands.max() - 8
    return (bands + 4) / 4


def main() -> None:
    """Compute the bands of two seconds with NumPy and compiled."""
    created = tables()
    t = np.arange(2 * RATE, dtype=np.float32) / RATE
    signal = np.sin(2 * np.pi * (300 + 200 * t) * t).astype(np.float32)
    compiled = sw.jit(log_mel)
    right, ours = log_mel(signal, *created), compiled(signal, *created)
    np.testing.assert_allclose(ours, right, atol=1e-3)
    took = [_seconds(f, signal, *created) for f in (compiled, log_mel)]
    print(f"log-mel: {took[0] * 1e3:.2f} ms for two seconds, in NumPy {took[1] * 1e3:.2f} ms")


def _seconds(function: Any, *args: Any) -> float:
    start = time.perf_counter()
    for _ in range(10):
        function(*args)
    return (time.perf_counter() - start) / 10


if __name__ == "__main__":
    main()
