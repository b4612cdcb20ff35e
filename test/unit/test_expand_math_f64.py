"""The polynomials of expand-math on f64 against long double, in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reading import parsed

import stepwell as sw
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.transforms.loops.expand_math import ExpandMath
from stepwell.transforms.loops.expand_math.lanes import expansion_f64

assert upstream

RANDOM = np.random.default_rng(4)
POSITIVE = (
    *(0.0, 1.0, math.inf, math.nan, 5e-324, 2.225073858507201e-308, 2.2250738585072014e-308),
    *(
        1.7976931348623157e308,
        0.5,
        2.0,
        1e-20,
        709.78,
        709.79,
        745.13,
        745.14,
        1023.9999999,
        1024.0,
    ),
    *(1022.0, 1074.0, 1075.0, 0.625, 1.5707963267948966, 3.141592653589793, 2.5, 3.0, 2.0**52),
)
ENDS = np.array([*POSITIVE, *(-x for x in POSITIVE)])
EXACT = np.finfo(np.longdouble).nmant > 60


def _erf(x: Any) -> Any:
    """Sum a series whose terms have one sign."""
    x = np.clip(x, -7, 7)
    term = total = x
    for n in range(1, 300):
        term = term * (2 * x * x) / (2 * n + 1)
        total = total + term
    return 2 / np.sqrt(np.longdouble("3.14159265358979323846264")) * np.exp(-x * x) * total


UNARY: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "exp": (np.exp, -750, 712),
    "exp2": (np.exp2, -1080, 1030),
    "expm1": (np.expm1, -40, 712),
    "log": (np.log, 0, 1e3),
    "log2": (np.log2, 0, 1e3),
    "log10": (np.log10, 0, 1e3),
    "log1p": (np.log1p, -1, 1e3),
    "tanh": (np.tanh, -22, 22),
    "erf": (_erf, -6.5, 6.5),
    "sin": (np.sin, -1000, 1000),
    "cos": (np.cos, -1000, 1000),
    "tan": (np.tan, -1000, 1000),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -50, 50),
    "sinh": (np.sinh, -711, 711),
    "cosh": (np.cosh, -711, 711),
    "asinh": (np.arcsinh, -1e3, 1e3),
    "acosh": (np.arccosh, 1, 1e3),
    "atanh": (np.arctanh, -1, 1),
    "cbrt": (np.cbrt, -1e3, 1e3),
}
PERIODIC = ("sin", "cos", "tan")
BINARY: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "pow": ("powf", np.power),
    "atan2": ("atan2", np.arctan2),
}
"""By its name in `nd`: that in the math dialect, and the exact function."""


def run(name: str, x: Any) -> Any:
    """Evaluate math.NAME as expand-math writes it, all samples being lanes of one vector."""
    type = f"vector<{len(x)}xf64>" if len(x) > 1 else "f64"
    text = f"""func.func @f(%x: {type}) -> {type} {{
      %y = math.{name} %x : {type}
      func.return %y : {type} }}"""
    context, module = parsed(text)
    ExpandMath().apply(context, module)
    module.verify()
    assert "func.call" in str(module)
    return np.atleast_1d(Interpreter(module).call("f", [x if len(x) > 1 else x[0]])[0])


def compiled_of_two(name: str, x: Any, y: Any) -> Any:
    """Evaluate nd.NAME of two arrays as a compiled program does."""
    text = f"""func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {{
      %z = nd.{name} %x, %y : tensor<?xf64>
      func.return %z : tensor<?xf64> }}"""
    return sw.compile(text)(x, y)


def compiled(name: str, x: Any) -> Any:
    """Evaluate nd.NAME as a compiled program does."""
    text = f"""func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {{
      %y = nd.{name} %x : tensor<?xf64>
      func.return %y : tensor<?xf64> }}"""
    return sw.compile(text)(x)


def error(got: Any, want: Any) -> Any:
    """Return the distance from the exact result, in steps of f64 at that result."""
    with np.errstate(all="ignore"):
        nearest = want.astype(np.float64)
        same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
        steps = np.abs(got.astype(np.longdouble) - want) / np.spacing(np.abs(nearest))
        plain = np.isfinite(got) & np.isfinite(nearest)
        return np.where(plain, steps.astype(np.float64), np.where(same, 0.0, np.inf))


def samples(low: float, high: float) -> Any:
    """Return samples even over a range, and even over all magnitudes below it."""
    top = max(abs(low), abs(high))
    small = np.exp(RANDOM.uniform(-740, math.log(top), 3000))
    small = np.concatenate([small, np.exp(RANDOM.uniform(-5, math.log(top), 3000))])
    signs = RANDOM.choice([-1.0, 1.0], 6000) if low < 0 else 1.0
    return np.concatenate([RANDOM.uniform(low, high, 9000), np.maximum(small * signs, low)])


def ends(name: str) -> Any:
    """Return special values; beyond 2**30 the C library stands in for what has periods."""
    return ENDS[np.abs(ENDS) < 2.0**30] if name in PERIODIC else ENDS


def test_every_expansion_is_measured() -> None:
    names = [*UNARY, *(name for name, _ in BINARY.values())]
    assert {op.name for op in expansion_f64} == {*(f"math.{n}" for n in names), "arith.remf"}


@pytest.mark.sampled(2)
@pytest.mark.skipif(not EXACT, reason="long double is no longer than double here")
@pytest.mark.parametrize("name", UNARY)
def test_within_two_units(name: str) -> None:
    exact, low, high = UNARY[name]
    x = samples(low, high)
    if name in ("log", "log2", "log10"):
        x = np.concatenate(
            [x, np.exp(RANDOM.uniform(-740, 709, 4000)), RANDOM.uniform(0.5, 2, 4000)]
        )
    if name == "acosh":
        x = np.concatenate([x[x >= 1], 1 + np.exp(RANDOM.uniform(-36, 1, 4000))])
    if name in ("asinh", "cbrt", "atan"):
        x = np.concatenate([x, np.exp(RANDOM.uniform(-740, 709, 4000))])
    if name in PERIODIC:
        turns = np.arange(1, 4000) * (math.pi / 2)
        x = np.concatenate([x, turns, RANDOM.uniform(-1e9, 1e9, 4000)])
    for values in (x, ends(name)):
        with np.errstate(all="ignore"):
            want = exact(values.astype(np.longdouble))
        got = compiled(name, values)
        steps = error(got, want)
        worst = int(np.argmax(steps))
        assert steps[worst] <= 2.0, (values[worst], got[worst], want[worst], steps[worst])
        zeros = (got == 0) & (values == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", UNARY)
def test_the_interpreter_scalars_and_lanes_agree(name: str) -> None:
    x = np.concatenate([RANDOM.uniform(0.1, 5, 29), ends(name)])
    want = compiled(name, x)
    np.testing.assert_array_equal(run(name, x), want)
    alone = [run(name, x[i : i + 1])[0] for i in range(4)]
    np.testing.assert_array_equal(alone, want[:4])


def pairs(name: str) -> list[tuple[Any, Any]]:
    """Return samples of both operands: even, over all magnitudes, near 1, special ones."""
    n = 6000
    x, y = RANDOM.uniform(0, 30, n), RANDOM.uniform(-30, 30, n)
    low, high = np.exp(RANDOM.uniform(-740, 709, n)), np.exp(RANDOM.uniform(-700, 700, n))
    found = [(x, y), (low, high * RANDOM.choice([-1.0, 1.0], n)), (y, x), (y, -x)]
    if name == "pow":
        near = 1 + RANDOM.uniform(-1e-3, 1e-3, n)
        with np.errstate(all="ignore"):
            reach = RANDOM.uniform(-1075, 1025, n)
            found += [(near, reach / np.log2(near)), (low, reach / np.log2(low))]
            found += [(x, reach / np.log2(x)), (-x, np.round(y)), (-low, np.round(y))]
            root = np.exp2(RANDOM.uniform(-0.6, 0.6, n))
            found += [(root, reach / np.log2(root))]
    whole = np.array([1.0, 2.0, 3.0, 2.0**51 + 1.5, 2.0**52 + 1, 2.0**53 - 1, 2.0**53, 2.0**60])
    some = np.concatenate([ENDS, whole, -whole])
    return [*found, (np.repeat(some, len(some)), np.tile(some, len(some)))]


@pytest.mark.skipif(not EXACT, reason="long double is no longer than double here")
@pytest.mark.parametrize("name", BINARY)
def test_of_two_within_two_units(name: str) -> None:
    _, exact = BINARY[name]
    for x, y in pairs(name):
        with np.errstate(all="ignore"):
            want = exact(x.astype(np.longdouble), y.astype(np.longdouble))
        got = compiled_of_two(name, x, y)
        steps = error(got, want)
        worst = int(np.argmax(steps))
        assert steps[worst] <= 2.0, (x[worst], y[worst], got[worst], want[worst], steps[worst])
        zeros = (got == 0) & (want == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


def test_periods_of_what_is_huge_or_no_number() -> None:
    x = np.array([1e300, 2.0**31, math.inf, -math.inf, math.nan, 0.5])
    with np.errstate(all="ignore"):
        for name, exact in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan)):
            assert np.all(error(compiled(name, x), exact(x.astype(np.longdouble))) <= 2)


@pytest.mark.skipif(not EXACT, reason="long double is no longer than double here")
@pytest.mark.parametrize("power", [-2.0, -1.5, -1.0, -0.5, 1.5, 3.0, 4.0])
def test_known_powers(power: float) -> None:
    edge = np.minimum(RANDOM.uniform(0.95, 1.05, 2000) * 1023 / abs(power), 1023)
    near = np.exp2(np.concatenate([edge, -edge, RANDOM.uniform(-1074, 1023, 4000)]))
    x = np.concatenate([ENDS, samples(-9, 9), near])
    type = f"vector<{len(x)}xf64>"
    text = f"""func.func @f(%x: {type}) -> {type} {{
      %p = arith.constant dense<{power}> : {type}
      %y = math.powf %x, %p : {type}
      func.return %y : {type} }}"""
    context, module = parsed(text)
    ExpandMath().apply(context, module)
    assert "@powf_" in str(module) and "math.fma" not in str(module)
    with np.errstate(all="ignore"):
        got = Interpreter(module).call("f", [x])[0]
        want = np.power(x.astype(np.longdouble), np.longdouble(power))
    assert error(got, want).max() <= 2
