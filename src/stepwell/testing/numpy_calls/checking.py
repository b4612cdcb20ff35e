"""Run random calls by NumPy and by Stepwell, many in one program, and compare what they give."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from random import Random
from typing import Any, Literal

import numpy as np

import stepwell.numpy as snp
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.frontend.errors import TraceError
from stepwell.frontend.jit import jit
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.registry import registry
from stepwell.testing.numpy_calls import functions, indexing, ufuncs
from stepwell.testing.numpy_calls.values import Call, Draw

How = Literal["interpreter", "c"]

KINDS: tuple[tuple[Callable[[Draw], Call], int], ...] = (
    (ufuncs.ufunc, 6),
    (ufuncs.operator, 5),
    (ufuncs.unary, 1),
    (ufuncs.of_ufunc, 1),
    (functions.function, 8),
    (functions.method, 3),
    (functions.joined, 1),
    (indexing.read, 2),
    (indexing.write, 2),
    (indexing.at, 1),
)
"""What is drawn, and how often."""


def call(seed: int) -> Call:
    """Return the call of a seed."""
    random = Random(seed)
    kinds, weights = zip(*KINDS, strict=True)
    (kind,) = random.choices(kinds, weights)
    return kind(Draw(random))


@dataclass
class Outcome:
    """What a call gave: a value, or an exception."""

    value: Any = None
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return repr(self.value)


@dataclass
class Deviation:
    """A call that gives another result than NumPy."""

    call: Call
    why: str
    want: Outcome
    got: Outcome

    def __str__(self) -> str:
        return f"{self.call}\n  {self.why}\n  NumPy: {self.want}\n  here:  {self.got}"


def run(call: Call, module: Any, arrays: dict[str, Any]) -> Outcome:
    """Return what the call gives for ``arrays``."""
    space = {"m": module, "np": np, "inf": inf, "nan": nan, **arrays}
    try:
        exec(compile(call.text, "<call>", "exec"), space)
    except Exception as error:
        return Outcome(error=error)
    return Outcome(space["r"])


def wanted(call: Call) -> Outcome:
    """Return what NumPy gives, and for names that it lacks what is said in terms of it."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(call, ORACLE, {k: v.copy() for k, v in call.arrays.items()})


class _Oracle:
    """NumPy, with a few names more."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def erf(self, x: Any) -> Any:
        """Return the error function."""
        return self._by(math.erf, x)

    def erfc(self, x: Any) -> Any:
        """Return its complement."""
        return self._by(math.erfc, x)

    def rsqrt(self, x: Any) -> Any:
        """Return the reciprocal of the square root."""
        kind = np.sqrt(x).dtype
        return (1 / np.sqrt(np.asarray(x).astype("f8"))).astype(kind)

    def _by(self, function: Any, x: Any) -> Any:
        kind = np.sqrt(x).dtype
        return np.vectorize(function, otypes=["f8"])(np.asarray(x)).astype(kind)

    def logsumexp(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the logarithm of the sum of exponentials."""
        value = np.asarray(x)
        wide = value if value.dtype.kind == "f" else value.astype("f8")
        return np.logaddexp.reduce(
            wide, axis=tuple(range(wide.ndim)) if axis is None else axis, keepdims=keepdims
        )

    def cumulative_max(self, x: Any, axis: Any = None) -> Any:
        """Return running greatest elements."""
        return self._running(np.maximum, x, axis)

    def cumulative_min(self, x: Any, axis: Any = None) -> Any:
        """Return running least elements."""
        return self._running(np.minimum, x, axis)

    def _running(self, ufunc: Any, x: Any, axis: Any) -> Any:
        np.cumulative_sum(x, axis=axis)  # takes the same arguments
        return ufunc.accumulate(x, axis=axis or 0)


ORACLE = _Oracle()


def found(calls: Sequence[Call], how: How) -> list[Outcome]:
    """Return what Stepwell gives for calls that make one program."""
    outcomes: list[Outcome] = []
    trees: list[tuple[list[Any], Any]] = []

    def program(*arrays: Any) -> list[Any]:
        given = iter(arrays)
        outcomes.clear()
        trees.clear()
        for each in calls:
            mine = {name: next(given) for name in each.arrays}
            outcome = run(each, snp if each.module == "snp" else np, mine)
            outcomes.append(outcome)
            trees.append(flatten(outcome.value) if outcome.error is None else ([], None))
        return [leaf for leaves, _ in trees for leaf in leaves if isinstance(leaf, Tensor)]

    arrays = [a.copy() for each in calls for a in each.arrays.values()]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        traced = jit(program).trace(*arrays)
        got: Any = traced.compile()(*arrays) if how == "c" else _interpreted(traced, arrays)
        results = iter(got if isinstance(got, list | tuple) else [got])
    for outcome, (leaves, tree) in zip(outcomes, trees, strict=True):
        if outcome.error is None:
            known = [next(results) if isinstance(v, Tensor) else v for v in leaves]
            outcome.value = unflatten(tree, known)
    return outcomes


