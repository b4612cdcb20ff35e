"""numpy.linalg of traced values: what NumPy gives, derivatives at kinks, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
import stepwell.numpy as snp

L: Any = np.linalg
R = np.random.default_rng(1)
ARRAYS = {
    "v": np.array([0.5, -1.5, 0.0, 2.0, -0.25]),
    "m": R.standard_normal((3, 4)),
    "t": R.standard_normal((2, 3, 4)),
    "s": R.standard_normal((2, 3, 3)),
    "i": np.arange(6).reshape(2, 3) - 2,
    "f": R.standard_normal((3, 4)).astype(np.float32),
}
VECTORS = (None, 0, 1, 2, 3, 2.5, -1, -2, np.inf, -np.inf)
MATRICES = (None, "fro", 1, -1, np.inf, -np.inf)
CALLS: dict[str, Any] = {
    **{f"norm(v, {o})": lambda v, o=o, **_: L.norm(v, o) for o in VECTORS},
    **{f"norm(t, {o}, axis=1)": lambda t, o=o, **_: L.norm(t, o, axis=1) for o in VECTORS},
    **{f"norm(f, {o}, 0)": lambda f, o=o, **_: L.norm(f, o, 0, keepdims=True) for o in VECTORS},
    **{
        f"vector_norm(t, (0, 2), {o})": lambda t, o=o, **_: L.vector_norm(
            t, axis=(0, 2), ord=o, keepdims=True
        )
        for o in VECTORS[1:]
    },
    **{f"norm(m, {o})": lambda m, o=o, **_: L.norm(m, o) for o in MATRICES},
    **{f"norm(t, {o}, (2, 0))": lambda t, o=o, **_: L.norm(t, o, (2, 0), True) for o in MATRICES},
    **{f"matrix_norm(t, {o})": lambda t, o=o, **_: L.matrix_norm(t, ord=o) for o in MATRICES},
    "norm(i)": lambda i, **_: L.norm(i),
    "norm(t)": lambda t, **_: L.norm(t, keepdims=True),
    "norm of nothing": lambda v, **_: L.norm(v[:0]),
    "vector_norm of nothing": lambda t, **_: L.vector_norm(t[:, :0], axis=(0, 1)),
    "vecdot": lambda t, **_: L.vecdot(t, t, axis=1),
    "outer": lambda v, **_: L.outer(v, v),
    "trace": lambda s, **_: L.trace(s, offset=1),
    "diagonal": lambda s, **_: L.diagonal(s),
    "cross": lambda s, **_: L.cross(s, s * 2 + 1),
    "multi_dot": lambda m, **_: L.multi_dot([m[0], m.T, m, m.T @ m, m[1]]),
    "multi_dot of matrices": lambda m, **_: L.multi_dot([m, m.T, m, m[1]]),
    **{f"matrix_power(s, {k})": lambda s, k=k, **_: L.matrix_power(s, k) for k in range(7)},
    "matrix_power(i, 3)": lambda i, **_: L.matrix_power(i[:, :2], 3),
    "matmul": lambda s, **_: L.matmul(s, s),
    "tensordot": lambda m, **_: L.tensordot(m, m),
    "matrix_transpose": lambda s, **_: L.matrix_transpose(s),
    "snp": lambda v, **_: snp.linalg.norm(v),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_values_are_numpys() -> None:
    """All calls are one program."""

    def program(*arrays: Any) -> list[Any]:
        given = dict(zip(ARRAYS, arrays, strict=True))
        return [call(**given) for call in CALLS.values()]

    found = interpreted(program, *ARRAYS.values())
    for (name, call), got in zip(CALLS.items(), found, strict=True):
        want = np.asarray(call(**ARRAYS))
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=name)


def unit(x: Any) -> Any:
    n = np.linalg.norm(x, axis=1, keepdims=True)
    return (np.where(n > 0, x / n, 0) * np.arange(3)).sum()


def test_the_derivative_at_nothing_is_nothing() -> None:
    """Of every root, and behind a mask: no NaN of 0 / 0."""
    zero, rows = np.zeros(3), np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]])

    def gradients(x: Any, rows: Any) -> list[Any]:
        norms = [partial(L.norm, ord=o) for o in (None, 2, 3, 1, np.inf)]
        return [*(sw.grad(f)(x) for f in norms), sw.grad(unit)(rows)]

    *norms, masked = interpreted(gradients, zero, rows)
    for found, want in zip(norms, (0, 0, 0, 1, 1 / 3), strict=True):  # sizes have 1 at 0
        np.testing.assert_allclose(found, zero + want)
    np.testing.assert_allclose(masked, [[-0.096, 0.072, 0.4], [0, 0, 0]])


def test_outside_of_a_trace_it_is_numpys() -> None:
    assert type(snp.linalg.norm(ARRAYS["v"])) is type(np.linalg.norm(ARRAYS["v"]))
    assert snp.linalg.LinAlgError is np.linalg.LinAlgError
    with pytest.raises(AttributeError, match=r"no attribute 'inv': .* there are cross, diagonal"):
        _ = snp.linalg.inv


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda x: L.norm(x, 2), sw.TraceError, "ord=2 of matrices needs singular values"),
        (lambda x: L.norm(x, "nuc"), sw.TraceError, "ord='nuc' of matrices needs singular"),
        (lambda x: L.svd(x), sw.TraceError, "numpy.linalg.svd of a traced value is not known"),
        (lambda x: L.matrix_power(x, -1), sw.TraceError, "n=-1 needs an inverse"),
        (lambda x: L.matrix_power(x, 1.0), TypeError, "exponent must be an integer"),
        (lambda x: L.matrix_power(x[:2], 2), L.LinAlgError, "must be square"),
        (lambda x: L.norm(x, "abc"), ValueError, "Invalid norm order for matrices."),
        (lambda x: L.norm(x[0], "fro"), ValueError, "Invalid norm order 'fro' for vectors"),
        (lambda x: L.norm(x, axis=(0, 0)), ValueError, "Duplicate axes given."),
        (lambda x: L.norm(x, axis="x"), TypeError, "an integer or a tuple of integers"),
        (lambda x: L.norm(x[None], 1), ValueError, "Improper number of dimensions"),
        (lambda x: L.outer(x, x), ValueError, "Input arrays must be one-dimensional"),
        (lambda x: L.cross(x[:, :2], x[:, :2]), ValueError, "3-dimensional vectors"),
        (lambda x: L.multi_dot([x]), ValueError, "at least two arrays"),
    ],
)
def test_mistakes(call: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        sw.jit(call).trace(np.ones((3, 3)))
