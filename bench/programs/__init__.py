"""NumPy programs as people write them, one a module, and the forms that other libraries want.

A module has a function of its own name, which is NumPy alone and runs unchanged under every
decorator; `inputs(tiny)`, its arguments; and, where that is not the same text, `loops`, what a user
of Numba writes (`prange` counts only where it is compiled to run in parallel), and `port`, what a
user of JAX writes: it returns what the function assigns to, in the order of the arguments, and then
what the function returns. `STATIC` names arguments that a decorator has to know.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_OTHERS = ("__init__", "libraries")
NAMES = tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in _OTHERS))
"""Every program."""

DOUBLE = 1e-9
"""How far a float64 may be off, against the largest: sums are taken in another order."""
SINGLE = 2e-4
"""The same for float32."""


@dataclass(frozen=True)
class Expected:
    """What NumPy makes of a program: arguments that it assigns to, and all that comes out."""

    changed: tuple[int, ...]
    values: tuple[Any, ...]
    """The changed arguments, then the results."""


@dataclass(frozen=True)
class Program:
    """A program and its forms."""

    name: str
    about: str
    function: Callable[..., Any]
    inputs: Callable[[bool], tuple[Any, ...]]
    loops: Callable[..., Any]
    port: Callable[..., Any] | None
    static: tuple[str, ...]
    error: float | None

    def expected(self, tiny: bool) -> Expected:
        """Return what NumPy computes."""
        arguments, before = self.inputs(tiny), self.inputs(tiny)
        with np.errstate(all="ignore"):
            result = self.function(*arguments)
        changed = tuple(
            i
            for i, (a, b) in enumerate(zip(arguments, before))
            if isinstance(a, np.ndarray) and not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        )
        return Expected(changed, (*(arguments[i] for i in changed), *flat(result)))

    def mistake(self, values: Sequence[Any], expected: Expected, strict: bool = True) -> str:
        """Return what is wrong with what was computed; nothing where it is right.

        strict : dtypes count too
        """
        if len(values) != len(expected.values):
            return f"{len(values)} results instead of {len(expected.values)}"
        for k, (value, right) in enumerate(zip(values, expected.values)):
            if found := self._differs(np.asarray(value), np.asarray(right), strict):
                return f"result {k}: {found}"
        return ""

    def _differs(self, value: Any, right: Any, strict: bool) -> str:
        if value.shape != right.shape:
            return f"shape {value.shape} instead of {right.shape}"
        if strict and value.dtype != right.dtype:
            return f"dtype {value.dtype} instead of {right.dtype}"
        if right.dtype.kind != "f":
            wrong = int(np.sum(value != right))
            return f"{wrong} of {right.size} values differ" if wrong else ""
        allowed = self.error or (SINGLE if right.dtype.itemsize < 8 else DOUBLE)
        finite = np.isfinite(right)
        largest = float(np.max(np.abs(right), where=finite, initial=0.0))
        off = np.abs(np.where(finite, value, 0) - np.where(finite, right, 0))
        worst = float(np.max(off, initial=0.0)) / (largest or 1.0)
        if not worst <= allowed:
            return f"off by {worst:.1e} of the largest"
        same = np.array_equal(value[~finite], right[~finite], equal_nan=True)
        return "" if same else "NaN or infinity elsewhere"


def flat(result: Any) -> tuple[Any, ...]:
    """Return the leaves of what a function returned."""
    if result is None:
        return ()
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def outcome(arguments: Sequence[Any], expected: Expected, result: Any) -> tuple[Any, ...]:
    """Return what a call that changes its arguments came to, in the order of what is expected."""
    return (*(arguments[i] for i in expected.changed), *flat(result))


def fresh(arguments: Sequence[Any]) -> list[Any]:
    """Return arguments that may be written to."""
    return [copy.copy(a) for a in arguments]


def program(name: str) -> Program:
    """Return the program of that name."""
    module = import_module(f"programs.{name}")
    function = getattr(module, name)
    return Program(
        name,
        (module.__doc__ or "").strip().splitlines()[0],
        function,
        module.inputs,
        getattr(module, "loops", function),
        getattr(module, "port", None),
        tuple(getattr(module, "STATIC", ())),
        getattr(module, "ERROR", None),
    )
