"""NumPy's functions by name, traced, against NumPy: values, dtypes, shapes.

The functions of a family are traced as one, once for each set of arrays, and interpreted; some are
compiled too, as what they are made of is tested elsewhere.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
from stepwell.frontend import table

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
NEW = hasattr(np, "matvec")
"""Whether NumPy is 2.2 or later: others lack functions, and round `closest_observation` up."""
OF_NUMPY_2_1: Calls = {
    "unstack": lambda x: np.unstack(x, axis=1),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: np.cumulative_prod(x[0]),
}
METHODS = (
    *("linear", "hazen", "weibull", "median_unbiased", "normal_unbiased", "lower", "higher"),
    *("midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf", "interpolated_inverted_cdf"),
    *(("closest_observation",) if NEW else ()),
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
    **(OF_NUMPY_2_1 if NEW else {}),
}


def method(name: str, of: str, *given: Any, **keywords: Any) -> Callable[[Any], Any]:
    return lambda x: getattr(getattr(np, name), of)(x, *given, **keywords)


def changed(x: Any, function: Any, *given: Any) -> Any:
    x = x.copy()
    function.at(x, *given)
    return x


BINARY = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "maximum", "minimum", "fmax"),
    *("fmin", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or"),
    *("bitwise_xor", "hypot", "gcd", "lcm", "logaddexp", "copysign", "remainder"),
)
UFUNCS: Calls = {
    **{f"{name}.reduce": method(name, "reduce") for name in BINARY},
    **{
        f"{name}.reduce of axis 1": method(name, "reduce", axis=1, keepdims=True) for name in BINARY
    },
    **{f"{name}.accumulate": method(name, "accumulate", axis=1) for name in BINARY},
    "add.reduce of axes": lambda x: np.add.reduce(x, axis=(0, 1)),
    "add.reduce where": lambda x: np.add.reduce(x, axis=1, where=x > 0, initial=1),
    "add.reduce dtype": lambda x: np.add.reduce(x, dtype=np.float64),
    "maximum.reduce initial": lambda x: np.maximum.reduce(x, initial=2, axis=None),
    "subtract.reduce of many": lambda x: np.subtract.reduce(np.tile(x, (3, 1))),
    "subtract.outer": lambda x: np.subtract.outer(x[0], x),
    "power.outer": lambda x: np.power.outer(np.abs(x[0]), [0, 1, 2]),
    "add.outer of a number": lambda x: np.add.outer(2, x[0]),
    "multiply.outer": lambda x: np.multiply.outer(x, x[0]),
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 2, 1], axis=1),
    "maximum.reduceat": lambda x: np.maximum.reduceat(x, [1, 3], axis=0),
    "add.at": lambda x: changed(x, np.add, [0, 0, 2], x[:3] * 2),
    "subtract.at": lambda x: changed(x, np.subtract, ([0, 0, 2], [1, 1, 3]), 1),
    "maximum.at": lambda x: changed(x, np.maximum, (slice(0, 2), [1, 2]), x[2:, :2]),
    "divide.at": lambda x: changed(x, np.true_divide, [1, 1], 2),
    "negative.at": lambda x: changed(x, np.negative, [0, 2, 2]),
    "floor_divide.at": lambda x: changed(x, np.floor_divide, [1, 1, 0], 2),
    "add where": lambda x: np.add(x, x, where=x > 1, out=x.copy()),
    "exp where": lambda x: np.exp(x, where=x > 1, out=np.zeros_like(x, dtype=np.float64)),
    "divmod out": lambda x: np.divmod(x, 2, out=(x.copy(), x.copy())),
    "signbit": lambda x: np.signbit(x),
    "nextafter": lambda x: (np.nextafter(x, 0), np.nextafter(x, x[0]), np.nextafter(x * 0, x)),
    "spacing": lambda x: np.spacing(x),
    "logaddexp2": lambda x: np.logaddexp2(x, x[0]),
    "heaviside": lambda x: np.heaviside(np.trunc(x), 0.5),
    "gcd": lambda x: np.gcd(x, [12, 8, 0, 6, 5]),
    "lcm": lambda x: np.lcm(x, [12, 8, 0, 6, 5]),
    "frexp": lambda x: (np.frexp(x), np.frexp(x * 0)),
    "ldexp": lambda x: (np.ldexp(x, np.arange(-2, 3)), np.ldexp(x, -3)),
    "modf": lambda x: np.modf(x),
    **({"matvec": lambda x: np.matvec(x, x[0])} if NEW else {}),
    **({"vecmat": lambda x: np.vecmat(x[:, 0], x)} if NEW else {}),
    "float_power": lambda x: np.float_power(np.abs(x), 2),
}
PADS: Calls = {
    **{
        f"pad {mode}": calling("pad", {"pad_width": ((2, 3), (1, 7)), "mode": mode})
        for mode in (
            *("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean"),
            *("median", "linear_ramp"),
        )
    },
    "pad of its own": lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 0))),
    "pad by a few": lambda x: np.pad(x, 2, mode="mean", stat_length=2),
    "pad to an end": lambda x: np.pad(x, 2, mode="linear_ramp", end_values=(4, 1)),
    "diff between": lambda x: np.diff(x, prepend=1, append=x[:, :2]),
    "diff twice": lambda x: np.diff(x, 2, axis=0, prepend=x[:1]),
    "real and imag": lambda x: (np.real(x), np.imag(x), np.isreal(x), np.iscomplex(x)),
    "angle": lambda x: (np.angle(x), np.angle(x, deg=True)),
    "fix": calling("fix", {}),
    "isposinf": lambda x: (np.isposinf(x / (x > 0)), np.isneginf(x / (x > 9))),
    "array_equiv": lambda x: (np.array_equiv(x, x[:1]), np.array_equiv(x, x[:, :3])),
    "logspace": lambda x: np.logspace(x[0], x[1], 4, base=2),
    "geomspace": lambda x: np.geomspace(np.abs(x[0]) + 1, np.abs(x[1]) + 2, 4, axis=1),
    "histogram2d": lambda x: np.histogram2d(x[0], x[1], [3, [-2, 0, 1]], density=True),
    "histogram2d weights": lambda x: np.histogram2d(x[0], x[1], 2, weights=np.abs(x[2])),
    "indices": lambda x: x[np.tril_indices(4)] + np.hamming(10),
    "top": lambda x: np.sort(x, axis=1)[:, ::-1][:, :2],
}
FAMILIES = {
    "reductions": REDUCTIONS,
    "keywords": KEYWORDS,
    "order": ORDER,
    "shapes": SHAPES,
    "ufuncs": UFUNCS,
    "pads": PADS,
}


def same(got: Any, want: Any, what: str, rtol: float) -> None:
    if isinstance(want, tuple | list):
        assert len(got) == len(want), what
        for g, w in zip(got, want, strict=True):
            same(g, w, what, rtol)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    rtol = max(rtol, {"f2": 4e-3, "f4": 1e-5}.get(want.dtype.str[1:], 0))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol, err_msg=what)


def parts(calls: list[Any]) -> list[list[Any]]:
    """Return calls, some to a program."""
    return [calls[i : i + 12] for i in range(0, len(calls), 12)]


def called(calls: list[Any], x: Any) -> list[Any]:
    return [call(x) for call in calls]


def compiled(function: Any, x: Any) -> Any:
    return sw.jit(function)(x)


def same_as_numpy(calls: Calls, x: Any, run: Any = interpreted) -> None:
    """Assert that what NumPy gives is given; what NumPy raises is raised."""
    wanted: dict[str, Any] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for what, call in calls.items():
            try:
                wanted[what] = call(x)
            except (TypeError, ValueError, IndexError, OverflowError) as error:
                kinds = [k for k in type(error).__mro__ if k.__module__ == "builtins"]
                with pytest.raises(kinds[0]):
                    sw.jit(call).trace(x)
        given = [call for what, call in calls.items() if what in wanted]
        found = [y for part in parts(given) for y in run(partial(called, part), x)]
    rtol = {"f2": 4e-3, "f4": 1e-5}.get(x.dtype.str[1:], 1e-11)
    for (what, want), got in zip(wanted.items(), found, strict=True):
        same(got, want, f"{what} of {x.dtype}", rtol)


def drawn(dtype: str) -> Any:
    x = np.random.default_rng(3).standard_normal((4, 5)) * 2
    return (x > 0) if dtype == "?" else (np.abs(x) if dtype[0] == "u" else x).astype(dtype)


FURTHER = [
    pytest.param(d, marks=pytest.mark.sampled(2)) for d in ("f4", "f2", "i4", "i8", "u1", "?")
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["f8", *FURTHER])
@pytest.mark.parametrize("family", FAMILIES)
def test_as_numpy(family: str, dtype: str) -> None:
    same_as_numpy(FAMILIES[family], drawn(dtype))


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(
            f, marks=pytest.mark.slow if f in ("ufuncs", "order", "shapes", "pads") else ()
        )
        for f in FAMILIES
    ],
)
def test_compiled_as_numpy(family: str) -> None:
    same_as_numpy(FAMILIES[family], drawn("f8"), compiled)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_without_nan(dtype: str) -> None:
    x = HOLES.astype(dtype) if dtype[0] == "f" else drawn(dtype)
    same_as_numpy(NANS, x, compiled if dtype == "f8" else interpreted)


def test_the_namespace_of_the_array_api() -> None:
    def f(x: Any) -> Any:
        xp = x.__array_namespace__(api_version="2024.12")
        assert xp is sw.numpy and x.device == "cpu" and x.to_device("cpu") is x
        assert x.__dlpack_device__() == np.zeros(1).__dlpack_device__()
        return xp.sum(xp.permute_dims(x, (1, 0)), axis=0)

    x = np.arange(6.0).reshape(2, 3)
    y = sw.jit(f)(x)
    assert (y == [3, 12]).all() and np.from_dlpack(y) is not None and y.__array_namespace__() is np
    info = sw.numpy.__array_namespace_info__()
    assert info.default_device() == "cpu" and info.devices() == ["cpu"]
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert len(info.dtypes()) == 11 and info.default_dtypes()["integral"] == np.int64
    assert info.capabilities()["data-dependent shapes"] is False


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: np.unique(x), "a result whose shape is not known while tracing: return all"),
        (lambda x: np.nonzero(x), "a result whose shape is not known while tracing: return all"),
        (lambda x: np.bincount(x), r"stepwell.numpy.bincount\(x, length=n\)"),
        (lambda x: np.histogram(x, "auto"), "only the run knows; give the number"),
        (lambda x: np.insert(x, x, 0), "the places of numpy.insert decide a shape"),
        (lambda x: np.extract(x > 0, x), "a result whose shape is not known while tracing"),
        (lambda x: np.from_dlpack(x), "results are NumPy arrays"),
        (lambda x: np.add(x, x, where=x > 0), "leaves elements that nobody wrote; give out="),
        (lambda x: np.pad(x, 2, lambda *a: None), "a function as mode"),
    ],
)
def test_what_is_refused_says_what_to_write(call: Any, message: str) -> None:
    with pytest.raises(sw.TraceError, match=message):
        sw.jit(call).trace(np.arange(4))


def test_parameters_that_numpy_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def reshape(a: Any, newshape: Any, order: str = "C") -> None:
        """Take the arguments of NumPy 2.0."""

    known = {"reshape": inspect.signature(reshape)}
    monkeypatch.setattr(table, "_signature", known.get)
    x = np.arange(6.0)
    np.testing.assert_array_equal(sw.jit(lambda x: np.reshape(x, (3, 2)))(x), x.reshape(3, 2))


def test_with_a_size() -> None:
    snp = sw.numpy
    x = np.array([3, 1, 0, 3, 2, 1, 3])

    def f(x: Any) -> Any:
        return (
            snp.unique(x, size=5, fill_value=-1),
            snp.unique(x, return_index=True, return_inverse=True, return_counts=True, size=4),
            snp.unique_all(x, size=4),
            snp.nonzero(x > 1, size=5, fill_value=9),
            snp.argwhere(x.reshape(7, 1), size=6),
            snp.flatnonzero(x, size=3),
            snp.bincount(x, length=5),
            snp.bincount(x, x * 0.5, length=4),
            snp.union1d(x, [7, 1], size=6),
            snp.intersect1d(x, [2, 7, 3], size=2),
            snp.setdiff1d(x, [2, 7, 3], size=2),
            snp.setxor1d(x, [2, 7, 3], size=3),
            snp.top_k(x, 2),
        )

    got = sw.jit(f)(x)
    want = (
        np.array([0, 1, 2, 3, -1]),
        np.unique(x, True, True, True),
        np.unique_all(x),
        (np.array([0, 3, 4, 6, 9]),),
        np.argwhere(x.reshape(7, 1)),
        np.flatnonzero(x)[:3],
        np.bincount(x, minlength=5),
        np.bincount(x, x * 0.5),
        np.array([0, 1, 2, 3, 7, 0]),
        np.intersect1d(x, [2, 7, 3]),
        np.setdiff1d(x, [2, 7, 3]),
        np.setxor1d(x, [2, 7, 3]),
        (np.array([3, 3]), np.array([0, 3], np.int32)),
    )
    same(got, want, "with a size", 0)
