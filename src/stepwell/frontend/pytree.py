"""Nested tuples, lists and dicts of values: taken apart and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Leaf:
    """One value."""


@dataclass(frozen=True)
class Nothing:
    """None, which holds no value."""


@dataclass(frozen=True)
class Branch:
    """A container: its class, its keys (None for sequences) and what is in it."""

    kind: type[Any]
    keys: tuple[Any, ...] | None
    children: tuple[Tree, ...]


Tree = Leaf | Nothing | Branch


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
        return Nothing()
    if kind is dict:
        keys = tuple(sorted(value))
        return Branch(kind, keys, tuple(_flatten(value[k], leaves) for k in keys))
    if kind in (tuple, list) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return Branch(kind, None, tuple(_flatten(v, leaves) for v in value))
    leaves.append(value)
    return Leaf()


def unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """Return the structure ``tree`` with ``leaves`` in their places."""
    return _unflatten(tree, iter(leaves))


def _unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    match tree:
        case Leaf():
            return next(leaves)
        case Nothing():
            return None
        case Branch(kind, keys, children):
            values = [_unflatten(child, leaves) for child in children]
            if keys is not None:
                return dict(zip(keys, values, strict=True))
            return kind(*values) if hasattr(kind, "_fields") else kind(values)


def paths(tree: Tree, name: str) -> list[str]:
    """Return what a user would write for each leaf: ``params['w'][0]``."""
    match tree:
        case Leaf():
            return [name]
        case Nothing():
            return []
        case Branch(_, keys, children):
            steps = keys if keys is not None else range(len(children))
            return [
                path
                for step, child in zip(steps, children, strict=True)
                for path in paths(child, f"{name}[{step!r}]")
            ]
