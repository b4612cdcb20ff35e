"""Flatten nested tuples, lists and dicts of values, and rebuild them.

The C extension reads trees too: it matches calls and builds results by them. A tree is
`...` for a leaf, None for None, and `Branch`, a tuple, for a container.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from types import EllipsisType, SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

SPECS = "stepwell.frontend.specs"
"""The module of the classes that specify arrays; they are leaves, though dataclasses."""


class Node(NamedTuple):
    """A class of containers unknown to the C extension, and its static data."""

    kind: type[Any]
    more: Any = None


REGISTERED: dict[type[Any], tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}
"""The flatten and unflatten functions of users' registered classes."""


OF_RESULTS: dict[type[Any], Callable[[Any], Any]] = {}
"""Constructors of result objects by class of node, for nodes that are leaves elsewhere."""


class Keys(tuple[Any, ...]):
    """The sorted keys of a dict, by which its leaves are ordered, and the dict's own order.

    Keys are equal whatever that order is: two dicts with the same keys have one structure. A traced
    function may iterate over a dict, so programs are kept by both (`statics.typed`).
    """

    order: tuple[Any, ...]

    @staticmethod
    def of(value: dict[Any, Any]) -> Keys:
        """Return the keys of a dict."""
        try:
            keys = Keys(sorted(value))
        except TypeError:
            listed = ", ".join(map(repr, value))
            raise TypeError(f"keys of a dict must have an order among them, got {listed}") from None
        keys.order = tuple(value)
        return keys


def is_reordered(tree: Tree) -> bool:
    """Whether leaves are in another order than a dict in ``tree`` has them."""
    if not isinstance(tree, Branch):
        return False
    keys = tree.keys
    return (isinstance(keys, Keys) and keys != keys.order) or any(map(is_reordered, tree.children))


def in_order(named: dict[Any, Any], keys: tuple[Any, ...] | None) -> dict[Any, Any]:
    """Return a dict in the order of the one that ``keys`` were taken from."""
    return {key: named[key] for key in keys.order} if isinstance(keys, Keys) else named


class Branch(NamedTuple):
    """A container: its class, its keys (None for sequences) and its children."""

    kind: Any
    """The class; a `Node` for containers other than tuples, named tuples, lists and dicts."""
    keys: tuple[Any, ...] | None
    children: tuple[Tree, ...]


Tree: TypeAlias = "EllipsisType | Branch | None"


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """Return the leaves of ``value`` in order, and its structure, which can be a dict key.

    >>> leaves, tree = flatten({"b": 1, "a": (2, [3])})
    >>> leaves
    [2, 3, 1]
    >>> unflatten(tree, [20, 30, 10])
    {'b': 10, 'a': (20, [30])}
    """
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves)


def _flatten(value: Any, leaves: list[Any]) -> Tree:
    kind = type(value)
    if value is None:
        return None
    if kind is dict:
        keys = Keys.of(value)
        return Branch(kind, keys, tuple(_flatten(value[k], leaves) for k in keys))
    if kind in (tuple, list) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return Branch(kind, None, tuple(_flatten(v, leaves) for v in value))
    if (found := _node(value, kind)) is not None:
        node, names, children = found
        return Branch(node, names, tuple(_flatten(v, leaves) for v in children))
    leaves.append(value)
    return ...


def _node(value: Any, kind: type[Any]) -> tuple[Node, tuple[Any, ...] | None, Sequence[Any]] | None:
    """Flatten a container that needs a `Node`, by one level; None for a leaf."""
    if kind in REGISTERED:
        children, more = REGISTERED[kind][0](value)
        return Node(kind, more), None, tuple(children)
    if kind is OrderedDict:
        return Node(kind), tuple(value), tuple(value.values())
    if kind is defaultdict:
        keys = Keys.of(value)
        return Node(kind, value.default_factory), keys, tuple(value[k] for k in keys)
    if (names := _fields_of(value, kind)) is not None:
        return Node(kind), names, tuple(getattr(value, name) for name in names)
    return None


def _fields_of(value: Any, kind: type[Any]) -> tuple[str, ...] | None:
    """Return the names of an object's fields; None if its class does not list them."""
    if is_dataclass(kind) and kind.__module__ != SPECS:
        return tuple(field.name for field in fields(kind))
    if kind is SimpleNamespace:
        return tuple(vars(value))
    if "__attrs_attrs__" in kind.__dict__:  # a class of the package attrs
        return tuple(field.name for field in kind.__attrs_attrs__)
    return None


