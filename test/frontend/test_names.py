"""NumPy's functions by name, traced, against NumPy: values, dtypes, shapes.

The functions of a family are traced as one, once for each set of arrays, and interpreted; some are
compiled too, as what they are made of is tested elsewhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

R = np.random.default_rng(11)
HOLES = R.standard_normal((4, 5))
HOLES[0, 1] = HOLES[2, 3] = HOLES[2, 0] = np.nan
HOLES[3] = np.nan

# what a name is called with, of the array x
Calls = dict[str, Callable[[Any], Any]]


def calling(name: str, keywords: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda x: getattr(np, name)(x, **keywords)


REDUCTIONS: Calls = {
    f"{name} {how}": calling(name, keywords)
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "ptp")
    for how, keywords in {
        "of all": {},
        "of an axis": {"axis": 0},
        "of axes": {"axis": (0, -1)},
        "kept": {"axis": -1, "keepdims": True},
        "of none": {"axis": ()},
    }.items()
    if not (name == "ptp" and how == "of none")
}
KEYWORDS: Calls = {
    "sum where": lambda x: np.sum(x, axis=1, where=x > 0),
    "sum initial": lambda x: np.sum(x, axis=1, initial=3),
    "sum dtype": lambda x: x.sum(dtype=np.float32),
    "sum to integers": lambda x: np.sum(x, dtype=np.int32),
    "prod where": lambda x: np.prod(x, where=x > 0, initial=2),
    "max where": lambda x: np.max(x, axis=0, where=x > 1, initial=-2),
    "min where": lambda x: x.min(where=x > 1, initial=7, keepdims=True),
    "max initial": lambda x: np.max(x, initial=100),
    "mean where": lambda x: np.mean(x, axis=1, where=x > 0),
    "mean dtype": lambda x: np.mean(x, axis=1, dtype=np.float32),
    "var where": lambda x: np.var(x, axis=1, where=x > 0),
    "var ddof": lambda x: np.var(x, axis=0, ddof=1),
    "std correction": lambda x: np.std(x, axis=0, correction=1),
    "std mean": lambda x: np.std(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)),
    "all where": lambda x: np.all(x, axis=1, where=x > 0),
    "any where": lambda x: np.any(x, axis=1, where=x > 100),
    "count_nonzero": lambda x: np.count_nonzero(x, axis=(0, 1), keepdims=True),
    "out by position": lambda x: np.sum(x, 0, None, np.zeros_like(x.sum(0))),
}
NANS: Calls = {
    f"{name} {how}": calling(name, keywords)
    for name in (
        *("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian"),
        *("nancumsum", "nancumprod"),
    )
    for how, keywords in {"of all": {}, "along 0": {"axis": 0}, "along 1": {"axis": -1}}.items()
} | {
    "nanvar ddof": lambda x: np.nanvar(x, axis=1, ddof=2),
    "nanmax initial": lambda x: np.nanmax(x, axis=1, initial=0.5),
    "nansum where": lambda x: np.nansum(x, axis=1, where=x > 0),
    "nanargmax": lambda x: np.nanargmax(x[:3], axis=1),
    "nanargmin": lambda x: np.nanargmin(x[:3]),
    "nanquantile": lambda x: np.nanquantile(x, [0.1, 0.5, 0.9], axis=1),
    "nanpercentile": lambda x: np.nanpercentile(x, 30, axis=0, keepdims=True),
    "nan_to_num": lambda x: np.nan_to_num(x / np.abs(x).min(), nan=7, posinf=1, neginf=-1),
    "isnan": lambda x: np.isnan(x),
    "median": lambda x: np.median(x, axis=1),
    "quantile": lambda x: np.quantile(x, 0.3, axis=1),
    "sort": lambda x: np.sort(x, axis=0),
}
METHODS = (
    *("linear", "hazen", "weibull", "median_unbiased", "normal_unbiased", "lower", "higher"),
    *("midpoint", "nearest", "inverted_cdf", "closest_observation", "averaged_inverted_cdf"),
    "interpolated_inverted_cdf",
)
ORDER: Calls = {
    "median": lambda x: np.median(x),
    "median along": lambda x: np.median(x, axis=1, keepdims=True),
    "median of axes": lambda x: np.median(x, axis=(0, 1)),
    "percentile": lambda x: np.percentile(x, [0, 25, 50, 100], axis=0),
    "quantile": lambda x: np.quantile(x, 0.37, axis=-1, keepdims=True),
    "quantile of a matrix": lambda x: np.quantile(x, [[0.1, 0.2], [0.3, 1.0]], axis=(0, 1)),
    **{
        f"quantile {way}": calling(
            "quantile", {"q": [0, 0.2, 0.5, 0.77, 1], "method": way, "axis": 1}
        )
        for way in METHODS
    },
    "partition": lambda x: np.sort(np.partition(x, 2, axis=1)[:, :2]),
    "average": lambda x: np.average(x, axis=0),
    "average weights": lambda x: np.average(x, axis=1, weights=np.arange(1, 6), returned=True),
    "average of all": lambda x: np.average(x, weights=np.abs(x) + 1),
    "cov": lambda x: np.cov(x),
    "cov columns": lambda x: np.cov(x, rowvar=False, bias=True),
    "cov y": lambda x: np.cov(x[0], x[1], ddof=0),
    "cov weights": lambda x: np.cov(x, fweights=np.arange(1, 6), aweights=np.arange(5) + 0.5),
    "corrcoef": lambda x: np.corrcoef(x),
    "corrcoef of one": lambda x: np.corrcoef(x[0]),
    "histogram": lambda x: np.histogram(x, bins=4, range=(-2, 2)),
    "histogram of its range": lambda x: np.histogram(x, 5),
    "histogram edges": lambda x: np.histogram(x, [-2, -1, 0.5, 2], density=True),
    "histogram weights": lambda x: np.histogram(x, 3, weights=np.abs(x)),
    "digitize": lambda x: np.digitize(x, [-1, 0, 0.5]),
    "digitize falling": lambda x: np.digitize(x, [1, 0, -0.5], right=True),
    "isin": lambda x: np.isin(x, x[0]),
    "isin many": lambda x: np.isin(x, np.arange(40) / 4, invert=True),
    "lexsort": lambda x: np.lexsort((x[1], np.floor(x[0]))),
    "gradient": lambda x: np.gradient(x),
    "gradient steps": lambda x: np.gradient(x, 2.0, [0, 1, 3, 4, 4.5], edge_order=2),
    "gradient along": lambda x: np.gradient(x, 0.5, axis=1, edge_order=2),
    "trapezoid": lambda x: np.trapezoid(x),
    "trapezoid places": lambda x: np.trapezoid(x, [0, 1, 3, 4, 4.5], axis=1),
    "trapezoid along": lambda x: np.trapezoid(x, dx=0.5, axis=0),
    "interp": lambda x: np.interp(x, [-1, 0, 0.5, 2], [1, 4, 2, 3]),
    "interp ends": lambda x: np.interp(x, [-1, 0, 0.5], [1, 4, 2], left=-9, right=9),
    "interp period": lambda x: np.interp(x * 9, [0.5, 3, 1], [1.0, 2, 5], period=4),
    "convolve": lambda x: np.convolve(x[0], x[1, :3]),
    "convolve same": lambda x: np.convolve(x[0], x[1, :3], "same"),
    "convolve valid": lambda x: np.convolve(x[0, :2], x[1], mode="valid"),
    "correlate": lambda x: np.correlate(x[0], x[1, :2]),
    "correlate full": lambda x: np.correlate(x[0, :3], x[1], "full"),
    "correlate same": lambda x: np.correlate(x[0, :4], x[1], "same"),
    "ediff1d": lambda x: np.ediff1d(x, to_begin=x[0, 0], to_end=[1, 2]),
    "unwrap": lambda x: np.unwrap(x * 4, axis=0),
    "sinc": lambda x: np.sinc(np.floor(x)),
    "polyval": lambda x: np.polyval(x[0], x),
    "polyadd": lambda x: np.polyadd(x[0], x[1, :3]),
    "polyder": lambda x: np.polyder(x[0], 2),
    "polyint": lambda x: np.polyint(x[0], 2, k=[1, 2]),
}
SHAPES: Calls = {
    "diag of a vector": lambda x: (np.diag(x[0]), np.diag(x[0], 2), np.diag(x[0], -1)),
    "diag": lambda x: (np.diag(x), np.diag(x, 1), np.diag(x, -2), np.diag(x, 9)),
    "diagflat": lambda x: np.diagflat(x[:2, :2], 1),
    "diagonal": lambda x: np.diagonal(np.stack([x, x + x]), 1, 0, 2),
    "trace": lambda x: (np.trace(x), np.trace(np.stack([x, x]), 1, 1, 2)),
    "tril": lambda x: (np.tril(x), np.triu(x, 1)),
    "kron": lambda x: np.kron(x[:2], x[:, 0]),
    "cross": lambda x: np.cross(x[:, :3], x[:, 2:]),
    "cross of two and three": lambda x: np.cross(x[:3].T, x[1, :3]),
    "vdot": lambda x: np.vdot(x[:2], x[2:4]),
    "inner": lambda x: np.inner(x, x[0]),
    "outer": lambda x: np.outer(x, x[0]),
    "rot90": lambda x: [np.rot90(x, k) for k in range(-1, 4)],
    "rot90 axes": lambda x: np.rot90(np.stack([x, x]), 1, (1, 2)),
    "vander": lambda x: (np.vander(x[0]), np.vander(x[0], 3, increasing=True)),
    "append": lambda x: (np.append(x, 7), np.append(x, x[:1], axis=0)),
    "dstack": lambda x: np.dstack([x, x]),
    "vstack": lambda x: np.vstack([x, x[0]]),
    "hstack": lambda x: np.hstack([x, x[:, :1]]),
    "column_stack": lambda x: np.column_stack([x[:, 0], x]),
    "atleast_3d": lambda x: (np.atleast_3d(x), np.atleast_3d(x[0]), np.atleast_3d(x[0, 0])),
    "array_split": lambda x: np.array_split(x, 3, axis=1),
    "hsplit": lambda x: np.hsplit(x, [1, 3]),
    "vsplit": lambda x: np.vsplit(x, 2),
    "dsplit": lambda x: np.dsplit(np.stack([x, x], -1), 2),
    "delete": lambda x: (np.delete(x, 1, axis=0), np.delete(x, [0, -1, 2], 1), np.delete(x, 3)),
    "delete slice": lambda x: np.delete(x, slice(0, 4, 2), axis=0),
    "delete mask": lambda x: np.delete(x, [True, False, True, False], axis=0),
    "insert": lambda x: (
        np.insert(x, 1, 9, axis=0),
        np.insert(x, 0, [1, 2, 3]),
        np.insert(x, 2, x[0], 0),
    ),
    "insert many": lambda x: np.insert(x, [1, 3, 1], [[1], [2], [3]], axis=0),
    "insert columns": lambda x: (
        np.insert(x, 1, x[:, 0], axis=1),
        np.insert(x, [0, -1], 5, axis=1),
    ),
    "insert one in a list": lambda x: np.insert(x, [1], [[1], [2], [3], [4]], axis=1),
    "block": lambda x: np.block([[x, x[:, :1]], [np.ones((1, 6))]]),
    "resize": lambda x: (np.resize(x, (3, 9)), np.resize(x, 4)),
    "rollaxis": lambda x: np.rollaxis(np.stack([x, x]), 2),
    "select": lambda x: np.select([x > 1, x > 0], [x, 10 * x], default=-1),
    "choose": lambda x: np.choose((x > 0).astype(int), [x, -x]),
    "piecewise": lambda x: np.piecewise(x, [x < 0, x > 1], [lambda v: v + 1, lambda v: v * v, 3]),
    "compress": lambda x: np.compress([True, False, True], x, axis=1),
    "extract": lambda x: np.extract(np.arange(20).reshape(4, 5) % 3 == 0, x),
    "unravel_index": lambda x: np.unravel_index(np.argmax(x), (4, 5)),
    "ravel_multi_index": lambda x: np.ravel_multi_index(
        (np.argmax(x, 0) % 2, np.argmin(x, 0) % 3), (2, 3)
    ),
    "ix_": lambda x: x[np.ix_(np.argmax(x[:2], 1) % 4, [0, 2])],
    "apply_along_axis": lambda x: np.apply_along_axis(lambda v: v[:2] * 2, 0, x),
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [0, 1]),
    "einsum diagonal": lambda x: (np.einsum("ii", x[:, :4]), np.einsum("ii->i", x[:, :4])),
    "einsum dots": lambda x: (np.einsum("...i,i->...", x, x[0]), np.einsum("...i->i...", x)),
    "einsum lists": lambda x: np.einsum(x, [0, 1], x, [2, 1], [0, 2]),
    "einsum of size 1": lambda x: np.einsum("ij,ij->ij", x[:1], x),
    "einsum three": lambda x: np.einsum("ij,kj,k->i", x, x, x[:, 0]),
    "unstack": lambda x: np.unstack(x, axis=1),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: np.cumulative_prod(x[0]),
}
FAMILIES = {"reductions": REDUCTIONS, "keywords": KEYWORDS, "order": ORDER, "shapes": SHAPES}


def same(got: Any, want: Any, what: str, rtol: float) -> None:
    if isinstance(want, tuple | list):
        assert len(got) == len(want), what
        for g, w in zip(got, want, strict=True):
            same(g, w, what, rtol)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol, err_msg=what)


def same_as_numpy(calls: Calls, x: Any, run: Any = interpreted) -> None:
    """Assert that what NumPy gives is given; what NumPy raises is raised."""
    wanted: dict[str, Any] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for what, call in calls.items():
            try:
                wanted[what] = call(x)
            except (TypeError, ValueError, IndexError, OverflowError) as error:
                with pytest.raises(type(error)):
                    sw.jit(call).trace(x)
        found = run(lambda x: [call(x) for what, call in calls.items() if what in wanted], x)
    rtol = {"f2": 4e-3, "f4": 1e-5}.get(x.dtype.str[1:], 1e-12)
    for (what, want), got in zip(wanted.items(), found, strict=True):
        same(got, want, f"{what} of {x.dtype}", rtol)


def drawn(dtype: str) -> Any:
    x = R.standard_normal((4, 5)) * 2
    return (x > 0) if dtype == "?" else (np.abs(x) if dtype[0] == "u" else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "i8", "u1", "?"])
@pytest.mark.parametrize("family", FAMILIES)
def test_as_numpy(family: str, dtype: str) -> None:
    same_as_numpy(FAMILIES[family], drawn(dtype))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_without_nan(dtype: str) -> None:
    x = HOLES.astype(dtype) if dtype[0] == "f" else drawn(dtype)
    same_as_numpy(NANS, x)
