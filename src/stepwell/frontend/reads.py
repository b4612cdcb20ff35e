"""Reads of variables, attributes and items while a function is traced.

In rewritten source each read goes through an `Outer` (`read_source`). It records reads of module
variables and closure cells, and of objects reached from them (`captures`), and replaces arrays by
hidden arguments. In functions that cannot be rewritten a search of the bytecode finds the reads.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Mapping
from importlib import import_module
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from stepwell.frontend.captures import Captures
from stepwell.frontend.notices import warn_once
from stepwell.frontend.outside import ATTRIBUTE, IN_CELL, IN_DICT, IN_LIST, NOTHING, looked_up
from stepwell.frontend.promotion import has_traced
from stepwell.frontend.state.variables import Variable
from stepwell.frontend.tensor import Partial, Tensor, has_traced_bounds
from stepwell.frontend.tracing import active_trace
from stepwell.frontend.unbound import UNSURE

CONCATENATORS = type(np.r_), type(np.c_)

CHANGING = frozenset(
    (
        *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update"),
        *("setdefault", "popitem", "add", "discard", "move_to_end", "appendleft", "popleft"),
    )
)
"""Methods that change containers."""


def is_library(module: str | None) -> bool:
    """Whether a module belongs to Python, NumPy or Stepwell: its content does not change."""
    top = (module or "").partition(".")[0]
    return top in ("numpy", "stepwell", "ml_dtypes") or top in sys.stdlib_module_names


def current_captures() -> Captures | None:
    """Return the captures of this thread's trace; None if it records none."""
    trace = active_trace()
    return None if trace is None else trace.captures


class Outer:
    """The module variables and closure cells of a rewritten function.

    runtime : `frontend.flowing`, which calls functions
    """

    def __init__(
        self, runtime: Any, variables: dict[str, Any], cells: Mapping[str, CellType]
    ) -> None:
        self.runtime, self.variables, self.cells = runtime, variables, cells
        self.slice = slice

    def variable(self, name: str, value: Any, base: bool = False) -> Any:
        """Return the value of a module variable or closure cell."""
        if (captures := current_captures()) is None:
            return value
        if name in self.cells:
            return captures.read(IN_CELL, self.cells[name], None, name, value, base)
        if name in self.variables:
            return captures.read(IN_DICT, self.variables, name, name, value, base)
        return value

    def local(self, value: Any) -> Any:
        """Return the value of a local variable of the function."""
        kind = type(value)
        if kind is not np.ndarray and kind is not Variable:
            if kind in UNSURE:
                return value.read()
            if kind in (list, dict) and (captures := current_captures()) is not None:
                captures.whole(value)
            return value
        captures = current_captures()
        return value if captures is None else captures.local(value)

    def attribute(self, of: Any, name: str, base: bool = False) -> Any:
        """Return ``of.name``."""
        if type(of) in UNSURE:
            of = of.read()
        captures = None if isinstance(of, Tensor) else current_captures()
        if captures is None:
            return getattr(of, name)
        of = captures.local(of)
        if isinstance(of, Tensor) or not captures.knows(of):
            return captures.local(getattr(of, name))
        return _attribute(self.runtime, captures, of, name, base)

    def item(self, of: Any, index: Any, base: bool = False) -> Any:
        """Return ``of[index]``."""
        if isinstance(of, Tensor):
            return of[index]
        if type(of) in UNSURE:
            return self.item(of.read(), index, base)
        captures = current_captures()
        if type(of) is np.ndarray and captures is not None:
            of = captures.local(of)
        if type(of) is np.ndarray and is_traced_index(index):
            return Tensor.operators["getitem"](of, index)
        if type(of) in CONCATENATORS and _has_traced_part(index):
            return import_module("stepwell.frontend.concatenators").concatenated(of, index)
        if captures is None or not captures.knows(of) or isinstance(index, Tensor):
            return _plain_item(of, index, captures)
        path = f"{captures.paths[id(of)]}[{index!r}]"
        kind = type(of)
        if kind is list and type(index) is int and 0 <= index < len(of):
            return captures.read(IN_LIST, of, index, path, of[index], base)
        if isinstance(of, dict) and kind.__getitem__ is dict.__getitem__:
            value = of[index]
            return captures.read(IN_DICT, of, index, path, value, base)
        if isinstance(kind.__dict__.get("__getitem__"), FunctionType):
            return self.runtime.call(kind.__getitem__, of, index)
        captures.whole(of)
        return captures.local(of[index])

    def storing(self, target: Any, name: str, updated: bool = False) -> None:
        """Warn if a captured object's attribute is assigned to; variables are updated in place."""
        if updated and read_variable(self.runtime, target, True, name):
            return
        if (captures := current_captures()) is not None and captures.knows(target):
            warn(f"'{captures.paths[id(target)]}.{name}' is assigned to")


