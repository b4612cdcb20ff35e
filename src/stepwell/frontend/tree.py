"""Containers of arrays, as jitted functions take and return them: `sw.tree`.

Tuples, lists, dicts, `OrderedDict`, `defaultdict`, named tuples, dataclasses, None, and classes
given to `register`; everything else is a leaf.
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
    ([2, 3, 1], {'a': (20, [30, None]), 'b': 10})
    """
    return _flatten(tree)


def unflatten(structure: Tree, leaves: Sequence[Any]) -> Any:
    """Return what `flatten` took apart, with other ``leaves``; ValueError where there are others.

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
    """Return how ``tree`` is built, without its leaves.

    >>> structure({"a": 1}) == structure({"a": 2}), structure([1]) == structure((1,))
    (True, False)
    """
    return _flatten(tree)[1]


def map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Return ``tree`` with ``function`` of each leaf, and of those of ``rest`` at its place.

    raises ValueError : one of ``rest`` is built otherwise

    >>> import stepwell as sw
    >>> sw.tree.map(lambda w, g: w - g, {"w": 3, "b": [1]}, {"w": 1, "b": [1]})
    {'b': [0], 'w': 2}
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
    """Write the leaves of ``values`` to the arrays and variables at their places; return those.

    target : a tree of arrays and `sw.Variable`
    values : a tree built like it
    raises ValueError : it is built otherwise, or a shape is another
    raises TypeError : a leaf of ``target`` cannot be written to

    >>> import numpy as np, stepwell as sw
    >>> state = {"count": sw.Variable(0), "mean": np.zeros(2)}
    >>> assign(state, {"count": 3, "mean": np.ones(2)})
    {'count': Variable(3), 'mean': array([1., 1.])}
    """
    return map(_assigned, target, values)


def _assigned(target: Any, value: Any) -> Any:
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
    """Return what a user would write behind ``tree`` for each leaf, in order: names to save it by.

    >>> names({"w": [1, 2], "b": 3})
    ['b', 'w[0]', 'w[1]']
    """
    return [_name(path) for path in paths(_flatten(tree)[1], "")]


def _name(path: str) -> str:
    """Return a path with its first step as a plain word, where it is one."""
    if path.startswith("."):
        return path[1:]
    word, _, rest = path[2:].partition("']") if path.startswith("['") else ("", "", "")
    return word + rest if word else path


def _mismatch(built: Tree, other: Tree, number: int) -> str:
    """Return where a tree is not built as the first one."""
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
    """Let objects of a class be containers, of functions given to `sw.jit` and of this module.

    kind : the class; without it, what is returned is a decorator for one
    flatten : returns what is in an object, and what else there is to it, which is hashable
    unflatten : makes an object of the latter and the former; without these two a class has
        methods ``tree_flatten(self)`` and ``tree_unflatten(cls, more, children)``, as in JAX

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
