"""`sw.nn` has the names, defaults and meaning of `jax.nn`, said in NumPy here."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

R = np.random.default_rng(4)
X = R.standard_normal((3, 4)).astype(np.float32) * 3
D = X.astype(np.float64)
MASK = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], bool)
B = np.array([1.0, -0.5, 2.0, 0.0], np.float32)

SIGNATURES = {
    "celu": "(x, alpha=1.0)",
    "elu": "(x, alpha=1.0)",
    "gelu": "(x, approximate=True)",
    "glu": "(x, axis=-1)",
    "hard_sigmoid": "(x)",
    "hard_silu": "(x)",
    "hard_swish": "(x)",
    "hard_tanh": "(x)",
    "identity": "(x)",
    "leaky_relu": "(x, negative_slope=0.01)",
    "log_sigmoid": "(x)",
    "log_softmax": "(x, axis=-1, where=None)",
    "logsumexp": "(a, axis=None, b=None, keepdims=False, return_sign=False, where=None)",
    "mish": "(x)",
    "one_hot": "(x, num_classes, *, dtype=None, axis=-1)",
    "relu": "(x)",
    "relu6": "(x)",
    "selu": "(x)",
    "sigmoid": "(x)",
    "silu": "(x)",
    "soft_sign": "(x)",
    "softmax": "(x, axis=-1, where=None)",
    "softplus": "(x)",
    "sparse_plus": "(x)",
    "sparse_sigmoid": "(x)",
    "squareplus": "(x, b=4)",
    "standardize": "(x, axis=-1, mean=None, variance=None, epsilon=1e-05, where=None, *, algorithm='fast')",
    "swish": "(x)",
    "tanh": "(x, /)",
}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


def softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def by_tanh(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x: Any, axis: Any = -1, where: Any = True) -> Any:
    raised = np.where(where, np.exp(x), 0)
    return raised / raised.sum(axis, keepdims=True)


def standard(x: Any, axis: Any = -1, where: Any = True) -> Any:
    mean = x.mean(axis, keepdims=True, where=where)
    spread = np.mean((x - mean) ** 2, axis, keepdims=True, where=where)
    return (x - mean) / np.sqrt(spread + 1e-5)


POINTWISE: dict[str, Any] = {
    "celu": elu,
    "elu": elu,
    "gelu": by_tanh,
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "identity": lambda x: x,
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x),
    "log_sigmoid": lambda x: -softplus(-x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "soft_sign": lambda x: x / (abs(x) + 1),
    "softplus": softplus,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip(x + 1, 0, 2) / 2,
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "swish": lambda x: x * sigmoid(x),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    known = inspect.signature(getattr(sw.nn, name))
    bare = [p.replace(annotation=p.empty) for p in known.parameters.values()]
    spelled = known.replace(parameters=bare, return_annotation=known.empty)
    assert str(spelled) == SIGNATURES[name]


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name: str) -> None:
    function = getattr(sw.nn, name)
    for kind, rtol in ((np.float32, 3e-6), (np.float64, 1e-12), (np.float16, 5e-3)):
        got = interpreted(lambda x: function(x), X.astype(kind))
        assert got.dtype == kind
        want = POINTWISE[name](X.astype(kind).astype(np.float64))
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    if name not in ("identity", "relu"):
        whole = interpreted(lambda x: function(x), np.arange(-2, 3, dtype=np.int32))
        assert whole.dtype == np.float32
        np.testing.assert_allclose(whole, POINTWISE[name](np.arange(-2.0, 3)), 3e-6, 1e-7)


CASES: dict[str, tuple[Any, Any]] = {
    "gelu": (lambda n, x: n.gelu(x, approximate=False), D * (1 + erf(D / np.sqrt(2))) / 2),
    "celu": (lambda n, x: n.celu(x, 2.0), np.where(D > 0, D, 2 * np.expm1(np.minimum(D, 0) / 2))),
    "elu": (lambda n, x: n.elu(x, alpha=0.5), elu(D, 0.5)),
    "leaky_relu": (lambda n, x: n.leaky_relu(x, 0.2), np.where(D >= 0, D, 0.2 * D)),
    "squareplus": (lambda n, x: n.squareplus(x, 1.0), (D + np.sqrt(D * D + 1)) / 2),
    "glu": (lambda n, x: n.glu(x), D[:, :2] * sigmoid(D[:, 2:])),
    "glu of rows": (lambda n, x: n.glu(x[:2], axis=0), D[:1] * sigmoid(D[1:2])),
    "softmax": (lambda n, x: n.softmax(x), softmax(D)),
    "softmax of columns": (lambda n, x: n.softmax(x, 0), softmax(D, 0)),
    "softmax of all": (lambda n, x: n.softmax(x, axis=None), softmax(D, None)),
    "softmax of axes": (lambda n, x: n.softmax(x, axis=(0, 1)), softmax(D, (0, 1))),
    "softmax where": (lambda n, x: n.softmax(x, where=MASK), softmax(D, where=MASK)),
    "log_softmax": (lambda n, x: n.log_softmax(x), np.log(softmax(D))),
    "log_softmax of all": (lambda n, x: n.log_softmax(x, None), np.log(softmax(D, None))),
    "logsumexp": (lambda n, x: n.logsumexp(x), np.log(np.exp(D).sum())),
    "logsumexp of rows": (lambda n, x: n.logsumexp(x, 1), np.log(np.exp(D).sum(1))),
    "logsumexp where": (
        lambda n, x: n.logsumexp(x, axis=-1, where=MASK, keepdims=True),
        np.log(np.where(MASK, np.exp(D), 0).sum(-1, keepdims=True)),
    ),
    "logsumexp with signs": (
        lambda n, x: n.logsumexp(x, axis=1, b=B, return_sign=True),
        (np.log(abs((B * np.exp(D)).sum(1))), np.sign((B * np.exp(D)).sum(1))),
    ),
    "standardize": (lambda n, x: n.standardize(x), standard(D)),
    "standardize where": (lambda n, x: n.standardize(x, where=MASK), standard(D, where=MASK)),
    "standardize of columns": (lambda n, x: n.standardize(x, 0), standard(D, 0)),
    "standardize by": (
        lambda n, x: n.standardize(x, mean=0.5, variance=4.0, epsilon=0.0),
        (D - 0.5) / 2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_like_jax(name: str) -> None:
    call, want = CASES[name]
    got = interpreted(lambda x: call(sw.nn, x), X)
    for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def test_log_softmax_where() -> None:
    got = interpreted(lambda x: sw.nn.log_softmax(x, where=MASK), X)
    assert (np.isneginf(got) == ~MASK).all()
    np.testing.assert_allclose(got[MASK], np.log(softmax(D, where=MASK)[MASK]), rtol=1e-5)


def test_one_hot() -> None:
    classes = np.array([0, 2, 5, -1])
    want = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    got = interpreted(lambda c: sw.nn.one_hot(c, 3), classes)
    np.testing.assert_array_equal(got, want.astype(np.float32), strict=True)
    got = interpreted(lambda c: sw.nn.one_hot(c, 3, dtype=np.int8, axis=0), classes)
    np.testing.assert_array_equal(got, want.T.astype(np.int8), strict=True)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="even size, got 3"):
        sw.jit(lambda x: sw.nn.glu(x, axis=0)).trace(X)


@pytest.mark.parametrize(
    "module, name, said",
    [
        (sw.nn, "Linear", "layers are functions of their parameters: nn.dense"),
        (sw.nn, "ConvTranspose2d", "layers are functions of their parameters: nn.conv_transpose"),
        (sw.optim, "AdamW", "the nearest is adamw"),
    ],
)
def test_names_of_pytorch_are_told(module: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; {said}"):
        getattr(module, name)
