"""Nested tuples, lists and dicts of values: taken apart and put together again.

A tree is made of what the C extension reads too, which matches calls and builds results by it:
`...` where a value is, None where None is, and `Branch`, a tuple, for containers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias


class Branch(NamedTuple):
    """A container: its class, its keys (None for sequences) and what is in it."""

    kind: type[Any]
    keys: tuple[Any, ...] | None
    children: tuple[Tree, ...]


Tree: TypeAlias = "EllipsisType | Branch | None"


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """Return the leaves of ``value`` in order, and its structure, which can be a dict key.

    >>> leaves, tree = flatten({"b": 1, "a": (2, [3])})
    >>> leaves
    [2, 3, 1]
    >>> unflatten(tree, [20, 30, 10])
    {'a': (20, [30]), 'b': 10}
    """
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves)


def _flatten(value: Any, leaves: list[Any]) -> Tree:
    kind = type(value)
    if value is None:
        return None
    if kind is dict:
        try:
            keys = tuple(sorted(value))
        except TypeError:
            listed = ", ".join(map(repr, value))
            raise TypeError(f"keys of a dict must have an order among them, got {listed}") from None
        return Branch(kind, keys, tuple(_flatten(value[k], leaves) for k in keys))
    if kind in (tuple, list) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return Branch(kind, None, tuple(_flatten(v, leaves) for v in value))
    leaves.append(value)
    return ...


def unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """Return the structure ``tree`` with ``leaves`` in their places."""
    return _unflatten(tree, iter(leaves))


def _unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    if not isinstance(tree, Branch):
        return None if tree is None else next(leaves)
    values = [_unflatten(child, leaves) for child in tree.children]
    if tree.keys is not None:
        return dict(zip(tree.keys, values, strict=True))
    return tree.kind(*values) if hasattr(tree.kind, "_fields") else tree.kind(values)


def count(tree: Tree) -> int:
    """Return how many leaves ``tree`` has."""
    if isinstance(tree, Branch):
        return sum(count(child) for child in tree.children)
    return 0 if tree is None else 1


def paths(tree: Tree, name: str) -> list[str]:
    """Return what a user would write for each leaf: ``params['w'][0]``."""
    if not isinstance(tree, Branch):
        return [] if tree is None else [name]
    steps = tree.keys if tree.keys is not None else range(len(tree.children))
    return [
        path
        for step, child in zip(steps, tree.children, strict=True)
        for path in paths(child, f"{name}[{step!r}]")
    ]
