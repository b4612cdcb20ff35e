"""Run random calls by NumPy and by Stepwell, many in one program, and compare the results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from random import Random
from typing import Any, Literal

import numpy as np

import stepwell.numpy as snp
from stepwell import random as drawing
from stepwell.dialects.interpreter import Interpreter
from stepwell.dialects.parsing import parse_module
from stepwell.driver.registry import registry
from stepwell.frontend.errors import TraceError
from stepwell.frontend.jit import jit
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.tensor import Tensor
from stepwell.testing.numpy_calls import functions, indexing, ufuncs, writing
from stepwell.testing.numpy_calls.bfloat16 import as_float32, as_given, in_bfloat16, is_bfloat16
from stepwell.testing.numpy_calls.oracle import ORACLE, RANDOM
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
    (writing.on_copy, 1),
    (writing.parted, 1),
    (writing.sized, 1),
    (writing.known_places, 1),
    (writing.into, 1),
    (writing.drawn, 1),
)
"""The kinds of calls, with their weights."""
BFLOAT16 = 0.08
"""The fraction of calls whose floats become bfloat16, if that defines the result."""


def call(seed: int) -> Call:
    """Return the call of a seed."""
    random = Random(seed)
    kinds, weights = zip(*KINDS, strict=True)
    (kind,) = random.choices(kinds, weights)
    drawn = kind(Draw(random))
    return (in_bfloat16(drawn) if random.random() < BFLOAT16 else None) or drawn


@dataclass
class Outcome:
    """The outcome of a call: a value, or an exception."""

    value: Any = None
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return repr(self.value)


@dataclass
class Deviation:
    """A call whose result differs from NumPy's."""

    call: Call
    why: str
    want: Outcome
    got: Outcome

    def __str__(self) -> str:
        return f"{self.call}\n  {self.why}\n  NumPy: {self.want}\n  here:  {self.got}"


def run(call: Call, module: Any, arrays: dict[str, Any]) -> Outcome:
    """Return the outcome of the call for ``arrays``."""
    numbers = RANDOM if module is ORACLE else drawing
    space = {"m": module, "np": np, "R": numbers, "inf": inf, "nan": nan, **arrays}
    try:
        exec(compile(call.text, "<call>", "exec"), space)
    except Exception as error:
        return Outcome(error=error)
    return Outcome(space["r"])


def wanted(call: Call) -> Outcome:
    """Return the outcome by the oracle."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(call, ORACLE, {k: as_float32(_own(v)) for k, v in call.arrays.items()})


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def found(calls: Sequence[Call], how: How) -> list[Outcome]:
    """Return Stepwell's outcomes of calls that form one program."""
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

    arrays = [_own(a) for each in calls for a in each.arrays.values()]
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
    results: Any = interpreter.call(traced.entry, [np.asarray(as_float32(a)) for a in arrays])
    listed = results if isinstance(results, list | tuple) else [results]
    kinds = [kind.name for kind, _ in traced.results]
    return [
        np.asarray(found).astype("bfloat16") if kind == "bf16" else found
        for found, kind in zip(listed, kinds, strict=True)
    ]


def check(calls: Sequence[Call], how: How) -> list[Deviation]:
    """Return the calls whose results differ from NumPy's."""
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
    """Return how a result differs from NumPy's; "" if it does not."""
    if want.error is not None:
        if got.error is None:
            return "raises nothing"
        if isinstance(got.error, TraceError) or "r = y" in call.text:
            return ""  # unsupported, or another one of several errors
        kind = next(k for k in type(want.error).__mro__ if _is_public(k))
        return "" if isinstance(got.error, kind) else "raises another exception"
    if got.error is not None:
        return "refused" if isinstance(got.error, TraceError) else "raises"
    wants, tree = flatten(want.value)
    gots, other = flatten(got.value)
    if tree != other:
        return "another structure"
    narrow = any(map(is_bfloat16, call.arrays.values()))
    for w, g in zip(wants, gots, strict=True):
        w = as_given(w, g) if narrow else w
        if why := _differs(call, w, g):
            return why
    return ""


def _is_public(kind: type) -> bool:
    return kind is np.exceptions.AxisError or kind.__module__ == "builtins"


def _leaves_range(call: Call, want: Any) -> bool:
    """Whether floats out of an integer's range are converted, which depends on the machine."""
    if np.asarray(want).dtype.kind not in "iu":
        return False
    if call.name in (
        "reciprocal",
        "mean",
        ".mean",
        "round",
        ".round",
        "around",
        "logspace",
        "mean(out=)",
    ):
        return True
    arrays = [np.asarray(a) for a in call.arrays.values()]
    if call.name.endswith(".at") and any(a.dtype.kind == "f" or a.dtype == "u8" for a in arrays):
        return True  # uint64 combined with signed integers gives floats
    return any(a.dtype.kind in "fV" and not _fits(a) for a in arrays) or any(
        word in call.text for word in ("inf", "nan", "1e30", "-1.5", "-3.0")
    )


def _fits(array: Any) -> bool:
    known = np.asarray(as_float32(array))
    return bool(np.isfinite(known).all() and (known >= 0).all() and (known < 100).all())


def _differs(call: Call, want: Any, got: Any) -> str:
    if isinstance(want, np.dtype | type) or isinstance(got, np.dtype | type):
        return "" if want == got else "another dtype"
    a, b = np.asarray(want), np.asarray(got)
    narrow = is_bfloat16(b)
    if narrow:
        b = b.astype(np.float32)
    elif a.dtype == b.dtype == np.float32 and any(map(is_bfloat16, call.arrays.values())):
        return "float32, not bfloat16"
    if a.dtype != b.dtype:
        return f"dtype {b.dtype}, not {a.dtype}"
    if a.shape != b.shape:
        return f"shape {b.shape}, not {a.shape}"
    if a.dtype.kind != "f":
        return "" if np.array_equal(a, b) or _leaves_range(call, want) else "other numbers"
    return _floats_differ(call, a, b, 2.0**-7 if narrow else float(np.finfo(a.dtype).eps))


def _floats_differ(call: Call, a: Any, b: Any, eps: float) -> str:
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        overflown = call.rounding == "sums" and np.isinf(a).any() and a.dtype == np.float16
        if not overflown or np.isnan(b[~np.isnan(a)]).any():
            return "NaN elsewhere"
    if not np.array_equal(np.isinf(a), np.isinf(b)) and call.rounding != "sums":
        return "infinities elsewhere"
    same = (a == b) | np.isnan(a)
    with np.errstate(all="ignore"):
        if call.rounding == "sums":
            scale = _scale(call, a)
            given = [v.dtype for v in map(np.asarray, call.arrays.values()) if v.dtype.kind == "f"]
            eps = max([eps, *(float(np.finfo(kind).eps) for kind in given)])
            near = np.abs(a.astype("f8") - b.astype("f8")) <= eps * scale
            most = float(np.finfo(a.dtype).max)
            same |= near | (np.isinf(a) != np.isinf(b)) & (scale > most / 64)
        elif eps == 2.0**-7:  # bfloat16: an operand may have been rounded before
            same |= np.abs(a - b) <= 2 * eps * np.abs(a)
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
    """Return a bound on intermediate magnitudes, times the number of terms."""
    most, count = 1.0, 1
    for array in map(np.asarray, call.arrays.values()):
        known = np.abs(array.astype("f8"))
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
