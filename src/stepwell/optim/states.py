"""What transformations of gradients are, and what they keep between steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Leaves: TypeAlias = Any
"""A tree of arrays (`sw.tree`): parameters, gradients, updates."""
Schedule: TypeAlias = Callable[[Any], Any]
"""Gives a number for the number of steps done."""


class GradientTransformation(NamedTuple):
    """Two functions that make updates of gradients, and what they keep between steps.

    init : ``init(params)`` returns the first state, a tree of arrays
    update : ``update(updates, state, params=None)`` returns the updates and the next state, two
        trees; nothing is changed in place
    source : `optax.GradientTransformation`

    Both run in a function given to `sw.jit`, where they are part of its program, and outside of
    one, where NumPy computes. Updates keep the dtype of the gradients: Python numbers and what
    schedules give are converted to it.

    >>> import numpy as np, stepwell as sw
    >>> negate = sw.optim.GradientTransformation(lambda p: (), lambda u, s, p=None: (-u, s))
    >>> negate.update(np.float32([1, -2]), negate.init(np.zeros(2)))
    (array([-1.,  2.], dtype=float32), ())
    """

    init: Callable[..., Any]
    update: Callable[..., Any]


class EmptyState(NamedTuple):
    """The state of a transformation that keeps nothing.

    source : `optax.EmptyState`

    >>> import stepwell as sw
    >>> sw.optim.identity().init(None)
    EmptyState()
    """


class TraceState(NamedTuple):
    """What `trace` keeps.

    trace : the sum so far, a tree like the parameters
    source : `optax.TraceState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.trace(0.9).init(np.float32([3]))
    TraceState(trace=array([0.], dtype=float32))
    """

    trace: Leaves


class ScaleByAdamState(NamedTuple):
    """What `scale_by_adam` keeps.

    count : how many steps were done, an int32
    mu, nu : means of the gradients and of their squares, trees like the parameters
    source : `optax.ScaleByAdamState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_adam().init(np.float32([3])).nu
    array([0.], dtype=float32)
    """

    count: Any
    mu: Leaves
    nu: Leaves


class ScaleByLionState(NamedTuple):
    """What `scale_by_lion` keeps.

    count : how many steps were done, an int32
    mu : a mean of the gradients, a tree like the parameters
    source : `optax.ScaleByLionState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_lion().init(np.float32([3])).mu
    array([0.], dtype=float32)
    """

    count: Any
    mu: Leaves


class ScaleByRmsState(NamedTuple):
    """What `scale_by_rms` keeps.

    nu : a mean of the squares of gradients, a tree like the parameters
    source : `optax.ScaleByRmsState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_rms(initial_scale=1.0).init(np.float32([3])).nu
    array([1.], dtype=float32)
    """

    nu: Leaves


class ScaleByRmsWithCountState(NamedTuple):
    """What `scale_by_rms` keeps where it corrects the bias of the first steps.

    count : how many steps were done, an int32
    nu : a mean of the squares of gradients, a tree like the parameters
    source : `optax.ScaleByRmsWithCountState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_rms(bias_correction=True).init(np.float32([3])).count
    array(0, dtype=int32)
    """

    count: Any
    nu: Leaves


class ScaleByRStdDevState(NamedTuple):
    """What `scale_by_stddev` keeps.

    mu, nu : means of the gradients and of their squares, trees like the parameters
    source : `optax.ScaleByRStdDevState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_stddev().init(np.float32([3])).mu
    array([0.], dtype=float32)
    """

    mu: Leaves
    nu: Leaves


class ScaleByRStdDevWithCountState(NamedTuple):
    """What `scale_by_stddev` keeps where it corrects the bias of the first steps.

    count : how many steps were done, an int32
    mu, nu : means of the gradients and of their squares, trees like the parameters
    source : `optax.ScaleByRStdDevWithCountState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_stddev(bias_correction=True).init(np.float32([3])).count
    array(0, dtype=int32)
    """

    count: Any
    mu: Leaves
    nu: Leaves


class ScaleByRssState(NamedTuple):
    """What `scale_by_rss` keeps.

    sum_of_squares : of all gradients so far, a tree like the parameters
    source : `optax.ScaleByRssState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_rss(0.5).init(np.float32([3])).sum_of_squares
    array([0.5], dtype=float32)
    """

    sum_of_squares: Leaves


class ScaleByScheduleState(NamedTuple):
    """What `scale_by_schedule` keeps.

    count : how many steps were done, an int32
    source : `optax.ScaleByScheduleState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale_by_schedule(lambda count: 0.1).init(None)
    ScaleByScheduleState(count=array(0, dtype=int32))
    """

    count: Any


class MaskedState(NamedTuple):
    """What `masked` keeps.

    inner_state : that of the transformation within
    source : `optax.MaskedState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.masked(sw.optim.scale(2.0), True).init(np.ones(1))
    MaskedState(inner_state=EmptyState())
    """

    inner_state: Any


class MaskedNode(NamedTuple):
    """What stands where `masked` leaves a parameter out: a container with nothing in it.

    source : `optax.MaskedNode`

    >>> import stepwell as sw
    >>> sw.tree.leaves({"w": 1, "b": sw.optim.MaskedNode()})
    [1]
    """


class InjectHyperparamsState(NamedTuple):
    """What `inject_hyperparams` keeps.

    count : how many steps were done, an int32
    hyperparams : a dict of the numbers that the next step is done with
    inner_state : that of the transformation within
    source : `optax.InjectHyperparamsState`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.inject_hyperparams(sw.optim.scale)(step_size=0.5).init(np.float32([1])).hyperparams
    {'step_size': array(0.5, dtype=float32)}
    """

    count: Any
    hyperparams: dict[str, Any]
    inner_state: Any
