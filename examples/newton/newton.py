"""Newton's method, with the Hessian of a function as it is written.

python examples/newton/newton.py

First Rosenbrock's valley, which gradient descent goes along for thousands of steps; then logistic
regression, whose optimum has a name in statistics. Each step solves ``H d = g``, where gradient and
Hessian come out of one compiled program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stepwell as sw

Array = NDArray[np.float64]


def valley(x: Any) -> Any:
    """Rosenbrock's function: its least value, 0, is where all of ``x`` is 1."""
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def minimised(
    f: Callable[..., Any], x: Array, *more: Any, steps: int = 60
) -> tuple[Array, list[float]]:
    """Return where ``f`` has a minimum, and the size of its gradient at each step.

    Where a whole step does not go down it is halved; where the Hessian is not positive it is made
    so.
    """
    value = sw.jit(f)
    local = sw.jit(lambda x, *more: (sw.grad(f)(x, *more), sw.hessian(f)(x, *more)))
    sizes: list[float] = []
    for _ in range(steps):
        g, h = local(x, *more)
        sizes.append(float(np.linalg.norm(g)))
        if sizes[-1] < 1e-10:
            break
        least = float(np.linalg.eigvalsh(h)[0])
        d = np.linalg.solve(h + max(0.0, 1e-3 - least) * np.eye(len(x)), g)
        step, now = 1.0, float(value(x, *more))
        while step > 1e-8 and float(value(x - step * d, *more)) > now - 1e-4 * step * float(g @ d):
            step /= 2
        x = x - step * d
    return x, sizes


def surprise(w: Any, x: Any, y: Any) -> Any:
    """The mean surprise of labels 0 and 1 at a logistic model, with a little decay of weights."""
    z = x @ w
    return np.mean(np.logaddexp(0, z) - y * z) + 1e-3 * np.sum(w * w)


def main() -> int:
    """Find both minima."""
    x, sizes = minimised(valley, np.linspace(-1.2, 1.0, 10))
    print(f"Rosenbrock's valley in 10 dimensions: {len(sizes)} steps, |gradient| {sizes[-1]:.1e}")
    np.testing.assert_allclose(x, np.ones(10), atol=1e-8)
    drawn = np.random.default_rng(0)
    inputs = drawn.standard_normal((500, 8))
    labels = (inputs @ np.arange(-4, 4) + drawn.logistic(size=500) > 0).astype(np.float64)
    w, sizes = minimised(surprise, np.zeros(8), inputs, labels)
    went = ", ".join(f"{size:.0e}" for size in sizes)
    print(f"logistic regression: {len(sizes)} steps, |gradient| {went}")
    assert sizes[-1] < 1e-10
    assert sizes[-2] < 1e-4, "near the end each step doubles the digits"
    right = np.mean((inputs @ w > 0) == labels)
    print(f"it is right of {right:.0%} of the labels")
    assert right > 0.8
    return 0


if __name__ == "__main__":
    sys.exit(main())
