"""A thousand decay curves, each fitted by its own least squares, all at once by `sw.vmap`.

python examples/fit/decays.py [--curves 1000]

A curve is ``a exp(-k t) + c`` with noise. The error of one curve is a plain function of its three
parameters; ``sw.vmap(sw.grad(error))`` is its gradient for each, ``sw.vmap(sw.jacfwd(curve))``
is what Levenberg and Marquardt's method takes a step by. No curve knows of the others.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import stepwell as sw

TIMES = np.linspace(0, 4, 40)
NOISE = 0.02


def curve(p: Any) -> Any:
    """Return the values of a curve with parameters ``a``, ``k`` and ``c``."""
    return p[0] * np.exp(-p[1] * TIMES) + p[2]


def error(p: Any, seen: Any) -> Any:
    """Half the sum of squares of what a curve is off by."""
    return np.sum((curve(p) - seen) ** 2) / 2


def main() -> int:
    """Fit them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--curves", type=int, default=1000)
    count = parser.parse_args().curves
    drawn = np.random.default_rng(0)
    true = drawn.uniform([0.5, 0.5, -1], [2, 2, 1], (count, 3))
    seen = sw.vmap(curve)(true) + drawn.normal(0, NOISE, (count, len(TIMES)))

    @sw.jit
    def local(p: Any, seen: Any) -> Any:
        errors, gradients = sw.vmap(sw.value_and_grad(error))(p, seen)
        slopes = sw.vmap(sw.jacfwd(curve))(p)
        return errors, gradients, np.matmul(slopes.transpose(0, 2, 1), slopes)

    p = np.tile([1.0, 1.0, 0.0], (count, 1))
    damping = np.full(count, 1e-2)
    begun = time.perf_counter()
    errors, gradients, squares = local(p, seen)
    for _ in range(25):
        scaled = squares + damping[:, None, None] * np.eye(3)
        tried = p - np.linalg.solve(scaled, gradients[..., None])[..., 0]
        found = local(tried, seen)
        better = found[0] < errors
        damping = np.where(better, damping / 5, damping * 5)
        p = np.where(better[:, None], tried, p)
        errors, gradients, squares = local(p, seen)
    took = time.perf_counter() - begun
    rms = np.sqrt(2 * errors / len(TIMES))
    print(f"{count} curves in {took:.2f} s: off by {rms.mean():.4f}, noise is {NOISE}")
    print(f"a, k and c are off by {np.abs(p - true).mean(axis=0).round(4)}")
    assert rms.max() < 2 * NOISE
    assert np.abs(gradients).max() < 1e-3
    assert np.median(np.abs(p - true)) < NOISE
    return 0


if __name__ == "__main__":
    sys.exit(main())