def _interpreted(traced: Any, arrays: Sequence[Any]) -> Any:
    module = parse_module(registry().context(), traced.module.text, traced.module.name)
    interpreter = Interpreter(module, resources=traced.module.resources)
    results: Any = interpreter.call(traced.entry, list(arrays))
    return results


def check(calls: Sequence[Call], how: How) -> list[Deviation]:
    """Return the calls that give something else than NumPy."""
    try:
        outcomes = found(calls, how)
    except Exception as error:
        if len(calls) == 1:
            late, want = Outcome(error=error), wanted(calls[0])
            why = difference(calls[0], want, late)
            return [Deviation(calls[0], f"{why}, late", want, late)] if why else []
        half = len(calls) // 2
        return check(calls[:half], how) + check(calls[half:], how)
    deviations: list[Deviation] = []
    for each, got in zip(calls, outcomes, strict=True):
        want = wanted(each)
        if why := difference(each, want, got):
            deviations.append(Deviation(each, why, want, got))
    return deviations


def difference(call: Call, want: Outcome, got: Outcome) -> str:
    """Return how what was found differs from NumPy's; nothing where it is the same."""
    if want.error is not None:
        if got.error is None:
            return "raises nothing"
        if isinstance(got.error, TraceError) or "r = y" in call.text:
            return ""  # refused; or of several faults another
        kind = next(k for k in type(want.error).__mro__ if _is_public(k))
        return "" if isinstance(got.error, kind) else "raises another exception"
    if got.error is not None:
        return "refused" if isinstance(got.error, TraceError) else "raises"
    wants, tree = flatten(want.value)
    gots, other = flatten(got.value)
    if tree != other:
        return "another structure"
    for w, g in zip(wants, gots, strict=True):
        if why := _differs(call, w, g):
            return why
    return ""


def _is_public(kind: type) -> bool:
    return kind is np.exceptions.AxisError or kind.__module__ == "builtins"


def _leaves_range(call: Call, want: Any) -> bool:
    """Whether floats become integers that cannot hold them, which NumPy leaves to the machine."""
    if np.asarray(want).dtype.kind not in "iu":
        return False
    if call.name in ("reciprocal", "mean", ".mean", "round", ".round", "around"):
        return True
    return any(a.dtype.kind == "f" and not _fits(a) for a in call.arrays.values()) or any(
        word in call.text for word in ("inf", "nan", "1e30", "-1.5", "-3.0")
    )


def _fits(array: Any) -> bool:
    return bool(np.isfinite(array).all() and (array >= 0).all() and (array < 100).all())


def _differs(call: Call, want: Any, got: Any) -> str:
    if isinstance(want, np.dtype | type) or isinstance(got, np.dtype | type):
        return "" if want == got else "another dtype"
    a, b = np.asarray(want), np.asarray(got)
    if a.dtype != b.dtype:
        return f"dtype {b.dtype}, not {a.dtype}"
    if a.shape != b.shape:
        return f"shape {b.shape}, not {a.shape}"
    if a.dtype.kind != "f":
        return "" if np.array_equal(a, b) or _leaves_range(call, want) else "other numbers"
    return _floats_differ(call, a, b)


def _floats_differ(call: Call, a: Any, b: Any) -> str:
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "NaN elsewhere"
    if not np.array_equal(np.isinf(a), np.isinf(b)) and call.rounding != "sums":
        return "infinities elsewhere"
    same = (a == b) | np.isnan(a)
    with np.errstate(all="ignore"):
        if call.rounding == "sums":
            scale = _scale(call, a)
            limits = np.finfo(a.dtype)
            near = np.abs(a.astype("f8") - b.astype("f8")) <= float(limits.eps) * scale
            same |= near | (np.isinf(a) != np.isinf(b)) & (scale > float(limits.max) / 64)
        elif call.rounding == "near":
            same |= _ulps(a, b) <= 4
    if not same.all():
        return "other numbers"
    if call.rounding == "exact" and not call.free_zeros:
        zero = (a == 0) & (np.signbit(a) != np.signbit(b))
        if zero.any():
            return "zeros of another sign"
    return ""


def _scale(call: Call, a: Any) -> float:
    """Return how large intermediate results may have been, times how many there are."""
    most, count = 1.0, 1
    for array in call.arrays.values():
        known = np.abs(array.astype("f8")) if array.dtype != bool else array.astype("f8")
        finite = known[np.isfinite(known)]
        most *= max(1.0, float(finite.max(initial=1.0)))
        count = max(count, array.size)
    known = np.abs(a[np.isfinite(a)].astype("f8"))
    return 8 * (most * most + float(known.max(initial=0))) * (count + 4)


def _ulps(a: Any, b: Any) -> Any:
    """Return by how many units in the last place two arrays differ."""
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]
    least = np.iinfo(bits).min
    x, y = (np.ascontiguousarray(v).reshape(-1).view(bits).astype(object) for v in (a, b))
    x, y = (np.where(v < 0, least - v, v) for v in (x, y))
    return np.abs(x - y).astype(float).reshape(a.shape)
