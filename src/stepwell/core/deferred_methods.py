"""Generate the methods of dataclasses at their first use.

A process that compiles its first program defines 500 dataclasses. `dataclasses` generates each of
their methods by a run of Python's compiler, but few methods except ``__init__`` are ever called.
Generating the others takes a tenth of the time of a first small program.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

DEFERRED = frozenset({"__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})
"""`__init__` is not among them: its signature can be inspected, and is part of the docstring."""

_generate: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
"""Generates one method from its text. Python 3.13 has none: it compiles all methods of a class
at once."""

_lock = threading.Lock()
_inside = 0


@contextmanager
def deferred_methods() -> Generator[None]:
    """Let dataclasses that are defined inside the context generate methods at their first use.

    Several threads may be inside at once. A class that another thread defines meanwhile behaves as
    always: a deferred method replaces itself by the one that it stands for.

    >>> with deferred_methods():
    ...     Point = dataclasses.make_dataclass("Point", ["x", "y"], frozen=True)
    >>> Point(1, 2) == Point(1, 2), Point(1, 2)
    (True, Point(x=1, y=2))
    """
    _enter(1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(change: int) -> None:
    global _inside
    if _generate is None:
        return
    with _lock:
        _inside += change
        dataclasses.__dict__["_create_fn"] = _deferred if _inside else _generate


def _deferred(name: str, *text: Any, **scope: Any) -> Any:
    """Return a method that generates itself when it is called."""
    assert _generate is not None
    if name not in DEFERRED:
        return _generate(name, *text, **scope)
    created: list[Any] = []

    def method(self: Any, *given: Any) -> Any:
        if not created:
            created.append(_generated(method, name, *text, **scope))
            _replace(method, created[0], type(self))
        return created[0](self, *given)

    method.__name__ = name
    return method


def _generated(method: Any, name: str, *text: Any, **scope: Any) -> Any:
    assert _generate is not None
    found = _generate(name, *text, **scope)
    found.__qualname__ = method.__qualname__
    return found


def _replace(method: Any, found: Any, kind: type[Any]) -> None:
    """Replace a method in the class that has it: a base class of ``kind``, or ``kind`` itself."""
    for each in kind.__mro__:
        if each.__dict__.get(found.__name__) is method:
            type.__setattr__(each, found.__name__, found)
