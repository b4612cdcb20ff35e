"""`sw.jvp`, `sw.linearize`, Jacobians, Hessians, and `sw.check_grads`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw

X = np.array([0.5, -1.5, 2.0])
W = np.arange(6.0).reshape(2, 3)
NUMBER: Any = 3
ARRAY: Any = X


class Pair(NamedTuple):
    w: Any
    b: Any


def f(p: Any, x: Any) -> Any:
    """A function of a structure and an array that returns a structure."""
    return {"y": p.w @ np.sin(x) + p.b, "s": (x * x).sum()}


def test_forward_in_a_trace_and_outside() -> None:
    def run(w: Any, b: Any, x: Any) -> Any:
        out, t, aux = sw.jvp(
            lambda p, x, n: (f(p, x), n), (Pair(w, b), x, 3), _tangents(w, b, x), has_aux=True
        )
        same, jvp_fn = sw.linearize(f, Pair(w, b), x)
        return out, t, aux, same, jvp_fn(Pair(w * 0, b * 0 + 1.0), x * 0 + 1.0)

    def _tangents(w: Any, b: Any, x: Any) -> Any:
        return Pair(w * 0, b * 0 + 1.0), x * 0 + 1.0, np.zeros((), sw.float0)

    b = np.ones(2)
    for out, t, aux, same, again in (run(W, b, X), sw.jit(run)(W, b, X)):
        np.testing.assert_allclose(out["y"], W @ np.sin(X) + 1)
        np.testing.assert_allclose(same["s"], out["s"])
        np.testing.assert_allclose(t["y"], W @ np.cos(X) + 1)
        np.testing.assert_allclose(again["s"], 2 * X.sum())
        assert aux == 3


def test_integers_have_tangents_of_their_own() -> None:
    out, t = sw.jvp(lambda x, n: (x * n, n), (X, 2), (X, np.zeros((), sw.float0)))
    np.testing.assert_array_equal(t[0], 2 * X)
    assert t[1].dtype == sw.float0
    assert int(out[1]) == 2


def test_jacobians_have_the_structure_of_results_and_arguments() -> None:
    for jacobian in (sw.jacfwd, sw.jacrev):
        by = jacobian(f, argnums=(0, 1))(Pair(W, np.ones(2)), X)
        assert list(by) == ["y", "s"]
        p, x = by["y"]
        np.testing.assert_allclose(p.w, np.einsum("ij,k->ijk", np.eye(2), np.sin(X)))
        np.testing.assert_allclose(p.b, np.eye(2))
        np.testing.assert_allclose(x, W * np.cos(X))
        np.testing.assert_allclose(by["s"][1], 2 * X)
        assert by["s"][0].w.shape == (2, 3)
    assert float(sw.jacobian(np.sin)(1.0)) == pytest.approx(np.cos(1.0))
    found, aux = sw.jacfwd(lambda x: (x * x, {"n": 1}), has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(2 * X))
    assert aux == {"n": 1}
    assert sw.jacrev(lambda x: x[:0])(X).shape == (0, 3)
    mixed = sw.jacrev(lambda x, n: x * n, (0, 1), allow_int=True)(X, 2)
    assert mixed[1].dtype == sw.float0
    assert mixed[1].shape == (3,)


def test_hessians() -> None:
    def g(x: Any, y: Any) -> Any:
        return (x**3).sum() * y

    np.testing.assert_allclose(sw.hessian(g)(X, 2.0), np.diag(12 * X))
    (_, xy), (yx, yy) = sw.hessian(g, argnums=(0, 1))(X, 2.0)
    np.testing.assert_allclose(xy, 3 * X**2)
    np.testing.assert_allclose(yx, 3 * X**2)
    assert float(yy) == 0
    np.testing.assert_allclose(sw.hvp(lambda x: g(x, 2.0), (X,), (X,)), 12 * X**2)
    d_x, d_y = sw.hvp(g, (X, 2.0), (X, 1.0))
    np.testing.assert_allclose(d_x, 12 * X**2 + 3 * X**2)
    assert float(d_y) == pytest.approx(float((3 * X**3).sum()))


def test_one_program_for_any_size() -> None:
    hessian = sw.hessian(lambda x: (np.sin(x) * x.sum()).sum())
    for n in (3, 5, 7):
        x = np.arange(n) + 0.5
        want = np.cos(x)[:, None] + np.cos(x) - np.diag(np.sin(x) * x.sum())
        np.testing.assert_allclose(hessian(x), want)
    assert hessian.cache_info().traces == 2


def test_functions_of_methods_that_change() -> None:
    class Model:
        scale = 2.0

        def loss(self, x: Any) -> Any:
            return (x * self.scale).sum()

    model = Model()
    assert float(sw.jvp(model.loss, (X,), (X,))[1]) == 2.0
    g = sw.grad(sw.jit(model.loss))
    np.testing.assert_array_equal(g(X), [2, 2, 2])
    model.scale = 3.0
    assert float(sw.jvp(model.loss, (X,), (X,))[1]) == 3.0
    np.testing.assert_array_equal(g(X), [3, 3, 3])


@sw.custom_vjp
def wrong(x: Any) -> Any:
    return np.sin(x)


wrong.defvjp(lambda x: (np.sin(x), x), lambda x, g: (np.cos(x) * g * 1.01,))


@sw.custom_vjp
def wrong_twice(x: Any) -> Any:
    return np.sin(x)


wrong_twice.defvjp(lambda x: (np.sin(x), x), lambda x, g: (sw.stop_gradient(np.cos(x)) * g,))


def test_check_grads() -> None:
    sw.check_grads(f, (Pair(W.astype(np.float32), np.ones(2)), X))
    sw.check_grads(np.sin, [X], order=3, modes="fwd")
    with pytest.raises(AssertionError, match=r"'wrong': reverse mode, by argument 'x'\[0\]: exp"):
        sw.check_grads(wrong, (X,))
    with pytest.raises(AssertionError, match=r"forward mode, of result 0\[0, 0\]: expected 1.152"):
        sw.check_grads(lambda a, t: wrong(t["x"]), (1.0, {"x": X.reshape(1, 3)}), modes="fwd")
    sw.check_grads(wrong_twice, (X,), order=1)
    with pytest.raises(AssertionError, match="the gradient of reverse mode, by argument 'x'"):
        sw.check_grads(wrong_twice, (X,))


def _vjp(x: Any, *cotangent: Any) -> Any:
    return sw.vjp(lambda x: {"y": x, "n": 3}, x)[1](*cotangent)


def _leaked() -> Any:
    found: list[Any] = []

    @sw.jit
    def f(x: Any) -> Any:
        found.append(sw.vjp(np.sin, x)[1])
        return x

    f(X)
    return found[-1](X)


ZERO = np.zeros((), sw.float0)
MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: sw.jvp(np.sin, X, X), TypeError, "jvp takes primals as a tuple or list, got ndarr"),
    (lambda: sw.jvp(np.sin, (X,), X), TypeError, "jvp takes tangents as a tuple or list"),
    (lambda: sw.jvp(np.sin, (X,), (X, X)), TypeError, "must be built like primals"),
    (lambda: sw.jvp(np.sin, (X,), (X[:1],)), ValueError, r"tangents\[0\] has shape \(1\), but"),
    (lambda: sw.jvp(np.sin, (X,), (X.astype("f4"),)), TypeError, "is f32, but must have the dty"),
    (
        lambda: sw.jvp(lambda n: n * 2.0, (3,), (1,)),
        TypeError,
        "of a value of i64.* is of sw.float0",
    ),
    (lambda: sw.jvp(np.sin, (X,), (ZERO,)), TypeError, r"is f64\[3\], got sw.float0"),
    (
        lambda: sw.jvp(np.sin, (X,), ("a",)),
        TypeError,
        "expected an array or a number, got str|a ta",
    ),
    (
        lambda: sw.jvp(lambda x: "a", (X,), (X,)),
        TypeError,
        "to return arrays, but its result is st",
    ),
    (lambda: sw.linearize(np.sin, X)[1](X, X), TypeError, "jvp_fn: tangents must be built like"),
    (lambda: _vjp(X, X), TypeError, "vjp_fn: cotangents must be built like what '<lambda>' return"),
    (lambda: _vjp(X, {"y": X, "n": 1.0}), TypeError, "of a value of i64.* is of sw.float0"),
    (lambda: _vjp(X, {"y": X[:2], "n": ZERO}), ValueError, r"cotangents\['y'\] has shape"),
    (lambda: sw.vjp(NUMBER), TypeError, "vjp takes a function, got 3"),
    (lambda: sw.vjp(np.sin, "a"), TypeError, "argument 'primals|got str|is str"),
    (
        lambda: sw.jacrev(lambda x: x.argmax())(X),
        TypeError,
        "needs '<lambda>' to return floats, got",
    ),
    (lambda: sw.jacfwd(lambda n: n)(3), TypeError, "jacfwd is by floats, but argument 'n' of"),
    (lambda: sw.jacfwd(np.sin, holomorphic=True), TypeError, "of complex numbers, which there are"),
    (lambda: sw.hessian(lambda x: x, argnums=1)(X), ValueError, "argnums=1 of jac"),
    (lambda: sw.hvp(lambda x: x, (X,), (X,)), TypeError, r"return one float, got f64\[3\]"),
    (lambda: sw.check_grads(lambda x: x, (3,)), TypeError, "none of its arguments is a float"),
    (lambda: sw.check_grads(np.sin, (X,), modes="both"), ValueError, "has 'fwd', 'rev' or both"),
    (
        lambda: sw.check_grads(np.sin, ARRAY),
        TypeError,
        "takes args as a tuple or list, got ndarray",
    ),
    (lambda: sw.check_grads(np.sin, (X,), order=0), ValueError, "is 1 or more, got 0"),
    (lambda: sw.check_grads(lambda x: 3, (X,)), TypeError, "returns no floats"),
    (_leaked, TypeError, "call them inside a function given to stepwell.jit"),
    (sw.jit(lambda: sw.check_grads(np.sin, (X,))), sw.TraceError, "not inside of a traced one"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_TRACEBACK", "")
    function, kind, message = MISTAKES[number]
    with pytest.raises(kind, match=message) as caught:
        function()
    assert __file__ in str(caught.traceback[-1].path)
