"""Static arguments: keys and guards that distinguish values by class and by bits.

A traced function may compute anything with a static argument, so two values share a program only
if the function cannot distinguish them. So `1`, `1.0` and `True`, which are equal, are three
values, and `0.0` and `-0.0` are two, alone and inside of containers. No `==` is called, neither
Python's nor a class's.

* Numbers, text, tuples, sets and their subclasses are identified by class, content and attributes.
* Objects whose class defines `==`, such as dataclasses, are identified by class and attributes.
* Any other object (a function, a class, an enum member) is identified by identity.

`key_of` returns keys for dicts; `guard_of` returns guards that the dispatcher in C compares with.
"""

from __future__ import annotations

import copyreg
import struct
from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, cached_property, partial
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from pickle import PicklingError
from types import (
    BuiltinFunctionType,
    EllipsisType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NoneType,
)
from typing import Any, TypeAlias, cast

import numpy as np

from stepwell.core.hashing import blake2b
from stepwell.frontend.pytree import Branch, Keys, Tree, flatten
from stepwell.frontend.tensor import Tensor

Guard: TypeAlias = tuple[Any, ...]
"""The form in which the dispatcher compares a static value; trees.h describes it."""

_PLAIN: frozenset[type[Any]] = frozenset((NoneType, EllipsisType, bool, int, str, bytes))
"""Classes whose equal values are indistinguishable."""

_ATOMS = _PLAIN | {float, complex}

_ATTRIBUTES: dict[type[Any], tuple[str, ...]] = {
    slice: ("start", "stop", "step"),
    range: ("start", "stop", "step"),
    partial: ("func", "args", "keywords", "__dict__"),
    MethodType: ("__func__", "__self__"),
    BuiltinFunctionType: ("__self__", "__qualname__"),
    MethodWrapperType: ("__self__", "__name__"),
    **dict.fromkeys((PurePosixPath, PosixPath, PureWindowsPath, WindowsPath), ("parts",)),
}
"""Classes, with the attributes that identify an object; its other attributes are ignored."""

_DEEPEST = 8
"""The nesting depth of guards; values nested more deeply are compared by key (in Python)."""


