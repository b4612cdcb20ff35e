"""Connectionist temporal classification: the loss of unaligned label sequences. For ``sw.nn``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from stepwell.core.shapes import ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.creation import full, iota
from stepwell.frontend.indexing import taken_along
from stepwell.frontend.joining import concat
from stepwell.frontend.lax_control import scan
from stepwell.frontend.layers.losses import widened
from stepwell.frontend.manipulation import broadcast_to, moveaxis, permute_dims, reshape
from stepwell.frontend.normalization import log_softmax
from stepwell.frontend.promotion import INTEGER, cast, lift
from stepwell.frontend.tensor import Tensor


def ctc_loss(
    logits: Any,
    logit_paddings: Any,
    labels: Any,
    label_paddings: Any,
    *,
    blank_id: int = 0,
    log_epsilon: float = -1e5,
) -> Tensor:
    """Return the negative log probability that the frames spell the labels.

    Each frame is a label or blank; repeated labels count once, unless a blank is between them.

    logits : (B, T, K), of K classes; floats keep their dtype, integers become float32
    logit_paddings : (B, T), 1 for padding frames, which come last, and 0 for others
    labels : (B, N) integers in [0, K), none of them blank; one out of range makes the loss of its
        sequence NaN, unless it is padding
    label_paddings : (B, N), 1 for padding labels, which come last, and 0 for others
    blank_id : the class that is blank
    log_epsilon : the stand-in for the logarithm of 0; labels that the frames cannot spell have
        about its magnitude as loss
    returns : (B,)
    raises ShapeError : sizes do not agree
    raises TypeError : the labels are not integers
    source : `optax.ctc_loss`; Graves et al. 2006

    >>> import numpy as np, stepwell as sw
    >>> logits = np.zeros((1, 2, 2), np.float32)  # aa, a_, _a of four spell a
    >>> f = sw.jit(sw.nn.ctc_loss)
    >>> f(logits, np.zeros((1, 2)), np.array([[1]]), np.zeros((1, 1))).round(4)
    array([0.2877], dtype=float32)
    """
    return ctc_loss_with_forward_probs(
        logits,
        logit_paddings,
        labels,
        label_paddings,
        blank_id=blank_id,
        log_epsilon=log_epsilon,
    )[0]


def ctc_loss_with_forward_probs(
    logits: Any,
    logit_paddings: Any,
    labels: Any,
    label_paddings: Any,
    *,
    blank_id: int = 0,
    log_epsilon: float = -1e5,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `ctc_loss`, and the forward probabilities of each frame.

    logits, logit_paddings, labels, label_paddings, blank_id, log_epsilon : as in `ctc_loss`
    raises : as in `ctc_loss`
    returns : (B,), and two arrays of log probabilities: (T, B, N + 1), that k labels are spelled
        and the frame is blank, and (T, B, N), that the frame is label k
    source : `optax.losses.ctc_loss_with_forward_probs`

    >>> import numpy as np, stepwell as sw
    >>> logits = np.zeros((1, 2, 2), np.float32)
    >>> f = sw.jit(sw.nn.ctc_loss_with_forward_probs)
    >>> loss, blank, label = f(logits, np.zeros((1, 2)), np.array([[1]]), np.zeros((1, 1)))
    >>> blank.shape, label.shape
    ((2, 1, 2), (2, 1, 1))
    """
    kind, (value,) = widened(logits)
    wanted, frames, places = _checked(value, logit_paddings, labels, label_paddings)
    b, time, classes = value.shape
    n = wanted.shape[1]
    scores = log_softmax(value)
    inside = e.clip(wanted, 0, max(classes - 1, 0))
    index = broadcast_to(reshape(inside, (b, 1, n)), (b, time, n))
    label = permute_dims(taken_along(scores, index, 2), (1, 0, 2))
    blank = permute_dims(scores[:, :, blank_id : blank_id + 1], (1, 0, 2))
    rows = _Rows(_again(wanted, value), log_epsilon)
    start = (_initial(b, n, rows, value), full((b, n), log_epsilon, value.kind))

    def step(carry: Any, given: Any) -> Any:
        now_label, now_blank, padded = given
        new = _advance(carry, now_label, now_blank, rows)
        stays = reshape(padded, (b, 1))
        kept = tuple(e.where(stays, old, n) for old, n in zip(carry, new, strict=True))
        return kept, kept

    last, (blanks, spelled) = scan(step, start, (label, blank, moveaxis(frames, 1, 0)))
    done = _add_labels(last[0], last[1])
    count = e.subtract(n, r.sum(places, 1))
    own = e.equal(iota((b, n + 1), 1, INTEGER), reshape(count, (b, 1)))
    loss = e.negative(r.sum(e.where(own, done, 0), 1))
    known = e.logical_and(e.greater_equal(wanted, 0), e.less(wanted, classes))
    fits = r.all(e.logical_or(known, places), 1)
    loss = e.where(fits, loss, math.nan)
    if time:
        blanks = concat([blanks[:-1], reshape(done, (1, b, n + 1))], axis=0)
    return cast(loss, kind), cast(blanks, kind), cast(spelled, kind)


