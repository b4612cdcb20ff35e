"""The captured state of a program: it is compared before each call, and changes are reported.

`Outside` keeps the reads that a trace recorded (`captures`) for the calls of the program; `fits`
and `looked_up` are the Python equivalents of watch.h and trees.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepwell.frontend.pytree import Branch
from stepwell.frontend.state.variables import Variable, array_of
from stepwell.frontend.statics import key_of
from stepwell.frontend.tensor import Tensor
from stepwell.runtime.device_arrays import DeviceArray
from stepwell.runtime.extension import load_extension

IN_DICT, IN_CELL, IN_LIST, ATTRIBUTE, ITSELF = range(5)
"""Kinds of places that are read, as watch.h numbers them."""

Array = NDArray[Any]


class Change(NamedTuple):
    """A captured object that differs from the traced one."""

    path: str
    was: str
    now: str
    array: bool
    """Whether the content of an array changed."""


@dataclass(frozen=True, eq=False)
class Outside:
    """The objects outside of its function that a program reads; arrays among them are inputs."""

    looks: tuple[tuple[Any, ...], ...] = ()
    paths: tuple[str, ...] = ()
    """The user's names of the captured objects."""
    types: tuple[tuple[str, Any, tuple[int, ...]], ...] = ()
    """The user's name, dtype and shape of each captured array."""
    inputs: tuple[tuple[Tensor, Tensor], ...] = ()
    """The tensors of the captured arrays: after the trace (perhaps assigned to), and before it."""
    arrays: tuple[Array, ...] = ()
    """The arrays at trace time; dropped by `settled`."""

    def settled(self) -> Outside:
        """Return a copy without the objects that only the trace needs."""
        return Outside(self.looks, self.paths, self.types)

    @property
    def names(self) -> tuple[str, ...]:
        """The user's names of the captured arrays."""
        return tuple(name for name, *_ in self.types)

    def watch(self) -> Any:
        """Return the dispatcher's watch; None if nothing is captured or there is no C extension."""
        extension = load_extension() if self.looks else None
        return None if extension is None else extension.Watch(self.looks)

    def collect(self) -> list[Any] | None:
        """Return the captured arrays as they are now; None if any other captured object changed."""
        arrays: list[Any] = []
        for kind, holder, key, tree, _, _ in self.looks:
            found = looked_up(kind, holder, key)
            if not fits(tree, found, arrays):
                return None
        same = (_has_type(a, *t) for a, (_, *t) in zip(arrays, self.types, strict=True))
        return arrays if all(same) else None

    def change(self) -> Change | None:
        """Return the first change of a captured object, or None."""
        for (kind, holder, key, tree, *_), path in zip(self.looks, self.paths, strict=True):
            found = looked_up(kind, holder, key)
            if not fits(tree, found, []):
                return _change(tree, found, path)
        for array, (name, *type) in zip(self._arrays(), self.types, strict=True):
            if not _has_type(array, *type):
                return Change(name, f"{type[0]}{list(type[1])}", shown(array), False)
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
"""The result of a lookup that finds no object."""


def looked_up(kind: int, holder: Any, key: Any) -> Any:
    """Return the object that the place holds now; `NOTHING` if it holds none."""
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
    """Whether ``value`` matches a tree, as in trees.h; its arrays are appended to ``arrays``."""
    if isinstance(tree, bool):
        return tree or value is NOTHING
    if tree is ... and type(value) is DeviceArray:
        arrays.append(value)
        return True
    if tree is ...:
        array = isinstance(value, np.ndarray | np.generic)
        arrays += [np.asarray(value)] if array else []
        return array
    if tree is Variable:
        arrays += [array_of(value)] if type(value) is Variable else []
        return type(value) is Variable
    if tree is None or value is NOTHING:
        return tree is value
    if isinstance(tree, Branch):
        return _fits_branch(tree, value, arrays)
    return _is_meant(tree, value)


def _is_meant(tree: tuple[Any, ...], value: Any) -> bool:
    """Whether ``value`` is the static value of a tree."""
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
    """Return the innermost part of ``value`` that does not match ``tree``."""
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
    return Change(path, _expected_text(tree), shown(value), content)


def _expected_text(tree: Any) -> str:
    """Describe the value that a tree expects."""
    if isinstance(tree, Branch):
        return f"a {tree.kind.__name__} of {len(tree.children)}"
    if isinstance(tree, tuple):
        return shown(tree[1]) if isinstance(tree[0], type) and len(tree) == 2 else "another value"
    if tree is Variable:
        return "a Variable"
    return "an array" if tree is ... else "nothing" if tree is False else repr(tree)


def shown(value: Any) -> str:
    """Describe a value in a few words."""
    if isinstance(value, np.ndarray | DeviceArray):
        return f"an array {value.dtype}{list(value.shape)}"
    if type(value) is Variable:
        return f"a Variable {value.dtype}{list(value.shape)}"
    if isinstance(value, FunctionType | BuiltinFunctionType):
        return f"the function {value.__qualname__}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    text = repr(value) if isinstance(value, bool | int | float | str | tuple | np.generic) else ""
    return text if 0 < len(text) <= 60 else f"a {type(value).__name__}"
