"""Containers of arrays in the arguments and results of jitted functions: `sw.tree`.

Containers are tuples, lists, dicts, `OrderedDict`, `defaultdict`, named tuples, dataclasses, None,
and classes given to `register`; everything else is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from stepwell.frontend.pytree import REGISTERED, Tree, count, paths
from stepwell.frontend.pytree import flatten as _flatten
from stepwell.frontend.pytree import unflatten as _unflatten
from stepwell.frontend.state.variables import Variable
from stepwell.frontend.tensor import Tensor

__all__ = ["assign", "flatten", "leaves", "map", "names", "register", "structure", "unflatten"]

C = TypeVar("C", bound=type[Any])


def flatten(tree: Any) -> tuple[list[Any], Tree]:
    """Return the leaves of ``tree`` in order, and its structure.

    >>> import stepwell as sw
    >>> leaves, structure = sw.tree.flatten({"b": 1, "a": (2, [3, None])})
    >>> leaves, sw.tree.unflatten(structure, [20, 30, 10])
    ([2, 3, 1], {'b': 10, 'a': (20, [30, None])})
    """
    return _flatten(tree)


def unflatten(structure: Tree, leaves: Sequence[Any]) -> Any:
    """Return a tree built from ``leaves``; ValueError if their number is wrong. Inverts `flatten`.

    >>> unflatten(structure([0, 0]), [1, 2])
    [1, 2]
    """
    if len(leaves) != count(structure):
        raise ValueError(f"the structure has {count(structure)} leaves, got {len(leaves)}")
    return _unflatten(structure, list(leaves))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of ``tree`` in order.

    >>> leaves({"b": 1, "a": (2, [3])})
    [2, 3, 1]
    """
    return _flatten(tree)[0]


def structure(tree: Any) -> Tree:
    """Return the structure of ``tree``, without its leaves.

    >>> structure({"a": 1}) == structure({"a": 2}), structure([1]) == structure((1,))
    (True, False)
    """
    return _flatten(tree)[1]


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Return ``tree`` with ``function`` applied to each leaf and the leaves of ``rest`` there.

    raises ValueError : one of ``rest`` has another structure

    >>> import stepwell as sw
    >>> sw.tree.map(lambda w, g: w - g, {"w": 3, "b": [1]}, {"w": 1, "b": [1]})
    {'w': 2, 'b': [0]}
    """
    first, built = _flatten(tree)
    others: list[list[Any]] = []
    for number, other in enumerate(rest, 2):
        found, also = _flatten(other)
        if also != built:
            raise ValueError(_mismatch(built, also, number))
        others.append(found)
    return _unflatten(built, [function(*each) for each in zip(first, *others, strict=True)])


def assign(target: Any, values: Any) -> Any:
    """Write the leaves of ``values`` to the arrays and variables of ``target``; return ``target``.

    target : a tree of arrays and `sw.Variable`
    values : a tree of the same structure
    raises ValueError : the structure or a shape differs
    raises TypeError : a leaf of ``target`` cannot be written to

    >>> import numpy as np, stepwell as sw
    >>> state = {"count": sw.Variable(0), "mean": np.zeros(2)}
    >>> assign(state, {"count": 3, "mean": np.ones(2)})
    {'count': Variable(3), 'mean': array([1., 1.])}
    """
    return map(_assign_leaf, target, values)


def _assign_leaf(target: Any, value: Any) -> Any:
    if isinstance(target, Variable):
        return target.assign(value)
    if not isinstance(target, np.ndarray | Tensor):
        raise TypeError(f"a {type(target).__name__} is no array or Variable to write to")
    if np.shape(value) != target.shape:
        raise ValueError(f"an array {list(target.shape)} is assigned one {list(np.shape(value))}")
    if isinstance(value, Tensor) and not isinstance(target, Tensor):
        raise TypeError(
            f"an array {list(target.shape)} that is no argument of the traced function is assigned "
            "to: pass it as an argument, or make it a variable, sw.tree.map(sw.Variable, tree)"
        )
    target[...] = value
    return target


def names(tree: Any) -> list[str]:
    """Return for each leaf, in order, the expression after ``tree``: names to save leaves by.

    >>> names({"w": [1, 2], "b": 3})
    ['b', 'w[0]', 'w[1]']
    """
    return [_name(path) for path in paths(_flatten(tree)[1], "")]


def _name(path: str) -> str:
    """Return a path whose first step is a plain word if it is a string key."""
    if path.startswith("."):
        return path[1:]
    word, _, rest = path[2:].partition("']") if path.startswith("['") else ("", "", "")
    return word + rest if word else path


def _mismatch(built: Tree, other: Tree, number: int) -> str:
    """Return where the structure of a tree differs from the first one's."""
    mine, others = paths(built, "tree"), paths(other, "tree")
    for path in mine:
        if path not in others:
            return f"tree {number} has nothing at {path}, where the first has a leaf"
    for path in others:
        if path not in mine:
            return f"tree {number} has a leaf at {path}, where the first has none"
    return f"tree {number} has the leaves of the first in containers of other classes"


def register(
    kind: Any = None,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]] | None = None,
    unflatten: Callable[[Any, tuple[Any, ...]], Any] | None = None,
) -> Any:
    """Make objects of a class containers, for functions given to `sw.jit` and for this module.

    kind : the class; if it is missing, a decorator is returned
    flatten : returns the children of an object, and its static data, which must be hashable
    unflatten : builds an object from the static data and the children; without these two the class
        must have ``tree_flatten(self)`` and ``tree_unflatten(cls, more, children)``, as in JAX

    >>> import stepwell as sw
    >>> @sw.tree.register
    ... class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    ...     def tree_flatten(self):
    ...         return (self.a, self.b), None
    ...     @classmethod
    ...     def tree_unflatten(cls, more, children):
    ...         return cls(*children)
    >>> sw.tree.map(lambda v: 2 * v, Pair(1, 2)).b
    4
    """
    if kind is None:
        return lambda c: register(c, flatten, unflatten)
    apart = flatten or getattr(kind, "tree_flatten", None)
    together = unflatten or getattr(kind, "tree_unflatten", None)
    if not isinstance(kind, type) or apart is None or together is None:
        raise TypeError(f"{kind!r} is no class with tree_flatten and tree_unflatten")
    REGISTERED[kind] = apart, together
    return kind
