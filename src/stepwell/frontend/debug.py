"""``sw.debug``: looking at a program while it runs.

Import it as ``sw.debug``. Its functions are called in a function given to `sw.jit`; what they do
happens when the program runs, in order, as often as the run comes there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.core.shapes import show
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.checks import check
from stepwell.frontend.flow import is_data
from stepwell.frontend.promotion import fresh, lift
from stepwell.frontend.pytree import flatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace


def check_finite(x: Any, /) -> Any:
    """Raise FloatingPointError, when the program runs, if there is a NaN or an infinity in ``x``.

    x : an array, or arrays in tuples, lists and dicts; those that are no floats are fine

    Returns x. The error comes at the line of the call, and says which op made the array, and where.
    `sw.jit(check_finite=True)` asks this of everything that a function computes.

    raises FloatingPointError : when the program runs

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def halves(x):
    ...     return sw.debug.check_finite(1 / x)
    >>> halves(np.array([2.0, 4.0]))
    array([0.5 , 0.25])
    >>> halves(np.array([2.0, 0.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    FloatingPointError: div gave a NaN or an infinity in f64[2], at ...
    """
    for leaf in flatten(x)[0]:
        if active_trace() is None:
            if not np.all(np.isfinite(np.asarray(leaf))):
                raise FloatingPointError("there is a NaN or an infinity")
        elif is_data(leaf) or hasattr(leaf, "__array__"):
            _check(lift(leaf))
    return x


def watch_finite(op: str, results: tuple[Tensor, ...]) -> None:
    """Check what an op has given, as `jit(check_finite=True)` does."""
    if op not in _MOVING:
        for result in results:
            _check(fresh(result), op)


_MOVING = frozenset(
    (
        *("broadcast", "reshape", "transpose", "slice", "reverse", "gather", "concat", "pad"),
        *("dynamic_slice", "dynamic_update_slice", "scatter", "full", "constant", "if", "while"),
        *("scan", "select", "max", "min", "sort", "reduce_max", "reduce_min"),
    )
)
"""Ops that give a NaN or an infinity only where they are given one, or are told to."""


def _check(value: Tensor, op: str = "") -> None:
    if value.kind.kind != "float" or not value.size:
        return
    trace, watch = value.trace, value.trace.watch
    name = op or value.name.lstrip("%").rstrip("0123456789").rstrip("_")
    type = f"{value.kind.name}[{show(value.shape)}]"
    trace.watch = None
    try:
        finite = e.isfinite(value)
        told = f"{name} gave a NaN or an infinity in {type}, at {value.made}"
        check(r.all(finite) if finite.shape else finite, "FloatingPointError", [told])
    finally:
        trace.watch = watch
