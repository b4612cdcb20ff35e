"""The dtype `float0` and its arrays: derivatives by integers and booleans, which are zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepwell.core.shapes import Shape
from stepwell.frontend.pytree import REGISTERED, Branch, Node, Tree

float0 = np.dtype([("float0", np.void, 0)])
"""The dtype of derivatives by integers and booleans, as in JAX: elements without content."""


def zeros_of_float0(shape: Shape) -> NDArray[Any]:
    """Return the zero of the tangents of an array of integers or booleans.

    >>> zeros_of_float0((2,)).dtype
    dtype([('float0', 'V')])
    """
    return np.zeros(shape, float0)


def is_float0(value: Any) -> bool:
    """Whether ``value`` is an array of `float0`."""
    return isinstance(value, np.ndarray) and value.dtype == float0


class _Zeros:
    """Stands for an array of `float0` in the structure of results: it has no content."""


REGISTERED[_Zeros] = (lambda _: ((), None), lambda shape, _: zeros_of_float0(shape))


def without_zeros(leaves: Sequence[Any], tree: Tree) -> tuple[list[Any], Tree]:
    """Move the `float0` arrays among a function's results from the leaves to the structure."""
    if not any(map(is_float0, leaves)):
        return list(leaves), tree
    rest = iter(leaves)

    def moved(tree: Tree) -> Tree:
        if isinstance(tree, Branch):
            return tree._replace(children=tuple(map(moved, tree.children)))
        if tree is None or not is_float0(leaf := next(rest)):
            return tree
        return Branch(Node(_Zeros, leaf.shape), None, ())

    return [leaf for leaf in leaves if not is_float0(leaf)], moved(tree)
