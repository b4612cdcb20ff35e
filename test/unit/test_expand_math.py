"""The polynomials of expand-math against float64, in units in the last place."""

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
from stepwell.transforms.loops.expand_math.lanes import expansion

assert upstream

RANDOM = np.random.default_rng(3)
POSITIVE = (
    *(0.0, 1.0, math.inf, math.nan, 1e-45, 1.1754942e-38, 1.1754944e-38, 3.4028235e38, 0.5, 2.0),
    *(1e-20, 88.72, 88.73, 87.3, 103.97, 104.0, 127.99999, 128.0, 126.0, 149.0, 150.0, 16777216.0),
    *(0.625, 0.9, 4.0, 1.5707964, 3.1415927, 99999.0, 100001.0, 2.5, 3.0, 8388607.5),
)
ENDS = np.array([*POSITIVE, *(-x for x in POSITIVE)], np.float32)


def run(name: str, *operands: Any, vector_bits: int = 512) -> Any:
    """Evaluate math.NAME as expand-math writes it, all samples being lanes of one vector."""
    lanes = len(operands[0])
    type = f"vector<{lanes}xf32>" if lanes > 1 else "f32"
    names = [f"%x{i}" for i in range(len(operands))]
    arguments = ", ".join(f"{n}: {type}" for n in names)
    text = f"""func.func @f({arguments}) -> {type} {{
      %y = math.{name} {", ".join(names)} : {type}
      func.return %y : {type} }}"""
    context, module = parsed(text)
    ExpandMath(vector_bits=vector_bits).apply(context, module)
    module.verify()
    assert "func.call" in str(module)
    values = operands if lanes > 1 else [x[0] for x in operands]
    return np.atleast_1d(Interpreter(module).call("f", values)[0])


def error(got: Any, want: Any) -> Any:
    """Return the distance from the exact result, in steps of f32 at that result."""
    with np.errstate(all="ignore"):
        nearest = want.astype(np.float32)
        same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
        step = np.spacing(np.abs(nearest)).astype(np.float64)
        steps = np.abs(got.astype(np.float64) - want) / step
    plain = np.isfinite(got) & np.isfinite(nearest)
    return np.where(plain, steps, np.where(same, 0.0, np.inf))


def _scales(low: float, high: float) -> Any:
    """Return samples even over a range, and even over all magnitudes below it."""
    top = max(abs(low), abs(high))
    small = np.exp(RANDOM.uniform(math.log(1e-40), math.log(top), 3000))
    signs = RANDOM.choice([-1.0, 1.0], 3000) if low < 0 else 1.0
    return np.concatenate([RANDOM.uniform(low, high, 9000), small * signs]).astype(np.float32)


def _erf(x: Any) -> Any:
    return np.array([math.erf(v) for v in x])


def _erfc(x: Any) -> Any:
    return np.array([math.erfc(v) for v in x])


UNARY: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "exp": (np.exp, -105, 90),
    "exp2": (np.exp2, -152, 129),
    "expm1": (np.expm1, -20, 90),
    "log": (np.log, 0, 4),
    "log2": (np.log2, 0, 4),
    "log10": (np.log10, 0, 4),
    "log1p": (np.log1p, -1, 4),
    "tanh": (np.tanh, -10, 10),
    "sinh": (np.sinh, -90, 90),
    "cosh": (np.cosh, -90, 90),
    "asinh": (np.arcsinh, -100, 100),
    "acosh": (np.arccosh, 1, 4),
    "atanh": (np.arctanh, -1, 1),
    "erf": (_erf, -4.5, 4.5),
    "erfc": (_erfc, -4.5, 10.2),
    "sin": (np.sin, -99999, 99999),
    "cos": (np.cos, -99999, 99999),
    "tan": (np.tan, -99999, 99999),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -10, 10),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 100),
    "cbrt": (np.cbrt, -100, 100),
}


