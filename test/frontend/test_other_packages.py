"""Functions and arrays of other packages, in traced functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, signal, special  # pyright: ignore[reportMissingTypeStubs]

import stepwell as sw
from stepwell.frontend.special_functions import SPECIAL
from stepwell.frontend.table import counterpart

INF, NAN = np.inf, np.nan
NUMBERS = np.array([0, -0.0, 1, -1, 0.5, 1e-300, 2, -2, INF, -INF, NAN, 0.3, 0.999, 30, -30, 1e-5])


def test_ufuncs_of_scipy_give_its_numbers() -> None:
    calls = {name: getattr(special, name) for name in SPECIAL}

    def all_of_them(one: Any, two: Any) -> Any:
        return {name: f(*(two if f.nin == 2 else one)) for name, f in calls.items()}

    one, two = [NUMBERS], list(np.meshgrid(NUMBERS, NUMBERS))
    with np.errstate(all="ignore"):
        wanted = all_of_them(one, two)
    for name, found in sw.jit(all_of_them)(one, two).items():
        assert found.dtype == wanted[name].dtype
        np.testing.assert_allclose(found, wanted[name], rtol=1e-13, err_msg=name)


def test_they_have_the_dtypes_of_scipy_and_gradients() -> None:
    x, k = np.array([0.5, 2], np.float32), np.array([1, 2], np.int16)
    found = sw.jit(lambda x, k: (special.expit(x), special.expit(k), special.xlogy(k, x)))(x, k)
    wanted = special.expit(x), special.expit(k), special.xlogy(k, x)
    assert [each.dtype for each in found] == [each.dtype for each in wanted]
    slope = sw.grad(lambda x: special.xlogy(x, np.array([0.0, 2.0])).sum())(np.array([0.0, 3.0]))
    np.testing.assert_allclose(slope, [0.0, np.log(2.0)])


def test_functions_that_are_written_in_python_are_traced() -> None:
    x = np.arange(6.0).reshape(2, 3)
    found = sw.jit(lambda x: (special.softmax(x, axis=1), special.logsumexp(x, axis=1)))(x)
    np.testing.assert_allclose(found[0], special.softmax(x, axis=1))
    np.testing.assert_allclose(found[1], special.logsumexp(x, axis=1))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (special.gammaln, "the ufunc 'gammaln' of another package is not known .* sw.callback"),
        (lambda x: signal.convolve2d(x, x), "'scipy.*convolve2d' cannot be traced.* sw.callback"),
        (lambda x: ndimage.gaussian_filter(x, 1), "'scipy.ndimage.*' cannot be traced"),
    ],
)
def test_other_functions_are_refused_by_name(function: Any, said: str) -> None:
    with pytest.raises(sw.TraceError, match=said):
        sw.jit(lambda x: function(x))(np.ones((4, 4)))


def test_a_ufunc_is_not_numpys_because_it_has_its_name() -> None:
    assert counterpart(np.hypot) is not None
    assert counterpart(SimpleNamespace(__name__="hypot")) is None


@pytest.mark.parametrize(
    ("package", "name", "instead"),
    [
        ("pandas.core.frame", "DataFrame", "x.to_numpy"),
        ("xarray.core.dataarray", "DataArray", "x.to_numpy"),
        ("astropy.units.quantity", "Quantity", "x.value"),
    ],
)
def test_arrays_whose_operators_mean_more_are_refused(
    package: str, name: str, instead: str
) -> None:
    data = {"__module__": package, "__array__": lambda self, *_, **__: np.ones(3)}
    value = type(name, (), data)()
    with pytest.raises(TypeError, match=rf"argument 'x': a {name} computes .*; pass {instead}"):
        sw.jit(lambda x: x.sum())(value)
