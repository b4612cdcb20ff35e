"""`sw.grad` and `sw.value_and_grad`: what they give, in a trace and outside of one."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.errors import TraceError

X = np.array([0.5, -1.5, 2.0])
TEXT: Any = "x"
HALF: Any = 0.5
NUMBER: Any = 3


class Pair(NamedTuple):
    w: Any
    b: Any


def loss(w: Any, x: Any, scale: Any = 2.0) -> Any:
    """A loss of two arrays."""
    return np.sum(np.sin(w) * x) * scale


def test_gradient_of_arrays_numbers_and_trees() -> None:
    @sw.jit
    def f(x: Any, n: Any, tree: Any) -> Any:
        first = sw.grad(lambda x: (x**3).sum())(x)
        second = sw.value_and_grad(lambda x: x * x)(n)
        both = sw.grad(lambda p, s: np.sum(p["a"] * p["b"][0]) * s.w, argnums=(1, 0))(
            {"a": x, "b": [x + 1]}, Pair(3.0, n)
        )
        return first, second, both, sw.grad(lambda t: (t.w * t.b).sum())(tree)

    first, second, both, tree = f(X, 4.0, Pair(X, X * 2))
    np.testing.assert_allclose(first, 3 * X**2)
    assert [float(v) for v in second] == [16, 8]
    assert float(both[0].w) == pytest.approx(float(np.sum(X * (X + 1))))
    assert float(both[0].b) == 0
    np.testing.assert_allclose(both[1]["b"][0], 3 * X)
    assert isinstance(tree, Pair)
    np.testing.assert_array_equal(tree.w, X * 2)


def test_outside_of_a_trace() -> None:
    g = sw.grad(loss, argnums=(0, 1))
    for scale in (2.0, 3.0):
        d_w, d_x = g(X, X + 1, scale=scale)
        np.testing.assert_allclose(d_w, np.cos(X) * (X + 1) * scale)
        np.testing.assert_allclose(d_x, np.sin(X) * scale)
    assert g.__name__ == "loss"
    assert g.__doc__ == loss.__doc__
    assert repr(g) == "<stepwell.grad loss(w: 'Any', x: 'Any', scale: 'Any' = 2.0) -> 'Any'>"
    with sw.disable_jit():
        np.testing.assert_allclose(sw.grad(loss)(X, X), np.cos(X) * X * 2)


def test_gradient_has_the_dtype_of_the_argument() -> None:
    for dtype in (np.float64, np.float32, np.float16):
        found = sw.grad(lambda x: (x * 2.5).sum())(X.astype(dtype))
        assert found.dtype == dtype
    weak = sw.jit(lambda x, n: X.astype(np.float32) * sw.grad(lambda n: n * 3)(n))
    assert weak(X, 2.0).dtype == np.float32
    assert sw.grad(lambda n, x: (n * x).sum())(2.0, X.astype(np.float32)).dtype == np.float64


def test_values_besides_and_integers() -> None:
    def f(x: Any, n: Any) -> Any:
        return (x * n).sum(), {"twice": x * 2, "shape": x.shape, "none": None}

    (value, aux), d = sw.value_and_grad(f, has_aux=True)(X, 3)
    assert float(value) == pytest.approx(3.0)
    np.testing.assert_array_equal(aux["twice"], X * 2)
    assert aux["shape"] == (3,)
    np.testing.assert_array_equal(d, [3, 3, 3])
    d, aux = sw.grad(f, has_aux=True)(X, 3)
    assert aux["none"] is None
    by_both = sw.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True)
    for _ in range(2):
        d_x, d_n = by_both(X, np.arange(3))
        np.testing.assert_array_equal(d_x, [0, 1, 2])
        assert d_n.dtype == sw.float0
        assert d_n.shape == (3,)


def test_composed_with_itself_and_jit() -> None:
    g: Any = sw.jit(lambda x: x**4)
    for want in (32.0, 48.0, 48.0, 24.0, 0.0):
        g = sw.grad(g)
        assert float(g(2.0)) == want

    def outer(x: Any) -> Any:
        inner = sw.grad(lambda y: x * x * y * y)  # x is a constant of this one
        return inner(x)  # 2 x^3

    assert float(sw.grad(outer)(2.0)) == 24.0
    assert float(sw.jit(sw.grad(sw.jit(lambda x: x**3)))(2.0)) == 12.0

    @sw.jit
    def descend(x: Any) -> Any:
        for _ in range(3):
            x = x - 0.1 * sw.grad(sw.jit(lambda x: (x * x).sum()))(x)
        return x

    np.testing.assert_allclose(descend(X), X * 0.8**3)


class Model:
    """Has a loss that is differentiated as a method."""

    def __init__(self) -> None:
        self.scale = X * 3

    @partial(sw.grad, argnums=1)
    def slope(self, x: Any, kind: str) -> Any:
        return (x * self.scale).sum() if kind == "linear" else (x**2).sum()

    def loss(self, x: Any) -> Any:
        return (x * self.scale).sum()


def test_methods_and_arguments_that_are_no_data() -> None:
    model = Model()
    np.testing.assert_array_equal(model.slope(X, "linear"), X * 3)
    np.testing.assert_array_equal(model.slope(X, "square"), X * 2)
    np.testing.assert_array_equal(sw.grad(model.loss)(X), X * 3)
    model.scale = X * 4
    np.testing.assert_array_equal(sw.grad(model.loss)(X), X * 4)
    np.testing.assert_array_equal(sw.jit(lambda x: model.slope(x, kind="linear"))(X), X * 4)
    np.testing.assert_allclose(sw.grad(lambda x, f: f(x).sum())(X, np.sin), np.cos(X))


def test_assignments_and_control_flow_inside() -> None:
    def f(x: Any) -> Any:
        y = x.copy()
        y *= 10
        if x.ndim == 1:
            y += x**2
        return y.sum()

    np.testing.assert_allclose(sw.grad(f)(X), 10 + 2 * X)


def _writes(x: Any) -> Any:
    x[0] = 0.0
    return x.sum()


MISTAKES: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (sw.grad(lambda x: x * 2), (X,), TypeError, r"return one float, got f64\[3\]: return its sum"),
    (sw.grad(lambda x: x.argmax()), (X,), TypeError, "to return a float, got i64"),
    (sw.grad(lambda x: (x.sum(), x)), (X,), TypeError, "got tuple; with more values"),
    (sw.grad(lambda x: None), (X,), TypeError, "return one float, got None"),
    (sw.grad(lambda x: "a"), (X,), TypeError, "return a float, got str"),
    (sw.grad(lambda n: n * 1.5), (3,), TypeError, "argument 'n' of '<lambda>' is i64: pass floats"),
    (sw.grad(lambda n: 1.0), (np.ones(2, bool),), TypeError, "'n' of '<lambda>' is i1"),
    (sw.grad(lambda t: t["a"]), ({"a": 2},), TypeError, r"argument 't\['a'\]' of"),
    (sw.grad(lambda x, k: x.sum(), argnums=1), (X, "a"), TypeError, "'k' of '<lambda>' is str"),
    (sw.grad(lambda x: x.sum(), argnums=1), (X,), ValueError, "argnums=1 of grad, but '<lambda>'"),
    (sw.grad(lambda x: x.sum(), argnums=TEXT), (X,), TypeError, "arguments by number, got 'x'"),
    (sw.grad(lambda x: x.sum(), argnums=HALF), (X,), TypeError, "arguments by number, got 0.5"),
    (sw.grad(lambda x: x.sum(), has_aux=True), (X,), TypeError, "to return a pair"),
    (sw.grad(_writes), (X,), TraceError, "'_writes' assigns to its argument 'x'"),
    (sw.grad(lambda x: x.sum()), (X, X), TypeError, "too many positional arguments"),
]


@pytest.mark.parametrize(("function", "args", "kind", "message"), MISTAKES)
def test_mistakes(
    function: Any,
    args: tuple[Any, ...],
    kind: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPWELL_TRACEBACK", "")
    with pytest.raises(kind, match=message) as caught:
        function(*args)
    assert __file__ in str(caught.traceback[-1].path)


def test_no_function() -> None:
    with pytest.raises(TypeError, match="grad takes a function, got 3"):
        sw.grad(NUMBER)


def test_vjp_in_a_trace_and_outside() -> None:
    def f(x: Any, n: Any) -> Any:
        return {"y": np.sin(x) * n, "n": n + 1}, x.shape

    def run(x: Any, n: Any) -> Any:
        out, vjp_fn, aux = sw.vjp(f, x, n, has_aux=True)
        assert aux == (3,)
        zero = np.zeros((3,), sw.float0)
        return out, vjp_fn({"y": np.ones(3), "n": zero}), vjp_fn({"y": x, "n": zero})

    for found in (run(X, np.arange(3)), sw.jit(run)(X, np.arange(3))):
        out, one, two = found
        np.testing.assert_allclose(out["y"], np.sin(X) * np.arange(3))
        np.testing.assert_array_equal(out["n"], [1, 2, 3])
        np.testing.assert_allclose(one[0], np.cos(X) * np.arange(3))
        np.testing.assert_allclose(two[0], np.cos(X) * np.arange(3) * X)
        assert one[1].dtype == sw.float0


def test_vjp_keeps_arguments_as_they_were() -> None:
    x = X.copy()
    _, vjp_fn = sw.vjp(lambda x: x * x, x)
    x[:] = 0
    np.testing.assert_array_equal(vjp_fn(np.ones(3))[0], 2 * X)
