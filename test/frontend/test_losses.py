"""Losses of `sw.nn`, against what they mean in NumPy."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

R = np.random.default_rng(11)
X, Y = (R.standard_normal((3, 5)) * 3 for _ in range(2))
LOGITS = R.standard_normal((2, 3, 7)) * 4
PROBABLE = R.dirichlet(np.ones(7), (2, 3))
LABELS = R.integers(0, 7, (2, 3))
MASK = R.random((2, 3, 7)) > 0.3
MASK[0, 0] = False
KEPT = MASK.copy()
KEPT[0, 0, 0] = True

SIGNATURES = {
    "cosine_distance": "(predictions, targets, *, epsilon=0.0, axis=-1, where=None)",
    "cosine_similarity": "(predictions, targets, *, epsilon=0.0, axis=-1, where=None)",
    "ctc_loss": "(logits, logit_paddings, labels, label_paddings, *, blank_id=0, log_epsilon=-100000.0)",
    "hinge_loss": "(predictor_outputs, targets)",
    "huber_loss": "(predictions, targets=None, *, delta=1.0)",
    "kl_divergence": "(log_predictions, targets, axis=-1, where=None)",
    "kl_divergence_with_log_targets": "(log_predictions, log_targets, axis=-1, where=None)",
    "l2_loss": "(predictions, targets=None)",
    "log_cosh": "(predictions, targets=None)",
    "safe_softmax_cross_entropy": "(logits, labels)",
    "sigmoid_binary_cross_entropy": "(logits, labels)",
    "sigmoid_focal_loss": "(logits, labels, *, alpha=None, gamma=2.0)",
    "smooth_labels": "(labels, alpha, *, axis=-1, where=None)",
    "softmax_cross_entropy": "(logits, labels, axis=-1, where=None)",
    "softmax_cross_entropy_with_integer_labels": "(logits, labels, axis=-1, where=None, *, label_smoothing=0.0)",
    "squared_error": "(predictions, targets=None)",
}
"""Optax's, but for `label_smoothing`."""


def log_softmax(x: Any, axis: Any = -1, where: Any = True) -> Any:
    return x - np.log(np.sum(np.exp(x), axis, keepdims=True, where=where))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def cosine(a: Any, b: Any, axis: Any = -1) -> Any:
    return np.sum(a * b, axis) / np.sqrt(np.sum(a * a, axis) * np.sum(b * b, axis))


def named(x: Any, labels: Any, axis: int = -1) -> Any:
    return -np.take_along_axis(x, np.expand_dims(labels, axis), axis).squeeze(axis)


