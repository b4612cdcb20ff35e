"""The programs of bench/programs, small: what NumPy makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from measuring import Batch, Outcome
from programs import NAMES, Expected, fresh, outcome, program
from programs_bench import Line, chosen, page

import stepwell as sw


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_numpy_makes_of_it(name: str) -> None:
    asked = program(name)
    arguments = asked.inputs(True)
    given = fresh(arguments)
    jitted = sw.jit(asked.function, static_argnames=asked.static)
    expected = asked.expected(tiny=True)
    for _ in range(2):
        given = fresh(arguments)
        values = outcome(given, expected, jitted(*given))
        assert asked.mistake(values, expected) == ""


def test_mistakes_are_found() -> None:
    asked = program("gemm")
    expected = asked.expected(tiny=True)
    (right,) = expected.values
    assert expected.changed == (2,)
    assert asked.mistake([right], expected) == ""
    assert (
        asked.mistake([right * (1 + 1e-6)], expected) == "result 0: off by 1.0e-06 of the largest"
    )
    assert asked.mistake([right.astype("f4")], expected) == (
        "result 0: dtype float32 instead of float64"
    )
    assert asked.mistake([right[1:]], expected).startswith("result 0: shape")
    assert asked.mistake([], expected) == "0 results instead of 1"
    holes = Expected((), (np.where(right > right.mean(), right, np.inf),))
    assert asked.mistake([right], holes) == "result 0: NaN or infinity elsewhere"


def measured(peer: str, seconds: float) -> Outcome:
    return Outcome(peer, (Batch(seconds, seconds, 0.0, 0.0),), compile=0.5)


def test_the_page_says_what_the_goals_are_about() -> None:
    fast = Line("fast", {p: measured(p, s) for p, s in (("stepwell", 1e-3), ("numpy", 4e-3))})
    slow = Line("slow", {p: measured(p, s) for p, s in (("stepwell", 2e-3), ("numpy", 1e-3))})
    text = page([fast, slow], ["numpy"], "About.")
    assert "* Stepwell / numpy: 0.71 (geometric mean of 2; goal 0.12)" in text
    assert "* right: 2 of 2" in text
    assert "* slower than NumPy: 1: slow" in text
    assert "| fast | 1.00 ms | 0.50 s | 4.00 ms | 0.25 |" in text


def test_programs_are_chosen_by_pattern() -> None:
    assert chosen("jacobi*,lu") == ["jacobi_1d", "jacobi_2d", "lu"]
