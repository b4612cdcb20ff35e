"""``sw.debug``: looking at a program while it runs.

Import it as ``sw.debug``. Its functions are called in a function given to `sw.jit`; what they do
happens when the program runs, in order, as often as the run comes there.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepwell.core.shapes import show
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.callbacks import emit_callback
from stepwell.frontend.checks import check
from stepwell.frontend.flow import is_data
from stepwell.frontend.promotion import fresh, lift
from stepwell.frontend.pytree import Tree, flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace

__all__ = ["check_finite", "print"]


def print(fmt: str, /, *args: Any, **kwargs: Any) -> None:
    """Print ``fmt.format(*args, **kwargs)`` when the program runs: in order, each time in loops.

    fmt : a text with replacement fields, as `str.format` takes it
    args, kwargs : arrays, numbers, and whatever else is known while tracing

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def total(x):
    ...     s = 0.0
    ...     for k in range(len(x)):
    ...         s += x[k]
    ...         sw.debug.print("{}: {:.1f}", k, s)
    ...     return s
    >>> _ = total(np.array([0.5, 2.0]))
    0: 0.5
    1: 2.5
    """
    leaves, tree = flatten((args, kwargs))
    arrays = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    known = tuple(None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves)
    shown = _Shown(fmt, tree, known, repr(known))
    if active_trace() is None:
        shown()
    else:
        emit_callback(shown, arrays, (), f"print {fmt}")


@dataclass(frozen=True)
class _Shown:
    """Prints a text with arrays in it; one is as good as another that prints the same."""

    format: str
    tree: Tree
    known: tuple[tuple[Any] | None, ...] = field(compare=False)
    """What is printed: None for an array of the run, else what it is, alone in a tuple."""
    spelled: str = ""
    """The same, to be compared."""

    def __call__(self, *arrays: Any) -> tuple[()]:
        rest = iter(arrays)
        values = [next(rest)[()] if each is None else each[0] for each in self.known]
        given, named = unflatten(self.tree, values)
        builtins.print(self.format.format(*given, **named), flush=True)
        return ()


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
    trace, watch = value.graph, value.graph.watch
    name = op or value.name.lstrip("%").rstrip("0123456789").rstrip("_")
    type = f"{value.kind.name}[{show(value.shape)}]"
    trace.watch = None
    try:
        finite = e.isfinite(value)
        told = f"{name} gave a NaN or an infinity in {type}, at {value.made}"
        check(r.all(finite) if finite.shape else finite, "FloatingPointError", [told])
    finally:
        trace.watch = watch
