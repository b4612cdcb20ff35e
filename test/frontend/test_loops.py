"""Loops of plain functions: how they stand in the program, and what is read again after them."""

import ast
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.liveness import liveness

W = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0, -5.5, 3.5, 5.0, 8.0])


def _text(function: Any, *arguments: Any) -> str:
    return sw.jit(function).trace(*arguments).module.text


def test_no_iteration_stands_beside_a_loop() -> None:
    def table(w: Any) -> Any:
        t = np.zeros((13, 13))
        for i in range(1, 13):
            for j in range(1, 13):
                if w[i - 1] > w[j - 1]:
                    t[i, j] = t[i - 1, j - 1] + 1
                else:
                    t[i, j] = max(t[i - 1, j], t[i, j - 1])
        return t[12, 12]

    text = _text(table, W)
    assert text.count('"nd.while"') == 2
    assert text.count('"nd.if"') == 1


def test_rows_of_a_long_array_are_not_unrolled() -> None:
    def sums(x: Any) -> Any:
        out = []
        for k, row in enumerate(x):
            out.append(row.sum() * k)
        return np.array(out)

    x = np.arange(20_000.0).reshape(10_000, 2)
    assert _text(sums, x).count("\n") < 40
    np.testing.assert_allclose(sw.jit(sums)(x), sums(x))


def test_an_exception_comes_once_after_the_iterations_before_it() -> None:
    seen: list[int] = []

    def noted(k: int) -> int:
        seen.append(k)
        return k

    def f(w: Any) -> Any:
        table = dict.fromkeys(range(10), 2.0)
        s = 0.0
        for i in range(12):
            s += w[i] * table[noted(i)]
        return s

    with pytest.raises(KeyError) as caught:
        sw.jit(f).trace(W)
    assert seen == list(range(11))
    assert caught.value.args == (10,)
    assert caught.value.__context__ is None


def test_a_loop_that_is_too_long_to_be_unrolled_says_why() -> None:
    def f(w: Any) -> Any:
        seen = {}
        for i in range(10_000):
            w = w * 2 + np.sin(w)
            seen[i] = 1
        return w * len(seen)

    with pytest.raises(
        sw.TraceError, match=r"cannot be one loop .*: a dict is changed in a branch"
    ):
        sw.jit(f).trace(W)


def test_what_is_refused_goes_through_except() -> None:
    def f(w: Any) -> Any:
        try:
            return w[: int(w[0])]
        except Exception:
            return w

    def caught(w: Any, i: Any) -> Any:
        try:
            return w[i]
        except IndexError:
            return w[0]

    with pytest.raises(sw.TraceError, match="a result whose shape is not known"):
        sw.jit(f).trace(W)
    with pytest.raises(sw.TraceError, match="cannot catch the IndexError"):
        sw.jit(caught).trace(W, 3)


def _around(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what is live after the first loop of a function, and what its iterations read."""
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    found = liveness(node)
    loop = next(n for n in ast.walk(node) if isinstance(n, ast.For | ast.While))
    return found.after[id(loop)], found.entering[id(loop)]


@pytest.mark.parametrize(
    "source, after, entering",
    [
        ("def f(x):\n for i in x:\n  t = i\n  s = s + t\n return s", "s", "s"),
        ("def f(x):\n for i in x:\n  t = i\n return t, i", "t i", ""),
        ("def f(x):\n for i in x:\n  if i:\n   t = i\n return t", "t", "t"),
        ("def f(x):\n for i in x:\n  if i: break\n  t = i\n return t", "t", "t"),
        ("def f(x):\n while x:\n  x = g(x)\n  y = x\n y = 2\n return y", "", "x g"),
        ("def f(x):\n for i in x:\n  t = 1\n  def g(): return t\n return 2", "", "t"),
    ],
)
def test_liveness(source: str, after: str, entering: str) -> None:
    assert _around(source) == (frozenset(after.split()), frozenset(entering.split()))
