"""Gradients of layers and losses against differences in float64; batches of them by `sw.vmap`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
from stepwell.frontend import nn as n

R = np.random.default_rng(3)


def drawn(*shape: int) -> Any:
    return R.standard_normal(shape)


P, LAB = R.dirichlet(np.ones(7), (2, 3)), R.integers(0, 7, (2, 3))
MASK = R.random((2, 3, 7)) > 0.3
MASK[0, 0] = False
Q, K, V, S = drawn(2, 5, 6, 4), drawn(2, 7, 3, 4), drawn(2, 7, 3, 4), drawn(2, 6, 5, 7)
SEEN = R.random((2, 6, 5, 7)) > 0.4
SEEN[0, 1, 2] = False
LENGTHS: dict[str, Any] = {
    "query_seq_lengths": np.array([3, 5]),
    "key_value_seq_lengths": np.array([7, 2]),
}
KEY = np.array([0, 7], np.uint32)
ENDS, UNSAID = np.arange(5) >= np.array([[5], [3]]), np.arange(3) >= np.array([[3], [1]])
SIGNS = np.sign(drawn(3, 4))
LSTM, GRU = (
    (drawn(3, 20), drawn(5, 20), drawn(20)),
    (drawn(3, 15), drawn(5, 15), drawn(15), drawn(15)),
)
CASES: dict[str, tuple[Any, ...]] = {
    "dense": (n.dense, drawn(2, 4, 3), drawn(3, 5), drawn(5)),
    "embedding": (lambda t: n.embedding(np.array([[1, 0], [-1, 1]]), t), drawn(4, 3)),
    "conv": (
        lambda x, w, b: n.conv(x, w, 2, "SAME", 2, 2, b),
        drawn(2, 4, 6, 5),
        drawn(6, 2, 3, 2),
        drawn(6),
    ),
    "conv of one axis": (lambda x, w: n.conv(x, w, 1, 1), drawn(2, 4, 6), drawn(6, 4, 3)),
    "conv of three axes": (lambda x, w: n.conv(x, w), drawn(1, 2, 4, 3, 3), drawn(3, 2, 2, 2, 2)),
    "conv_transpose": (
        lambda x, w, b: n.conv_transpose(x, w, 2, 1, 2, 2, 1, b),
        drawn(2, 4, 3, 3),
        drawn(4, 3, 3, 2),
        drawn(6),
    ),
    "max_pool": (lambda x: n.max_pool(x, 2), drawn(2, 2, 4, 5)),
    "avg_pool": (lambda x: n.avg_pool(x, 3, 2, 1), drawn(2, 2, 5, 5)),
    "global_avg_pool": (n.global_avg_pool, drawn(2, 3, 4)),
    "layer_norm": (n.layer_norm, drawn(3, 5), drawn(5), drawn(5)),
    "rms_norm": (n.rms_norm, drawn(3, 5), drawn(5)),
    "batch_norm": (
        lambda x, m, v, s, b: n.batch_norm(x, m, v, s, b),
        drawn(3, 2, 4),
        drawn(2),
        abs(drawn(2)),
        drawn(2),
        drawn(2),
    ),
    "batch_norm_training": (
        lambda x, s, b: n.batch_norm_training(x, np.zeros(2), np.ones(2), s, b)[0],
        drawn(3, 2, 4),
        drawn(2),
        drawn(2),
    ),
    "group_norm": (lambda x, s, b: n.group_norm(x, 2, s, b), drawn(2, 4, 3), drawn(4), drawn(4)),
    "instance_norm": (n.instance_norm, drawn(2, 4, 3), drawn(4), drawn(4)),
    "weight_standardize": (n.weight_standardize, drawn(4, 3, 2), drawn(4)),
    "standardize": (n.standardize, drawn(3, 4)),
    "attention": (n.dot_product_attention, Q, K, V),
    "attention, causal with bias": (
        lambda q, k, v, b: n.dot_product_attention(q, k, v, b, is_causal=True),
        Q,
        K,
        V,
        S,
    ),
    "attention, masked": (
        lambda q, k, v: n.dot_product_attention(q, k, v, mask=SEEN, local_window_size=2, **LENGTHS),
        Q,
        K,
        V,
    ),
    "rotary": (n.rotary_embedding, drawn(5, 2, 4)),
    "rotary, interleaved": (lambda x: n.rotary_embedding(x, interleaved=True), drawn(5, 2, 4)),
    "lstm_cell": (
        lambda h, c, x, w, u, b: n.lstm_cell((h, c), x, w, u, b)[1],
        drawn(2, 5),
        drawn(2, 5),
        drawn(2, 3),
        *LSTM,
    ),
    "lstm": (lambda x, w, u, b: n.lstm(x, w, u, b)[1], drawn(4, 2, 3), *LSTM),
    "lstm of several lengths": (
        lambda x, w, u, b: n.lstm(x, w, u, b, lengths=np.array([4, 2]), reverse=True)[1],
        drawn(4, 2, 3),
        *LSTM,
    ),
    "gru": (lambda x, w, u, b, c, h: n.gru(x, w, u, b, c, h)[1], drawn(4, 2, 3), *GRU, drawn(2, 5)),
    "rnn": (lambda x, w, u: n.rnn(x, w, u)[1], drawn(4, 2, 3), drawn(3, 5), drawn(5, 5)),
    "dropout": (lambda x: n.dropout(x, 0.4, KEY), drawn(6, 5)),
    "dropout by a traced rate": (lambda x: n.dropout(x, np.float64(0.4) * 1, KEY), drawn(6, 5)),
    "softmax_cross_entropy": (lambda x, p: n.softmax_cross_entropy(x, p), drawn(2, 3, 7), P),
    "softmax_cross_entropy where": (
        lambda x, p: n.softmax_cross_entropy(x, p, where=MASK),
        drawn(2, 3, 7),
        P,
    ),
    "safe_softmax_cross_entropy": (
        lambda x, p: n.safe_softmax_cross_entropy(x, p),
        drawn(2, 3, 7),
        P,
    ),
    "integer labels": (
        lambda x: n.softmax_cross_entropy_with_integer_labels(x, LAB),
        drawn(2, 3, 7),
    ),
    "integer labels where": (
        lambda x: n.softmax_cross_entropy_with_integer_labels(
            x, LAB, where=MASK, label_smoothing=0.1
        ),
        drawn(2, 3, 7),
    ),
    "smooth_labels": (lambda x: n.smooth_labels(x, 0.1), P),
    "sigmoid_binary_cross_entropy": (
        n.sigmoid_binary_cross_entropy,
        drawn(3, 4) * 3,
        R.random((3, 4)),
    ),
    "sigmoid_focal_loss": (
        lambda x, y: n.sigmoid_focal_loss(x, y, alpha=0.3),
        drawn(3, 4) * 2,
        R.random((3, 4)),
    ),
    "squared_error": (n.squared_error, drawn(3, 4), drawn(3, 4)),
    "l2_loss": (n.l2_loss, drawn(3, 4), drawn(3, 4)),
    "huber_loss": (n.huber_loss, drawn(3, 4) * 2, drawn(3, 4)),
    "log_cosh": (n.log_cosh, drawn(3, 4) * 2, drawn(3, 4)),
    "cosine_similarity": (n.cosine_similarity, drawn(3, 4), drawn(3, 4)),
    "cosine_distance": (
        lambda a, b: n.cosine_distance(a, b, where=MASK[1, :, :4], epsilon=1e-6),
        drawn(3, 4),
        drawn(3, 4),
    ),
    "hinge_loss": (lambda x: n.hinge_loss(x, SIGNS), drawn(3, 4)),
    "kl_divergence": (n.kl_divergence, np.log(P), P),
    "kl_divergence_with_log_targets": (
        n.kl_divergence_with_log_targets,
        np.log(P),
        np.log(P[::-1]),
    ),
    "ctc": (
        lambda x: n.ctc_loss(x, ENDS, np.array([[1, 1, 2], [2, 0, 0]]), UNSAID),
        drawn(2, 5, 4),
    ),
    "log1mexp": (n.log1mexp, abs(drawn(3, 4)) + 0.1),
    "logmeanexp": (lambda x: n.logmeanexp(x, 1), drawn(3, 4)),
}


class Slopes:
    """A case along one direction: its loss, and how that changes."""

    def __init__(self, name: str) -> None:
        self.function, *self.args = CASES[name]
        self.ways = [np.sin(1.7 * np.arange(a.size) + 0.3).reshape(a.shape) for a in self.args]

    def loss(self, *values: Any) -> Any:
        found = self.function(*values)
        return (found * np.cos(np.arange(found.size)).reshape(found.shape)).sum()

    def along(self, f: Any, values: Any) -> Any:
        slopes = sw.grad(f, argnums=tuple(range(len(values))))(*values)
        return sum((slope * way).sum() for slope, way in zip(slopes, self.ways, strict=True))

    def first(self, *values: Any) -> Any:
        return self.along(self.loss, values)

    def second(self, *values: Any) -> Any:
        return self.along(self.first, values)

    def check(self, slope: Any, f: Any) -> None:
        """Compare a slope with differences of what it is the slope of."""
        got = interpreted(lambda *values: slope(*values), *self.args)
        ends: list[Any] = []
        for step in (1e-5, -1e-5):
            moved = [a + step * way for a, way in zip(self.args, self.ways, strict=True)]
            ends.append(interpreted(lambda *values: f(*values), *moved))
        np.testing.assert_allclose(got, (ends[0] - ends[1]) / 2e-5, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    case = Slopes(name)
    case.check(case.first, case.loss)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_gradient_of_gradient(name: str) -> None:
    case = Slopes(name)
    case.check(case.second, case.first)


def check_batch(name: str) -> None:
    """Compare a layer of three examples, and the gradients of each, with one example at a time."""
    function, *args = CASES[name]
    many = [np.stack([a, a * 0.75, a * 0.5]) for a in args]

    def slopes(*values: Any) -> Any:
        return sw.grad(lambda *v: (function(*v) ** 2).sum(), tuple(range(len(values))))(*values)

    def both(*values: Any) -> Any:
        return function(*values), slopes(*values)

    found, gradients = interpreted(lambda *values: sw.vmap(both)(*values), *many)
    for k in range(3):
        want, each = interpreted(lambda *values: both(*values), *(m[k] for m in many))
        np.testing.assert_allclose(found[k], want, rtol=1e-9, atol=1e-9)
        for got, one in zip(gradients, each, strict=True):
            np.testing.assert_allclose(got[k], one, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "name", ["attention, masked", "ctc", "embedding", "lstm of several lengths"]
)
def test_batch(name: str) -> None:
    check_batch(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_batch(name: str) -> None:
    check_batch(name)


def test_slopes_where_formulas_have_kinks() -> None:
    """A logit is 0 where training begins, and an error where it ends."""
    slope = sw.grad(lambda x, y: n.sigmoid_binary_cross_entropy(x, y).sum())
    nought, labels = np.zeros(3), np.array([0.0, 1.0, 0.25])
    first, second = interpreted(
        lambda x, y: (slope(x, y), sw.grad(lambda x: slope(x, y).sum())(x)), nought, labels
    )
    np.testing.assert_allclose(first, 0.5 - labels)
    np.testing.assert_allclose(second, 0.25)
    for loss in (n.log_cosh, n.huber_loss, n.l2_loss):
        got = interpreted(lambda x, loss=loss: sw.grad(lambda x: loss(x).sum())(x), nought)
        np.testing.assert_array_equal(got, nought)


def test_labels_out_of_range_have_no_gradient() -> None:
    def loss(x: Any) -> Any:
        each = n.softmax_cross_entropy_with_integer_labels(x, np.array([1, -1, 3]))
        return np.where(np.array([True, False, False]), each, 0).sum()

    got = interpreted(lambda x: sw.grad(loss)(x), np.zeros((3, 3)))
    np.testing.assert_allclose(got, [[1 / 3, -2 / 3, 1 / 3], [0, 0, 0], [0, 0, 0]])
    direct = interpreted(
        lambda x: sw.grad(
            lambda x: n.softmax_cross_entropy_with_integer_labels(x, np.array([1, -1, 3])).sum()
        )(x),
        np.zeros((3, 3)),
    )
    np.testing.assert_array_equal(direct[1:], 0)


def test_what_is_computed_again() -> None:
    """Neither scores of attention nor masks of dropout wait for the backward pass."""

    def loss(x: Any, key: Any) -> Any:
        h = sw.nn.dropout(np.sin(x), 0.5, key)
        return np.sum(sw.nn.dot_product_attention(h, h, h) ** 2)

    x, key = np.ones((2, 256, 4, 32), np.float32), np.array([0, 1], np.uint32)
    text = str(sw.jit(sw.value_and_grad(loss)).trace(x, key).lower("kernels"))
    assert text.count("kernel.launch @loss_softmax") == 2
    assert text.count("_xor ins(%key") == 2
