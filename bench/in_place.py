"""Measure programs that write to their arguments beside NumPy, for note 043.

`python bench/in_place.py`. The least of many calls, ours and NumPy's in turn. A decoder's step is
measured by `decoding.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import spell_seconds

import stepwell as sw

ROUNDS = 7
SECONDS = 0.05
"""How long a side is called in a round."""


def element(A: Any, v: Any) -> None:
    """Write one element."""
    A[3, 4] = v


def diagonal(A: Any, v: Any) -> None:
    """Write the diagonal in a loop."""
    for i in range(A.shape[0]):
        A[i, i] = v


def rows_up(A: Any) -> None:
    """Move each row one up."""
    A[:-1] = A[1:]


def gauss_seidel(A: Any, sweeps: Any) -> None:
    """Update the rows of a plane from those just updated."""
    for _ in range(sweeps):
        for i in range(1, A.shape[0] - 1):
            A[i, 1:-1] = 0.25 * (A[i - 1, 1:-1] + A[i + 1, 1:-1] + A[i, 2:] + A[i, :-2])


def fdtd(ex: Any, ey: Any, hz: Any, steps: Any) -> None:
    """Step three fields in time."""
    for _ in range(steps):
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def jacobi(A: Any, B: Any, sweeps: Any) -> None:
    """Relax to and fro between two arrays."""
    for _ in range(sweeps):
        B[1:-1, 1:-1] = 0.25 * (A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.25 * (B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def plane(*shape: int) -> Any:
    """Return an array of random numbers."""
    return np.random.default_rng(0).random(shape)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "an element of 1600 x 1600": (element, (plane(1600, 1600), 2.0)),
    "the diagonal of 1600 x 1600, in a loop": (diagonal, (plane(1600, 1600), 2.0)),
    "the rows of 1600 x 1600 moved one up": (rows_up, (plane(1600, 1600),)),
    "Gauss-Seidel by rows, 120 x 120, 10 sweeps": (gauss_seidel, (plane(120, 120), 10)),
    "FDTD, three fields of 200 x 240, 50 steps": (fdtd, (*plane(3, 200, 240), 50)),
    "Jacobi, 300 x 300, 50 sweeps to and fro": (jacobi, (*plane(2, 300, 300), 50)),
}


def least(calls: list[Callable[[], Any]]) -> list[float]:
    """Return the least time of each of several calls, which are made in turn."""
    times = [[float("inf")] for _ in calls]
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for call, found in zip(calls, times, strict=True):
            until = time.perf_counter() + SECONDS
            while (start := time.perf_counter()) < until:
                call()
                found.append(time.perf_counter() - start)
    return [min(found) for found in times]


def beside_numpy(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[float]:
    """Return our time and NumPy's, of what gives the same."""
    compiled = sw.jit(function)
    ours, theirs = ([np.copy(a) if np.ndim(a) else a for a in arguments] for _ in range(2))
    compiled(*ours)
    function(*theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    return least([lambda: compiled(*ours), lambda: function(*theirs)])


def main() -> None:
    """Print the tables."""
    print("| | ours | NumPy |", "|---|---:|---:|", sep="\n")
    for name, (function, arguments) in CASES.items():
        times = beside_numpy(function, arguments)
        print(f"| {name} | {' | '.join(map(spell_seconds, times))} |", flush=True)


if __name__ == "__main__":
    main()
