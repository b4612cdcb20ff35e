"""Optimizers under optax's names: each is a chain of transformations."""

from __future__ import annotations

from typing import Any

from stepwell.frontend.promotion import is_number
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.state.variables import Variable
from stepwell.optim.numbers import like, settled
from stepwell.optim.scaling import (
    scale_by_adam,
    scale_by_lion,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
    trace,
)
from stepwell.optim.states import GradientTransformation
from stepwell.optim.transformations import (
    add_decayed_weights,
    chain,
    identity,
    scale_by_learning_rate,
)


def apply_updates(params: Any, updates: Any) -> Any:
    """Return parameters with their updates added, in the parameters' dtypes.

    params : a tree of arrays; a `sw.Variable` is updated in place, and returned
    updates : a tree of the same structure; None leaves a parameter unchanged
    raises ValueError : the structures differ
    source : `optax.apply_updates`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.apply_updates({"w": np.float32([1, 2])}, {"w": np.float32([0.5, -1])})
    {'w': array([1.5, 1. ], dtype=float32)}
    """
    given, tree = flatten(params)
    found = _updates(params, updates, tree)
    return unflatten(tree, [_added(p, u) for p, u in zip(given, found, strict=True)])


def _updates(params: Any, updates: Any, tree: Any) -> list[Any]:
    """Return an update for each leaf of the parameters, None for unchanged ones."""
    leaves, built = flatten(updates)
    if built == tree:
        return leaves
    found: list[Any] = []

    def beside(part: Any, update: Any, path: str) -> None:
        own, structure = flatten(part)
        if update is None or structure is ...:
            found.extend([update] * len(own))
            return
        parts, others = _children(part), _children(update)
        if type(part) is not type(update) or parts.keys() != others.keys():
            raise ValueError(f"the updates are built otherwise than the parameters at {path}")
        for step, child in parts.items():
            beside(child, others[step], f"{path}[{step!r}]")

    beside(params, updates, "params")
    return found


def _children(value: Any) -> dict[Any, Any]:
    """Return the children of a container, in the order of its leaves."""
    if isinstance(value, dict):
        return {key: value[key] for key in sorted(value)}
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    return dict(sorted(getattr(value, "__dict__", {}).items()))


def _added(p: Any, u: Any) -> Any:
    if u is None:
        return p
    if is_number(p):
        return p + u
    if isinstance(p, Variable):
        return p.assign(like(p + u, p))
    return settled(like(p + u, p))


def sgd(
    learning_rate: Any,
    momentum: Any = None,
    nesterov: bool = False,
    accumulator_dtype: Any = None,
) -> GradientTransformation:
    """Return gradient descent, optionally with momentum.

    learning_rate : a number or a schedule
    momentum : the part of the last step that is added to the next; None is no momentum
    nesterov : whether to use Nesterov's momentum
    accumulator_dtype : of the momentum; None is the parameters' dtype
    source : `optax.sgd`

    >>> import numpy as np, stepwell as sw
    >>> sgd = sw.optim.sgd(0.1)
    >>> sgd.update(np.float32([3]), sgd.init(np.float32([1])))[0]
    array([-0.3], dtype=float32)
    """
    first = identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    return chain(first, scale_by_learning_rate(learning_rate))


def adam(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Return Adam.

    learning_rate : a number or a schedule
    b1, b2, eps, eps_root, mu_dtype, nesterov : as in `scale_by_adam`
    source : `optax.adam`, Kingma and Ba 2014

    A whole compiled step: the donated arrays are returned, and none is copied.

    >>> import numpy as np, stepwell as sw
    >>> adam = sw.optim.adam(0.1)
    >>> @sw.jit(donate_argnames=("w", "state"))
    ... def step(w, state, x):
    ...     gradient = 2 * (w - x)
    ...     updates, state = adam.update(gradient, state, w)
    ...     return sw.optim.apply_updates(w, updates), state
    >>> w = np.zeros(2, np.float32)
    >>> state = adam.init(w)
    >>> for _ in range(100):
    ...     w, state = step(w, state, np.float32([1, -2]))
    >>> np.round(w, 1)
    array([ 1., -2.], dtype=float32)
    """
    scaled = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    return chain(scaled, scale_by_learning_rate(learning_rate))


def adamw(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: Any = 1e-4,
    mask: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Return Adam with decoupled weight decay.

    learning_rate : a number or a schedule, also of the decay
    b1, b2, eps, eps_root, mu_dtype, nesterov : as in `scale_by_adam`
    weight_decay, mask : as in `add_decayed_weights`
    source : `optax.adamw`, Loshchilov and Hutter 2019

    >>> import numpy as np, stepwell as sw
    >>> adamw, w = sw.optim.adamw(0.1, weight_decay=0.01), np.float64([10])
    >>> adamw.update(np.float64([3]), adamw.init(w), w)[0]
    array([-0.11])
    """
    scaled = scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)
    decayed = add_decayed_weights(weight_decay, mask)
    return chain(scaled, decayed, scale_by_learning_rate(learning_rate))