class Same:
    """A dict key that compares an object by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"Same({self.value!r})"


def key_of(value: Any) -> Hashable:
    """Return a key; two values have equal keys if and only if no program can distinguish them.

    >>> len({key_of(v) for v in (1, 1.0, True, (1,), (1.0,), 0.0, -0.0, "1", b"1")})
    9
    >>> key_of((0.5, float("nan"))) == key_of((0.5, float("nan")))
    True
    """
    return _Keys().of(value)


def typed(tree: Tree) -> Hashable:
    """Return ``tree`` as a dict key that also distinguishes the classes and order of dicts' keys.

    >>> typed(Branch(dict, (1,), (...,))) == typed(Branch(dict, (1.0,), (...,)))
    False
    """
    if not isinstance(tree, Branch):
        return tree
    inside = tuple(typed(child) for child in tree.children)
    keys = tree.keys
    if keys is None:
        return tree.kind, None, inside
    order = keys.order if isinstance(keys, Keys) else keys
    if all(type(key) is str for key in keys):
        return tree.kind, order, inside
    return tree.kind, tuple(map(key_of, order)), inside


def guard_of(value: Any) -> Guard:
    """Return the guard that accepts only the static value ``value``."""
    return _guard(value, 0)


def is_final(guard: Any) -> bool:
    """Whether the value that ``guard`` was made from is immutable."""
    if isinstance(guard, Branch):
        return guard.kind is not dict and guard.kind is not list and _are_final(guard.children)
    return isinstance(guard[0], type) and (len(guard) == 2 or guard[3] is not None)


def _are_final(guards: Iterable[Any]) -> bool:
    return all(map(is_final, guards))


def is_constant(value: Any) -> bool:
    """Whether ``value`` is immutable and contains no array.

    True for numbers, text, tuples and frozen dataclasses of them, functions and classes; also for
    hashable objects of users' classes, which are compared by identity.

    >>> [is_constant(v) for v in (3, "add", (0, 1), np.float32(1), np.tanh)]
    [True, True, True, True, True]
    >>> [is_constant(v) for v in (np.ones(3), (1, np.ones(3)), [1], {})]
    [False, False, False, False]
    """
    kind = type(value)
    if kind in _ATOMS or isinstance(value, type | np.generic):
        return True
    if isinstance(value, tuple | frozenset):
        return all(map(is_constant, cast(Iterable[Any], value)))
    if is_dataclass(value):
        inside = (getattr(value, field.name) for field in fields(value))
        return _is_frozen(kind) and all(map(is_constant, inside))
    if hasattr(value, "__array__") or flatten(value)[1] is not ...:
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True


class _Keys:
    """Computes a key; a stack of the enclosing objects handles cyclic references."""

    def __init__(self) -> None:
        self._above: list[int] = []

    def of(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind is float:
            return kind, struct.pack("d", value)
        if _is_itself(value):
            return Same(value)
        if id(value) in self._above:
            return "above", self._above.index(id(value))
        self._above.append(id(value))
        try:
            return (Same(kind), *self._inside(value, kind))
        finally:
            self._above.pop()

    def _all(self, values: Iterable[Any]) -> tuple[Hashable, ...]:
        return tuple(map(self.of, values))

    def _inside(self, value: Any, kind: type[Any]) -> tuple[Hashable, ...]:
        """Return the key of the content and attributes of ``value``, without its class."""
        if isinstance(value, np.generic):
            return _scalar_key(value)
        names = _attribute_names(value)
        attributes = tuple((n, self._attribute(value, n)) for n in names)
        base = _base(kind)
        if base is frozenset or base is set:
            return frozenset(self._all(value)), attributes
        if base is not None:
            return self._all(_CONTENT[base](value)), attributes
        if _is_open(kind):
            return attributes
        return self._reduced(value), attributes

    def _attribute(self, value: Any, name: str) -> Hashable:
        if name != "__dict__":
            return self.of(getattr(value, name))
        derived = _derived(type(value))
        own = {k: v for k, v in value.__dict__.items() if k not in derived}
        return tuple((k, self.of(own[k])) for k in sorted(own, key=str))

    def _reduced(self, value: Any) -> Hashable:
        """Return the key of the pickled form of ``value``, whose class in C hides its content."""
        try:
            known = copyreg.dispatch_table.get(type(value))
            created = known(value) if known else value.__reduce_ex__(2)
        except (TypeError, ValueError, AttributeError, PicklingError):
            return Same(value)
        if isinstance(created, str):
            return Same(value)
        iterators = (list(part) for part in created[3:5] if part is not None)
        return self._all((*created[:3], *iterators))


def _is_itself(value: Any) -> bool:
    """Whether ``value`` is identified by identity."""
    if isinstance(value, (Enum, type, ModuleType, Tensor)):
        return True
    kind = type(value)
    return kind.__eq__ is object.__eq__ and kind is not partial


def _floats(value: complex) -> tuple[float, float]:
    return complex.__pos__(value).real, complex.__pos__(value).imag


def _array(value: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    if value.dtype.hasobject:
        return value.dtype, value.shape, value.tolist()
    return value.dtype, value.shape, blake2b(value.tobytes()).digest()


_CONTENT: dict[type[Any], Callable[[Any], Iterable[Any]]] = {
    int: lambda value: (int.__pos__(value),),
    float: lambda value: (struct.pack("d", value),),
    complex: lambda value: _floats(value),
    str: lambda value: (str.__str__(value),),
    bytes: lambda value: (bytes.__add__(value, b""),),
    bytearray: lambda value: (bytes(value),),
    tuple: tuple.__iter__,
    list: list.__iter__,
    dict: lambda value: (*dict.keys(value), *dict.values(value)),
    frozenset: frozenset.__iter__,
    set: set.__iter__,
    np.ndarray: _array,
}
"""The content of values of Python's own classes and of classes derived from them."""


@cache
def _base(kind: type[Any]) -> type[Any] | None:
    return next((base for base in kind.__mro__ if base in _CONTENT), None)


def _attribute_names(value: Any) -> tuple[str, ...]:
    """Return the instance attributes of an object; ``__dict__`` stands for those in its dict."""
    kind = type(value)
    if (known := _ATTRIBUTES.get(kind)) is not None:
        return known
    slots = (name for name in _slots(kind) if hasattr(value, name))
    return (*slots, "__dict__") if kind.__dictoffset__ else tuple(slots)


