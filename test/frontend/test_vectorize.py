"""`numpy.vectorize` in traced functions, compared with NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import stepwell as sw

X = np.array([[0.5, -1.5, 2.0], [-0.25, 3.0, -7.0]])
WEIGHTS = np.array([1.0, 2.0, 3.0])


@np.vectorize
def collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def escape(c: float, d: float) -> int:
    x = y = 0.0
    for step in range(20):
        if x * x + y * y > 4:
            return step
        x, y = x * x - y * y + c, 2 * x * y + d
    return 20


def line(p: Any, a: float) -> float:
    return p[0] + p[1] * a


lean = np.vectorize(lambda a: a + 1 if a > 0 else a - 1)
CASES = {
    "branches": lambda x: lean(x),
    "a loop until the element is done": lambda x: collatz(np.abs(x.astype(int)) + 5),
    "a return in a loop": lambda x: np.vectorize(escape)(x[0][None, :], x[:, 1:2]),
    "otypes": lambda x: np.vectorize(lambda a: a > 0, otypes=[float])(x),
    "several results": lambda x: np.vectorize(lambda a: (a * 2, a > 0), otypes="f?")(x),
    "several results without otypes": lambda x: np.vectorize(lambda a: (a * 2, int(a)))(x),
    "a function of Python's": lambda x: np.vectorize(math.sqrt)(np.abs(x)),
    "an argument that stays whole": lambda x: np.vectorize(line, excluded=[0])([1.0, 2.0], x),
    "one by name": lambda x: np.vectorize(line, excluded=["p"])(a=x, p=[1.0, 2.0]),
    "nothing else": lambda x: np.vectorize(line, excluded=[0, 1])([1.0, 2.0], x),
    "an array from outside": lambda x: np.vectorize(lambda a, b: a + b)(WEIGHTS, x),
    "a list": lambda x: np.vectorize(lambda a: a + 1)([x[0, 0], x[0, 1]]),
    "no axes": lambda x: np.vectorize(lambda a: a + 1)(x[0, 0]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_vectorized_function_gives_the_results_of_numpy(case: str) -> None:
    found, wanted = sw.jit(CASES[case])(X), CASES[case](X)
    several = isinstance(wanted, tuple)
    for one, other in zip(*((found, wanted) if several else ([found], [wanted])), strict=True):
        assert one.dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "i1", "u2", "?"])
def test_it_computes_with_python_numbers_and_keeps_the_dtype_of_numpys(dtype: str) -> None:
    x = np.array([1, 2, 1]).astype(dtype)
    found, wanted = sw.jit(lambda x: lean(x))(x), lean(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_an_empty_argument_needs_otypes() -> None:
    empty = np.zeros((0, 3))
    with pytest.raises(ValueError, match="cannot call `vectorize` on size 0 inputs unless"):
        sw.jit(lambda x: lean(x))(empty)
    assert sw.jit(lambda x: np.vectorize(lambda a: a, otypes="d")(x))(empty).shape == (0, 3)


def test_it_has_gradients_and_batches() -> None:
    slope = sw.grad(lambda x: np.vectorize(lambda a: a**2 if a > 0 else -a)(x).sum())(X)
    np.testing.assert_allclose(slope, np.where(X > 0, 2 * X, -1))
    np.testing.assert_array_equal(sw.vmap(lambda x: lean(x))(X), lean(X))
