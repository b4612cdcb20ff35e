"""An LSTM learns how many sunspots next year has, from the years before.

python examples/sequence/sunspots.py [--steps 120]

It learns from 1700 to 1920, and is asked for each year from then to 2008, beside two others: next
year is as this one, and a line through the last nine years, fitted by least squares. It stops early
and its weights decay: 220 years are few, and what comes after them was never so high before.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sunspot_numbers import FIRST, NUMBERS

import stepwell as sw

HIDDEN, WINDOW = 24, 66
"""Numbers of a state, and the years of a piece that is learnt from: six cycles of the sun."""
LAST = 1920
"""The last year that is learnt from."""

Array = NDArray[np.float32]


def scaled(numbers: Any) -> Array:
    """Return numbers near 1: the more spots there are, the less one more says."""
    return (np.sqrt(np.asarray(numbers)) / 7).astype(np.float32)


def counted(x: Any) -> Any:
    """Return numbers of spots."""
    return (np.maximum(x, 0) * 7) ** 2


@sw.jit
def initial(key: Any) -> Any:
    """Return the parameters of a model that has learnt nothing."""
    keys = sw.random.split(key, 3)
    init = sw.nn.initializers
    return {
        "x": init.glorot_uniform()(keys[0], (1, 4 * HIDDEN)),
        "h": init.orthogonal()(keys[1], (HIDDEN, 4 * HIDDEN)),
        "bias": np.repeat(
            np.array([0, 1, 0, 0], np.float32), HIDDEN
        ),  # at first nothing is forgotten
        "out": init.glorot_uniform()(keys[2], (HIDDEN, 1)),
    }


def predicted(p: Any, x: Any) -> Any:
    """Return for each year of ``x``, (years, batch), what the next one has: how much it changes."""
    _, ys = sw.nn.lstm(x[..., None], p["x"], p["h"], p["bias"])
    return x + sw.nn.dense(ys, p["out"])[..., 0]


def loss(p: Any, x: Any) -> Any:
    """Return the mean loss of years, but for the first cycle: too little is known of the sun."""
    return sw.nn.huber_loss(predicted(p, x[:-1])[11:], x[12:], delta=0.3).mean()


def trained(p: Any, series: Array, steps: int) -> tuple[Any, list[float], float]:
    """Return what was learnt in so many steps, the loss of each, and the seconds they took."""
    pieces = np.lib.stride_tricks.sliding_window_view(series, WINDOW + 1).T
    adam = sw.optim.adamw(sw.optim.cosine_decay_schedule(1e-2, steps), weight_decay=1.0)

    @sw.jit(donate_argnames=("p", "state"))
    def step(p: Any, state: Any, x: Any) -> Any:
        found, gradient = sw.value_and_grad(loss)(p, x)
        updates, state = adam.update(gradient, state, p)
        return sw.optim.apply_updates(p, updates), state, found

    random = np.random.default_rng(0)
    state, losses, start = adam.init(p), list[float](), 0.0
    for k in range(steps):
        chosen = random.integers(0, pieces.shape[1], 32)
        p, state, found = step(p, state, pieces[:, chosen])
        losses.append(float(found))
        if k == 0:
            start = time.perf_counter()
    return p, losses, time.perf_counter() - start


def line(numbers: NDArray[np.float64], known: int, years: int = 9) -> NDArray[np.float64]:
    """Return what a line through the last years says of each year after ``known``."""
    rows = np.lib.stride_tricks.sliding_window_view(numbers, years)[:-1]
    rows = np.column_stack([rows, np.ones(len(rows))])
    fitted = np.linalg.lstsq(rows[: known - years], numbers[years:known], rcond=None)[0]
    return rows[known - years :] @ fitted


def main() -> int:
    """Train, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    steps = parser.parse_args().steps
    numbers, known = np.array(NUMBERS), LAST - FIRST + 1
    series = scaled(numbers)
    p, losses, seconds = trained(initial(sw.random.key(0)), series[:known], steps)
    found = counted(sw.jit(predicted)(p, series[:-1, None])[known - 1 :, 0])
    errors = {
        "this year's": numbers[known - 1 : -1] - numbers[known:],
        "a line through nine years": line(numbers, known) - numbers[known:],
        "the LSTM": found - numbers[known:],
    }
    print(f"loss {losses[0]:.4f} to {np.mean(losses[-10:]):.4f}; {steps / seconds:.0f} steps/s")
    print(f"root of the mean square error, {LAST + 1} to {FIRST + len(numbers) - 1}:")
    sizes = {name: float(np.sqrt(np.mean(each**2))) for name, each in errors.items()}
    for name, size in sizes.items():
        print(f"  {name:26} {size:5.1f}")
    for year in range(1950, 1962):
        at = year - FIRST
        print(f"  {year} {'*' * int(numbers[at] / 4):50} {found[at - known]:5.0f} predicted")
    assert np.mean(losses[-10:]) < 0.5 * losses[0], "the loss falls to half at least"
    assert sizes["the LSTM"] < 0.8 * sizes["this year's"], "the cycle of the sun is learnt"
    return 0


if __name__ == "__main__":
    sys.exit(main())
