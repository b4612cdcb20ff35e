"""Arithmetic of updates, in the dtype of the leaves, for arrays and traced values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stepwell.frontend.promotion import is_number
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.tree import map as tree_map

MAX_STEPS = np.iinfo(np.int32).max
"""The largest count of steps, where counting saturates: the maximum of an int32."""


def zero_steps() -> Any:
    """Return a step count of zero."""
    return np.zeros((), np.int32)


def one_more(count: Any) -> Any:
    """Return the count plus one, saturating at the maximum of an int32."""
    return settled(np.minimum(count, MAX_STEPS - 1) + 1)


def settled(value: Any) -> Any:
    """Return NumPy's scalars as arrays, which programs take and return."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def like(number: Any, leaf: Any) -> Any:
    """Return a number in the dtype of a leaf; Python numbers adopt that dtype anyway."""
    if is_number(number) or is_number(leaf) or number.dtype == leaf.dtype:
        return number
    return number.astype(leaf.dtype)


def reals(count: Any) -> Any:
    """Return a count as a float for arithmetic: float32 for an array of integers."""
    if is_number(count):
        return float(count)
    return count if count.dtype.kind not in "iub" else count.astype(np.float32)


class Corrections:
    """The bias correction of zero-initialized moments: ``1 - decay ** count``.

    It avoids subtracting numbers near 1, which would cost the first steps of a float32 five of
    their seven digits; it is computed once for each dtype.
    """

    def __init__(self, count: Any) -> None:
        self.count = count
        self._known: dict[tuple[int, str, int], Any] = {}

    def by(self, decay: Any, leaf: Any, more: int = 0) -> Any:
        """Return the correction for a moment that is ``leaf``, ``more`` (0 or 1) steps later."""
        dtype = np.dtype(np.float64) if is_number(leaf) else leaf.dtype
        key = id(decay), dtype.name, more
        if key not in self._known:
            self._known[key] = self._computed(decay, dtype, more)
        return self._known[key]

    def _computed(self, decay: Any, dtype: Any, more: int) -> Any:
        wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        if is_number(decay):
            rate = math.log(decay) if decay > 0 else -math.inf
        else:
            rate = np.log(decay.astype(wide))
        count = one_more(self.count) if more else self.count
        found = -np.expm1(rate * count.astype(wide))
        return found if dtype == wide else found.astype(dtype)


def zeros_of(params: Any, dtype: Any = None) -> Any:
    """Return a tree of zeros like ``params``, by default in their dtypes."""
    return filled(params, 0, dtype)


def filled(params: Any, number: Any, dtype: Any = None) -> Any:
    """Return a tree like ``params`` filled with a number, by default in their dtypes."""

    def of(leaf: Any) -> Any:
        kind = dtype
        if kind is None:
            kind = np.float64 if is_number(leaf) else leaf.dtype
        return np.full(np.shape(leaf), number, kind)

    return tree_map(of, params)


def moment(updates: Any, mean: Any, decay: Any, order: int) -> Any:
    """Return the updated moving average of a power of the updates."""

    def of(g: Any, m: Any) -> Any:
        kept = like(decay, g)
        return settled((1 - kept) * (g * g if order == 2 else g) + like(decay, m) * m)

    return tree_map(of, updates, mean)


def converted(tree: Any, dtype: Any) -> Any:
    """Return a tree in another dtype; None keeps the dtype."""
    if dtype is None:
        return tree
    return tree_map(lambda leaf: leaf if leaf.dtype == dtype else leaf.astype(dtype), tree)


def prefixed(prefix: Any, tree: Any) -> Any:
    """Broadcast a prefix tree: return a tree like ``tree`` with the leaves of ``prefix``."""
    leaves, structure = flatten(prefix)
    if structure is ...:
        return tree_map(lambda _: prefix, tree)
    kind = type(tree)
    if kind is not type(prefix):
        raise ValueError(f"the mask has a {type(prefix).__name__} where there is {kind.__name__}")
    if kind is dict:
        if set(prefix) != set(tree):
            raise ValueError(f"the mask has the keys {sorted(prefix)}, not {sorted(tree)}")
        return {key: prefixed(prefix[key], tree[key]) for key in tree}
    if isinstance(tree, tuple | list) and len(prefix) == len(tree):
        parts = [prefixed(p, t) for p, t in zip(prefix, tree, strict=True)]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    return unflatten(flatten(tree)[1], leaves)
