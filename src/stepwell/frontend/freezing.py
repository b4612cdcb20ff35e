"""`freeze`: arrays that a jitted function may take as constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend.pytree import flatten, paths, unflatten
from stepwell.frontend.state.variables import Variable, array_of
from stepwell.frontend.weights import frozen


def freeze(tree: Any) -> Any:
    """Return ``tree`` with read-only copies of its arrays, which functions may take as constants.

    A jitted function reads other captured arrays, of its module and closures, at each call. Frozen
    arrays become part of its program, which is faster: the compiler packs operands of products and
    folds constant expressions. Views of frozen arrays are frozen too.

    tree : an array or a `sw.Variable` (with its present value), or tuples, lists and dicts of them;
        numbers and text are unchanged
    raises TypeError : a leaf is of another type

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
