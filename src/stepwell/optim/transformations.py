"""Stateless transformations, those that only count steps, and the composition of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stepwell.frontend.promotion import is_number
from stepwell.frontend.tree import leaves as tree_leaves
from stepwell.frontend.tree import map as tree_map
from stepwell.optim.numbers import like, one_more, settled, zero_steps
from stepwell.optim.states import (
    EmptyState,
    GradientTransformation,
    ScaleByScheduleState,
    Schedule,
)

NO_PARAMS = "its updates depend on the parameters: pass them, update(updates, state, params)"


def chain(*transforms: GradientTransformation) -> GradientTransformation:
    """Return transformations composed into one, whose state is the tuple of their states.

    transforms : each gets the updates of the one before it
    raises ValueError : the state belongs to other transformations
    source : `optax.chain`

    >>> import numpy as np, stepwell as sw
    >>> both = sw.optim.chain(sw.optim.clip(1.0), sw.optim.scale(-0.5))
    >>> both.update(np.float32([3, 0.5]), both.init(np.zeros(2)))[0]
    array([-0.5 , -0.25], dtype=float32)
    """

    def init(params: Any) -> tuple[Any, ...]:
        return tuple(each.init(params) for each in transforms)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        if len(state) != len(transforms):
            raise ValueError(
                f"the state is that of {len(state)} transformations, not of {len(transforms)}; "
                "make it by init of this one"
            )
        after: list[Any] = []
        for each, own in zip(transforms, state, strict=True):
            updates, own = each.update(updates, own, params)
            after.append(own)
        return updates, tuple(after)

    return GradientTransformation(init, update)


def stateless(f: Callable[[Any, Any], Any]) -> GradientTransformation:
    """Return a transformation without state.

    f : ``f(updates, params)`` returns the updates; the parameters are None if not passed
    source : `optax.stateless`

    >>> import numpy as np, stepwell as sw
    >>> double = sw.optim.stateless(lambda u, p: sw.tree.map(lambda x: 2 * x, u))
    >>> double.update(np.float32([3]), double.init(None))
    (array([6.], dtype=float32), EmptyState())
    """

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return f(updates, params), state

    return GradientTransformation(lambda params: EmptyState(), update)


def identity() -> GradientTransformation:
    """Return the transformation that does not change updates.

    source : `optax.identity`

    >>> import stepwell as sw
    >>> sw.optim.identity().update(3.0, sw.optim.EmptyState())
    (3.0, EmptyState())
    """
    return stateless(lambda updates, params: updates)


def set_to_zero() -> GradientTransformation:
    """Return the transformation to zeros, for frozen parameters.

    source : `optax.set_to_zero`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.set_to_zero().update(np.float32([3]), sw.optim.EmptyState())[0]
    array([0.], dtype=float32)
    """
    return stateless(lambda updates, params: tree_map(np.zeros_like, updates))


def scale(step_size: Any) -> GradientTransformation:
    """Return a transformation that multiplies updates by a number.

    step_size : the number
    source : `optax.scale`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.scale(-0.5).update(np.float32([3]), sw.optim.EmptyState())[0]
    array([-1.5], dtype=float32)
    """
    return stateless(lambda updates, params: _times(step_size, updates))


def _times(number: Any, updates: Any) -> Any:
    return tree_map(lambda g: settled(like(number, g) * g), updates)


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Return a transformation that multiplies updates by a schedule's value at the step.

    step_size_fn : the schedule, a function of an int32 scalar
    source : `optax.scale_by_schedule`

    >>> import numpy as np, stepwell as sw
    >>> rising = sw.optim.scale_by_schedule(sw.optim.linear_schedule(1.0, 3.0, 2))
    >>> state = rising.init(None)
    >>> for step in range(3):
    ...     updates, state = rising.update(np.float32([10]), state)
    >>> updates
    array([30.], dtype=float32)
    """

    def init(params: Any) -> ScaleByScheduleState:
        return ScaleByScheduleState(zero_steps())

    def update(
        updates: Any, state: ScaleByScheduleState, params: Any = None
    ) -> tuple[Any, ScaleByScheduleState]:
        found = _times(step_size_fn(state.count), updates)
        return found, ScaleByScheduleState(one_more(state.count))

    return GradientTransformation(init, update)


