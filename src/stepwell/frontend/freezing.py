"""`freeze`: arrays that a jitted function may take as constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend.pytree import flatten, paths, unflatten
from stepwell.frontend.state.variables import Variable, array_of
from stepwell.frontend.weights import frozen


def freeze(tree: Any) -> Any:
    """Return ``tree`` with copies of its arrays that nobody can write to: constants of functions.

    A jitted function reads other arrays from outside of it, in variables of its module and of
    closures, at each call. Frozen ones become a part of its program, which is faster: products are
    packed and what is computed with them alone is folded. Views of them are frozen too.

    tree : an array or a `sw.Variable` (as it is now), or these in tuples, lists and dicts; numbers
        and text stay as they are
    raises TypeError : something in it is neither

    >>> import numpy as np, stepwell as sw
    >>> weights = sw.freeze({"w": np.ones((3, 2), np.float32)})
    >>> f = sw.jit(lambda x: x @ weights["w"])
    >>> f(np.ones(3, np.float32))
    array([3., 3.], dtype=float32)
    >>> weights["w"][:] = 0
    Traceback (most recent call last):
        ...
    ValueError: assignment destination is read-only
    """
    leaves, structure = flatten(tree)
    found = [_frozen(leaf, p) for leaf, p in zip(leaves, paths(structure, "tree"), strict=True)]
    return unflatten(structure, found)


def _frozen(leaf: Any, path: str) -> Any:
    if isinstance(leaf, bool | int | float | complex | str | bytes | np.generic):
        return leaf
    if isinstance(leaf, Variable):
        leaf = array_of(leaf)
    if isinstance(leaf, np.ndarray) and not leaf.dtype.hasobject:
        return frozen(np.asarray(leaf))
    raise TypeError(f"{path}: expected an array, got {type(leaf).__name__}")
