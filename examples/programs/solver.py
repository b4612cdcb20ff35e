"""Heat in a plate: implicit steps in time, each solved by conjugate gradients until it is right."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import stepwell as sw


def applied(u: Any, k: Any) -> Any:
    """Return ``u - k * (the sum of differences to the neighbours)``; the edge is kept at 0."""
    y = (1 + 4 * k) * u
    y[1:] -= k * u[:-1]
    y[:-1] -= k * u[1:]
    y[:, 1:] -= k * u[:, :-1]
    y[:, :-1] -= k * u[:, 1:]
    return y


def solve(u: Any, b: Any, k: Any, tolerance: Any) -> Any:
    """Change ``u`` until ``applied(u, k)`` is ``b``; return how many steps that took."""
    r = b - applied(u, k)
    p = r.copy()
    rr = np.sum(r * r)
    steps = 0
    while rr > tolerance:
        q = applied(p, k)
        alpha = rr / np.sum(p * q)
        u += alpha * p
        r -= alpha * q
        new = np.sum(r * r)
        p = r + (new / rr) * p
        rr = new
        steps += 1
        if steps >= 500:
            break
    return steps


def simulate(u: Any, k: Any, times: Any) -> Any:
    """Let heat spread ``times`` times; return how many steps the solver took in all."""
    total = 0
    for _ in range(times):
        total += solve(u, u.copy(), k, 1e-12)
    return total


def main() -> None:
    """Simulate with NumPy and with the compiled function; both change their plate."""
    plates = [np.zeros((100, 100)), np.zeros((100, 100))]
    for u in plates:
        u[40:60, 40:60] = 1
    compiled = sw.jit(simulate)
    compiled(plates[1].copy(), 2.0, 1)
    took: list[float] = []
    counts: list[Any] = []
    for function, u in zip((simulate, compiled), plates, strict=True):
        start = time.perf_counter()
        counts.append(function(u, 2.0, 20))
        took.append(time.perf_counter() - start)
    np.testing.assert_allclose(plates[1], plates[0], atol=1e-9)
    assert abs(int(counts[1]) - counts[0]) <= 2  # sums are taken in another order
    print(f"solver: {took[1] * 1e3:.0f} ms for 20 steps, in NumPy {took[0] * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
