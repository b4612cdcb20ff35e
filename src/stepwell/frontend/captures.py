"""Captured values: values from outside that a traced function reads, and the guards on them.

A capture is a variable of a module or closure, or an attribute or item of a captured object (note
046). Numbers, text, tuples and the like are guarded by value, functions and other objects by
identity: if a guard fails at a call, the function is traced again. Captured arrays are hidden
arguments of the program; small arrays, and arrays whose numbers tracing needs, are guarded by
content.

`Captures` collects the reads during a trace; `outside` checks the resulting guards at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from stepwell.core.dtypes import dtype_of
from stepwell.frontend.outside import ITSELF, Array, Outside
from stepwell.frontend.pytree import Branch
from stepwell.frontend.state.variables import TracedVariable, Variable, array_of
from stepwell.frontend.statics import guard_of, is_final
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.weights import is_frozen
from stepwell.runtime.device_arrays import DeviceArray

MAX_COMPARED_BYTES = 256
"""Maximum bytes of an array guarded by content: as cheap to compare as an address."""
TABLES = 64 << 10
"""Maximum bytes of an integer or boolean array guarded by content if tracing needs its numbers."""


_ARRAYS = (np.ndarray, DeviceArray)
"""Array classes that become hidden arguments."""


class Leaf:
    """A captured array: a hidden argument, or a constant that is guarded by its content."""

    __slots__ = ("array", "content", "head", "path", "pinned", "tensor", "variable")

    def __init__(self, path: str, array: Array, content: Array | None) -> None:
        self.path, self.array, self.content = path, array, content
        self.variable: Variable | None = None
        """The `Variable` that holds the array, if one does."""
        self.tensor: Tensor | None = None
        self.head: Tensor | None = None
        self.pinned = False
        """Whether the guard is the array's identity: two captures refer to the same array."""


class Capture:
    """One location that the trace read, and the guard on its value."""

    __slots__ = ("base", "final", "holder", "key", "kind", "path", "tree", "value")

    def __init__(self, kind: int, holder: Any, key: Any, path: str) -> None:
        self.kind, self.holder, self.key, self.path = kind, holder, key, path
        self.value: Any = None
        self.tree: Any = None
        self.final = True
        self.base = False
        """Whether the trace read only attributes or items of the value, not the whole value."""


