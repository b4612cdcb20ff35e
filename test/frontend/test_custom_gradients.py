"""`sw.stop_gradient`, `sw.custom_vjp`, `sw.custom_jvp` and `sw.checkpoint`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

X = np.array([0.5, -1.5, 2.0])
W = np.array([1.0, 2.0, 3.0])
NO_POLICY: Any = "dots"


@sw.custom_vjp
def scaled(x: Any, w: Any) -> Any:
    """Is sin(x) w; its rule says ten times its derivative by x."""
    return np.sin(x) * w


def _scaled_fwd(x: Any, w: Any) -> Any:
    return scaled(x, w), {"x": x, "w": w, "n": 10}


def _scaled_bwd(kept: Any, g: Any) -> Any:
    return np.cos(kept["x"]) * kept["w"] * g * kept["n"], np.sin(kept["x"]) * g


scaled.defvjp(_scaled_fwd, _scaled_bwd)


@sw.custom_jvp
def product(x: Any, y: Any) -> Any:
    """Is x y; its rules say two and three times its derivatives."""
    return x * y


product.defjvps(lambda t, out, x, y: 2 * t * y, lambda t, out, x, y: 3 * t * x)


def test_stop_gradient() -> None:
    d = sw.grad(lambda x: (x * sw.stop_gradient({"a": x, "n": 3})["a"]).sum())
    np.testing.assert_array_equal(d(X), X)
    np.testing.assert_array_equal(sw.grad(lambda x: sw.lax.stop_gradient(x).sum())(X), 0 * X)
    out, t = sw.jvp(lambda x: sw.stop_gradient(x) * x, (X,), (X,))
    np.testing.assert_allclose([out, t], [X * X, X * X])
    assert sw.stop_gradient(X) is X


def test_rule_backward() -> None:
    np.testing.assert_allclose(scaled(X, W), np.sin(X) * W)
    d_x, d_w = sw.grad(lambda x, w: scaled(x, w).sum(), argnums=(0, 1))(X, W)
    np.testing.assert_allclose(d_x, 10 * np.cos(X) * W)
    np.testing.assert_allclose(d_w, np.sin(X))
    tangent = sw.jvp(lambda x: scaled(x, W), (X,), (W,))[1]
    np.testing.assert_allclose(tangent, 10 * np.cos(X) * W * W)
    second = sw.hessian(lambda x: scaled(x, W).sum())(X)
    np.testing.assert_allclose(second, np.diag(-10 * np.sin(X) * W))


def test_rule_forward_and_transposed() -> None:
    d = sw.grad(lambda x, y: product(x, y).sum(), argnums=(0, 1))(X, W)
    np.testing.assert_allclose(d, [2 * W, 3 * X])
    np.testing.assert_allclose(sw.jvp(product, (X, W), (W, X))[1], 2 * W * W + 3 * X * X)
    np.testing.assert_allclose(sw.hessian(lambda x: product(x, x).sum())(X), 5 * np.eye(3))


def test_rules_of_batches() -> None:
    rows = np.stack([X, 2 * X])
    total = sw.grad(lambda x, w: sw.vmap(scaled, (0, None))(x, w).sum(), argnums=(0, 1))
    d_x, d_w = total(rows, W)
    np.testing.assert_allclose(d_x, 10 * np.cos(rows) * W)
    np.testing.assert_allclose(d_w, np.sin(rows).sum(0))
    total = sw.grad(lambda x, w: sw.vmap(product, (0, None))(x, w).sum(), argnums=(0, 1))
    np.testing.assert_allclose(total(rows, W)[1], 3 * rows.sum(0))
    each = sw.vmap(sw.grad(sw.checkpoint(lambda x: np.sin(x).sum())))(rows)
    np.testing.assert_allclose(each, np.cos(rows))


def test_arguments_without_derivative() -> None:
    def f(how: str, x: Any, n: Any) -> Any:
        return (np.sin(x) if how == "sin" else np.cos(x)) * n

    rule = sw.custom_vjp(f, nondiff_argnums=0)
    rule.defvjp(lambda how, x, n: (rule(how, x, n), n), lambda how, n, g: (g * n * len(how), None))
    np.testing.assert_array_equal(sw.grad(lambda x: rule("sin", x, 2).sum())(X), [6, 6, 6])
    assert rule.__name__ == "f"


def test_checkpoints_of_all_policies() -> None:
    """What is kept makes no difference to the gradient; docs/gradients.md measures the memory."""
    w, x = np.eye(3) / 2, np.ones((4, 3))

    def block(w: Any, x: Any) -> Any:
        return np.tanh(sw.checkpoint_name(np.tanh(x @ w), "hidden") @ w)

    p = sw.checkpoint_policies
    policies = [
        *(p.everything_saveable, p.nothing_saveable, p.dots_saveable, p.checkpoint_dots),
        *(p.dots_with_no_batch_dims_saveable, p.save_only_these_names("hidden", "other")),
        *(p.save_any_names_but_these(), p.save_any_names_but_these("hidden")),
        p.save_anything_except_these_names("hidden"),
        p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("hidden")),
    ]
    assert p.checkpoint_dots_with_no_batch_dims is p.dots_with_no_batch_dims_saveable

    @sw.jit
    def gradients(w: Any, x: Any) -> Any:
        layers = [block, *(sw.checkpoint(block, policy=p) for p in policies)]
        layers.append(sw.checkpoint(block, prevent_cse=False))
        return [sw.grad(lambda w, f=f: (f(w, f(w, x)) ** 2).sum())(w) for f in layers]

    first, *others = gradients(w, x)
    for other in others:
        np.testing.assert_allclose(other, first)


def test_policies_together() -> None:
    """Of what two keep, the names."""
    p = sw.checkpoint_policies
    both, only, but = p.save_from_both_policies, p.save_only_these_names, p.save_any_names_but_these
    assert both(only("a"), only("b")) == only("b", "a")
    assert both(but("a", "b"), only("b")) == but("a")
    assert both(but("a", "b"), but("b", "c")) == but("b")
    assert both(p.dots_saveable, p.nothing_saveable) == p.checkpoint_dots
    anything = p.save_anything_except_these_names
    assert both(anything("a", "b"), only("a")) == anything("b")
    assert anything() == p.everything_saveable
    assert sw.checkpoint_name({"x": X, "n": 3}, "a")["x"] is X
    batched = sw.vmap(sw.grad(lambda x: sw.checkpoint_name(x * x, "a").sum()))
    np.testing.assert_array_equal(batched(np.stack([X, X])), [2 * X, 2 * X])
    with pytest.raises(TypeError, match="a name of checkpoint_name is a text, got 3"):
        sw.checkpoint_name(X, 3)  # pyright: ignore
    with pytest.raises(TypeError, match="policy= of save_from_both_policies is one of"):
        both(p.dots_saveable, print)  # pyright: ignore


def test_checkpoint_takes_what_jit_takes() -> None:
    @sw.checkpoint
    def f(x: Any, how: str, tree: Any = None) -> Any:
        y = np.sin(x) if how == "sin" else x
        return {"y": y * tree["w"], "n": 3}

    out = f(X, "sin", tree={"w": W})
    np.testing.assert_allclose(out["y"], np.sin(X) * W)
    d = sw.grad(lambda x, w: f(x, "sin", tree={"w": w})["y"].sum(), argnums=(0, 1))(X, W)
    np.testing.assert_allclose(d, [np.cos(X) * W, np.sin(X)])

    def outside(w: Any) -> Any:
        return sw.checkpoint(lambda x: (x * w).sum())(X)  # w is differentiated by too

    np.testing.assert_array_equal(sw.grad(outside)(W), X)


def _vjp_of(fwd: Any, bwd: Any) -> Any:
    f = sw.custom_vjp(lambda x: x * 2)
    f.defvjp(fwd, bwd)
    return sw.grad(lambda x: f(x).sum())


def _jvp_of(rule: Any) -> Any:
    f = sw.custom_jvp(lambda x: x * 2)
    f.defjvp(rule)
    return sw.grad(lambda x: f(x).sum())


def _closing(x: Any) -> Any:
    f = sw.custom_vjp(lambda y: x * y)
    f.defvjp(lambda y: (x * y, None), lambda _, g: (g,))
    return f(X).sum()


def kept(x: Any) -> Any:
    return x * 2, None


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "no rule": (sw.grad(sw.custom_vjp(np.sum)), AttributeError, "has no rule .* defvjp"),
    "no rule forward": (sw.custom_jvp(lambda x: x), AttributeError, "call its method defjvp"),
    "fwd is no pair": (_vjp_of(lambda x: x, kept), TypeError, "must return a pair: the result"),
    "fwd of another type": (_vjp_of(lambda x: (x.sum(), 1), kept), TypeError, r"f64\[3\], got f64"),
    "bwd is no tuple": (_vjp_of(kept, lambda _, g: g), TypeError, "tuple of 1 cotangent, .* got"),
    "bwd of two": (_vjp_of(kept, lambda _, g: (g, g)), TypeError, "got 2 of them"),
    "bwd of another shape": (
        _vjp_of(kept, lambda _, g: (g.sum(),)),
        TypeError,
        r"the cotangent of 'x' must be f64\[3\], got f64",
    ),
    "bwd otherwise built": (_vjp_of(kept, lambda _, g: ([g],)), TypeError, "built like the argum"),
    "rule forward no pair": (_jvp_of(lambda p, t: p[0]), TypeError, "the result, and its tangent"),
    "tangent of another shape": (
        _jvp_of(lambda p, t: (p[0] * 2, t[0].sum())),
        TypeError,
        r"its tangent must be f64\[3\]",
    ),
    "rule is not linear": (
        _jvp_of(lambda p, t: (p[0] * 2, t[0] * t[0])),
        sw.CompileError,
        "is not linear in its tangents",
    ),
    "by what it closes over": (sw.grad(_closing), sw.CompileError, "from outside of it, which the"),
    "policy": (
        lambda x: sw.checkpoint(np.sin, policy=NO_POLICY),
        TypeError,
        "one of sw.checkpoint_policies: everything_saveable",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    function, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        function(X)


def test_mistakes_of_definitions() -> None:
    with pytest.raises(TypeError, match="defvjp takes two functions, got 3"):
        sw.custom_vjp(np.sum).defvjp(np.sum, 3)  # pyright: ignore
    with pytest.raises(ValueError, match="nondiff_argnums=2 of custom_vjp, but 'kept' has 1"):
        sw.custom_vjp(kept, nondiff_argnums=2)
    with pytest.raises(TypeError, match="name it in nondiff_argnums=\\(1,\\)"):
        product(X, "a")
