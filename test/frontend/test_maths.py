"""Python's `math` on traced numbers: the same numbers, types and exceptions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.maths import MATHS

TWO = {math.atan2, math.hypot, math.fmod, math.copysign, math.gcd, math.lcm, math.isclose}
ONE = [f for f in MATHS if f not in TWO]
GIVEN = (0.5, 0.99, 0.0, -0.0, -0.5, 1.0, 1.5, -7.25, 100.0, 800.0, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("function", ONE, ids=lambda f: f.__name__)
def test_it_is_pythons(function: Any) -> None:
    jitted = sw.jit(lambda x: function(x))
    for x in GIVEN:
        try:
            right = function(x)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error)) as caught:
                jitted(x)
            assert type(caught.value) is type(error), x
        else:
            value = jitted(x)
            assert type(value.item()) is type(right), x
            np.testing.assert_allclose(value, right, rtol=1e-15, atol=1e-15, err_msg=f"{x}")


def test_of_two() -> None:
    @sw.jit
    def both(x: Any, y: Any) -> Any:
        return (
            math.atan2(x, y),
            math.hypot(x, y),
            math.fmod(x, y),
            math.log(y, 2),
            math.copysign(x, y),
        )

    right = [f(5.5, 2.0) for f in (math.atan2, math.hypot, math.fmod)]
    found = both(5.5, 2.0)
    np.testing.assert_allclose(found, [*right, 1.0, 5.5], rtol=1e-15)
    with pytest.raises(ValueError, match="math domain error"):
        both(5.5, 0.0)


def test_of_integers_and_of_what_is_near() -> None:
    def several(n: Any, m: Any, x: Any) -> Any:
        near = math.isclose(x, 1.0), math.isclose(x, 1.1, abs_tol=0.2), math.isclose(x, x * 2)
        return math.gcd(n, m), math.lcm(n, 4, m), math.gcd(-n), math.prod([n, x]), near

    right = several(12, 18, 1.0 + 1e-12)
    found = sw.jit(several)(12, 18, 1.0 + 1e-12)
    assert [v.item() for v in (*found[:4], *found[4])] == [*right[:4], *right[4]]
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        sw.jit(several)(1.5, 18, 1.0)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: math.fsum(x), r"math.fsum of a traced value .*; use sum or numpy.sum"),
        (lambda x: math.gamma(x[0]), r"math.gamma of a traced value is not known to Stepwell$"),
    ],
)
def test_others_are_refused_by_name(function: Any, message: str) -> None:
    with pytest.raises(sw.TraceError, match=message):
        sw.jit(function).trace(np.ones(2))


def test_in_a_loop_of_the_run() -> None:
    @sw.jit
    def pendulum(theta: Any, steps: Any) -> Any:
        omega = 0.0
        for _ in range(steps):
            omega -= 0.1 * math.sin(theta)
            theta += 0.1 * omega
        return theta

    assert float(pendulum(1.0, 50)) == pytest.approx(pendulum.__wrapped__(1.0, 50), rel=1e-13)


def test_arrays_are_no_numbers() -> None:
    with pytest.raises(TypeError, match="0-dimensional"):
        sw.jit(lambda x: math.sin(x))(np.ones(2))