class Captures:
    """The outside reads of one trace so far.

    known : whether the array, found at the path, is to be guarded by its content
    """

    def __init__(self, trace: Any, known: Callable[[str, Array], bool]) -> None:
        self.trace, self.known = trace, known
        self.reads: dict[Any, Capture] = {}
        self.leaves: dict[int, Leaf] = {}
        self.paths: dict[int, str] = {}
        """The path of each outside object by `id`, for messages."""
        self.places: dict[int, Capture] = {}
        """The first capture of each outside object, by `id`."""
        self.alive: list[Any] = []
        self.by_content = False
        """Whether every captured array is guarded by content, since no handle can replace it."""
        self.tensors: dict[int, Leaf] = {}
        """The leaves that are hidden arguments, by `id` of their tensor."""

    def knows(self, value: Any) -> bool:
        """Whether ``value`` is an object that a capture refers to."""
        return id(value) in self.paths

    def read(
        self, kind: int, holder: Any, key: Any, path: str, value: Any, base: bool = False
    ) -> Any:
        """Record a read of ``value``; return ``value``, or its replacement in the trace.

        base : whether only an attribute or item of ``value`` is read
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
        """Record that a lookup found nothing."""
        at = kind, id(holder), type(key), key
        if at not in self.reads:
            capture = self.reads[at] = Capture(kind, holder, key, path)
            capture.tree, capture.final = False, True

    def root(self, value: Any, path: str) -> None:
        """Register ``value``, guarded elsewhere, so that reads of its parts are captures."""
        self._register(value, path, None)

    def whole(self, value: Any) -> None:
        """Guard the whole of a list or dict, of which so far only parts were read."""
        capture = self.places.get(id(value))
        if capture is not None and capture.base:
            capture.base = False
            self._note(capture)

    def local(self, value: Any) -> Any:
        """Return the trace's replacement for ``value`` if that is a captured array, else itself."""
        kind = type(value)
        if kind is Variable:
            return self.variable(value)
        if kind not in _ARRAYS or (leaf := self.leaves.get(id(value))) is None:
            return value
        return self.tensor_of(leaf)

    def variable(self, value: Variable) -> Any:
        """Return the hidden argument for a variable, wherever the variable was found."""
        if id(value) not in self.leaves:
            self.read(ITSELF, value, None, value.name or "variable", value)
        return self.tensor_of(self.leaves[id(value)])

    def tensor_of(self, leaf: Leaf) -> Any:
        """Return a leaf's constant content, or its hidden argument."""
        if leaf.content is not None:
            return leaf.content
        if leaf.tensor is None:
            kind = dtype_of(leaf.array.dtype.newbyteorder("="))
            assert kind is not None
            of = TracedVariable if leaf.variable is not None else Tensor
            leaf.tensor = handle = self.trace.argument(leaf.path, kind, leaf.array.shape, of=of)
            if isinstance(handle, TracedVariable):
                handle.called = leaf.path
            leaf.head = fresh_head(handle)
            self.tensors[id(handle)] = leaf
        return leaf.tensor

    def of(self, array: Array) -> Tensor | None:
        """Return the hidden argument for an array or for a view of a captured array, else None."""
        leaf = self.leaves.get(id(array))
        base: Any = array.base
        while leaf is None and isinstance(base, np.ndarray):
            if (owner := self.leaves.get(id(base))) is not None and owner.content is None:
                owner.pinned = True  # tracing creates the views: they refer to this very array
                leaf = self.bind(array, owner.path)
            base = base.base
        if leaf is None or leaf.content is not None:
            return None
        return self.tensor_of(leaf)

    def bind(self, array: Any, path: str) -> Leaf:
        """Capture this very array, wherever it was found."""
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
        """Return the guard (as in trees.h, with leaves in it), and whether ``value`` is final."""
        kind = type(value)
        if kind in _ARRAYS:
            return self._leaf(value, path)
        if kind is Variable:
            return self._of_variable(value, path)
        if value is None:
            return None, True
        if kind in _ATOMS or isinstance(value, np.generic):
            return guard_of(value), True
        if kind in (list, tuple, dict) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            if id(value) in self.paths and self.places.get(id(value)) is not capture:
                return (object, value), True  # captured before: the guard is there
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
        """Capture the arrays that a `partial` holds; it always holds the same ones."""
        if isinstance(value.func, partial):
            self.hold(value.func, path)
        for each in (*value.args, *value.keywords.values()):
            if type(each) in _ARRAYS and id(each) not in self.leaves:
                self.bind(each, path)
            else:
                self._tree(each, path, None)

    def _leaf(self, array: Any, path: str) -> tuple[Any, bool]:
        known = self.leaves.get(id(array))
        if known is not None and known.content is None:
            known.pinned = True  # two captures refer to it: they must stay one array
            return (object, array), True
        if known is not None:
            return (np.ndarray, known.content), False
        on_host = type(array) is np.ndarray
        if on_host and (is_frozen(array) or array.dtype.hasobject):
            return (object, array), True
        # do not copy the content of an array on a device: a call may donate it
        content = self._content(path, array) if on_host else None
        leaf = self.leaves[id(array)] = Leaf(path, array, content)
        self.alive.append(array)
        return (leaf, False) if content is None else ((np.ndarray, content), False)

    def _content(self, path: str, array: Array) -> Array | None:
        """Return a copy of an array's content if it is guarded by content, else None."""
        unknown = dtype_of(array.dtype.newbyteorder("=")) is None
        if not unknown and not self.by_content and not self.known(path, array):
            return None
        content = array.copy(order="C")
        content.flags.writeable = False
        return content

    def _of_variable(self, variable: Variable, path: str) -> tuple[Any, bool]:
        """Capture a variable: always as a hidden argument, since its content changes."""
        if (known := self.leaves.get(id(variable))) is not None:
            known.pinned = True
            return (object, variable), True
        array = array_of(variable)
        leaf = Leaf(path, array, None)
        leaf.variable = variable
        self.leaves[id(variable)] = self.leaves[id(array)] = leaf
        self.alive.append(variable)
        return leaf, False

    def finished(self, text: str) -> Outside:
        """Return the guards to check before each call of the program ``text``."""
        used = [leaf for leaf in self.tensors.values() if _mentions(text, leaf)]
        numbers: dict[int, int] = {}
        looks: list[tuple[Any, ...]] = []
        paths: list[str] = []
        for capture in sorted(self.reads.values(), key=_grouped(self.reads.values())):
            if capture.kind == ITSELF:
                continue
            first = len(numbers)
            tree = _numbered_guard(capture.tree, used, numbers)
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
    """Return a sort key for captures: group by holder, immutable values first."""
    order: dict[int, int] = {}
    for capture in reads:
        order.setdefault(id(capture.holder), len(order))
    return lambda c: (order[id(c.holder)], not c.final)


def fresh_head(value: Tensor) -> Tensor:
    """Return an argument's value as the function begins."""
    return Tensor(value.graph, value.name, value.kind, value.shape, value.scope, value.created)


def _mentions(text: str, leaf: Leaf) -> bool:
    assert leaf.tensor is not None and leaf.head is not None
    return leaf.tensor.stamp > 0 or leaf.head.name in text


def _numbered_guard(tree: Any, used: Sequence[Leaf], numbers: dict[int, int]) -> Any:
    """Turn a guard of `Captures` into one of trees.h; number the arrays that the program uses."""
    if isinstance(tree, Leaf):
        if tree.pinned:
            return object, tree.array if tree.variable is None else tree.variable
        if not any(tree is leaf for leaf in used):
            return True
        numbers[id(tree)] = len(numbers)
        return ... if tree.variable is None else Variable
    if isinstance(tree, Branch):
        return tree._replace(
            children=tuple(_numbered_guard(c, used, numbers) for c in tree.children)
        )
    return tree


_ATOMS = {bool, int, float, complex, str, bytes, type(...)}
_BY_VALUE = {frozenset, set, slice, range, MethodType}


def _is_value(value: Any) -> bool:
    """Whether ``value`` is a hashable instance of a frozen dataclass, which equality guards."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    if not is_dataclass(value) or not getattr(parameters, "frozen", False):
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True
