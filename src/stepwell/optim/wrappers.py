"""Transformations of a part of the parameters, and hyperparameters that are state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np

from stepwell.frontend.promotion import is_number
from stepwell.frontend.tree import leaves as tree_leaves
from stepwell.frontend.tree import map as tree_map
from stepwell.optim.numbers import one_more, prefixed, settled, zero_steps
from stepwell.optim.states import (
    GradientTransformation,
    InjectHyperparamsState,
    MaskedNode,
    MaskedState,
)


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformation:
    """Return a transformation that applies ``inner`` to a part of the parameters only.

    inner : the transformation; it gets `MaskedNode` for the other parameters, which have no state
    mask : a tree of booleans like the parameters, or like their upper part, or a function from
        parameters to such a tree
    raises ValueError : the mask has another structure
    source : `optax.masked`

    >>> import numpy as np, stepwell as sw
    >>> some = sw.optim.masked(sw.optim.scale(2.0), {"w": True, "b": False})
    >>> params = {"w": np.float32([1]), "b": np.float32([1])}
    >>> some.update(params, some.init(params))[0]
    {'w': array([2.], dtype=float32), 'b': array([1.], dtype=float32)}
    """

    def mask_of(tree: Any) -> Any:
        return prefixed(mask(tree) if callable(mask) else mask, tree)

    def within(tree: Any, mask_of: Any) -> Any:
        return tree_map(lambda leaf, use: leaf if use else MaskedNode(), tree, mask_of)

    def init(params: Any) -> MaskedState:
        return MaskedState(inner.init(within(params, mask_of(params))))

    def update(updates: Any, state: MaskedState, params: Any = None) -> tuple[Any, MaskedState]:
        use = mask_of(updates if params is None else params)
        given = None if params is None else within(params, use)
        found, own = inner.update(within(updates, use), state.inner_state, given)
        changed = iter(tree_leaves(found))
        # in order of the leaves: masked parameters have none
        return tree_map(lambda g, u: next(changed) if u else g, updates, use), MaskedState(own)

    return GradientTransformation(init, update)


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation], static_args: Iterable[str] = ()
) -> Callable[..., GradientTransformation]:
    """Return an optimizer factory whose hyperparameters are part of the state and may be changed.

    inner_factory : the factory of the transformation, as `adam`
    static_args : arguments that stay constant

    Numbers are arrays in the dtype of the first parameter; schedules are evaluated at each step.
    Compiled code reads them like other state: changing one needs no compilation.

    source : `optax.inject_hyperparams`

    >>> import numpy as np, stepwell as sw
    >>> scale = sw.optim.inject_hyperparams(sw.optim.scale)(step_size=0.5)
    >>> state = scale.init(np.float32([3]))
    >>> state.hyperparams["step_size"] = np.float32(2)
    >>> scale.update(np.float32([3]), state)[0]
    array([6.], dtype=float32)
    """
    signature = inspect.signature(inner_factory)
    kept = {static_args} if isinstance(static_args, str) else set(static_args)

    @wraps(inner_factory)
    def factory(*args: Any, **kwargs: Any) -> GradientTransformation:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        schedules = {n: v for n, v in given.items() if callable(v) and n not in kept}
        numbers = {n: v for n, v in given.items() if _is_hyperparameter(v) and n not in kept}

        def inner(values: dict[str, Any]) -> GradientTransformation:
            now = inspect.BoundArguments(signature, dict(given))  # pyright: ignore[reportArgumentType]
            now.arguments.update(values)
            return inner_factory(*now.args, **now.kwargs)

        def of(count: Any, held: dict[str, Any], like: Any) -> dict[str, Any]:
            dtype = _dtype(like)
            found = {n: _as(held[n], dtype) for n in numbers}
            return found | {n: _as(schedule(count), dtype) for n, schedule in schedules.items()}

        def init(params: Any) -> InjectHyperparamsState:
            count = zero_steps()
            values = of(count, numbers, params)
            return InjectHyperparamsState(count, values, inner(values).init(params))

        def update(
            updates: Any, state: InjectHyperparamsState, params: Any = None
        ) -> tuple[Any, InjectHyperparamsState]:
            values = of(state.count, state.hyperparams, updates)
            found, own = inner(values).update(updates, state.inner_state, params)
            return found, InjectHyperparamsState(one_more(state.count), values, own)

        return GradientTransformation(init, update)

    return factory


def _is_hyperparameter(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return is_number(value) or isinstance(value, np.ndarray | np.generic)


def _dtype(tree: Any) -> Any:
    """Return the dtype of the first leaf that is an array."""
    found = [leaf.dtype for leaf in tree_leaves(tree) if not is_number(leaf)]
    return found[0] if found else np.dtype(np.float32)


def _as(value: Any, dtype: Any) -> Any:
    if is_number(value):
        return np.asarray(value, dtype)
    return settled(value if value.dtype == dtype else value.astype(dtype))