def read_variable(runtime: Any, target: Any, attribute: bool, key: Any) -> bool:
    """Whether an attribute of an object, or an item of a container, is a `Variable`: record it.

    The user's source is about to update it, as in ``x.key += 1``, where the read is not rewritten.
    """
    outer = Outer(runtime, {}, {})
    if attribute:
        found = isinstance(getattr(target, key, None), Variable)
        return found and outer.attribute(target, key) is not None
    if not isinstance(target, list | dict):
        return False
    try:
        found = isinstance(target[key], Variable)
    except (LookupError, TypeError):
        return False
    return found and outer.item(target, key) is not None


def _has_traced_part(index: Any) -> bool:
    parts: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
    return any(map(has_traced, parts)) or has_traced_bounds(index)


def is_traced_index(index: Any) -> bool:
    """Whether an index is known at run time only."""
    parts: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor | Partial) for part in parts) or has_traced_bounds(index)


def _plain_item(of: Any, index: Any, captures: Captures | None) -> Any:
    trace = active_trace()
    if trace is None:
        return of[index]
    trace.subscripting += 1
    try:
        found = of[index]
    finally:
        trace.subscripting -= 1
    return found if captures is None else captures.local(found)


def _attribute(runtime: Any, captures: Captures, of: Any, name: str, base: bool) -> Any:
    """Return an attribute of a captured object."""
    path = f"{captures.paths[id(of)]}.{name}"
    if isinstance(of, ModuleType):
        value = getattr(of, name)
        if is_library(of.__name__) or name not in vars(of):
            return value
        return captures.read(IN_DICT, vars(of), name, path, value, base)
    if isinstance(of, type):
        value = getattr(of, name)
        if is_library(of.__module__):
            return value
        return captures.read(ATTRIBUTE, of, name, path, value, base)
    if isinstance(of, list | dict | set | tuple | str | bytes | np.ndarray | np.generic):
        if name not in CHANGING:
            captures.whole(of)
        return captures.local(getattr(of, name))
    return _of_object(runtime, captures, of, name, base)


def _of_object(runtime: Any, captures: Captures, of: Any, name: str, base: bool) -> Any:
    """Return an attribute of a captured instance of a user's class."""
    path, kind = f"{captures.paths[id(of)]}.{name}", type(of)
    found = next((vars(k)[name] for k in kind.__mro__ if name in vars(k)), NOTHING)
    if isinstance(found, property) and isinstance(found.fget, FunctionType):
        captures.read(ATTRIBUTE, kind, name, path, found, True)
        return runtime.call(found.fget, of)
    value = getattr(of, name)
    own: dict[str, Any] = vars(of) if kind.__dictoffset__ else {}
    if name in own and own[name] is value:
        return captures.read(IN_DICT, own, name, path, value, base)
    if isinstance(found, FunctionType | staticmethod | classmethod):
        if kind.__dictoffset__:
            captures.absent(IN_DICT, own, name, path)
        if not isinstance(found, classmethod):
            captures.read(ATTRIBUTE, kind, name, path, getattr(kind, name), True)
        return value
    if type(value) not in _NUMBERS and getattr(of, name) is not value:
        return captures.local(value)  # a new object at each read: it cannot be compared
    return captures.read(ATTRIBUTE, of, name, path, value, base)


_NUMBERS = (bool, int, float, complex, str, bytes)


def attribute_or(runtime: Any, of: Any, name: Any, default: Any) -> Any:
    """Return ``getattr(of, name, default)``."""
    captures = None if isinstance(of, Tensor) else current_captures()
    if captures is None or not captures.knows(of) or not isinstance(name, str):
        return getattr(of, name, default)
    if hasattr(of, name):
        return _attribute(runtime, captures, of, name, False)
    captures.absent(ATTRIBUTE, of, name, f"{captures.paths[id(of)]}.{name}")
    return default


