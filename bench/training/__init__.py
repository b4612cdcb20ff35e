"""Steps of training, each defined once: data, loss and optimiser; and what each library has to say.

A step is forward, backward and update, as users of a library write it: one program where it makes
programs, its state in place or donated. A module of this package serves a library.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from models import Random, Weights
from ops import Array, Ops, Unsupported

Arrays = dict[str, Array]
CHECKED = 3
"""Steps after which the parameters are compared."""
MOMENTUM = 0.9
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Of adam."""


class TrainingOps(Ops):
    """What losses need beside `Ops`."""

    def filtered(self, x: Array, w: Array, stride: int = 1, padding: int = 0) -> Array:
        """Convolve images."""
        raise Unsupported("filtered")

    def batch_norm(
        self, x: Array, scale: Array, shift: Array, mean: Array, variance: Array
    ) -> tuple[Array, Array, Array]:
        """Return images normalized by their own statistics, and the running ones.

        These move a tenth of the way to the mean and the unbiased variance of the batch.
        """
        raise Unsupported("batch_norm")

    def flatten(self, x: Array) -> Array:
        """Return each image as a row, features first."""
        raise Unsupported("flatten")

    def rows(self, table: Array, numbers: Array) -> Array:
        """Return the rows of a table that integers name."""
        return table[numbers]

    def heads_attend(self, q: Array, k: Array, v: Array, causal: bool) -> Array:
        """Return attention for (batch, length, heads, width), scaled by the root of the width."""
        raise Unsupported("heads_attend")

    def lstms(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        """Return the hidden states for (length, batch, width); gates in the order i, f, g, o."""
        raise Unsupported("lstms")

    def classified(self, scores: Array, labels: Array) -> Array:
        """Return the mean cross entropy of rows of scores with integer labels."""
        raise Unsupported("classified")

    def mean_square(self, x: Array) -> Array:
        """Return the mean of x * x."""
        raise Unsupported("mean_square")


def no_arrays(random: Random) -> Arrays:
    """Return none."""
    return {}


@dataclass(frozen=True)
class Task:
    """A line of the table."""

    name: str
    loss: Callable[[Any, Weights, Mapping[str, Array], Mapping[str, Array]], Any]
    """Returns the loss and the statistics after it, for parameters, statistics and a batch."""
    parameters: Callable[[Random], Arrays]
    batch: Callable[[Random], Arrays]
    optimiser: str
    """sgd, momentum, adam; or examples: a step is the gradient of each example, nothing else."""
    rate: float = 0.0
    statistics: Callable[[Random], Arrays] = no_arrays
    tolerance: float = 0.02
    """How far the parameters' way of a few steps may be off, in parts of its length."""

    def data(self) -> tuple[Arrays, Arrays, Arrays]:
        """Return parameters, statistics and a batch, the same in every process."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return self.parameters(random), self.statistics(random), self.batch(random)

    def reference(self, folder: Path) -> Path:
        """Return where the parameters and statistics after `CHECKED` steps in float64 are kept."""
        here = Path(__file__).parent
        names = ("__init__.py", "tasks.py", "torch.py", "../models.py")
        digest = sha256(b"".join((here / n).read_bytes() for n in names)).hexdigest()
        return folder / f"training-{self.name}-{digest[:12]}.npz"

    def error(self, found: Arrays, right: Mapping[str, Array]) -> float:
        """Return the distance to what is right, in parts of the way from the start to there."""
        parameters, statistics, _ = self.data()
        start = parameters | statistics
        if self.optimiser == "examples":
            start = dict.fromkeys(start, np.float64(0))
        way = sum(_square(right[name] - start[name]) for name in start)
        off = sum(_square(found[name] - right[name]) for name in start)
        return float(np.sqrt(off / way)) if np.isfinite(off) else float("inf")


def _square(x: Array) -> float:
    return float(np.sum(np.square(x, dtype=np.float64)))


Step = Callable[[], Any]
"""Makes one step and blocks until it is done; returns the loss."""


class Library:
    """A library in its own process; ``variant`` says which way of using it."""

    version = ""

    def __init__(self, threads: int, variant: str) -> None:
        self.threads = threads
        self.variant = variant

    def prepare(self, task: Task) -> None:
        """Make the step's program, where that is to be said at all; nothing is compiled yet."""
        raise NotImplementedError

    def restart(self) -> Step:
        """Return a step from the start: new arrays for parameters, statistics and moments."""
        raise NotImplementedError

    def arrays(self) -> Arrays:
        """Return parameters and statistics as NumPy arrays in the layout of the task."""
        raise NotImplementedError
