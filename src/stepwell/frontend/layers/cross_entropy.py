"""Cross entropies and other losses of class probabilities and logits. For ``sw.nn``.

Names and order of parameters follow Optax. Each function returns one loss per example: take the
mean. Float16 and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

from stepwell.core.shapes import ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.activations import floats, sigmoid, softplus
from stepwell.frontend.creation import iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.layers.losses import total, widened
from stepwell.frontend.manipulation import broadcast_to, expand_dims, permute_dims, reshape
from stepwell.frontend.normalization import log_softmax, logsumexp
from stepwell.frontend.promotion import as_dtype, cast, is_number, lift
from stepwell.frontend.reduction import along
from stepwell.frontend.tensor import Tensor

_CLASS = as_dtype("i32")
"""The dtype of class indices: as wide as logits, so that a vector holds as many."""


def softmax_cross_entropy(logits: Any, labels: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """Return ``-sum(labels * log_softmax(logits))`` along ``axis``.

    logits : any shape; floats keep their dtype, integers become float32
    labels : probabilities of classes, which broadcast with the logits
    axis : the axis of the classes: an int, a tuple of them, or None for all
    where : booleans that broadcast to the logits, or lack the axis; False excludes a class
    returns : the shape without ``axis``. A logit of -inf needs `safe_softmax_cross_entropy`
    raises AxisError : there is no such axis
    source : `optax.softmax_cross_entropy`

    >>> import numpy as np, stepwell as sw
    >>> labels = np.array([[0.0, 1.0], [0.5, 0.5]])
    >>> sw.jit(sw.nn.softmax_cross_entropy)(np.array([[0.0, 0.0], [1.0, 1.0]]), labels).round(4)
    array([0.6931, 0.6931])
    """
    kind, (value, wanted) = widened(logits, labels)
    chosen = _chosen(where, value, axis)
    found = log_softmax(value, axis, chosen)
    return cast(e.negative(total(e.multiply(wanted, found), axis, chosen)), kind)


def safe_softmax_cross_entropy(logits: Any, labels: Any) -> Tensor:
    """Return `softmax_cross_entropy`, where a class of probability 0 may have a logit of -inf.

    logits, labels : as in `softmax_cross_entropy`, with the classes along the last axis
    returns : the shape without the last axis
    raises AxisError : the logits have no axis
    source : `optax.safe_softmax_cross_entropy`

    >>> import numpy as np, stepwell as sw
    >>> logits, labels = np.array([0.0, 0.0, -np.inf]), np.array([0.0, 1.0, 0.0])
    >>> sw.jit(sw.nn.safe_softmax_cross_entropy)(logits, labels).round(4)
    np.float64(0.6931)
    """
    kind, (value, wanted) = widened(logits, labels)
    found = e.multiply(wanted, log_softmax(value))
    return cast(e.negative(r.sum(e.where(e.equal(wanted, 0), 0, found), -1)), kind)


def softmax_cross_entropy_with_integer_labels(
    logits: Any,
    labels: Any,
    axis: Any = -1,
    where: Any = None,
    *,
    label_smoothing: Any = 0.0,
) -> Tensor:
    """Return ``-log_softmax(logits)`` at the class of each label.

    logits : any shape; floats keep their dtype, integers become float32
    labels : integers of the shape of the logits without ``axis``; one out of range (-1, or the
        number of classes) gives NaN, and does not contribute to the gradient
    axis : the axis of the classes: an int, or a tuple of axes, which are flattened at the end
    where : booleans that broadcast to the logits, or lack the axis; False excludes a class. An
        example without classes has loss 0
    label_smoothing : the part of the probability that all classes share equally
    returns : the shape of the labels
    raises TypeError : the labels are not integers
    raises ShapeError : the labels have another shape
    raises AxisError : there is no such axis
    source : `optax.softmax_cross_entropy_with_integer_labels`, which counts negative labels from
        the end and has no ``label_smoothing``

    >>> import numpy as np, stepwell as sw
    >>> f = sw.jit(sw.nn.softmax_cross_entropy_with_integer_labels)
    >>> f(np.array([[0.0, 0.0], [0.0, 100.0]]), np.array([1, 1])).round(4)
    array([0.6931, 0.    ])
    """
    kind, (value,) = widened(logits)
    chosen = _chosen(where, value, axis)
    at: int
    if isinstance(axis, int):
        at = check_axis(axis, value.ndim)
    else:
        value, chosen = (None if v is None else _last(v, axis) for v in (value, chosen))
        assert value is not None
        at = value.ndim - 1
    wanted = lift(labels)
    shape = (*value.shape[:at], *value.shape[at + 1 :])
    if wanted.kind.kind not in ("signed", "unsigned"):
        raise TypeError(f"the labels name classes by integers, got {wanted.dtype}")
    if wanted.shape != shape:
        raise ShapeError(f"labels of logits {value.shape} are {shape}, got shape {wanted.shape}")
    some = None
    if chosen is not None:  # an example without classes uses all, so that nothing is infinite
        some = r.any(chosen, at)
        chosen = e.logical_or(chosen, expand_dims(e.logical_not(some), at))
    there = e.logical_and(e.greater_equal(wanted, 0), e.less(wanted, value.shape[at]))
    number = expand_dims(cast(wanted, _CLASS), at)
    own = e.equal(iota(value.shape, at, _CLASS), number)
    picked = r.sum(e.where(own, value, 0), at)
    if not (is_number(label_smoothing) and label_smoothing == 0):
        picked = _smoothed(picked, _mean(value, at, chosen), label_smoothing)
    found = e.subtract(logsumexp(value, at, where=chosen), picked)
    found = e.where(there, found, math.nan)
    return cast(found if some is None else e.where(some, found, 0), kind)


def _smoothed(picked: Tensor, mean: Tensor, part: Any) -> Tensor:
    share = part if is_number(part) else cast(lift(part), picked.kind)
    return e.add(picked, e.multiply(e.subtract(mean, picked), share))


def _mean(value: Tensor, axis: int, chosen: Tensor | None) -> Tensor:
    if chosen is None:
        return r.mean(value, axis)
    return e.divide(total(value, axis, chosen), cast(r.sum(chosen, axis), value.kind))


def _chosen(where: Any, value: Tensor, axis: Any) -> Tensor | None:
    """Broadcast booleans, which may lack ``axis``, to the shape of ``value``."""
    if where is None:
        return None
    found = e.truth(lift(where))
    if found.ndim != value.ndim:
        found = expand_dims(found, along(axis, value.ndim))
    return broadcast_to(found, value.shape)


def _last(x: Tensor, axis: Any) -> Tensor:
    """Return ``x`` with some axes flattened into the last one, in their order."""
    try:
        axes = [check_axis(a, x.ndim) for a in axis]
    except TypeError:
        raise TypeError(f"the axis of classes is an int or a tuple, got {axis!r}") from None
    others = [a for a in range(x.ndim) if a not in axes]
    turned = permute_dims(x, (*others, *axes))
    size = math.prod(x.shape[a] for a in axes)
    return reshape(turned, (*(x.shape[a] for a in others), size))


def smooth_labels(labels: Any, alpha: Any, *, axis: Any = -1, where: Any = None) -> Tensor:
    """Return ``(1 - alpha) * labels + alpha / n``, where n is the number of classes.

    labels : probabilities of classes, any shape; floats keep their dtype, integers become float32
    alpha : a number in [0, 1]: the part of the probability that all classes share equally
    axis : the axis of the classes: an int, a tuple of them, or None for all
    where : booleans that broadcast to the labels: the classes to count; all classes get alpha / n
    raises AxisError : there is no such axis
    source : `optax.smooth_labels`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(lambda x: sw.nn.smooth_labels(x, 0.1))(np.array([0.0, 1.0]))
    array([0.05, 0.95])
    """
    kind, (value,) = widened(labels)
    share = alpha if is_number(alpha) else cast(lift(alpha), value.kind)
    count: Any = math.prod(value.shape[a] for a in along(axis, value.ndim))
    if where is not None:
        chosen = broadcast_to(e.truth(lift(where)), value.shape)
        count = cast(r.sum(chosen, axis, keepdims=True), value.kind)
    most = e.multiply(value, e.subtract(1, share) if not is_number(share) else 1 - share)
    return cast(e.add(most, e.divide(_as(share, value), count)), kind)


def _as(number: Any, like: Tensor) -> Tensor:
    return lift(number, like.kind)


def sigmoid_binary_cross_entropy(logits: Any, labels: Any) -> Tensor:
    """Return ``-labels * log(p) - (1 - labels) * log(1 - p)`` for ``p = sigmoid(logits)``.

    logits : any shape; floats keep their dtype, integers become float32
    labels : probabilities (or 0 and 1), of a shape that broadcasts with the logits
    returns : the broadcast shape
    source : `optax.sigmoid_binary_cross_entropy`

    >>> import numpy as np, stepwell as sw
    >>> f = sw.jit(sw.nn.sigmoid_binary_cross_entropy)
    >>> f(np.array([0.0, -100.0]), np.array([1.0, 1.0])).round(4)
    array([  0.6931, 100.    ])
    """
    (like,) = floats(logits)
    kind, (value, wanted) = widened(like, cast(lift(labels), like.kind))
    positive = e.greater_equal(value, 0)
    tail = softplus(e.where(positive, e.negative(value), value))
    line = e.multiply(value, e.subtract(e.where(positive, 1, _as(0, value)), wanted))
    return cast(e.add(line, tail), kind)


def sigmoid_focal_loss(logits: Any, labels: Any, *, alpha: Any = None, gamma: Any = 2.0) -> Tensor:
    """Return the binary cross entropy, times ``(1 - p)**gamma`` for the label's probability p.

    logits : any shape; floats keep their dtype, integers become float32
    labels : 0 and 1, or probabilities, of a shape that broadcasts with the logits
    alpha : the weight of label 1; label 0 has weight ``1 - alpha``. None weighs neither
    gamma : how strongly confident predictions are discounted
    returns : the broadcast shape
    source : `optax.sigmoid_focal_loss`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.sigmoid_focal_loss)(np.array([0.0, 4.0]), np.array([1.0, 1.0])).round(5)
    array([1.7329e-01, 1.0000e-05])
    """
    (like,) = floats(logits)
    kind, (value, wanted) = widened(like, cast(lift(labels), like.kind))
    loss = sigmoid_binary_cross_entropy(value, wanted)
    other = e.subtract(1, wanted)
    chance = sigmoid(value)
    right = e.add(e.multiply(chance, wanted), e.multiply(e.subtract(1, chance), other))
    loss = e.multiply(loss, e.pow(e.subtract(1, right), gamma))
    if alpha is not None:
        weight = e.add(
            e.multiply(wanted, alpha), e.multiply(other, e.subtract(1, _as(alpha, value)))
        )
        loss = e.multiply(loss, weight)
    return cast(loss, kind)


def kl_divergence(log_predictions: Any, targets: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """Return ``sum(targets * (log(targets) - log_predictions))`` along ``axis``.

    log_predictions : logarithms of probabilities, any shape; floats keep their dtype, integers
        become float32
    targets : probabilities, of a shape that broadcasts with the predictions; 0 contributes 0
    axis : an int, a tuple of them, or None for all
    where : booleans that broadcast to them; False excludes an element
    returns : the broadcast shape without ``axis``
    raises AxisError : there is no such axis
    source : `optax.kl_divergence`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.kl_divergence)(np.log([0.5, 0.5]), np.array([1.0, 0.0])).round(4)
    np.float64(0.6931)
    """
    kind, (value, wanted) = widened(log_predictions, targets)
    own = e.where(e.equal(wanted, 0), 0, e.log(wanted))
    return cast(total(e.multiply(wanted, e.subtract(own, value)), axis, where), kind)


def kl_divergence_with_log_targets(
    log_predictions: Any, log_targets: Any, axis: Any = -1, where: Any = None
) -> Tensor:
    """Return `kl_divergence` for targets given as logarithms.

    log_predictions, axis, where, returns, raises : as in `kl_divergence`
    log_targets : logarithms of probabilities
    source : `optax.kl_divergence_with_log_targets`

    >>> import numpy as np, stepwell as sw
    >>> near, far = np.log([0.5, 0.5]), np.log([0.75, 0.25])
    >>> sw.jit(sw.nn.kl_divergence_with_log_targets)(near, far).round(4)
    np.float64(0.1308)
    """
    kind, (value, wanted) = widened(log_predictions, log_targets)
    loss = e.multiply(e.exp(wanted), e.subtract(wanted, value))
    return cast(total(loss, axis, where), kind)
