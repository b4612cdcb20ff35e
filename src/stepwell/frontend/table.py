"""The table of NumPy's functions, ufuncs and methods as implemented for traced values.

`public` registers a function where it is defined: as `stepwell.numpy.f`, as `numpy.f` of a traced
value, and as the method ``x.f()`` if it is one. Arguments are bound by NumPy's own signature, if
NumPy has the function; parameters that ours does not take are refused by name.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from stepwell.frontend.errors import TraceError
from stepwell.frontend.known import NotKnown, by_numpy, content, is_known
from stepwell.frontend.tensor import Partial, Tensor

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Functions of traced values, by NumPy's names and by names that NumPy lacks."""
ANYWHERE: set[str] = set()
"""Functions that behave alike in a trace and outside of one."""
METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of traced arrays."""
_OWN: set[str] = set()
"""Functions that are called by our signature instead of NumPy's."""
UFUNCS: dict[str, Callable[..., Any]] = {}
"""Implementations of NumPy's ufuncs; operands have the dtypes that NumPy computes in."""
LEFT = inspect.signature(np.sum).parameters["keepdims"].default
"""The value that NumPy's functions pass on for an argument that was not given."""


def public(
    *names: str, method: bool = False, anywhere: bool = False, exact: bool = True
) -> Callable[[F], F]:
    """Register a function in the table, under ``names`` or its own name.

    method : whether arrays have it as a method of the first name
    exact : whether it is called by NumPy's signature; otherwise by ours
    anywhere : whether `stepwell.numpy` uses it outside of a trace too, instead of NumPy's

    Its parameters have NumPy's names, if NumPy has the function; the table may handle ``out``. It
    returns the same as NumPy would: a new value, or a view.
    """

    def enter(function: F) -> F:
        own = names or (function.__name__.rstrip("_"),)
        for name in own:
            FUNCTIONS[name] = function
        ANYWHERE.update(own if anywhere else ())
        _OWN.update(() if exact else own)
        if method:
            METHODS[own[0]] = _method(own[0])
        return function

    return enter


def method(name: str = "") -> Callable[[F], F]:
    """Register a function in the table of methods of arrays."""

    def enter(function: F) -> F:
        METHODS[name or function.__name__.strip("_")] = function
        return function

    return enter


def _method(name: str) -> Callable[..., Any]:
    def call(self: Tensor, *args: Any, **keywords: Any) -> Any:
        return call_named(name, (self, *args), keywords)

    call.__name__ = name
    return call


def numpys(name: str) -> Any:
    """Return NumPy's function of a name, also dotted (``linalg.norm``); None if there is none."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@cache
def _signature(name: str) -> inspect.Signature | None:
    """Return the signature of NumPy's function; None if it has none."""
    theirs = numpys(name)
    if theirs is None or isinstance(theirs, type) or name in _OWN:
        return None
    try:
        return inspect.signature(theirs)
    except (TypeError, ValueError):
        return None


@cache
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(FUNCTIONS[name]).parameters


