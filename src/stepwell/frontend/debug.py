"""``sw.debug``: inspect a program while it runs.

Import it as ``sw.debug``. Call its functions in a function given to `sw.jit`; they take effect when
the program runs, in program order, at each execution.
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
    args, kwargs : arrays, numbers, and any values known while tracing

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
    shown = _Print(fmt, tree, known, repr(known))
    if active_trace() is None:
        shown()
    else:
        emit_callback(shown, arrays, (), f"print {fmt}")


@dataclass(frozen=True)
class _Print:
    """Print a text with arrays in it; objects that print the same are equal."""

    format: str
    tree: Tree
    known: tuple[tuple[Any] | None, ...] = field(compare=False)
    """The values to print: None for a runtime array, else a tuple of the known value."""
    spelled: str = ""
    """``known`` as text, for comparison."""

    def __call__(self, *arrays: Any) -> tuple[()]:
        rest = iter(arrays)
        values = [next(rest)[()] if each is None else each[0] for each in self.known]
        given, named = unflatten(self.tree, values)
        builtins.print(self.format.format(*given, **named), flush=True)
        return ()


def check_finite(x: Any, /) -> Any:
    """Raise FloatingPointError, when the program runs, if there is a NaN or an infinity in ``x``.

    x : an array, or arrays in tuples, lists and dicts; arrays of other dtypes than floats pass

    Returns x. The error comes at the line of the call, and names the op that computed the array and
    its location. `sw.jit(check_finite=True)` checks every op of a function.

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
    """Check the results of an op, as `jit(check_finite=True)` does."""
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
"""Ops that return a NaN or an infinity only if an operand or attribute is one: not checked."""


def _check(value: Tensor, op: str = "") -> None:
    if value.kind.kind != "float" or not value.size:
        return
    trace, watch = value.graph, value.graph.watch
    name = op or value.name.lstrip("%").rstrip("0123456789").rstrip("_")
    type = f"{value.kind.name}[{show(value.shape)}]"
    trace.watch = None
    try:
        finite = e.isfinite(value)
        message = f"{name} gave a NaN or an infinity in {type}, at {value.created}"
        check(r.all(finite) if finite.shape else finite, "FloatingPointError", [message])
    finally:
        trace.watch = watch
