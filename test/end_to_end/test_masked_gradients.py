"""A branch that was not chosen gives a gradient of exactly 0, whatever its derivative is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.differences import Derived
from stepwell.testing.op_rows.run import parsed

X = np.array([-2.0, -0.0, 0.0, 1.5, 1.0, 0.25])
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sqrt": (
        lambda x: np.where(x > 0, np.sqrt(x), 0.0),
        lambda x: 0.5 / np.sqrt(x) if x > 0 else 0,
        lambda x: -0.25 * x**-1.5 if x > 0 else 0,
    ),
    "log": (
        lambda x: np.where(x > 0, np.log(x), 0.0),
        lambda x: 1 / x if x > 0 else 0,
        lambda x: -1 / x**2 if x > 0 else 0,
    ),
    "sin(x)/x": (
        lambda x: np.where(x == 0, 1.0, np.sin(x) / x),
        lambda x: (x * np.cos(x) - np.sin(x)) / x**2 if x else 0,
        lambda x: ((2 - x**2) * np.sin(x) - 2 * x * np.cos(x)) / x**3 if x else 0,
    ),
    "div": (
        lambda x: np.where(x != 0, 3.0 / x, x),
        lambda x: -3 / x**2 if x else 1,
        lambda x: 6 / x**3 if x else 0,
    ),
    "pow": (
        lambda x: np.where(x > 0, np.power(x, 0.3), 0.0),
        lambda x: 0.3 * x**-0.7 if x > 0 else 0,
        lambda x: -0.21 * x**-1.7 if x > 0 else 0,
    ),
    "acos": (
        lambda x: np.where(abs(x) < 1, np.arccos(x), 0.0),
        lambda x: -1 / np.sqrt(1 - x**2) if abs(x) < 1 else 0,
        lambda x: -x * (1 - x**2) ** -1.5 if abs(x) < 1 else 0,
    ),
    "tan of log": (
        lambda x: np.where(x > 0, np.tan(np.log(x) * np.sqrt(x)), 2.0 * x),
        lambda x: None if x > 0 else 2,
        lambda x: None if x > 0 else 0,
    ),
    "chain": (
        lambda x: np.where(x > 0, np.where(x > 1, np.log(x - 1), 0.0) * np.sqrt(x), 0.0),
        lambda x: None if x > 1 else 0,
        lambda x: None if x > 1 else 0,
    ),
}


def derived(function: Callable[[Any], Any], x: Any) -> Derived:
    def loss(x: Any) -> Any:
        return function(x).sum()

    return Derived(parsed(str(sw.jit(loss).trace(x))), "loss")


@pytest.mark.parametrize("case", CASES)
def test_masked_branches_give_zero(case: str) -> None:
    function, first, second = CASES[case]
    made = derived(function, X)
    with np.errstate(all="ignore"):
        _, gradient = made.run([X, np.ones(())], "_vjp")
        again = Derived(made.module, "loss_vjp")
        seed = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        outs = again.run([X, np.ones(()), np.zeros(()), seed], "_vjp")
    assert np.isfinite(gradient).all()
    assert np.isfinite(outs[2]).all()
    for values, rule in ((gradient, first), (outs[2], second)):
        for x, got in zip(X, values, strict=True):
            if (want := rule(x)) is not None:
                assert got == want == 0 or np.isclose(got, want, rtol=1e-12), (case, x)


@pytest.mark.parametrize("rows", [np.zeros((2, 3)), np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]])])
def test_a_norm_that_is_masked(rows: Any) -> None:
    """A row of zeros has no direction: its norm, not chosen, has the gradient 0."""

    def norm(x: Any) -> Any:
        squares = (x * x).sum(axis=1)
        return np.where(squares > 0, np.sqrt(squares), 0.0)

    _, gradient = derived(norm, rows).run([rows, np.ones(())], "_vjp")
    assert np.allclose(gradient, rows / 5, atol=0)
