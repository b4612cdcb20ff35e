"""sort, argsort, searchsorted and top_k against NumPy, compiled and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
import stepwell.numpy as snp

R = np.random.default_rng(5)
MIDDLE: Any = "middle"
DTYPES = ("f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 5e-324, np.nan, 1e30, -1e-30]


def drawn(dtype: str, shape: tuple[int, ...]) -> Any:
    """Draw numbers of which many are equal, with what is special among floats."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        with np.errstate(all="ignore"):
            some = R.choice(np.array(SPECIAL).astype(kind), shape)
        return np.where(R.random(shape) < 0.3, some, R.standard_normal(shape).astype(kind))
    if kind.kind == "b":
        return R.random(shape) < 0.5
    info = np.iinfo(kind)
    return R.integers(info.min, info.max, shape, kind, endpoint=True) >> kind.type(R.integers(0, 4))


def bits(x: Any) -> Any:
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


LONG = ((3, 40), (300, 2))
SORTED = [(LONG[0], 1), (LONG[1], 0), ((5, 3, 7), -2), ((4, 3), None)]
FULL = [(dtype, shape, axis) for dtype in DTYPES for shape, axis in SORTED]
FEW = ("f4", "i8", "u1")
"""Dtypes whose long rows are sorted in each run of the suite; those of others in the slow lane."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "dtype, shape, axis",
    [
        pytest.param(d, s, a, marks=pytest.mark.slow if s in LONG and d not in FEW else ())
        for d, s, a in FULL
    ],
)
def test_sort_is_numpys_stable_sort(dtype: str, shape: tuple[int, ...], axis: int | None) -> None:
    x, stable = drawn(dtype, shape), dtype == "f4"
    for descending in (False, True):

        def both(x: Any, descending: bool = descending) -> Any:
            return (
                snp.sort(x, axis=axis, descending=descending),
                snp.argsort(x, axis=axis, descending=descending),
                snp.sort(x, axis=axis, descending=descending, stable=True) if stable else x,
            )

        flat, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        turned = np.flip(flat, along) if descending else flat
        order = np.argsort(turned, axis=along, kind="stable")
        if descending:
            order = flat.shape[along] - 1 - np.flip(order, along)
        want = np.take_along_axis(flat, order, along)
        y, places, kept = sw.jit(both, static_argnames="descending")(x)
        assert places.dtype == np.int64 and (places == order).all()
        np.testing.assert_array_equal(y, want)
        assert not stable or (bits(kept) == bits(want)).all(), "to the bit"


@pytest.mark.parametrize(
    "shape, axis", [((0,), 0), ((1,), 0), ((3, 0), 1), ((0, 3), 1), ((3, 1), -1)]
)
def test_little_to_sort(shape: tuple[int, ...], axis: int) -> None:
    x = drawn("f4", shape)
    y = sw.jit(lambda x: (snp.sort(x, axis), x.argsort(axis=axis)))(x)
    assert y[0].shape == y[1].shape == shape and (bits(y[0]) == bits(x)).all()


def test_no_row_of_many() -> None:
    x = np.zeros((0, 3000), np.float32)
    y = sw.jit(lambda x: (snp.sort(x), snp.argsort(x), snp.median(x, -1)))(x)
    assert [each.shape for each in y] == [(0, 3000), (0, 3000), (0,)]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 8, 100])
@pytest.mark.parametrize(
    "one, two", [("f4", "f4"), ("i4", "f8"), ("u1", "i2"), ("f2", "f4"), ("f8", "i8")]
)
def test_searchsorted(side: Any, n: int, one: str, two: str) -> None:
    row, x = np.sort(drawn(one, (n,))), drawn(two, (4, 9))
    got = interpreted(lambda a, b: snp.searchsorted(a, b, side), row, x)
    want = np.searchsorted(row, x, side)
    assert got.dtype == want.dtype and (got == want).all()


def test_searchsorted_by_places() -> None:
    row, x = drawn("f4", (50,)), drawn("f4", (3, 5))
    order = np.argsort(row, kind="stable")
    got = sw.jit(lambda a, b, s: snp.searchsorted(a, b, sorter=s))(row, x, order)
    assert (got == np.searchsorted(row, x, sorter=order)).all()


def test_numpys_own_names_and_the_method_in_place() -> None:
    x = drawn("f8", (4, 30))

    def f(x: Any) -> Any:
        order = np.argsort(x, axis=0, kind="stable"), x.argsort()
        y = np.sort(x, axis=None)
        x = x.copy()
        x.sort(axis=0)
        return *order, y, x, np.searchsorted(y, x[0])

    for got, want in zip(sw.jit(f)(x), f(x), strict=True):
        if want.dtype == np.int64:  # NumPy's own sort is stable only where it is asked to be
            np.testing.assert_array_equal(np.sort(got, -1), np.sort(want, -1))
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("k", [0, 1, 5, 40])
def test_top_k(k: int) -> None:
    x = drawn("f4", (3, 40))
    values, places = sw.jit(lambda x: sw.lax.top_k(x, k))(x)
    want = 39 - np.flip(np.argsort(np.flip(x, 1), axis=1, kind="stable"), 1)[:, :k]
    assert places.dtype == np.int32 and (places == want).all()
    assert (bits(values) == bits(np.take_along_axis(x, want, 1))).all()


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: snp.sort(x, axis=2), "axis 2 is out of range for 2 axes"),
        (lambda x: snp.sort(x, kind="bubble"), "kind must be one of .* got 'bubble'"),
        (lambda x: snp.searchsorted(x, x), "a must have one axis, got 2"),
        (lambda x: snp.searchsorted(x[0], x, MIDDLE), "side must be 'left' or 'right'"),
        (lambda x: sw.lax.top_k(x, 5), r"k must lie in 0\.\.4, got 5"),
    ],
)
def test_what_is_refused(function: Any, message: str) -> None:
    with pytest.raises((ValueError, IndexError), match=message):
        sw.jit(function).trace(np.zeros((3, 4), np.float32))


@pytest.mark.parametrize("n", range(2, 9))
def test_exchanges_sort_all_rows_of_zeros_and_ones(n: int) -> None:
    """A network of exchanges that sorts these sorts everything (the 0-1 principle)."""
    x = (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.int32)
    both = sw.jit(lambda x: (snp.sort(x), snp.sort(x.T, axis=0, descending=True)))(x)
    assert (both[0] == np.sort(x)).all() and (both[1] == np.sort(x)[:, ::-1].T).all()
