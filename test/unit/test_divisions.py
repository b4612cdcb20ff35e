"""Divisions of integers by constants, which vectors do by multiplying."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reading import parsed

import stepwell as sw
import stepwell.numpy as snp
from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter
from stepwell.transforms.loops.expand_math import ExpandMath
from stepwell.transforms.loops.expand_math.division import quotient

assert upstream

RANDOM = np.random.default_rng(7)
DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OPS = {"floordivsi": True, "divsi": True, "remsi": True, "divui": False, "remui": False}


def samples(dtype: str, divisor: int) -> Any:
    """Return ends, multiples of the divisor and their neighbours, and random numbers."""
    info = np.iinfo(dtype)
    times = [int(info.max) // divisor - k for k in range(3)]
    near = [t * divisor + d for t in times for d in (-1, 0, 1)]
    near += [-n for n in near] + [int(info.min) + k for k in range(3)] + list(range(-9, 9))
    near = [n for n in near if info.min <= n <= info.max]
    rest = RANDOM.integers(info.min, info.max, 203, dtype=dtype, endpoint=True)
    return np.concatenate([np.array(near, dtype), rest])


def divisors(dtype: str) -> list[int]:
    most = int(np.iinfo(dtype).max)
    found = [*range(1, 26), 100, 127, 641, 1000, 32767, 65535, 10**9, 2**31 - 1, 2**31 + 5]
    found += [most, most - 1, most // 2, most // 2 + 1, most // 2 + 2, most // 3, 10**18]
    return [d for d in dict.fromkeys(found) if 0 < d <= most]


def dividing(divisor: int) -> Callable[[Any], Any]:
    def all_of(x: Any) -> Any:
        by = snp.asarray(divisor, dtype=x.dtype)
        return snp.floor_divide(x, by), snp.remainder(x, by), snp.fmod(x, by)

    return all_of


@pytest.mark.parametrize("width", [8, 16])
def test_every_quotient(width: int) -> None:
    for most in (2 ** (width - 1), 2**width - 1):
        x = np.unique(np.append(np.arange(0, most + 1, 1 if width == 8 else 7), most))
        for divisor in range(3, 2**width, 1 if width == 8 else 97):
            if divisor & (divisor - 1) == 0:
                continue
            how = quotient(divisor, most, width)
            factor = how.factor + (how.carried << width)
            shift = width + how.shift + how.carried
            assert np.array_equal(((x >> how.before) * factor) >> shift, x // divisor), divisor


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_by_constants(dtype: str) -> None:
    some = divisors(dtype)
    for divisor in [some[k] for k in RANDOM.permutation(len(some))[:4]]:
        x = samples(dtype, divisor)
        got = sw.jit(dividing(divisor))(x)
        by = np.array(divisor, dtype)
        for have, want in zip(got, (x // by, x % by, np.fmod(x, by)), strict=True):
            np.testing.assert_array_equal(have, want, str(divisor))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("name", OPS)
def test_the_formulas(name: str, width: int) -> None:
    dtype = f"{'' if OPS[name] else 'u'}int{width}"
    some = divisors(dtype)[1:]
    for divisor in [2, 7, *(some[k] for k in RANDOM.permutation(len(some))[:10])]:
        x = samples(dtype, divisor)
        x = x[: len(x) // 16 * 16]
        signed = divisor - (divisor >> (width - 1) << width)
        type = f"vector<{len(x)}xi{width}>"
        context, module = parsed(f"""func.func @f(%x: {type}) -> {type} {{
          %d = arith.constant dense<{signed}> : {type}
          %y = arith.{name} %x, %d : {type}
          func.return %y : {type} }}""")
        ExpandMath().apply(context, module)
        module.verify()
        assert f"arith.{name} " not in str(module)
        with np.errstate(over="ignore"):
            (got,) = Interpreter(module).call("f", [x.view(f"int{width}")])
        wide = [int(v) for v in x]
        if name == "floordivsi":
            want = [v // divisor for v in wide]
        else:
            size = [abs(v) // divisor if "div" in name else abs(v) % divisor for v in wide]
            want = [s if v >= 0 else -s for s, v in zip(size, wide, strict=True)]
        np.testing.assert_array_equal(np.asarray(got).view(dtype), np.array(want, dtype))


def test_what_is_left_alone() -> None:
    text = """func.func @f(%x: vector<16xi32>, %s: i32) -> (vector<16xi32>, i32, vector<16xi32>) {
      %c = arith.constant dense<-7> : vector<16xi32>
      %a = arith.divsi %x, %c : vector<16xi32>
      %d = arith.constant 7 : i32
      %b = arith.divsi %s, %d : i32
      %e = arith.remsi %x, %x : vector<16xi32>
      func.return %a, %b, %e : vector<16xi32>, i32, vector<16xi32> }"""
    context, module = parsed(text)
    before = str(module)
    ExpandMath().apply(context, module)
    assert str(module) == before