def call_named(name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the result of the function ``name`` in a trace, called by NumPy's signature."""
    if name not in FUNCTIONS:
        complete()
    ours, takes, theirs = FUNCTIONS[name], _parameters(name), _signature(name)
    out = None
    if theirs is None:
        given, out = _unsigned(takes, keywords)
        return stored(ours(*args, **given), out, name=name)
    extra = {k: v for k, v in keywords.items() if k not in theirs.parameters and k in takes}
    try:
        bound = theirs.bind(*args, **{k: v for k, v in keywords.items() if k not in extra})
    except TypeError as error:
        raise TypeError(f"{name}() {_python_message(error)}") from None
    kinds = {p.kind for p in theirs.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        given = dict(bound.kwargs) | extra
        positional = bound.args
    else:
        positional = ()
        passed = {_RENAMED.get(k, k): v for k, v in bound.arguments.items() if v is not LEFT}
        given = passed | extra
        if "kwargs" not in takes:
            given |= given.pop("kwargs", {})
    if "out" not in takes or name in CASTING:
        out = given.pop("out", None)
    for key in given.keys() & _SIZES:
        given[key] = content(given[key]) if is_known(given[key]) else given[key]
    for key in [k for k in given if k not in takes]:
        _check_default(name, key, given.pop(key), theirs)
    return stored(ours(*positional, **given), out, name in CASTING, name)


def _unsigned(takes: Mapping[str, Any], keywords: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the arguments for ours, and ``out``, where NumPy tells no signature."""
    given = dict(keywords)
    out = given.pop("out", None) if "out" not in takes else None
    for key in given.keys() & _HARMLESS.keys() - takes.keys():
        if given[key] in _HARMLESS[key]:
            del given[key]
    return given, out


CASTING = {
    *("sum", "prod", "max", "min", "amax", "amin", "any", "all", "mean", "var", "std"),
    *("cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "nansum", "nanprod", "nanmax"),
    *("nanmin", "nancumsum", "nancumprod"),
}
"""Reductions whose result NumPy casts to any dtype of ``out=``."""


_RENAMED = {"newshape": "shape"}
"""Parameters of NumPy 2.0 by the names that later versions give them."""

_SIZES = frozenset(
    (
        *("axes", "axis", "condition", "destination", "indices_or_sections", "obj", "pad_width"),
        *("repeats", "reps", "shape", "shift", "source"),
    )
)
"""Parameters that shapes depend on: known arrays are passed to them by content."""


def _python_message(error: TypeError) -> str:
    """Return the error of a wrong call in Python's usual words."""
    said = str(error)
    if said.startswith("missing a required argument"):
        return said.replace("missing a required argument:", "missing 1 required argument:")
    return said if said.startswith("got") else f"got {said}"


_HARMLESS = {"order": (None, "C", "F", "K", "A"), "subok": (False, True), "device": (None, "cpu")}
"""Arguments that have no effect here: the order in memory of a new array, for example."""


def _check_default(name: str, key: str, value: Any, theirs: inspect.Signature) -> None:
    """Refuse a NumPy argument that ours does not take, unless it has its default value."""
    known = theirs.parameters.get(key)
    default = known.default if known is not None else None
    if value is default or value is None:
        return
    if isinstance(value, str | bool) and value in (default, *_HARMLESS.get(key, ())):
        return
    raise TraceError(f"numpy.{name}: '{key}' is not known to Stepwell")


def complete() -> None:
    """Register the functions of the modules that are imported late, as most programs do not use."""
    import_module("stepwell.frontend.rarely_used")


def counterpart(function: Any) -> Callable[..., Any] | None:
    """Return what computes a ufunc of NumPy or `scipy.special` in a trace; None if nothing does."""
    name = function.__name__
    if numpys(name) is function:
        if name not in UFUNCS:
            complete()
        return UFUNCS.get(name)
    if getattr(sys.modules.get("scipy.special"), name, None) is function:
        return import_module("stepwell.frontend.special_functions").SPECIAL.get(name)
    return None


def method_named(name: str) -> Callable[..., Any] | None:
    """Return the method of arrays of this name; None if there is none."""
    if name not in METHODS and hasattr(np.ndarray, name):
        complete()
    return METHODS.get(name)


def call_function(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the result of NumPy's ``function`` with a traced value among its arguments."""
    name = getattr(function, "__name__", "a function")
    for value in args:
        if isinstance(value, Partial):
            return value.__array_function__(function, (), args, keywords)
    try:
        return by_numpy(function, args, keywords)
    except NotKnown:
        pass
    if name not in FUNCTIONS:
        complete()
    name = _dotted_name(function, name)
    if name not in FUNCTIONS or function is not numpys(name):
        raise TraceError(refusal(name))
    return call_named(name, args, keywords)


def _dotted_name(function: Any, name: str) -> str:
    module = str(getattr(function, "__module__", ""))
    return f"{module.removeprefix('numpy.')}.{name}" if module.startswith("numpy.") else name


def stored(value: Any, out: Any, casting: bool = False, name: str = "") -> Any:
    """Return ``value``, written to the ``out=`` array if one is given.

    casting : whether any dtype may be cast to any; otherwise not to a lower kind
    name : NumPy's name of the function, for messages
    """
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if out is None:
        return value
    if not isinstance(out, Tensor | np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if not isinstance(out, Tensor):
        raise TraceError(
            "out= is an array that is not part of the trace; "
            "pass it as an argument, or make it in the function (out = numpy.zeros(...))"
        )
    written = Tensor.operators["cast"](value, out.kind) if casting else value
    out.write(written, f"numpy.{name}" if name else "")
    return out


def nearest(name: str) -> str:
    """Return the supported name nearest to NumPy's ``name``, or ""."""
    complete()
    return nearest_of(name, [*UFUNCS, *(n for n in FUNCTIONS if "." not in n)], 0.7)


def nearest_of(name: str, known: Sequence[str], cutoff: float) -> str:
    """Return the name of ``known`` nearest to ``name``, or ""."""
    difflib: Any = import_module("difflib")  # needed for error messages only
    near = difflib.get_close_matches(name, known, 1, cutoff)
    return near[0] if near else ""


def refusal(name: str) -> str:
    """Return a message that NumPy's ``name`` is not supported, with the nearest name."""
    message = f"numpy.{name} of a traced value is not known to Stepwell"
    if name.startswith("linalg."):
        here = sorted(n.removeprefix("linalg.") for n in FUNCTIONS if n.startswith("linalg."))
        return f"{message}, as no factorization is; of numpy.linalg there are {', '.join(here)}"
    return message + (f"; the nearest is numpy.{near}" if (near := nearest(name)) else "")


def ufunc_refusal(function: Any) -> str:
    """Return a message that a ufunc is not supported."""
    name = function.__name__
    if numpys(name) is function:
        return refusal(name)
    if "->O" in "".join(function.types):
        return (
            f"'{name}' was made by numpy.frompyfunc, which computes Python objects one by one; "
            "write numpy.vectorize(f), or call f with the whole array"
        )
    return (
        f"the ufunc '{name}' of another package is not known to Stepwell; the program can call it "
        f"when it runs: sw.callback({name}, like, ...), with the shape and dtype of `like`"
    )