@cache
def _slots(kind: type[Any]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            name
            for base in kind.__mro__
            for name, member in vars(base).items()
            if isinstance(member, MemberDescriptorType)
        )
    )


@cache
def _derived(kind: type[Any]) -> frozenset[str]:
    """Return the names under which objects keep what follows from their attributes and class."""
    members = [each for base in kind.__mro__ for each in vars(base).items()]
    computed = (name for name, member in members if isinstance(member, cached_property))
    methods = (name for _, member in members if (name := getattr(member, "kept_name", None)))
    return frozenset((*computed, *methods))


@cache
def _is_open(kind: type[Any]) -> bool:
    """Whether slots and a dict hold the whole state of a class's objects: no C class hides any."""
    if kind in _ATTRIBUTES:
        return True
    word = struct.calcsize("P")
    pointers = len(_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__basicsize__ == object.__basicsize__ + word * pointers and not kind.__itemsize__


def _scalar_key(value: np.generic) -> tuple[Hashable, ...]:
    dtype = repr(value.dtype)
    if value.dtype.hasobject:
        return dtype, Same(value)
    # the padding bytes of a long double are arbitrary
    return dtype, repr(value) if value.dtype.char in "gG" else value.tobytes()


def _guard(value: Any, depth: int) -> Guard:
    kind = type(value)
    if kind in _ATOMS or _is_itself(value) or _is_number(value):
        return kind, value
    if depth < _DEEPEST:
        if kind is list or kind is tuple or _is_named(kind):
            inside = tuple(_guard(each, depth + 1) for each in value)
            if kind is not list and all(len(g) == 2 and is_final(g) for g in inside):
                return kind, value
            return Branch(kind, None, cast(Any, inside))
        if kind is dict and len(value) < 2:  # larger dicts: their order counts
            return _guard_of_attributes(value, depth)
        if _base(kind) is None and _is_open(kind):
            return _guard_of_object(value, depth)
    return _is_like, key_of(value)


def _guard_of_attributes(value: dict[Any, Any], depth: int) -> Guard:
    """Return the guard of a dict whose order does not count."""
    if any(type(key) is not str for key in value):
        return _is_like, key_of(value)
    keys = tuple(sorted(value))
    inside = tuple(_guard(value[key], depth + 1) for key in keys)
    return Branch(dict, keys, cast(Any, inside))


def _guard_of_object(value: Any, depth: int) -> Guard:
    kind = type(value)
    names = _attribute_names(value)
    if kind not in _ATTRIBUTES and len(names) < len(
        _slots(kind)
    ):  # an unset slot may be set in another object
        return _is_like, key_of(value)
    guards = tuple(
        _guard_of_attributes(value.__dict__, depth)
        if name == "__dict__"
        else _guard(getattr(value, name), depth + 1)
        for name in names
    )
    inside = [part for g in guards for part in (g.children if isinstance(g, Branch) else (g,))]
    same = value if _is_frozen(kind) and _are_final(inside) else None
    if _derived(kind):  # another object may not have computed them yet
        return kind, (None,), ((_is_like, key_of(value)),), same
    return kind, names, guards, same


def _is_frozen(kind: type[Any]) -> bool:
    """Whether objects of ``kind`` are immutable: frozen dataclasses, and Python's own classes."""
    parameters = vars(kind).get("__dataclass_params__")
    return kind in (slice, range) or bool(getattr(parameters, "frozen", False))


def _is_number(value: Any) -> bool:
    """Whether ``value`` is a NumPy number that is identified by its bits."""
    if not isinstance(value, np.number | np.bool_) or type(value).__module__ != "numpy":
        return False
    return value.dtype.char not in "gGm"  # long doubles have padding bits; timedelta is excluded


def _is_named(kind: type[Any]) -> bool:
    """Whether ``kind`` is a class of named tuples whose objects hold their items only."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not kind.__dictoffset__


def _is_like(value: Any, key: Hashable) -> bool:
    """Whether ``value`` has that key; the dispatcher calls this for values without a C guard."""
    return key_of(value) == key
