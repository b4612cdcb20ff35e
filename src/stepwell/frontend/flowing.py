"""Runtime of rewritten source: control flow from `flow`, and checked calls and stores.

A branch or loop with a traced condition is traced once, however often it runs. So effects on
Python objects (a growing list, a printed line) are refused inside it; a loop over a known range is
unrolled instead.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Container, Iterable
from functools import partial, reduce
from importlib import import_module
from operator import eq, ge, gt, is_, is_not, le, lt, ne
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from stepwell.frontend import lists, maths
from stepwell.frontend.checks import raise_in_branch
from stepwell.frontend.errors import TraceError, untraceable
from stepwell.frontend.expressions import MAKING
from stepwell.frontend.flow import assert_, if_, returned
from stepwell.frontend.growing import appending, joined
from stepwell.frontend.instances import MAKERS, instance, is_own, is_rewritable, own
from stepwell.frontend.iterables import Counted, Items, Range
from stepwell.frontend.known import is_known, known_array
from stepwell.frontend.logic import and_, compare, in_, not_, or_, ternary, truth_of
from stepwell.frontend.loops import for_, while_
from stepwell.frontend.masked import Masked
from stepwell.frontend.promotion import has_traced
from stepwell.frontend.pythons import GOING, PYTHONS
from stepwell.frontend.reads import (
    CHANGING,
    Outer,
    attribute_or,
    changing,
    current_captures,
    read_variable,
    traced_as_is,
    warn,
)
from stepwell.frontend.reads import storing as storing_outside
from stepwell.frontend.rewriting import is_rewritten, rewritten
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.state.variables import TracedVariable, Variable
from stepwell.frontend.table import FUNCTIONS, call_function, complete
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace, users_frame
from stepwell.frontend.unbound import Maybe, Undefined

__all__ = [
    "Undefined",
    "and_",
    "truth_of",
    "assert_",
    "call",
    "caught",
    "compare",
    "eq",
    "for_",
    "ge",
    "gt",
    "if_",
    "in_",
    "is_",
    "is_not",
    "iterated",
    "le",
    "lt",
    "created",
    "make",
    "ne",
    "not_",
    "or_",
    "own",
    "raising",
    "rebinding",
    "returned",
    "shown",
    "storing",
    "ternary",
    "tried",
    "trying",
    "while_",
]


def in_branch() -> bool:
    """Whether a traced branch or loop is open: its Python code runs once per trace, not per run."""
    trace = active_trace()
    return trace is not None and bool(trace.branches)


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call ``function``: rewrite its source if it has one; replace built-ins by traced versions."""
    if isinstance(function, FunctionType):
        if _is_library(function.__module__):
            if function is np.full and any(map(has_traced, (*args, *kwargs.values()))):
                return call_function(function, args, kwargs)  # np.full does not dispatch on it
            return function(*_callbacks(function, args), **kwargs)
        return _traceable(function)(*args, **kwargs)
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return call(function.__func__, function.__self__, *args, **kwargs)
    if isinstance(function, partial):
        return _call_partial(function, args, kwargs)
    if is_rewritable(function, _is_library) and active_trace() is not None:
        return instance(call, function, args, kwargs)
    kind = type(function)
    if (inlined := getattr(kind, "inlined", None)) is not None and active_trace() is not None:
        return inlined(function, args, kwargs)
    if isinstance(kind.__dict__.get("__call__"), FunctionType) and not _is_library(kind.__module__):
        return call(kind.__call__, function, *args, **kwargs)
    return _call_plain(function, args, kwargs)