def _rebuild(node: Node, keys: tuple[Any, ...] | None, values: Sequence[Any]) -> Any:
    """Rebuild a container that `_node` flattened."""
    if node.kind in OF_RESULTS:
        return OF_RESULTS[node.kind](*values)
    if node.kind in REGISTERED:
        return REGISTERED[node.kind][1](node.more, tuple(values))
    named = in_order(dict(zip(keys or (), values, strict=True)), keys)
    if node.kind is OrderedDict:
        return OrderedDict(named)
    if node.kind is defaultdict:
        return defaultdict(node.more, named)
    if node.kind is SimpleNamespace:
        return SimpleNamespace(**named)
    found = object.__new__(node.kind)  # without defaults and __post_init__
    for name, value in named.items():
        object.__setattr__(found, name, value)
    return found


def with_leaves(tree: Tree, leaves: Iterator[Any]) -> Any:
    """Return ``tree`` with its `...` leaves replaced by ``leaves``."""
    if isinstance(tree, Branch):
        return tree._replace(children=tuple(with_leaves(c, leaves) for c in tree.children))
    return tree if tree is None else next(leaves)


class Object(NamedTuple):
    """A container that needs a `Node`, in the form of the C extension (trees.h)."""

    kind: type[Any]
    how: Callable[[Any], Any] | None
    """The flatten function, or for results the rebuild function; None for one with attributes."""
    more: Any
    """The static data that flattening returns besides the children."""
    names: tuple[str, ...] | None
    """The attributes that hold the children."""
    children: tuple[Any, ...]


def dispatched(tree: Any, results: bool = False) -> Any:
    """Return ``tree``, whose leaves may be any objects, in the form of the C extension.

    results : whether the tree rebuilds results
    """
    if not isinstance(tree, Branch):
        return tree
    inside = tuple(dispatched(child, results) for child in tree.children)
    node = tree.kind
    if not isinstance(node, Node):
        if results and node not in (tuple, list, dict) and not _is_plain(node):
            return Object(node, partial(_named_tuple, node), None, None, inside)
        if isinstance(keys := tree.keys, Keys):
            if not results:
                return node, [tuple(keys), keys.order], inside
            named = in_order(dict(zip(keys, inside, strict=True)), keys)
            return node, tuple(named), tuple(named.values())
        return tree._replace(children=inside)
    kind, keys = node.kind, tree.keys
    if keys is not None and kind not in (OrderedDict, defaultdict):
        return Object(kind, None, None, keys, inside)
    if results:
        return Object(kind, partial(_rebuild, node, keys), None, None, inside)
    if keys is None:
        return Object(kind, REGISTERED[kind][0], node.more, None, inside)
    order = keys.order if isinstance(keys, Keys) else keys
    return Object(kind, _mapping_apart, (node.more, order), None, inside)


def _is_plain(kind: Any) -> bool:
    """Whether a class of named tuples is as `namedtuple` made it: no constructor of its own."""
    space = getattr(kind.__new__, "__globals__", {})
    created = str(space.get("__name__", "")).startswith("namedtuple_")
    return created and kind.__init__ is object.__init__ and type(kind) is type


def _named_tuple(kind: Any, values: Sequence[Any]) -> Any:
    """Return a named tuple, made by its class's own constructor."""
    return kind(*values)


def _mapping_apart(value: Any) -> tuple[Sequence[Any], Any]:
    """Flatten an `OrderedDict` or a `defaultdict`; return its values and its static data."""
    if type(value) is OrderedDict:
        return tuple(value.values()), (None, tuple(value))
    keys = Keys.of(value)
    return tuple(value[k] for k in keys), (value.default_factory, keys.order)


def unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """Return the structure ``tree`` with ``leaves`` in their places."""
    return _unflatten(tree, iter(leaves))


def _unflatten(tree: Tree, leaves: Iterator[Any]) -> Any:
    if not isinstance(tree, Branch):
        return None if tree is None else next(leaves)
    values = [_unflatten(child, leaves) for child in tree.children]
    if isinstance(tree.kind, Node):
        return _rebuild(tree.kind, tree.keys, values)
    if tree.keys is not None:
        return in_order(dict(zip(tree.keys, values, strict=True)), tree.keys)
    return tree.kind(*values) if hasattr(tree.kind, "_fields") else tree.kind(values)


def count(tree: Tree) -> int:
    """Return the number of leaves of ``tree``."""
    if isinstance(tree, Branch):
        return sum(count(child) for child in tree.children)
    return 0 if tree is None else 1


def paths(tree: Tree, name: str) -> list[str]:
    """Return the expression that a user would write for each leaf: ``params['w'][0]``."""
    if not isinstance(tree, Branch):
        return [] if tree is None else [name]
    steps = tree.keys if tree.keys is not None else range(len(tree.children))
    return [
        path
        for step, child in zip(steps, tree.children, strict=True)
        for path in paths(child, _step(tree, name, step))
    ]


def _step(tree: Branch, name: str, step: Any) -> str:
    attribute = isinstance(tree.kind, Node) and tree.keys is not None
    if attribute and tree.kind.kind not in (OrderedDict, defaultdict):
        return f"{name}.{step}"
    return f"{name}[{step!r}]"
