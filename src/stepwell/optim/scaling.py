"""Stateful transformations that scale updates by statistics of earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend.promotion import is_number
from stepwell.frontend.tree import map as tree_map
from stepwell.optim.numbers import (
    Corrections,
    converted,
    filled,
    like,
    moment,
    one_more,
    settled,
    zero_steps,
    zeros_of,
)
from stepwell.optim.states import (
    GradientTransformation,
    ScaleByAdamState,
    ScaleByLionState,
    ScaleByRmsState,
    ScaleByRmsWithCountState,
    ScaleByRssState,
    ScaleByRStdDevState,
    ScaleByRStdDevWithCountState,
    TraceState,
)


def trace(
    decay: Any, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformation:
    """Return a transformation that accumulates updates with decay: momentum.

    decay : the factor by which the accumulator decays at each step
    nesterov : whether updates are those of the next step's accumulator
    accumulator_dtype : of the accumulator; None is the parameters' dtype
    source : `optax.trace`, Sutskever et al. 2013

    >>> import numpy as np, stepwell as sw
    >>> momentum = sw.optim.trace(0.5)
    >>> state = momentum.init(np.float32([0]))
    >>> first, state = momentum.update(np.float32([1]), state)
    >>> momentum.update(np.float32([1]), state)[0]
    array([1.5], dtype=float32)
    """

    def init(params: Any) -> TraceState:
        return TraceState(zeros_of(params, accumulator_dtype))

    def update(updates: Any, state: TraceState, params: Any = None) -> tuple[Any, TraceState]:
        def added(g: Any, t: Any) -> Any:
            return settled(g + like(decay, t) * t)

        sums = tree_map(added, updates, state.trace)
        found = tree_map(added, updates, sums) if nesterov else sums
        return found, TraceState(converted(sums, accumulator_dtype))

    return GradientTransformation(init, update)


def scale_by_adam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Return a transformation that divides the first moment by the root of the second moment.

    b1, b2 : the decay of the first and of the second moment at each step
    eps, eps_root : constants added to the root, and under it
    mu_dtype : of the first moment; None is the parameters' dtype
    nesterov : whether to use the next step's first moment
    source : `optax.scale_by_adam`, Kingma and Ba 2014, Dozat 2016

    >>> import numpy as np, stepwell as sw
    >>> adam = sw.optim.scale_by_adam()
    >>> adam.update(np.float64([3, -0.1]), adam.init(np.zeros(2)))[0]
    array([ 1.       , -0.9999999])
    """

    def init(params: Any) -> ScaleByAdamState:
        return ScaleByAdamState(zero_steps(), zeros_of(params, mu_dtype), zeros_of(params))

    def update(
        updates: Any, state: ScaleByAdamState, params: Any = None
    ) -> tuple[Any, ScaleByAdamState]:
        mu = moment(updates, state.mu, b1, 1)
        nu = moment(updates, state.nu, b2, 2)
        count = one_more(state.count)
        corrected = Corrections(count)

        def scaled(g: Any, m: Any, v: Any) -> Any:
            if nesterov:
                ahead = like(b1, g) * m / corrected.by(b1, m, more=1)
                mean = ahead + (1 - like(b1, g)) * g / corrected.by(b1, g)
            else:
                mean = m / corrected.by(b1, m)
            square = v / corrected.by(b2, v)
            if not is_number(eps_root) or eps_root:
                square = square + like(eps_root, v)
            return settled(mean / (np.sqrt(square) + like(eps, v)))

        found = tree_map(scaled, updates, mu, nu)
        return found, ScaleByAdamState(count, converted(mu, mu_dtype), nu)

    return GradientTransformation(init, update)


def scale_by_lion(b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None) -> GradientTransformation:
    """Return a transformation to the sign of a moving average of the updates.

    b1 : the weight of the average in the sign
    b2 : the decay of the average at each step
    mu_dtype : of the average; None is the parameters' dtype
    source : `optax.scale_by_lion`, Chen et al. 2023

    >>> import numpy as np, stepwell as sw
    >>> lion = sw.optim.scale_by_lion()
    >>> lion.update(np.float32([3, -0.1]), lion.init(np.zeros(2, np.float32)))[0]
    array([ 1., -1.], dtype=float32)
    """

    def init(params: Any) -> ScaleByLionState:
        return ScaleByLionState(zero_steps(), zeros_of(params, mu_dtype))

    def update(
        updates: Any, state: ScaleByLionState, params: Any = None
    ) -> tuple[Any, ScaleByLionState]:
        def sign(g: Any, m: Any) -> Any:
            return settled(np.sign((1 - like(b1, g)) * g + like(b1, g) * m))

        found = tree_map(sign, updates, state.mu)
        mu = converted(moment(updates, state.mu, b2, 1), mu_dtype)
        return found, ScaleByLionState(one_more(state.count), mu)

    return GradientTransformation(init, update)


