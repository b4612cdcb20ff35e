"""What a function reads outside of itself while it is traced, looked at before each call.

Variables of modules and closures, attributes and items of what is found there (note 046). Numbers,
text, tuples and the like are known by value, functions and other objects by identity: where one of
them is another, the function is traced again. Arrays are hidden arguments of the program; small
ones are known by their content, and so are those whose numbers tracing needs.

`Captures` is what a trace notes, `Outside` what is left of that for calls of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepwell.core.dtypes import dtype_of
from stepwell.frontend.pytree import Branch
from stepwell.frontend.statics import guard_of, is_final, key_of
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.weights import is_frozen
from stepwell.runtime.extension import load_extension

IN_DICT, IN_CELL, IN_LIST, ATTRIBUTE, ITSELF = range(5)
"""Where something is read, as watch.h calls it."""

SMALL = 256
"""Bytes of arrays that are known by their content from the first: no dearer than their address."""
TABLES = 64 << 10
"""Bytes of arrays of integers or booleans that are compared where tracing needs their numbers."""

Array = NDArray[Any]


class Leaf:
    """An array that is read outside: a hidden argument, or known by its content."""

    __slots__ = ("array", "content", "head", "path", "pinned", "tensor")

    def __init__(self, path: str, array: Array, content: Array | None) -> None:
        self.path, self.array, self.content = path, array, content
        self.tensor: Tensor | None = None
        self.head: Tensor | None = None
        self.pinned = False
        """Whether it is this very array, since it was met in more than one place."""


class Capture:
    """One place that is read."""

    __slots__ = ("base", "final", "holder", "key", "kind", "path", "tree", "value")

    def __init__(self, kind: int, holder: Any, key: Any, path: str) -> None:
        self.kind, self.holder, self.key, self.path = kind, holder, key, path
        self.value: Any = None
        self.tree: Any = None
        self.final = True
        self.base = False
        """Whether only parts of what is there were read."""


class Captures:
    """What a trace has read so far.

    known : whether an array, found by such a path, is to be known by its content
    """

    def __init__(self, trace: Any, known: Callable[[str, Array], bool]) -> None:
        self.trace, self.known = trace, known
        self.reads: dict[Any, Capture] = {}
        self.leaves: dict[int, Leaf] = {}
        self.paths: dict[int, str] = {}
        """What objects from outside are called, by `id`."""
        self.places: dict[int, Capture] = {}
        """Where objects were found first."""
        self.alive: list[Any] = []
        self.by_content = False
        """Whether arrays are read where no handle takes their place."""
        self.tensors: dict[int, Leaf] = {}
        """The leaves of hidden arguments."""

    def knows(self, value: Any) -> bool:
        """Whether ``value`` is an object that was found outside."""
        return id(value) in self.paths

    def read(
        self, kind: int, holder: Any, key: Any, path: str, value: Any, base: bool = False
    ) -> Any:
        """Note that ``value`` was read; return it, or what stands for it in the trace.

        base : whether an attribute or item of it is all that is read
        """
        at = kind, id(holder), type(key), key
        known = self.reads.get(at)
        if known is None:
            known = self.reads[at] = Capture(kind, holder, key, path)
            known.value, known.base = value, base
            self._note(known)
        elif known.value is value and known.base and not base:
            self.whole(value)
        return self.local(value)

    def absent(self, kind: int, holder: Any, key: Any, path: str) -> None:
        """Note that nothing was found."""
        at = kind, id(holder), type(key), key
        if at not in self.reads:
            capture = self.reads[at] = Capture(kind, holder, key, path)
            capture.tree, capture.final = False, True

    def root(self, value: Any, path: str) -> None:
        """Note that attributes and items of ``value`` are outside; itself is known otherwise."""
        self._register(value, path, None)

    def whole(self, value: Any) -> None:
        """Note that all of a list or dict is read, of which parts were."""
        capture = self.places.get(id(value))
        if capture is not None and capture.base:
            capture.base = False
            self._note(capture)

    def local(self, value: Any) -> Any:
        """Return what stands for ``value`` in the trace, where it is an array from outside."""
        if type(value) is not np.ndarray or (leaf := self.leaves.get(id(value))) is None:
            return value
        return self.given(leaf)

    def given(self, leaf: Leaf) -> Any:
        """Return what stands for a leaf: its content, or a hidden argument."""
        if leaf.content is not None:
            return leaf.content
        if leaf.tensor is None:
            kind = dtype_of(leaf.array.dtype.newbyteorder("="))
            assert kind is not None
            leaf.tensor = made = self.trace.argument(leaf.path, kind, leaf.array.shape)
            leaf.head = fresh_head(made)
            self.tensors[id(made)] = leaf
        return leaf.tensor

    def of(self, array: Array) -> Tensor | None:
        """Return the hidden argument that an array is, or is a view of."""
        leaf = self.leaves.get(id(array))
        base: Any = array.base
        while leaf is None and isinstance(base, np.ndarray):
            if (owner := self.leaves.get(id(base))) is not None and owner.content is None:
                owner.pinned = True  # what is a view of it is made while tracing
                leaf = self.bind(array, owner.path)
            base = base.base
        if leaf is None or leaf.content is not None:
            return None
        return self.given(leaf)

    def bind(self, array: Array, path: str) -> Leaf:
        """Note that this very array is read, wherever it comes from."""
        self.read(ITSELF, array, None, path, array)
        return self.leaves[id(array)]

    def _note(self, capture: Capture) -> None:
        value = capture.value
        if capture.base and type(value) in (list, dict):
            capture.tree, capture.final = (object, value), True
            self._register(value, capture.path, capture)
        else:
            capture.tree, capture.final = self._tree(value, capture.path, capture)

    def _register(self, value: Any, path: str, capture: Capture | None) -> None:
        self.alive.append(value)
        self.paths.setdefault(id(value), path)
        if capture is not None:
            self.places.setdefault(id(value), capture)

    def _tree(self, value: Any, path: str, capture: Capture | None) -> tuple[Any, bool]:
        """Return what must be there (trees.h, with leaves in it), and whether it cannot change."""
        kind = type(value)
        if kind is np.ndarray:
            return self._leaf(value, path)
        if value is None:
            return None, True
        if kind in _ATOMS or isinstance(value, np.generic):
            return guard_of(value), True
        if kind in (list, tuple, dict) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            if id(value) in self.paths and self.places.get(id(value)) is not capture:
                return (object, value), True  # met before, and looked at there
            self._register(value, path, capture)
            return self._container(value, path)
        if isinstance(value, partial) and kind is partial:
            self.hold(value, path)
        self._register(value, path, capture)
        if kind in _BY_VALUE or _is_value(value):
            guard = guard_of(value)
            return guard, is_final(guard) or kind in (frozenset, MethodType)
        return (object, value), True

    def _container(self, value: Any, path: str) -> tuple[Any, bool]:
        keys = tuple(value) if type(value) is dict else None
        steps = keys if keys is not None else range(len(value))
        inside = [self._tree(value[k], f"{path}[{k!r}]", None) for k in steps]
        final = isinstance(value, tuple) and all(f for _, f in inside)
        return Branch(type(value), keys, tuple(t for t, _ in inside)), final

    def hold(self, value: partial[Any], path: str) -> None:
        """Note the arrays that a `partial` holds, which are always its own."""
        if isinstance(value.func, partial):
            self.hold(value.func, path)
        for each in (*value.args, *value.keywords.values()):
            if type(each) is np.ndarray and id(each) not in self.leaves:
                self.bind(each, path)
            else:
                self._tree(each, path, None)

    def _leaf(self, array: Array, path: str) -> tuple[Any, bool]:
        known = self.leaves.get(id(array))
        if known is not None and known.content is None:
            known.pinned = True  # in two places: they must stay one array
            return (object, array), True
        if known is not None:
            return (np.ndarray, known.content), False
        if is_frozen(array) or array.dtype.hasobject:
            return (object, array), True
        content = None
        unknown = dtype_of(array.dtype.newbyteorder("=")) is None
        if unknown or self.by_content or self.known(path, array):
            content = array.copy(order="C")
            content.flags.writeable = False
        leaf = self.leaves[id(array)] = Leaf(path, array, content)
        self.alive.append(array)
        return (leaf, False) if content is None else ((np.ndarray, content), False)

    def finished(self, text: str) -> Outside:
        """Return what is to be looked at before each call of the program of ``text``."""
        used = [leaf for leaf in self.tensors.values() if _mentions(text, leaf)]
        numbers: dict[int, int] = {}
        looks: list[tuple[Any, ...]] = []
        paths: list[str] = []
        for capture in sorted(self.reads.values(), key=_grouped(self.reads.values())):
            if capture.kind == ITSELF:
                continue
            first = len(numbers)
            tree = _settled(capture.tree, used, numbers)
            if tree is not True:
                final = capture.final and not isinstance(tree, type(...))
                looks.append((capture.kind, capture.holder, capture.key, tree, first, final))
                paths.append(capture.path)
        for leaf in used:
            if id(leaf) not in numbers:
                first = numbers[id(leaf)] = len(numbers)
                looks.append((ITSELF, leaf.array, None, ..., first, False))
                paths.append(leaf.path)
        order = sorted(used, key=lambda leaf: numbers[id(leaf)])
        return Outside(
            tuple(looks),
            tuple(paths),
            tuple((leaf.path, leaf.array.dtype, leaf.array.shape) for leaf in order),
            tuple(
                (leaf.tensor, leaf.head)
                for leaf in order
                if leaf.tensor is not None and leaf.head is not None
            ),
            tuple(leaf.array for leaf in order),
        )


def _grouped(reads: Any) -> Callable[[Capture], tuple[int, bool]]:
    """Return what sorts reads: those of one dictionary together, final ones first."""
    order: dict[int, int] = {}
    for capture in reads:
        order.setdefault(id(capture.holder), len(order))
    return lambda c: (order[id(c.holder)], not c.final)


def fresh_head(value: Tensor) -> Tensor:
    """Return what stands for an argument as the function begins."""
    return Tensor(value.graph, value.name, value.kind, value.shape, value.scope, value.made)


def _mentions(text: str, leaf: Leaf) -> bool:
    assert leaf.tensor is not None and leaf.head is not None
    return leaf.tensor.stamp > 0 or leaf.head.name in text


def _settled(tree: Any, used: Sequence[Leaf], numbers: dict[int, int]) -> Any:
    """Return a tree of `Captures` as one of trees.h; arrays that are used get their numbers."""
    if isinstance(tree, Leaf):
        if tree.pinned:
            return object, tree.array
        if not any(tree is leaf for leaf in used):
            return True
        numbers[id(tree)] = len(numbers)
        return ...
    if isinstance(tree, Branch):
        return tree._replace(children=tuple(_settled(c, used, numbers) for c in tree.children))
    return tree


class Change(NamedTuple):
    """Something outside that is no longer what it was."""

    path: str
    was: str
    now: str
    array: bool
    """Whether it is the content of an array."""


@dataclass(frozen=True, eq=False)
class Outside:
    """What a program reads outside of its function, and which arrays it takes from there."""

    looks: tuple[tuple[Any, ...], ...] = ()
    paths: tuple[str, ...] = ()
    """What the user calls what is looked at."""
    types: tuple[tuple[str, Any, tuple[int, ...]], ...] = ()
    """What the user calls each of the arrays, its dtype and shape."""
    inputs: tuple[tuple[Tensor, Tensor], ...] = ()
    """What stands for the arrays in the trace, after it and before it."""
    arrays: tuple[Array, ...] = ()
    """The arrays as the function was traced; let go of afterwards."""

    def settled(self) -> Outside:
        """Return it without what belongs to the trace alone."""
        return Outside(self.looks, self.paths, self.types)

    @property
    def names(self) -> tuple[str, ...]:
        """What the user calls each of the arrays."""
        return tuple(name for name, *_ in self.types)

    def watch(self) -> Any:
        """Return what the dispatcher looks at; None where there is nothing."""
        extension = load_extension() if self.looks else None
        return None if extension is None else extension.Watch(self.looks)

    def collect(self) -> list[Any] | None:
        """Return the arrays as they are now; None where something else is other than it was."""
        arrays: list[Any] = []
        for kind, holder, key, tree, _, _ in self.looks:
            found = looked_up(kind, holder, key)
            if not fits(tree, found, arrays):
                return None
        same = (_has_type(a, *t) for a, (_, *t) in zip(arrays, self.types, strict=True))
        return arrays if all(same) else None

    def change(self) -> Change | None:
        """Return the first that is other than it was."""
        for (kind, holder, key, tree, *_), path in zip(self.looks, self.paths, strict=True):
            found = looked_up(kind, holder, key)
            if not fits(tree, found, []):
                return _change(tree, found, path)
        for array, (name, *told) in zip(self._arrays(), self.types, strict=True):
            if not _has_type(array, *told):
                return Change(name, f"{told[0]}{list(told[1])}", shown(array), False)
        return None

    def _arrays(self) -> list[Any]:
        arrays: list[Any] = []
        for kind, holder, key, tree, *_ in self.looks:
            fits(tree, looked_up(kind, holder, key), arrays)
        return arrays


def _has_type(array: Array, dtype: Any, shape: tuple[int, ...]) -> bool:
    return array.shape == shape and array.dtype.newbyteorder("=") == dtype.newbyteorder("=")


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()
"""What is found where there is nothing."""


def looked_up(kind: int, holder: Any, key: Any) -> Any:
    """Return what is there now, `NOTHING` where there is nothing."""
    if kind == IN_DICT:
        return dict.get(holder, key, NOTHING)
    if kind == IN_CELL:
        try:
            return holder.cell_contents
        except ValueError:
            return NOTHING
    if kind == IN_LIST:
        return holder[key] if key < len(holder) else NOTHING
    return getattr(holder, key, NOTHING) if kind == ATTRIBUTE else holder


def fits(tree: Any, value: Any, arrays: list[Any]) -> bool:
    """Whether ``value`` is what a tree says, as trees.h does it; its arrays go to ``arrays``."""
    if isinstance(tree, bool):
        return tree or value is NOTHING
    if tree is ...:
        array = isinstance(value, np.ndarray | np.generic)
        arrays += [np.asarray(value)] if array else []
        return array
    if tree is None or value is NOTHING:
        return tree is value
    if isinstance(tree, Branch):
        return _fits_branch(tree, value, arrays)
    return _is_meant(tree, value)


def _is_meant(tree: tuple[Any, ...], value: Any) -> bool:
    """Whether ``value`` is the static value that a tree says."""
    kind, meant = tree[:2]
    if not isinstance(kind, type):
        return bool(kind(value, meant))
    if kind is object:
        return value is meant
    if type(value) is not kind:
        return False
    if kind is np.ndarray:
        return _same_content(meant, value)
    if len(tree) == 2:
        return value is meant or key_of(value) == key_of(meant)
    if tree[3] is value and value is not None:
        return True
    parts = [value if name is None else getattr(value, name, NOTHING) for name in meant]
    return all(fits(t, p, []) for t, p in zip(tree[2], parts, strict=True))


def _fits_branch(tree: Branch, value: Any, arrays: list[Any]) -> bool:
    if type(value) is not tree.kind or len(value) != len(tree.children):
        return False
    if tree.keys is None:
        return all(fits(t, v, arrays) for t, v in zip(tree.children, value, strict=True))
    if {key_of(k) for k in value} != {key_of(k) for k in tree.keys}:
        return False
    return all(fits(t, value[k], arrays) for t, k in zip(tree.children, tree.keys, strict=True))


def _same_content(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _change(tree: Any, value: Any, path: str) -> Change:
    """Return which part of ``value`` is not what ``tree`` says."""
    if isinstance(tree, Branch) and type(value) is tree.kind and len(value) == len(tree.children):
        steps = range(len(value)) if tree.keys is None else tree.keys
        for step, child in zip(steps, tree.children, strict=True):
            try:
                part = value[step]
            except KeyError:
                break
            if not fits(child, part, []):
                return _change(child, part, f"{path}[{step!r}]")
    content = isinstance(tree, tuple) and tree[0] is np.ndarray and type(value) is np.ndarray
    return Change(path, _told(tree), shown(value), content)


def _told(tree: Any) -> str:
    """Spell what must be there."""
    if isinstance(tree, Branch):
        return f"a {tree.kind.__name__} of {len(tree.children)}"
    if isinstance(tree, tuple):
        return shown(tree[1]) if isinstance(tree[0], type) and len(tree) == 2 else "another value"
    return "an array" if tree is ... else "nothing" if tree is False else repr(tree)


def shown(value: Any) -> str:
    """Spell a value in a few words."""
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype}{list(value.shape)}"
    if isinstance(value, FunctionType | BuiltinFunctionType):
        return f"the function {value.__qualname__}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    text = repr(value) if isinstance(value, bool | int | float | str | tuple | np.generic) else ""
    return text if 0 < len(text) <= 60 else f"a {type(value).__name__}"


_ATOMS = {bool, int, float, complex, str, bytes, type(...)}
_BY_VALUE = {frozenset, set, slice, range, MethodType}


def _is_value(value: Any) -> bool:
    """Whether ``value`` is of a frozen dataclass without arrays in it: equal ones are alike."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    if not is_dataclass(value) or not getattr(parameters, "frozen", False):
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True