def nadam(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
) -> GradientTransformation:
    """Return Adam with Nesterov's momentum.

    learning_rate : a number or a schedule
    b1, b2, eps, eps_root, mu_dtype : as in `scale_by_adam`
    source : `optax.nadam`, Dozat 2016

    >>> import numpy as np, stepwell as sw
    >>> nadam, w = sw.optim.nadam(0.1), np.float32([10])
    >>> nadam.update(np.float32([3]), nadam.init(w), w)[0]
    array([-0.14736842], dtype=float32)
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=True)


def nadamw(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: Any = 1e-4,
    mask: Any = None,
) -> GradientTransformation:
    """Return `adamw` with Nesterov's momentum.

    learning_rate : a number or a schedule, also of the decay
    b1, b2, eps, eps_root, mu_dtype : as in `scale_by_adam`
    weight_decay, mask : as in `add_decayed_weights`
    source : `optax.nadamw`, Dozat 2016, Loshchilov and Hutter 2019

    >>> import numpy as np, stepwell as sw
    >>> nadamw, w = sw.optim.nadamw(0.1, weight_decay=0.0), np.float32([10])
    >>> nadamw.update(np.float32([3]), nadamw.init(w), w)[0]
    array([-0.14736842], dtype=float32)
    """
    settings = (b1, b2, eps, eps_root, mu_dtype, weight_decay, mask)
    return adamw(learning_rate, *settings, nesterov=True)


def rmsprop(
    learning_rate: Any,
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Any = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Return RMSProp.

    learning_rate : a number or a schedule
    decay, eps, initial_scale, eps_in_sqrt, bias_correction : as in `scale_by_rms`
    centered : whether to divide updates by their standard deviation: `scale_by_stddev`
    momentum, nesterov : as in `trace`, applied after the learning rate
    source : `optax.rmsprop`, Tieleman and Hinton 2012

    >>> import numpy as np, stepwell as sw
    >>> rmsprop, w = sw.optim.rmsprop(0.1, decay=0.75), np.float32([10])
    >>> rmsprop.update(np.float32([3]), rmsprop.init(w), w)[0]
    array([-0.2], dtype=float32)
    """
    by = scale_by_stddev if centered else scale_by_rms
    return chain(
        by(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
    )


def lion(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.99,
    mu_dtype: Any = None,
    weight_decay: Any = 1e-3,
    mask: Any = None,
) -> GradientTransformation:
    """Return Lion: steps of constant size, by the sign of an average of the gradients.

    learning_rate : a number or a schedule, also of the decay
    b1, b2, mu_dtype : as in `scale_by_lion`
    weight_decay, mask : as in `add_decayed_weights`
    source : `optax.lion`, Chen et al. 2023

    >>> import numpy as np, stepwell as sw
    >>> lion, w = sw.optim.lion(0.1, weight_decay=0.0), np.float32([10, 10])
    >>> lion.update(np.float32([3, -2]), lion.init(w), w)[0]
    array([-0.1,  0.1], dtype=float32)
    """
    decayed = add_decayed_weights(weight_decay, mask)
    return chain(scale_by_lion(b1, b2, mu_dtype), decayed, scale_by_learning_rate(learning_rate))


def adagrad(
    learning_rate: Any, initial_accumulator_value: Any = 0.1, eps: Any = 1e-7
) -> GradientTransformation:
    """Return AdaGrad: steps get smaller for parameters that had large gradients.

    learning_rate : a number or a schedule
    initial_accumulator_value, eps : as in `scale_by_rss`
    source : `optax.adagrad`, Duchi et al. 2011

    >>> import numpy as np, stepwell as sw
    >>> adagrad, w = sw.optim.adagrad(0.1, 7.0), np.float32([10])
    >>> adagrad.update(np.float32([3]), adagrad.init(w), w)[0]
    array([-0.075], dtype=float32)
    """
    by = scale_by_rss(initial_accumulator_value, eps)
    return chain(by, scale_by_learning_rate(learning_rate))