def scale_by_learning_rate(learning_rate: Any, *, flip_sign: bool = True) -> GradientTransformation:
    """Return a transformation that multiplies updates by a learning rate, and by -1.

    learning_rate : a number or a schedule
    flip_sign : False keeps their sign
    source : `optax.scale_by_learning_rate`

    >>> import numpy as np, stepwell as sw
    >>> rate = sw.optim.scale_by_learning_rate(0.5)
    >>> rate.update(np.float32([3]), rate.init(None))[0]
    array([-1.5], dtype=float32)
    """
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        schedule: Schedule = learning_rate
        return scale_by_schedule(lambda count: sign * schedule(count))
    return scale(sign * learning_rate)


def add_decayed_weights(weight_decay: Any = 0.0, mask: Any = None) -> GradientTransformation:
    """Return a transformation that adds a multiple of the parameters to the updates.

    weight_decay : the factor, or a schedule of it
    mask : a tree of booleans like the parameters or their upper part, or a function from parameters
        to such a tree: False excludes a parameter
    raises ValueError : its ``update`` is called without parameters
    source : `optax.add_decayed_weights`

    >>> import numpy as np, stepwell as sw
    >>> decay = sw.optim.add_decayed_weights(0.1)
    >>> decay.update(np.float32([3]), decay.init(None), np.float32([10]))[0]
    array([4.], dtype=float32)
    """

    def added(updates: Any, params: Any, rate: Any) -> Any:
        if params is None:
            raise ValueError(f"add_decayed_weights: {NO_PARAMS}")
        return tree_map(lambda g, p: settled(g + like(rate, g) * like(p, g)), updates, params)

    if callable(weight_decay):

        def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
            found = added(updates, params, weight_decay(state.count))
            return found, ScaleByScheduleState(one_more(state.count))

        plain = GradientTransformation(lambda params: ScaleByScheduleState(zero_steps()), update)
    else:
        plain = stateless(lambda updates, params: added(updates, params, weight_decay))
    if mask is None:
        return plain
    from stepwell.optim.wrappers import masked

    return masked(plain, mask)


def clip(max_delta: Any) -> GradientTransformation:
    """Return a transformation that clips each element to ``-max_delta`` .. ``max_delta``.

    source : `optax.clip`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.clip(1.0).update(np.float32([3, -0.5]), sw.optim.EmptyState())[0]
    array([ 1. , -0.5], dtype=float32)
    """

    def clipped(g: Any) -> Any:
        most = like(max_delta, g)
        return settled(np.minimum(np.maximum(g, -most), most))

    return stateless(lambda updates, params: tree_map(clipped, updates))


def global_norm(updates: Any) -> Any:
    """Return the root of the sum of the squares of all elements of a tree.

    updates : arrays of floats; 16-bit floats are accumulated in float32
    source : `optax.global_norm`

    >>> import numpy as np, stepwell as sw
    >>> sw.optim.global_norm({"w": np.float32([3, 0]), "b": np.float32([4])})
    array(5., dtype=float32)
    """
    total: Any = None
    for leaf in tree_leaves(updates):
        if not is_number(leaf) and leaf.dtype.itemsize < 4:
            leaf = leaf.astype(np.float32)
        part = np.sum(leaf * leaf)
        total = part if total is None else total + part
    return settled(np.sqrt(np.float32(0) if total is None else total))


def clip_by_global_norm(max_norm: Any) -> GradientTransformation:
    """Return a transformation that scales all updates down if their `global_norm` is too large.

    max_norm : the largest norm of the result, up to rounding
    source : `optax.clip_by_global_norm`, Pascanu et al. 2012

    >>> import numpy as np, stepwell as sw
    >>> clip = sw.optim.clip_by_global_norm(1.0)
    >>> clip.update(np.float32([3, 4]), clip.init(None))[0]
    array([0.6, 0.8], dtype=float32)
    """

    def clipped(updates: Any, params: Any) -> Any:
        norm = global_norm(updates)
        small = norm < max_norm

        def of(g: Any) -> Any:
            return settled(np.where(small, g, g / like(norm, g) * like(max_norm, g)))

        return tree_map(of, updates)

    return stateless(clipped)