def _call_partial(function: partial[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    held = _callbacks(function, function.args)
    words = _callbacks(function, function.keywords.values())
    named = {**dict(zip(function.keywords, words, strict=True)), **kwargs}
    return call(function.func, *held, *args, **named)


def _call_plain(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function without source; a built-in may have a traced version."""
    if (ours := _meaning(function, args)) is not None:
        for value in args:
            if isinstance(value, Tensor):
                value.graph.check(value)
        return ours(*args, **kwargs)
    _check_call(function, args)
    of = _vectorized if isinstance(function, np.vectorize) else _of_lists
    if (computed := of(function, args, kwargs)) is not None:
        return computed()
    if appending(active_trace(), function, args):
        return None
    if (compute := lists.method(lists.READING, function, args)) is not None:
        return compute(*args, **kwargs)
    if in_branch() and not _is_pure(function):
        name = getattr(function, "__name__", type(function).__name__)
        raise TraceError(_once_message(f"'{name}'"))
    if (compute := lists.method(lists.CHANGING, function, args)) is not None:
        return compute(*args, **kwargs)
    if function is getattr and len(args) in (2, 3):
        return _attribute_of(*args)
    _warn_if_unsteady(function)
    found = _untraced(function, args, kwargs)
    return own(found) if _is_one_of(function, MAKERS) else found


def _untraced(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function as it is."""
    try:
        return function(*_callbacks(function, args), **kwargs)
    except TraceError as error:
        if (clearer := untraceable(function, error)) is None:
            raise
        raise clearer from None


def _is_one_of(function: Any, known: Container[Any]) -> bool:
    try:
        return function in known
    except TypeError:
        return False


def _meaning(function: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the traced version of a built-in for these arguments, or None."""
    try:
        ours = PYTHONS.get(function)
    except TypeError:
        return None
    if ours is not None and (function in GOING or any(isinstance(a, _TRACED) for a in args)):
        return ours
    return None


def _traceable(function: FunctionType) -> FunctionType:
    """Return the version of a user's function that is traced."""
    traceable = function if _is_standard(function) else rewritten(function, _runtime())
    if traceable is function and not is_rewritten(function):
        if in_branch():
            raise TraceError(
                _once_message(f"'{function.__name__}', whose source cannot be rewritten,")
            )
        return traced_as_is(function)
    return traceable


def _callbacks(function: Any, args: Iterable[Any]) -> tuple[Any, ...]:
    """Return arguments for tracing: captured arrays as hidden arguments, callbacks rewritten."""
    captures = current_captures()
    if captures is None:
        return tuple(args)
    takes = function in (map, filter, reduce) or (
        getattr(function, "__module__", None) == "stepwell.frontend.lax_control"
    )
    found: list[Any] = []
    for value in args:
        if takes and isinstance(value, FunctionType) and not _is_library(value.__module__):
            value = _traceable(value)
        found.append(captures.local(value))
    return tuple(found)


def _attribute_of(of: Any, name: Any, *default: Any) -> Any:
    if default:
        return attribute_or(_runtime(), of, name, default[0])
    return Outer(_runtime(), {}, {}).attribute(of, name)


def _warn_if_unsteady(function: Any) -> None:
    """Warn of calls whose effect happens once per trace: random numbers, clocks, growing lists."""
    changing(function)
    owner = getattr(function, "__self__", None)
    modules = (getattr(function, "__module__", None), type(owner).__module__)
    found = next((m for m in modules if _top(m) in _UNSTEADY or _top(m, 2) == "numpy.random"), None)
    if found is not None and current_captures() is not None:
        warn(f"'{getattr(function, '__qualname__', function)}' is called")


_UNSTEADY = {"random", "time", "uuid", "secrets"}
"""Modules whose functions return different values at each call."""


def _top(module: str | None, parts: int = 1) -> str:
    return ".".join((module or "").split(".")[:parts])


def _of_lists(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], Any] | None:
    """Return the call of a NumPy function whose arguments are lists of traced values.

    NumPy takes such lists as arrays. Return None for other functions and arguments.
    """
    if _takes_lists(function):
        if function.__name__ in _JOINING:
            if not any(isinstance(a, list | tuple) and any(map(_has_inner, a)) for a in args):
                return None  # NumPy asks the arrays in the list
        else:
            args = tuple(found if (found := joined(a)) is not None else a for a in args)
        if any(map(has_traced, (*args, *kwargs.values()))):
            return partial(call_function, function, args, kwargs)
        return None
    ufunc = function if isinstance(function, np.ufunc) else getattr(function, "__self__", None)
    if not isinstance(ufunc, np.ufunc) or active_trace() is None:
        return None
    if not any(isinstance(a, list | tuple) and has_traced(a) for a in args):
        return None
    method = "__call__" if ufunc is function else function.__name__
    return partial(Tensor.operators["call_ufunc"], ufunc, method, args, kwargs)


def _vectorized(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any] | None:
    """Return the call of a `numpy.vectorize` object, if any of its arguments is traced."""
    args = _callbacks(function, args)
    words = dict(zip(kwargs, _callbacks(function, kwargs.values()), strict=True))
    if not has_traced((*args, *words.values())):
        return None
    home = import_module("stepwell.frontend.transformations.vectorized")  # loads what vmap needs
    return partial(home.vectorized, function, args, words)


def _takes_lists(function: Any) -> bool:
    """Whether ``function`` is one of NumPy that takes a list as an array."""
    if getattr(function, "__module__", None) != "numpy" or active_trace() is None:
        return False
    name = getattr(function, "__name__", "")
    if getattr(np, name, None) is not function:
        return False
    if name not in FUNCTIONS:
        complete()
    return name in FUNCTIONS


def _has_inner(value: Any) -> bool:
    return isinstance(value, list | tuple) and has_traced(value)


_JOINING = {"stack", "concatenate", "vstack", "hstack", "dstack"}
"""Functions that join the elements of a list, each of which is an array for them."""


_TRACED = Tensor | Range | Items | Counted | Window | Masked


def _check_call(function: Any, args: tuple[Any, ...]) -> None:
    """Warn of, or refuse, functions that need the numbers of traced values."""
    _spelling(function, args)
    maths.check_known(function, args)


def _spelling(function: Any, args: tuple[Any, ...]) -> None:
    """Warn where a traced value is converted to a string."""
    if any(function is each for each in (print, str, repr, format)):
        for value in args:
            shown(value)


def _runtime() -> Any:
    return sys.modules[__name__]


def _once_message(what: str) -> str:
    return (
        f"{what} is called in a branch or loop that only the run decides: that would happen once, "
        "while the function is traced; do it outside, or compute with arrays"
    )


def _is_standard(function: FunctionType) -> bool:
    """Whether the function is in Python's standard library, which does not compute with arrays."""
    return (function.__module__ or "").partition(".")[0] in sys.stdlib_module_names


def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in ("numpy", "stepwell", "functools", "math")


_PURE_BUILTINS = frozenset(
    (
        *(abs, all, any, bool, callable, dict, divmod, enumerate, float, hasattr, int, isinstance),
        *(issubclass, len, list, map, max, min, pow, range, reversed, round, slice, sorted, sum),
        *(tuple, type, zip),
    )
)


def _is_pure(function: Any) -> bool:
    """Whether a call has no side effects, and depends on nothing but its arguments."""
    if _is_one_of(function, _PURE_BUILTINS) or _is_one_of(function, MAKERS):
        return True
    if isinstance(function, np.ufunc) or _is_library(getattr(function, "__module__", None)):
        return "random" not in str(getattr(function, "__module__", ""))
    if isinstance(function, type):
        return issubclass(function, np.generic | BaseException) or _is_named_tuple(function)
    owner = getattr(function, "__self__", None)
    if is_own(owner) or (isinstance(owner, dict | tuple | str) and _reads(function)):
        return True
    if isinstance(function, partial):
        return False
    if isinstance(owner, Tensor | Window | Masked):
        return True
    return isinstance(owner, np.ndarray) and function.__name__ not in _CHANGING


def _is_named_tuple(kind: type[Any]) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _reads(method: Any) -> bool:
    """Whether a method of a container or string only reads it."""
    return method.__name__ not in CHANGING


_CHANGING = {"fill", "sort", "partition", "put", "resize", "itemset", "setflags", "setfield"}


def make(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call ``function``, whose result is assigned to later; make a new array part of the trace."""
    found = call(function, *args, **kwargs)
    known = getattr(function, "__name__", "") in MAKING and _is_making(function)
    if known and type(found) is np.ndarray and function.__name__.startswith("empty"):
        found[...] = 0  # uninitialized numbers would differ from trace to trace
    return created(found) if known else found


def created(found: Any) -> Any:
    """Return a new array that is assigned to later; make it part of the trace."""
    if active_trace() is None or type(found) is not np.ndarray or not found.shape:
        return found
    return known_array(found) if found.dtype.kind in "fiub" else found


def _is_making(function: Any) -> bool:
    return _is_library(getattr(function, "__module__", None)) or isinstance(
        getattr(function, "__self__", None), np.ndarray
    )


_UNCHANGED = (Tensor, int, float, complex, str, bytes, tuple, frozenset, np.generic, Undefined)
"""Classes of values that an augmented assignment replaces, and of those that the trace sees."""


def storing(target: Any = None, attribute: bool = False, key: Any = None) -> None:
    """Check the next statement's store to an item or attribute of ``target``.

    key : the item or attribute of an augmented assignment (``x[key] += 1``)
    """
    if isinstance(target, Maybe):
        target = target.value
    if attribute and isinstance(target, Tensor) and not isinstance(target, TracedVariable):
        raise AttributeError(
            "attributes of an array cannot be assigned to while it is traced; write "
            "x = x.reshape(shape), x = x.astype(dtype)"
        )
    if is_own(target) or isinstance(target, Variable):
        return
    if key is not None and read_variable(sys.modules[__name__], target, attribute, key):
        return
    if attribute:
        target = None
    storing_outside(target)
    if not isinstance(target, _UNCHANGED) and in_branch():
        what = "an attribute" if target is None else f"a {type(target).__name__}"
        raise TraceError(
            f"{what} is changed in a branch or loop that only the run decides: that would happen "
            "once, while the function is traced; use an array that is made in the function"
        )


def rebinding(name: str, inside: bool) -> None:
    """Check an assignment to a variable of an enclosing function or of the module."""
    trace = active_trace()
    if trace is None:
        return
    if not inside:
        raise TraceError(
            f"'{name}' is defined outside of the traced function and assigned in it: that "
            "would happen once, while the function is traced; return its new value instead"
        )
    if any(name not in region.names for region in trace.branches):
        raise TraceError(
            f"'{name}' of the function around is changed in a branch or loop that only the run "
            "decides, which does not see it; pass it as an argument and return it"
        )


def iterated(values: Any) -> Any:
    """Return the iterable of a loop; refuse an iterator, which tracing would exhaust."""
    if in_branch() and not isinstance(values, Tensor) and hasattr(values, "__next__"):
        raise TraceError(_once_message("an iterator that was made outside"))
    return values


def caught() -> None:
    """Raise a `TraceError` again that the user's ``except`` clause caught."""
    if isinstance(error := sys.exception(), TraceError):
        raise error


def trying(caught: Callable[[], Any]) -> None:
    """Enter a ``try`` statement, which catches these exceptions."""
    if (trace := active_trace()) is not None:
        trace.trying.append(caught)


def tried() -> None:
    """Leave a ``try`` statement."""
    if (trace := active_trace()) is not None:
        trace.trying.pop()


def shown(value: Any) -> Any:
    """Return a value that is converted to a string; warn once if it is traced."""
    if isinstance(value, Tensor) and not is_known(value) and value.graph.spelled is None:
        warn_of_text(value)
    return value


def warn_of_text(value: Tensor) -> None:
    """Warn at the user's line that a traced value is converted to a string."""
    value.graph.check(value)
    frame = users_frame()
    if frame is not None and not value.graph.branches:
        warnings.warn_explicit(
            "a traced value is made a string while the function is traced: it has no digits yet, "
            "and this happens once, not in each call",
            UserWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            registry=frame.f_globals.setdefault("__warningregistry__", {}),
        )


def raising(make: Callable[[], Any] | None = None) -> None:
    """Trace a ``raise`` statement in a traced branch or loop.

    make : returns the exception; None for a bare ``raise``
    """
    if not in_branch():
        return
    if make is None:
        raise TraceError(
            "a caught exception is raised again in a branch that depends on traced values"
        )
    raise_in_branch(make)


Tensor.operators["call"] = call
