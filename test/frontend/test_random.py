"""stepwell.random: published vectors, reproducible arrays, moments and distribution functions."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
from stepwell.frontend.normal_quantile import normal_quantile

KEY = sw.random.key(2026)
N = 40_000


@pytest.mark.parametrize(
    "counter, key, words",
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_published_vectors_of_threefry(counter: Any, key: Any, words: Any) -> None:
    """The known answers that its authors publish (Random123, threefry2x32, 20 rounds)."""
    start = np.uint64(counter[0] | counter[1] << 32)
    drawn = sw.jit(lambda k, s: sw.lax.random_bits(k, s, (), "ui64"))(
        np.array(key, np.uint32), start
    )
    assert (int(drawn) & 0xFFFFFFFF, int(drawn) >> 32) == words


def drawn(key: Any) -> dict[str, Any]:
    r, n = sw.random, (N,)
    return {
        "uniform": r.uniform(key, n),
        "uniform f32": r.uniform(key, n, np.float32, -1, 3),
        "normal": r.normal(key, n),
        "normal f32": r.normal(key, n, np.float32, loc=2, scale=0.5),
        "truncated": r.truncated_normal(key, -1.0, 2.0, n),
        "exponential": r.exponential(key, n, scale=3.0),
        "gumbel": r.gumbel(key, n),
        "laplace": r.laplace(key, n),
        "logistic": r.logistic(key, n),
        "rayleigh": r.rayleigh(key, n),
        "cauchy": r.cauchy(key, n),
        "gamma": r.gamma(key, 2.0, n),
        "gamma of less than 1": r.gamma(key, 0.5, n),
        "beta": r.beta(key, 2.0, 1.0, n),
        "chisquare": r.chisquare(key, 2.0, n),
    }


def _phi(x: Any) -> Any:
    return np.vectorize(NormalDist().cdf)(x)


def _gamma_two(x: Any) -> Any:
    return 1 - np.exp(-x) * (1 + x)


LOW, HIGH = NormalDist().cdf(-1), NormalDist().cdf(2)
DISTRIBUTIONS: dict[str, Any] = {
    "uniform": lambda x: x,
    "uniform f32": lambda x: (x + 1) / 4,
    "normal": _phi,
    "normal f32": lambda x: _phi((x - 2) / 0.5),
    "truncated": lambda x: (_phi(x) - LOW) / (HIGH - LOW),
    "exponential": lambda x: -np.expm1(-x / 3),
    "gumbel": lambda x: np.exp(-np.exp(-x)),
    "laplace": lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "rayleigh": lambda x: -np.expm1(-x * x / 2),
    "cauchy": lambda x: np.arctan(x) / math.pi + 0.5,
    "gamma": _gamma_two,
    "gamma of less than 1": lambda x: np.vectorize(math.erf)(np.sqrt(x)),
    "beta": lambda x: x * x,
    "chisquare": lambda x: -np.expm1(-x / 2),
}


@pytest.fixture(scope="module")
def samples() -> dict[str, Any]:
    return sw.jit(drawn)(KEY)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_kolmogorov_and_smirnov(samples: dict[str, Any], name: str) -> None:
    """The greatest distance to the distribution function; above 1.95 once in 1000 seeds."""
    x = np.sort(samples[name].astype(np.float64))
    below = DISTRIBUTIONS[name](x)
    steps = np.arange(N + 1) / N
    distance = max((steps[1:] - below).max(), (below - steps[:-1]).max())
    assert distance * math.sqrt(N) < 1.95, distance
    ranks = np.argsort(np.argsort(samples[name]))
    neighbours = np.corrcoef(ranks[:-1], ranks[1:])[0, 1]
    assert abs(neighbours) * math.sqrt(N) < 3.3, "neighbours depend on each other"


def counted(key: Any) -> dict[str, Any]:
    r = sw.random
    logits = np.log(np.array([0.1, 0.2, 0.7]))
    return {
        "integers": (r.integers(key, -3, 7, (N,)), -3, [0.1] * 10),
        "randint": (r.randint(key, (N,), 5, 9, np.int32), 5, [0.25] * 4),
        "traced bounds": (r.integers(key, key[0] * 0, 3, (N,), endpoint=True), 0, [0.25] * 4),
        "bernoulli": (r.bernoulli(key, 0.3, (N,)), 0, [0.7, 0.3]),
        "categorical": (r.categorical(key, logits, shape=(N,)), 0, [0.1, 0.2, 0.7]),
        "choice": (r.choice(key, 4, (N,)), 0, [0.25] * 4),
        "choice p": (r.choice(key, 3, (N,), p=np.array([2, 5, 3])), 0, [0.2, 0.5, 0.3]),
        "poisson": (r.poisson(key, 2.0, (N,)), 0, _poisson(2.0, 12)),
        "large poisson": (r.poisson(key, 20.0, (N,)), 0, _poisson(20.0, 60)),
    }


def _poisson(mean: float, n: int) -> list[float]:
    return [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(n)]


def test_counts() -> None:
    """Chi-square of counts, within 5 deviations of what is expected of it."""
    found = sw.jit(lambda key: {k: v[0] for k, v in counted(key).items()})(KEY)
    wanted = _known_shares()
    for name, x in found.items():
        first, shares = wanted[name][0], np.array(wanted[name][1])
        counts = np.bincount(np.asarray(x, np.int64) - first, minlength=len(shares))
        assert len(counts) == len(shares), name
        likely = shares * N > 5
        expected = shares[likely] * N
        distance = ((counts[likely] - expected) ** 2 / expected).sum()
        freedom = max(likely.sum() - 1, 1)
        assert distance < freedom + 5 * math.sqrt(2 * freedom), (name, distance)


def _known_shares() -> dict[str, Any]:
    known: dict[str, Any] = {}

    def note(key: Any) -> Any:
        known.update({k: v[1:] for k, v in counted(key).items()})
        return key

    sw.jit(note).trace(KEY)
    return known


def test_what_is_rejected_of_many_is_drawn_again_as_of_few() -> None:
    many = sw.random.gamma(KEY, 0.7, 20_000)
    np.testing.assert_array_equal(many[:50], sw.random.gamma(KEY, 0.7, 50))
    assert (many > 0).all()


def test_an_element_depends_on_its_number_and_the_key_alone() -> None:
    both = sw.jit(lambda k: (sw.random.uniform(k, (1000,)), sw.random.uniform(k, (5, 3))))(KEY)
    assert (both[0][:15].reshape(5, 3) == both[1]).all()
    assert (sw.random.uniform(KEY, (5, 3)) == both[1]).all(), "outside of a trace"
    assert (interpreted(lambda k: sw.random.uniform(k, (5, 3)), KEY) == both[1]).all()
    for dtype in (np.float32, np.float16):
        assert sw.random.uniform(KEY, 9, dtype).dtype == dtype


def test_known_answers() -> None:
    """What was drawn once is drawn for ever."""
    key = sw.random.key(42)
    assert key.tolist() == [0, 42]
    assert sw.random.split(key).tolist() == [[2228815013, 3181546281], [501912151, 962414221]]
    assert sw.random.fold_in(key, 3).tolist() == [402485642, 156017177]
    assert sw.random.bits(key, 2).tolist() == [1832780943, 430176367]
    assert sw.random.uniform(key, 2).tolist() == [0.06302018031168899, 0.8114628775744135]
    assert sw.random.permutation(key, 10).tolist() == [9, 8, 0, 2, 7, 5, 3, 4, 1, 6]


def test_keys() -> None:
    keys = sw.random.split(KEY, (3, 2))
    assert keys.shape == (3, 2, 2) and len({tuple(k) for k in keys.reshape(6, 2).tolist()}) == 6
    folded = sw.jit(lambda k, i: (sw.random.fold_in(k, i), sw.random.key(i)))(KEY, 7)
    assert (folded[0] == sw.random.fold_in(KEY, 7)).all() and folded[1].tolist() == [0, 7]
    assert sw.random.key(-1).tolist() == [2**32 - 1] * 2 and sw.random.key(2**40).tolist() == [
        256,
        0,
    ]


def test_orders() -> None:
    x = np.arange(60.0).reshape(20, 3)
    rows = sw.random.permutation(KEY, x)
    assert (
        (np.sort(rows, 0) == x).all() and (rows[:, 1] == rows[:, 0] + 1).all() and (rows != x).any()
    )
    each = sw.random.permutation(KEY, x, independent=True)
    assert (np.sort(each, 0) == x).all() and (each[:, 1] != each[:, 0] + 1).any()
    few = sw.random.choice(KEY, x, (7,), replace=False)
    assert len({tuple(row) for row in few.tolist()}) == 7
    some = sw.random.choice(KEY, 5, (2,), replace=False, p=np.array([0, 1, 0, 1, 0]))
    assert sorted(some.tolist()) == [1, 3]
    assert sorted(sw.random.shuffle(KEY, np.arange(9)).tolist()) == list(range(9))


def test_shapes() -> None:
    assert sw.random.normal(KEY).shape == () and sw.random.normal(KEY, (0, 3)).shape == (0, 3)
    assert sw.random.normal(KEY, loc=np.arange(3.0)).shape == (3,)
    assert sw.random.dirichlet(KEY, np.ones(4), (2,)).sum(-1) == pytest.approx([1, 1])
    assert sw.random.categorical(KEY, np.zeros((3, 4)), axis=0).shape == (4,)


def test_the_inverse_of_the_normal_distribution() -> None:
    p = np.concatenate([np.linspace(0.001, 0.999, 500), 10.0 ** -np.arange(2, 300, 7)])
    want = np.array([NormalDist().inv_cdf(v) for v in p])
    np.testing.assert_allclose(sw.jit(lambda p: normal_quantile(p))(p), want, rtol=1e-14)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: sw.random.normal(np.zeros(2)), TypeError, "a key is uint32 of shape"),
        (lambda: sw.random.uniform(KEY, 3, np.int32), TypeError, "these numbers are floats"),
        (lambda: sw.random.integers(KEY, 3, 3), ValueError, "low >= high"),
        (lambda: sw.random.integers(KEY, 0, 300, 2, np.int8), ValueError, "out of bounds for i8"),
        (lambda: sw.random.integers(KEY, 0.5, 3), TypeError, "integer"),
        (lambda: sw.random.choice(KEY, 3, 4, replace=False), ValueError, "cannot take 4 of 3"),
        (lambda: sw.random.choice(KEY, 3, 4, p=np.ones(2)), ValueError, "p has shape"),
        (lambda: sw.random.key(0.5), TypeError, "float"),
        (lambda: sw.random.key(1 << 64), OverflowError, "up to 64 bits"),
        (lambda: sw.random.shuffle(KEY, 4), TypeError, "use permutation"),
        (lambda: sw.random.normal(KEY, (2,), loc=np.zeros(3)), ValueError, "broadcast"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
