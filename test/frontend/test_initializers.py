"""Initialisers of weights have the moments and limits that they are told."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

init = sw.nn.initializers
SHAPE = (60, 5, 70)
INTO, OUT = 5 * 60, 70 * 60
"""Of `SHAPE`, whose first axis is a window."""


def made(make: Any, shape: Any = SHAPE, dtype: Any = None, seed: int = 1) -> Any:
    return interpreted(lambda key: make(key, shape, dtype), sw.random.key(seed))


def check_moments(got: Any, deviation: float, limit: float, kurtosis: float) -> None:
    """Compare mean, deviation, greatest and fourth moment of some 20,000 numbers."""
    x = got.astype(float)
    assert abs(x.mean()) < 4 * deviation / math.sqrt(x.size)
    np.testing.assert_allclose(x.std(), deviation, rtol=0.02)
    np.testing.assert_allclose((x**4).mean() / deviation**4, kurtosis, rtol=0.08)
    assert abs(x).max() <= limit * 1.001 and abs(x).max() > 0.9 * min(limit, 3 * deviation)


SCALED = {
    "glorot_normal": (1 / ((INTO + OUT) / 2), "truncated"),
    "glorot_uniform": (1 / ((INTO + OUT) / 2), "uniform"),
    "he_normal": (2 / INTO, "truncated"),
    "he_uniform": (2 / INTO, "uniform"),
    "kaiming_normal": (2 / INTO, "truncated"),
    "kaiming_uniform": (2 / INTO, "uniform"),
    "lecun_normal": (1 / INTO, "truncated"),
    "lecun_uniform": (1 / INTO, "uniform"),
    "xavier_normal": (1 / ((INTO + OUT) / 2), "truncated"),
    "xavier_uniform": (1 / ((INTO + OUT) / 2), "uniform"),
}
KURTOSIS = {"uniform": 1.8, "truncated": 2.36, "normal": 3.0}
FARTHEST = {"uniform": 3**0.5, "truncated": 2 / 0.8796, "normal": math.inf}


@pytest.mark.parametrize("name", SCALED)
def test_named(name: str) -> None:
    variance, shape = SCALED[name]
    got = made(getattr(init, name)())
    assert got.shape == SHAPE and got.dtype == np.float32
    deviation = math.sqrt(variance)
    check_moments(got, deviation, FARTHEST[shape] * deviation, KURTOSIS[shape])
    call = "(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None)"
    known = inspect.signature(getattr(init, name))
    bare = [p.replace(annotation=p.empty) for p in known.parameters.values()]
    assert str(known.replace(parameters=bare, return_annotation=known.empty)) == call


def test_variance_scaling() -> None:
    """Axes as of `sw.nn.conv`, with a batch of filters before."""
    shape = (2, 30, 40, 3, 3)
    for mode, n in (
        ("fan_in", 40 * 9),
        ("fan_out", 30 * 9),
        ("fan_avg", 35 * 9),
        ("fan_geo_avg", math.sqrt(1200) * 9),
    ):
        make = init.variance_scaling(3.0, mode, "normal", in_axis=2, out_axis=(1,), batch_axis=0)
        deviation = math.sqrt(3 / n)
        check_moments(made(make, shape), deviation, math.inf, 3.0)


def test_plain() -> None:
    check_moments(made(init.normal(0.5)), 0.5, math.inf, 3.0)
    check_moments(made(init.uniform(4.0)) - 2, 4 / math.sqrt(12), 2, 1.8)
    check_moments(made(init.truncated_normal(0.5)), 0.5 * 0.8796, 1.0, 2.36)
    narrow = made(init.truncated_normal(2.0, lower=0.0, upper=1.0))
    assert 0 <= narrow.min() < 0.01 and 1.99 < narrow.max() <= 2
    np.testing.assert_array_equal(made(init.zeros, (2, 3)), np.zeros((2, 3), "f"), strict=True)
    np.testing.assert_array_equal(made(init.ones, (2,), "float64"), np.ones(2), strict=True)
    rows = made(init.constant([1.0, 2.0], "float16"), (3, 2))
    np.testing.assert_array_equal(rows, np.array([[1, 2]] * 3, np.float16), strict=True)
    assert made(init.he_normal(), (0, 4)).shape == (0, 4)
    assert (made(init.normal(), (9,)) != made(init.normal(), (9,), seed=2)).all()


def test_dtypes() -> None:
    for kind in (np.float16, np.float32, np.float64):
        assert made(init.lecun_normal(dtype=kind), (3, 4)).dtype == kind
        assert made(init.orthogonal(), (3, 4), kind).dtype == kind


@pytest.mark.parametrize("shape, axis", [((6, 6), -1), ((9, 4), 1), ((3, 8), -1), ((2, 5, 3), 1)])
def test_orthogonal(shape: tuple[int, ...], axis: int) -> None:
    got = np.moveaxis(made(init.orthogonal(2.0, axis), shape, np.float64), axis, -1)
    rows = got.reshape(-1, shape[axis]) / 2
    product = rows @ rows.T if len(rows) < shape[axis] else rows.T @ rows
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)


def test_orthogonal_matrices_are_even() -> None:
    """The sign of the trace and of the first element are as often this as that."""
    found = [made(init.orthogonal(), (3, 3), seed=k) for k in range(40)]
    assert 8 < sum(x[0, 0] > 0 for x in found) < 32 and 8 < sum(x[2, 2] > 0 for x in found) < 32
    assert 8 < sum(np.linalg.det(x) > 0 for x in found) < 32


def test_delta_orthogonal() -> None:
    got = made(init.delta_orthogonal(), (4, 3, 2, 5), np.float64)
    middle = got[1, 1].copy()
    np.testing.assert_allclose(middle @ middle.T, np.eye(2), atol=1e-12)
    got[1, 1] = 0
    assert not got.any()


def test_outside_of_a_trace() -> None:
    """An initialiser gives arrays there, those that it gives in a trace."""
    key = sw.random.key(1)
    for make in (init.glorot_uniform(), init.constant(2.0), init.orthogonal()):
        alone = make(key, (3, 4))
        assert isinstance(alone, np.ndarray)
        np.testing.assert_allclose(alone, made(make, (3, 4)), rtol=1e-5, atol=1e-6)
