"""A neural ODE: a small network is the velocity of a point, and learns it from the point's path.

python examples/neural_ode/spiral.py [--steps 400]

The path is that of ``x' = A x**3``, which spirals inward. The model's path is a scan of Runge and
Kutta's method, so a step of learning goes back through all of its times; `sw.checkpoint` keeps only
the point at each of them, and computes what happened between again.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import stepwell as sw

TIMES, STEP = 80, 0.05
"""How many points of the path there are, and the time between them."""
HIDDEN = 32
TRUE = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def moved(velocity: Any, x: Any) -> Any:
    """Return a point a time step later, by Runge and Kutta's method of the fourth order."""
    a = velocity(x)
    b = velocity(x + STEP / 2 * a)
    c = velocity(x + STEP / 2 * b)
    d = velocity(x + STEP * c)
    return x + STEP / 6 * (a + 2 * b + 2 * c + d)


def path(velocity: Any, start: Any) -> Any:
    """Return the points at all times; ``start`` may be many points."""
    step = sw.checkpoint(lambda x: moved(velocity, x))
    return sw.lax.scan(lambda x, _: (step(x), x), start, None, length=TIMES)[1]


def network(p: Any, x: Any) -> Any:
    """The velocity that the model gives a point."""
    return np.tanh((x**3) @ p["in"] + p["bias"]) @ p["out"]


def loss(p: Any, start: Any, seen: Any) -> Any:
    """How far the model's path is from the one that was seen."""
    return np.mean((path(lambda x: network(p, x), start) - seen) ** 2)


def main() -> int:
    """Learn, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    drawn = np.random.default_rng(0)
    start = drawn.uniform(-1.5, 1.5, (16, 2))
    seen = sw.jit(lambda start: path(lambda x: x**3 @ TRUE, start))(start)
    params: Any = {
        "in": drawn.standard_normal((2, HIDDEN)) * 0.5,
        "bias": np.zeros(HIDDEN),
        "out": drawn.standard_normal((HIDDEN, 2)) * 0.1,
    }
    optimizer = sw.optim.adam(0.02)
    state = optimizer.init(params)

    @sw.jit
    def learn(params: Any, state: Any, start: Any, seen: Any) -> Any:
        value, gradient = sw.value_and_grad(loss)(params, start, seen)
        updates, state = optimizer.update(gradient, state, params)
        return sw.optim.apply_updates(params, updates), state, value

    first, begun = 0.0, time.perf_counter()
    value = np.float64(0)
    for step in range(options.steps):
        params, state, value = learn(params, state, start, seen)
        first = float(value) if step == 0 else first
        if step % max(options.steps // 5, 1) == 0:
            print(f"step {step:4d}: mean square distance {float(value):.5f}")
    took = time.perf_counter() - begun
    print(
        f"{options.steps} steps in {took:.1f} s: the distance went from {first:.4f} to {value:.5f}"
    )
    assert value < first / 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