UNLIKELY = np.where(PROBABLE > 0.2, PROBABLE, 0)
ONES = (X > 0).astype(float)
CASES: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "squared_error": (lambda n, x, y: n.squared_error(x, y), (X, Y), (X - Y) ** 2),
    "squared_error of 0": (lambda n, x: n.squared_error(x), (X,), X**2),
    "squared_error of a number": (lambda n, x: n.squared_error(x, 2), (X,), (X - 2) ** 2),
    "l2_loss": (lambda n, x, y: n.l2_loss(x, y), (X, Y), (X - Y) ** 2 / 2),
    "huber_loss": (
        lambda n, x, y: n.huber_loss(x, y, delta=2.0),
        (X, Y),
        np.where(abs(X - Y) < 2, (X - Y) ** 2 / 2, 2 * abs(X - Y) - 2),
    ),
    "log_cosh": (lambda n, x, y: n.log_cosh(x, y), (X, Y), np.log(np.cosh(X - Y))),
    "hinge_loss": (
        lambda n, x, y: n.hinge_loss(x, y),
        (X, np.sign(Y)),
        np.maximum(1 - X * np.sign(Y), 0),
    ),
    "cosine_similarity": (lambda n, x, y: n.cosine_similarity(x, y), (X, Y), cosine(X, Y)),
    "cosine_similarity of all": (
        lambda n, x, y: n.cosine_similarity(x, y, axis=None),
        (X, Y),
        cosine(X, Y, None),
    ),
    "cosine_similarity where": (
        lambda n, x, y: n.cosine_similarity(x, y, where=X > 0, epsilon=1e-6),
        (X, Y),
        cosine(X * ONES, Y * ONES),
    ),
    "cosine_similarity of zeros": (
        lambda n, x, y: n.cosine_similarity(x * 0, y, epsilon=1e-6),
        (X, Y),
        np.zeros(3),
    ),
    "cosine_distance": (
        lambda n, x, y: n.cosine_distance(x, y, axis=0),
        (X, Y),
        1 - cosine(X, Y, 0),
    ),
    "softmax_cross_entropy": (
        lambda n, x, p: n.softmax_cross_entropy(x, p),
        (LOGITS, PROBABLE),
        -(PROBABLE * log_softmax(LOGITS)).sum(-1),
    ),
    "softmax_cross_entropy of axes": (
        lambda n, x, p: n.softmax_cross_entropy(x, p, (0, 2)),
        (LOGITS, PROBABLE),
        -(PROBABLE * log_softmax(LOGITS, (0, 2))).sum((0, 2)),
    ),
    "softmax_cross_entropy where": (
        lambda n, x, p: n.softmax_cross_entropy(x, p, where=KEPT),
        (LOGITS, PROBABLE),
        -(PROBABLE * log_softmax(LOGITS, -1, KEPT)).sum(-1, where=KEPT),
    ),
    "safe_softmax_cross_entropy": (
        lambda n, x, p: n.safe_softmax_cross_entropy(np.where(p == 0, -np.inf, x), p),
        (LOGITS, UNLIKELY),
        -(UNLIKELY * log_softmax(LOGITS, -1, UNLIKELY > 0)).sum(-1),
    ),
    "integer labels": (
        lambda n, x: n.softmax_cross_entropy_with_integer_labels(x, LABELS),
        (LOGITS,),
        named(log_softmax(LOGITS), LABELS),
    ),
    "integer labels of an axis": (
        lambda n, x: n.softmax_cross_entropy_with_integer_labels(x, LABELS[:, :1] % 3, 1),
        (LOGITS[:, :, :1],),
        named(log_softmax(LOGITS[:, :, :1], 1), LABELS[:, :1] % 3, 1),
    ),
    "integer labels of axes": (
        lambda n, x: n.softmax_cross_entropy_with_integer_labels(x, [5, 9, 0], (0, 2)),
        (LOGITS,),
        [
            -log_softmax(LOGITS, (0, 2))[i, k, j]
            for k, (i, j) in enumerate([(0, 5), (1, 2), (0, 0)])
        ],
    ),
    "integer labels where": (
        lambda n, x: n.softmax_cross_entropy_with_integer_labels(x, LABELS, where=MASK),
        (LOGITS,),
        np.where(MASK.any(-1), named(log_softmax(LOGITS, -1, KEPT), LABELS), 0),
    ),
    "integer labels, smoothed": (
        lambda n, x: n.softmax_cross_entropy_with_integer_labels(x, LABELS, label_smoothing=0.25),
        (LOGITS,),
        0.75 * named(log_softmax(LOGITS), LABELS) - 0.25 * log_softmax(LOGITS).mean(-1),
    ),
    "integer labels out of range": (
        lambda n, x: n.softmax_cross_entropy_with_integer_labels(x, [[0, -1, 7], [1, 2, 99]]),
        (LOGITS,),
        np.where(
            [[1, 0, 0], [1, 1, 0]], named(log_softmax(LOGITS), [[0, 0, 0], [1, 2, 0]]), np.nan
        ),
    ),
    "smooth_labels": (lambda n, p: n.smooth_labels(p, 0.3), (PROBABLE,), 0.7 * PROBABLE + 0.3 / 7),
    "smooth_labels where": (
        lambda n, p: n.smooth_labels(p, 0.3, where=KEPT),
        (PROBABLE,),
        0.7 * PROBABLE + 0.3 / KEPT.sum(-1, keepdims=True),
    ),
    "sigmoid_binary_cross_entropy": (
        lambda n, x, p: n.sigmoid_binary_cross_entropy(x, p),
        (LOGITS, PROBABLE),
        -PROBABLE * np.log(sigmoid(LOGITS)) - (1 - PROBABLE) * np.log(sigmoid(-LOGITS)),
    ),
    "sigmoid_binary_cross_entropy of booleans": (
        lambda n, x: n.sigmoid_binary_cross_entropy(x, X > 0),
        (X,),
        -np.log(sigmoid(np.where(X > 0, X, -X))),
    ),
    "sigmoid_focal_loss": (
        lambda n, x, y: n.sigmoid_focal_loss(x, y, alpha=0.25, gamma=1.5),
        (X, ONES),
        np.where(ONES > 0, 0.25, 0.75)
        * -np.log(sigmoid(np.where(ONES > 0, X, -X)))
        * (1 - sigmoid(np.where(ONES > 0, X, -X))) ** 1.5,
    ),
    "kl_divergence": (
        lambda n, x, p: n.kl_divergence(x, p),
        (log_softmax(LOGITS), UNLIKELY),
        (UNLIKELY * (np.log(np.where(UNLIKELY > 0, UNLIKELY, 1)) - log_softmax(LOGITS))).sum(-1),
    ),
    "kl_divergence where": (
        lambda n, x, p: n.kl_divergence(x, p, 0, MASK),
        (log_softmax(LOGITS), PROBABLE),
        (PROBABLE * (np.log(PROBABLE) - log_softmax(LOGITS))).sum(0, where=MASK),
    ),
    "kl_divergence_with_log_targets": (
        lambda n, x, p: n.kl_divergence_with_log_targets(x, p),
        (log_softmax(LOGITS), np.log(PROBABLE)),
        (PROBABLE * (np.log(PROBABLE) - log_softmax(LOGITS))).sum(-1),
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    known = inspect.signature(getattr(sw.nn, name))
    bare = [p.replace(annotation=p.empty) for p in known.parameters.values()]
    spelled = known.replace(parameters=bare, return_annotation=known.empty)
    assert str(spelled) == SIGNATURES[name]


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    call, args, want = CASES[name]
    for kind, rtol in ((np.float64, 1e-12), (np.float32, 2e-5), (np.float16, 3e-2)):
        got = interpreted(lambda *xs: call(sw.nn, *xs), *(x.astype(kind) for x in args))
        assert got.dtype == kind
        np.testing.assert_allclose(got, np.asarray(want), rtol=rtol, atol=rtol)


def test_far_from_nought() -> None:
    """Logits that overflow `exp`, in float16 too, have finite losses, exact where they are large."""
    x = np.array([[1000.0, -1000.0], [-1000.0, 1000.0]])
    for kind in (np.float64, np.float32, np.float16):
        given = x.astype(kind)
        got = interpreted(
            lambda x: sw.nn.softmax_cross_entropy_with_integer_labels(x, [0, 0]), given
        )
        np.testing.assert_array_equal(got, np.array([0, 2000], kind), strict=True)
        got = interpreted(lambda x: sw.nn.sigmoid_binary_cross_entropy(x, [[1, 1], [1, 0]]), given)
        np.testing.assert_array_equal(got, np.array([[0, 1000], [1000, 1000]], kind), strict=True)
    tiny = interpreted(
        lambda x: sw.nn.sigmoid_binary_cross_entropy(x, 1), np.array([20.0], np.float32)
    )
    np.testing.assert_allclose(tiny, np.exp(-20.0), rtol=1e-5)


def test_of_nothing() -> None:
    empty = np.zeros((0, 4), np.float32)
    loss = interpreted(
        lambda x: sw.nn.softmax_cross_entropy_with_integer_labels(x, np.zeros(0, np.int32)), empty
    )
    assert loss.shape == (0,)
    assert interpreted(lambda x: sw.nn.squared_error(x, x), empty).shape == (0, 4)
    number = interpreted(lambda x: sw.nn.huber_loss(x, 1.0), np.float32(3.0))
    assert float(number) == 1.5
    whole = interpreted(lambda x: sw.nn.squared_error(x, 1), np.arange(3))
    np.testing.assert_array_equal(whole, np.array([1, 0, 1], np.float32), strict=True)


def spelled(path: tuple[int, ...], blank: int) -> tuple[int, ...]:
    """Return what frames say: repeated labels once, blanks not at all."""
    return tuple(k for k, _ in itertools.groupby(path) if k != blank)


def by_all_paths(scores: Any, labels: Any, blank: int) -> float:
    """Return the loss by adding up the probability of every path that spells the labels."""
    frames, classes = scores.shape
    found = 0.0
    for path in itertools.product(range(classes), repeat=frames):
        if spelled(path, blank) == tuple(labels):
            found += float(np.exp(scores[np.arange(frames), list(path)].sum()))
    return -np.log(found)


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc(blank: int) -> None:
    logits = R.standard_normal((4, 5, 3))
    a, b = (k for k in range(3) if k != blank)
    labels = np.array([[a, b, a], [a, a, -1], [b, 0, 0], [99, 0, 0]])
    frames, places = [5, 4, 3, 2], [3, 2, 1, 0]
    ends = np.arange(5) >= np.array(frames)[:, None]
    unsaid = np.arange(3) >= np.array(places)[:, None]

    def call(x: Any) -> Any:
        return sw.nn.ctc_loss(x, ends, labels, unsaid.astype(np.float32), blank_id=blank)

    got = interpreted(call, logits)
    for k in range(4):
        scores = log_softmax(logits[k, : frames[k]])
        want = by_all_paths(scores, labels[k, : places[k]], blank)
        np.testing.assert_allclose(got[k], want, rtol=1e-9)
    halves = interpreted(call, logits.astype(np.float16))
    assert halves.dtype == np.float16
    np.testing.assert_allclose(halves, got, rtol=5e-3)


def test_ctc_of_what_cannot_be() -> None:
    logits = np.zeros((2, 2, 3))
    labels = np.array([[1, 1, 2], [1, 7, 2]])
    got = interpreted(
        lambda x: sw.nn.ctc_loss(x, np.zeros((2, 2)), labels, np.zeros((2, 3))), logits
    )
    assert got[0] > 9e4 and np.isnan(got[1])
    loss, blanks, said = interpreted(
        lambda x: sw.nn.ctc_loss_with_forward_probs(x, [[0], [0]], [[1], [2]], [[0], [1]]),
        np.zeros((2, 1, 3), np.float32),
    )
    np.testing.assert_allclose(loss, np.log([3, 3]), rtol=1e-6)
    assert blanks.shape == (1, 2, 2) and said.shape == (1, 2, 1)