def _by_root(g: Any, square: Any, eps: Any, eps_in_sqrt: bool) -> Any:
    """Return an update divided by the root of the second moment."""
    more = like(eps, g)
    return settled(g / (np.sqrt(square + more) if eps_in_sqrt else np.sqrt(square) + more))


def scale_by_rms(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Return a transformation that divides updates by the root of their second moment.

    decay : the decay of the second moment at each step
    eps : a constant added to the root, or under it if ``eps_in_sqrt``
    initial_scale : the initial second moment
    bias_correction : whether to correct the bias of the zero initialization
    source : `optax.scale_by_rms`, Tieleman and Hinton 2012

    >>> import numpy as np, stepwell as sw
    >>> rms = sw.optim.scale_by_rms(decay=0.75)
    >>> rms.update(np.float32([3, -0.1]), rms.init(np.zeros(2, np.float32)))[0]
    array([ 2.      , -1.999996], dtype=float32)
    """

    def init(params: Any) -> Any:
        nu = filled(params, initial_scale)
        return (
            ScaleByRmsWithCountState(zero_steps(), nu) if bias_correction else ScaleByRmsState(nu)
        )

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        nu = moment(updates, state.nu, decay, 2)
        count = one_more(state.count) if bias_correction else None
        corrected = Corrections(count)

        def scaled(g: Any, v: Any) -> Any:
            square = v / corrected.by(decay, v) if bias_correction else v
            return _by_root(g, square, eps, eps_in_sqrt)

        found = tree_map(scaled, updates, nu)
        return found, ScaleByRmsWithCountState(count, nu) if bias_correction else ScaleByRmsState(
            nu
        )

    return GradientTransformation(init, update)


def scale_by_stddev(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Return a transformation that divides updates by their standard deviation so far.

    decay : the decay of the first and second moments at each step
    eps : a constant added to the root, or under it if ``eps_in_sqrt``
    initial_scale : the initial second moment
    bias_correction : whether to correct the bias of the zero initialization
    source : `optax.scale_by_stddev`, Hinton 2012

    >>> import numpy as np, stepwell as sw
    >>> centered = sw.optim.scale_by_stddev(decay=0.5)
    >>> centered.update(np.float32([3]), centered.init(np.zeros(1, np.float32)))[0]
    array([2.], dtype=float32)
    """

    def init(params: Any) -> Any:
        mu, nu = zeros_of(params), filled(params, initial_scale)
        if bias_correction:
            return ScaleByRStdDevWithCountState(zero_steps(), mu, nu)
        return ScaleByRStdDevState(mu, nu)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        mu, nu = moment(updates, state.mu, decay, 1), moment(updates, state.nu, decay, 2)
        count = one_more(state.count) if bias_correction else None
        corrected = Corrections(count)

        def scaled(g: Any, m: Any, v: Any) -> Any:
            if bias_correction:
                m, v = m / corrected.by(decay, m), v / corrected.by(decay, v)
            return _by_root(g, v - m * m, eps, eps_in_sqrt)

        found = tree_map(scaled, updates, mu, nu)
        if bias_correction:
            return found, ScaleByRStdDevWithCountState(count, mu, nu)
        return found, ScaleByRStdDevState(mu, nu)

    return GradientTransformation(init, update)


def scale_by_rss(initial_accumulator_value: Any = 0.1, eps: Any = 1e-7) -> GradientTransformation:
    """Return a transformation that divides updates by the root of the sum of all squares so far.

    initial_accumulator_value : the initial sum
    eps : a constant added under the root; if the sum is 0, the update is 0
    source : `optax.scale_by_rss`, Duchi et al. 2011

    >>> import numpy as np, stepwell as sw
    >>> rss = sw.optim.scale_by_rss(7.0, eps=0.0)
    >>> rss.update(np.float32([3]), rss.init(np.zeros(1, np.float32)))[0]
    array([0.75], dtype=float32)
    """

    def init(params: Any) -> ScaleByRssState:
        return ScaleByRssState(filled(params, initial_accumulator_value))

    def update(
        updates: Any, state: ScaleByRssState, params: Any = None
    ) -> tuple[Any, ScaleByRssState]:
        sums = tree_map(lambda g, s: settled(g * g + s), updates, state.sum_of_squares)

        def scaled(g: Any, s: Any) -> Any:
            some = np.where(s > 0, s, like(1, g)) + like(eps, g)
            return settled(np.where(s > 0, g / np.sqrt(some), g * 0))

        return tree_map(scaled, updates, sums), ScaleByRssState(sums)

    return GradientTransformation(init, update)