def changing(function: Any) -> None:
    """Warn if a method is about to change a captured container."""
    owner = getattr(function, "__self__", None)
    if owner is None or getattr(function, "__name__", "") not in CHANGING:
        return
    if (captures := current_captures()) is not None and captures.knows(owner):
        warn(f"'{captures.paths[id(owner)]}' is changed by {function.__name__}()")


def storing(target: Any) -> None:
    """Warn if an item of a captured container is about to be assigned to."""
    captures = current_captures()
    if captures is not None and isinstance(target, list | dict) and captures.knows(target):
        warn(f"'{captures.paths[id(target)]}' is assigned to")


def warn(what: str) -> None:
    """Warn, once for each line, of an effect that happens during tracing and not at each call."""
    warn_once(
        what,
        f"{what} while the function is traced: that happens once for each trace, not at each "
        "call; pass it as an argument, or return what changes",
    )


def traced_as_is(function: FunctionType) -> FunctionType:
    """Record the possible reads of a function whose source cannot be rewritten.

    Return the function with the arrays among its variables replaced by hidden arguments.
    """
    captures = current_captures()
    if captures is None:
        return function
    try:
        found = _search(captures, function, set())
    finally:
        captures.by_content = False
    if not found:
        return function
    variables = {**function.__globals__, **found}
    names = function.__code__.co_freevars
    cells = [
        CellType(found[name]) if name in found else cell
        for name, cell in zip(names, function.__closure__ or (), strict=True)
    ]
    created = FunctionType(function.__code__, variables, function.__name__, None, tuple(cells))
    created.__defaults__, created.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    created.__qualname__, created.__module__ = function.__qualname__, function.__module__
    return created


def _search(captures: Captures, function: FunctionType, seen: set[Any]) -> dict[str, Any]:
    """Record the possible reads of a function and its callees; return the arrays' replacements."""
    code = function.__code__
    if code in seen or is_library(function.__module__):
        return {}
    seen.add(code)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    arrays: dict[str, Any] = {}
    for name, steps in _loads(code):
        place: tuple[int, Any, Any] = IN_DICT, function.__globals__, name
        if name in cells:
            place = IN_CELL, cells[name], None
        if (value := looked_up(*place)) is NOTHING:
            continue
        captures.by_content = len(seen) > 1 or type(value) is not np.ndarray
        given = captures.read(*place, name, value, bool(steps))
        if given is not value:
            arrays[name] = given
        for step in steps:
            if isinstance(value, FunctionType) or not captures.knows(value):
                break
            try:
                value = _attribute(_Calls, captures, value, step, False)
            except AttributeError:
                break
        if isinstance(value, FunctionType):
            _search(captures, value, seen)
    return {} if _stores(code) else arrays


class _Calls:
    """Calls the getters of properties without tracing their control flow."""

    @staticmethod
    def call(function: Any, /, *args: Any) -> Any:
        """Call a function."""
        return function(*args)


def _stores(code: CodeType) -> bool:
    """Whether a function assigns to module variables or closure cells; warn if it does."""
    for each in dis.get_instructions(code):
        outer = each.opname == "STORE_DEREF" and each.argval in code.co_freevars
        if outer or each.opname == "STORE_GLOBAL":
            warn(f"the variable '{each.argval}' is assigned to")
            return True
    return False


def _loads(code: CodeType) -> list[tuple[str, tuple[str, ...]]]:
    """Return the variables that code reads, each with the chain of attributes read from it."""
    found: list[tuple[str, list[str]]] = []
    following = False
    for each in dis.get_instructions(code):
        name = each.opname
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
            if name != "LOAD_DEREF" or each.argval in code.co_freevars:
                found.append((each.argval, []))
                following = True
                continue
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and following:
            found[-1][1].append(each.argval)
            continue
        elif name == "CACHE":
            continue
        following = False
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            free = set(inner.co_freevars) - set(code.co_freevars)
            found += [(n, list(s)) for n, s in _loads(inner) if n not in free]
    return [(name, tuple(steps)) for name, steps in dict.fromkeys((n, tuple(s)) for n, s in found)]