def test_every_expansion_is_measured() -> None:
    names = {f"math.{n}" for n in (*UNARY, "powf", "atan2")}
    assert {op.name for op in expansion} == {*names, "arith.remf"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "vector_bits"),
    [(n, 512) for n in UNARY] + [(n, 256) for n in ("exp", "exp2", "tanh", "erf", "sinh")],
)
def test_within_two_units(name: str, vector_bits: int) -> None:
    exact, low, high = UNARY[name]
    samples = _scales(low, high)
    if name == "log":
        samples = np.concatenate([samples, np.exp(RANDOM.uniform(-103, 88, 4000))])
    if name == "acosh":
        samples = 1 + np.exp(RANDOM.uniform(-16, 88, 9000))
    parts = [samples.astype(np.float32)]
    # the C library, which stands in beyond 1e5, is not ours to measure so closely
    parts += [ENDS[np.abs(ENDS) < 1e5], ENDS] if name in ("sin", "cos", "tan") else [ENDS]
    for i, x in enumerate(parts):
        with np.errstate(all="ignore"):
            want = exact(x.astype(np.float64))
        got = run(name, x, vector_bits=vector_bits)
        steps = error(got, want)
        worst = int(np.argmax(steps))
        limit = 2.0 if i < 2 else 4.0
        assert steps[worst] <= limit, (x[worst], got[worst], want[worst])
        zeros = (got == 0) & (x == 0)
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("machine", ["", "vector_bits=512", "vector_bits=256"])
@pytest.mark.parametrize("name", ["exp", "exp2", "tanh", "erf"])
def test_compiled(name: str, machine: str) -> None:
    """Programs may use instructions that the formulas only stand for; tails are scalars."""
    exact, low, high = UNARY[name]
    bits = RANDOM.integers(0, 1 << 32, 50007, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([_scales(low, high), bits.view(np.float32), ENDS])
    text = f"""func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
      %y = nd.{name} %x : tensor<?xf32>
      func.return %y : tensor<?xf32> }}"""
    program = sw.compile(text, machine=machine)
    got = program(x)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64))
    steps = error(got, want)
    worst = int(np.argmax(steps))
    assert steps[worst] <= 2.0, (x[worst], got[worst], want[worst])
    for size in (1, 3, 8, 13, 37):
        np.testing.assert_array_equal(program(x[-size:]), got[-size:])


def test_power() -> None:
    grid = [a.ravel() for a in np.meshgrid(ENDS, ENDS)]
    sizes = np.exp(RANDOM.uniform(-100, 88, 12000)).astype(np.float32)
    powers = RANDOM.uniform(-1.2, 1.2, 12000).astype(np.float32)
    x, y = np.concatenate([grid[0], sizes]), np.concatenate([grid[1], powers])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    got = run("powf", x, y)
    steps = error(got, want)
    worst = int(np.argmax(steps))
    assert steps[worst] <= 2.0, (x[worst], y[worst], got[worst], want[worst])
    signed = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(want[signed]))


def test_angle() -> None:
    grid = [a.ravel() for a in np.meshgrid(ENDS, ENDS)]
    y, x = (np.concatenate([g, RANDOM.standard_normal(9000).astype(np.float32)]) for g in grid)
    with np.errstate(all="ignore"):
        want = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    got = run("atan2", y, x)
    steps = error(got, want)
    worst = int(np.argmax(steps))
    assert steps[worst] <= 2.0, (y[worst], x[worst], got[worst], want[worst])
    signed = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(want[signed]))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin"])
def test_scalars_equal_lanes(name: str) -> None:
    x = RANDOM.uniform(0.1, 5, 4).astype(np.float32)
    for bits in (512, 256):
        lanes = run(name, x, vector_bits=bits)
        alone = [run(name, x[i : i + 1], vector_bits=bits)[0] for i in range(4)]
        assert alone == list(lanes)


def test_vectors_of_any_length_look_up_the_same_powers() -> None:
    """Eight lanes take the powers from a register too; no bit differs from those of sixteen."""

    def compiled(size: int) -> sw.Program:
        kind = f"tensor<{size}xf32>"
        text = f"""\
func.func @main(%x: {kind}) -> {kind} {{
  %e = nd.exp %x : {kind}
  func.return %e : {kind}
}}
"""
        return sw.compile(text, machine="vector_bits=512,vector_registers=32,fma=1,threads=1")

    short, long = compiled(24), compiled(48)
    assert "__builtin_shuffle(x, __builtin_shufflevector(y, y, 0, 1, 2," in short.source
    x = np.linspace(-110, 95, 48, dtype=np.float32)
    x[:4] = np.nan, np.inf, -np.inf, -0.0
    found = np.concatenate([short(x[:24]), short(x[24:])])
    np.testing.assert_array_equal(found.view(np.int32), long(x).view(np.int32))
