"""What NumPy has is here, with the same meaning in a trace and outside of one, or refused by name."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.frontend.table import FUNCTIONS, UFUNCS

X = np.arange(4, dtype=np.float32)
SQUARE = np.ones((3, 3), np.float32)
LACKING = {n for n in FUNCTIONS if not hasattr(np, n) and "." not in n}


def public(module: ModuleType) -> list[str]:
    return [n for n in dir(module) if not n.startswith("_")]


def test_every_name_of_numpy_is_here_or_refused() -> None:
    for name in set(public(np)) - set(snp.__all__):
        with pytest.raises(AttributeError, match=rf"stepwell.numpy' has no attribute '{name}'.."):
            getattr(snp, name)
    for name, said in {
        "histogramdd": "numpy.histogramdd is not known to Stepwell; the nearest is histogram",
        "complex128": "complex numbers are not supported yet",
        "fft": "numpy.fft is not supported yet",
        "random": "use sw.random",
    }.items():
        with pytest.raises(AttributeError, match=said):
            getattr(snp, name)
    with pytest.raises(AttributeError, match="has no attribute 'zeroes'; the nearest is zeros"):
        snp.zeroes  # noqa: B018


@pytest.mark.parametrize("module", [np, np.linalg, np.fft])
def test_functions_of_traced_values_are_ours_or_refused_by_name(module: ModuleType) -> None:
    def f(x: Any) -> Any:
        for name in public(module):
            function = getattr(module, name)
            own = name if module is np else f"{module.__name__.removeprefix('numpy.')}.{name}"
            if not hasattr(function, "_implementation") or own in FUNCTIONS:
                continue
            if module is np and name in (*snp.__all__, "savez", "savez_compressed", "savetxt"):
                continue
            with pytest.raises((sw.TraceError, TypeError), match=f"numpy.*{name}|argument|input"):
                function(x)
        return x

    sw.jit(f).trace(SQUARE)


def test_attributes_of_arrays_are_here_or_refused_by_name() -> None:
    def f(x: Any) -> Any:
        for name in public(np.ndarray):  # pyright: ignore[reportArgumentType]
            try:
                assert getattr(x, name) is not None
            except AttributeError as error:
                assert f"a traced value has no attribute '{name}'; " in str(error)
        return x

    sw.jit(f).trace(SQUARE)


def test_outside_of_a_trace_they_are_numpys() -> None:
    for got, want in (
        (snp.zeros(3) + 1, np.ones(3)),
        (snp.add(X, 1), X + 1),
        (snp.add.reduce(X), X.sum()),
        (snp.maximum.accumulate(X), X),
        (snp.multiply.outer(X, X), np.outer(X, X)),
        (snp.sum(X), X.sum()),
        (snp.linspace(0, 1, 5), np.linspace(0, 1, 5)),
        (snp.arange(3), np.arange(3)),
        (snp.where(X > 1), np.where(X > 1)),
    ):
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
    assert snp.float32 is np.float32 and snp.pi == np.pi and snp.add.nin == 2
    assert repr(snp.add) == "<ufunc 'add' of stepwell.numpy>"


def test_names_that_numpy_lacks_are_compiled_outside_of_a_trace() -> None:
    assert {"erf", "erfc", "rsqrt", "bitcast", "logsumexp", "cumulative_max"} <= LACKING
    got = snp.logsumexp(SQUARE, axis=1, keepdims=True)
    assert type(got) is np.ndarray and got.shape == (3, 1)
    np.testing.assert_allclose(got, np.full((3, 1), 1 + np.log(3)), rtol=1e-6)
    np.testing.assert_allclose(snp.erf(np.array([0.0, 1.0])), [0, 0.8427007929497149], rtol=1e-15)
    assert snp.bitcast(np.float32(1), "int32") == 0x3F800000


def test_a_trace_sees_the_same_names() -> None:
    def f(x: Any) -> Any:
        assert snp.zeros(3).dtype == np.float64 and snp.full(2, 0.5).dtype == np.float64
        assert snp.mean(snp.arange(3)).dtype == np.float64
        assert (snp.arange(3) / snp.arange(1, 4)).dtype == np.float64
        assert snp.asarray(0.5).dtype == snp.linspace(0, 1, 3).dtype == np.float64
        return x, snp.add.reduce(x), snp.add(x, snp.ones(4)), snp.add.outer(x, x)

    got = sw.jit(f)(X)
    for g, w in zip(got, (X, X.sum(), X + np.ones(4), np.add.outer(X, X)), strict=True):
        np.testing.assert_array_equal(g, w, strict=True)


def test_functions_are_compiled_by_their_names() -> None:
    np.testing.assert_array_equal(sw.jit(snp.negative)(X), -X)
    np.testing.assert_array_equal(sw.jit(snp.flip)(X), X[::-1])


def test_every_ufunc_is_one_of_numpys() -> None:
    theirs = [getattr(np, name) for name in UFUNCS if hasattr(np, name)]  # some are of NumPy 2.2
    assert all(isinstance(each, np.ufunc) for each in theirs)