class _Rows(NamedTuple):
    """The data that all frames share."""

    again: Tensor
    """Whether the next label is the same, (B, N)."""
    never: float
    """The stand-in for the logarithm of 0."""


def _checked(
    value: Tensor, logit_paddings: Any, labels: Any, label_paddings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the labels, and masks of padding frames and padding labels; check their shapes."""
    wanted = lift(labels)
    frames, places = (e.greater(lift(v), 0.5) for v in (logit_paddings, label_paddings))
    if value.ndim != 3 or wanted.ndim != 2 or wanted.shape[0] != value.shape[0]:
        raise ShapeError(
            f"ctc_loss takes logits (B, T, K) and labels (B, N), got shapes {value.shape} and "
            f"{wanted.shape}"
        )
    if wanted.kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"the labels name classes by integers, got {wanted.dtype}")
    if frames.shape != value.shape[:2] or places.shape != wanted.shape:
        raise ShapeError(
            f"paddings are {value.shape[:2]} for frames and {wanted.shape} for labels, got shapes "
            f"{frames.shape} and {places.shape}"
        )
    return cast(wanted, INTEGER), frames, places


def _again(labels: Tensor, like: Tensor) -> Tensor:
    b, n = labels.shape
    if n == 0:
        return full((b, 0), False, bool)
    same = e.equal(labels[:, :-1], labels[:, 1:])
    return concat([same, full((b, 1), False, bool)], axis=1)


def _initial(b: int, n: int, rows: _Rows, like: Tensor) -> Tensor:
    """Return the initial log probabilities: no label is spelled."""
    return e.where(e.equal(iota((b, n + 1), 1, INTEGER), 0), lift(0.0, like.kind), rows.never)


def _add_labels(blank: Tensor, label: Tensor) -> Tensor:
    """Add label states to blank states: state k + 1 follows label k."""
    return concat([blank[:, :1], e.logaddexp(blank[:, 1:], label)], axis=1)


def _advance(carry: Any, label: Tensor, blank: Tensor, rows: _Rows) -> tuple[Tensor, Tensor]:
    """Return the log probabilities after another frame.

    A label follows another at once or after blanks; the same label only after a blank.
    """
    at_blank, at_label = carry
    direct = e.where(rows.again, e.add(at_label, rows.never), at_label)
    before = _add_labels(at_blank, direct)
    new_label = e.add(e.logaddexp(before[:, :-1], at_label), label)
    rested = e.where(rows.again, at_label, e.add(at_label, rows.never))
    new_blank = _add_labels(e.add(before, blank), e.add(rested, blank))
    return new_blank, new_label
