"""The interface of gradient transformations, and the states that they keep between steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Leaves: TypeAlias = Any
"""A tree of arrays (`sw.tree`): parameters, gradients, updates."""
Schedule: TypeAlias = Callable[[Any], Any]
"""A function from the number of steps done to a number."""


class GradientTransformation(NamedTuple):
    """A pair of functions from gradients to updates, with a state between steps.

    init : ``init(params)`` returns the first state, a tree of arrays
    update : ``update(updates, state, params=None)`` returns the updates and the next state, two
        trees; nothing is changed in place
    source : `optax.GradientTransformation`

    Both work in a function given to `sw.jit`, where they become part of its program, and outside,
    where NumPy computes. Updates keep the dtype of the gradients: Python numbers and the values of
    schedules are converted to it.

    >>> import numpy as np, stepwell as sw
    >>> negate = sw.optim.GradientTransformation(lambda p: (), lambda u, s, p=None: (-u, s))
    >>> negate.update(np.float32([1, -2]), negate.init(np.zeros(2)))
    (array([-1.,  2.], dtype=float32), ())
    """

    init: Callable[..., Any]
    update: Callable[..., Any]


class EmptyState(NamedTuple):
    """The state of a stateless transformation.

    source : `optax.EmptyState`

    >>> import stepwell as sw
    >>> sw.optim.identity().init(None)
    EmptyState()
    """


class TraceState(NamedTuple):
    """The state of `trace`.

    trace : the accumulator, a tree like the parameters
    source : `optax.TraceState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.trace(0.9).init(np.float32([3]))
    TraceState(trace=array([0.], dtype=float32))
    """

    trace: Leaves


class ScaleByAdamState(NamedTuple):
    """The state of `scale_by_adam`.

    count : the number of steps done, an int32
    mu, nu : the first and second moments of the gradients, trees like the parameters
    source : `optax.ScaleByAdamState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_adam().init(np.float32([3])).nu
    array([0.], dtype=float32)
    """

    count: Any
    mu: Leaves
    nu: Leaves


class ScaleByLionState(NamedTuple):
    """The state of `scale_by_lion`.

    count : the number of steps done, an int32
    mu : a moving average of the gradients, a tree like the parameters
    source : `optax.ScaleByLionState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_lion().init(np.float32([3])).mu
    array([0.], dtype=float32)
    """

    count: Any
    mu: Leaves


class ScaleByRmsState(NamedTuple):
    """The state of `scale_by_rms`.

    nu : the second moment of the gradients, a tree like the parameters
    source : `optax.ScaleByRmsState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_rms(initial_scale=1.0).init(np.float32([3])).nu
    array([1.], dtype=float32)
    """

    nu: Leaves


class ScaleByRmsWithCountState(NamedTuple):
    """The state of `scale_by_rms` with bias correction.

    count : the number of steps done, an int32
    nu : the second moment of the gradients, a tree like the parameters
    source : `optax.ScaleByRmsWithCountState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_rms(bias_correction=True).init(np.float32([3])).count
    array(0, dtype=int32)
    """

    count: Any
    nu: Leaves


class ScaleByRStdDevState(NamedTuple):
    """The state of `scale_by_stddev`.

    mu, nu : the first and second moments of the gradients, trees like the parameters
    source : `optax.ScaleByRStdDevState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_stddev().init(np.float32([3])).mu
    array([0.], dtype=float32)
    """

    mu: Leaves
    nu: Leaves


class ScaleByRStdDevWithCountState(NamedTuple):
    """The state of `scale_by_stddev` with bias correction.

    count : the number of steps done, an int32
    mu, nu : the first and second moments of the gradients, trees like the parameters
    source : `optax.ScaleByRStdDevWithCountState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_stddev(bias_correction=True).init(np.float32([3])).count
    array(0, dtype=int32)
    """

    count: Any
    mu: Leaves
    nu: Leaves


class ScaleByRssState(NamedTuple):
    """The state of `scale_by_rss`.

    sum_of_squares : the sum over all gradients so far, a tree like the parameters
    source : `optax.ScaleByRssState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_rss(0.5).init(np.float32([3])).sum_of_squares
    array([0.5], dtype=float32)
    """

    sum_of_squares: Leaves


class ScaleByScheduleState(NamedTuple):
    """The state of `scale_by_schedule`.

    count : the number of steps done, an int32
    source : `optax.ScaleByScheduleState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_schedule(lambda count: 0.1).init(None)
    ScaleByScheduleState(count=array(0, dtype=int32))
    """

    count: Any


class MaskedState(NamedTuple):
    """The state of `masked`.

    inner_state : the state of the inner transformation
    source : `optax.MaskedState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.masked(sw.optim.scale(2.0), True).init(np.ones(1))
    MaskedState(inner_state=EmptyState())
    """

    inner_state: Any


class MaskedNode(NamedTuple):
    """A placeholder for a parameter that `masked` excludes: an empty container.

    source : `optax.MaskedNode`

    >>> import stepwell as sw
    >>> sw.tree.leaves({"w": 1, "b": sw.optim.MaskedNode()})
    [1]
    """


class InjectHyperparamsState(NamedTuple):
    """The state of `inject_hyperparams`.

    count : the number of steps done, an int32
    hyperparams : a dict of the next step's hyperparameters
    inner_state : the state of the inner transformation
    source : `optax.InjectHyperparamsState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.inject_hyperparams(sw.optim.scale)(step_size=0.5).init(np.float32([1])).hyperparams
    {'step_size': array(0.5, dtype=float32)}
    """

    count: Any
    hyperparams: dict[str, Any]
    inner_state: Any
