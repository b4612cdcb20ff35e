"""Instances of users' classes in a traced function: their ``__init__`` is rewritten too.

An object, list or dict created in a branch or loop belongs to it, and may be mutated there.
"""

from __future__ import annotations

import inspect
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import MISSING, fields, is_dataclass
from types import FunctionType
from typing import Any, TypeGuard

from stepwell.frontend.tracing import active_trace

Call = Callable[..., Any]


def is_rewritable(kind: Any, is_library: Callable[[str | None], bool]) -> TypeGuard[type[Any]]:
    """Whether only ``__init__``, a user's function, constructs the instances of a class."""
    return (
        isinstance(kind, type)
        and type(kind).__call__ is type.__call__
        and kind.__new__ is object.__new__
        and isinstance(kind.__init__, FunctionType)
        and not is_library(kind.__module__)
    )


def instance(call: Call, kind: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Construct an instance of a class; ``call`` calls its ``__init__`` like any function."""
    init: Any = kind.__init__
    found = own(object.__new__(kind))
    if not (is_dataclass(kind) and init.__code__.co_filename == "<string>"):
        if call(init, found, *args, **kwargs) is not None:
            raise TypeError("__init__() should return None")
        return found
    every = fields(kind)
    if not hasattr(kind, "__post_init__") and all(f.default_factory is MISSING for f in every):
        init(found, *args, **kwargs)
        return found
    try:
        bound = inspect.signature(init).bind(found, *args, **kwargs).arguments
    except TypeError:
        init(found, *args, **kwargs)  # raises the error
        raise
    for each in every:
        if each.name in bound:
            object.__setattr__(found, each.name, bound[each.name])
        elif each.default_factory is not MISSING:
            object.__setattr__(found, each.name, call(each.default_factory))
        elif each.default is not MISSING:
            object.__setattr__(found, each.name, each.default)
    if not hasattr(kind, "__post_init__"):
        return found
    names = {each.name for each in every}
    parameters = list(inspect.signature(init).parameters.values())[1:]
    more = [bound.get(p.name, p.default) for p in parameters if p.name not in names]
    call(kind.__post_init__, found, *more)
    return found


def own(value: Any) -> Any:
    """Register a new object as created by the branch or loop that is being traced."""
    trace = active_trace()
    if trace is not None and trace.branches:
        trace.branches[-1].own[id(value)] = value
    return value


def is_own(value: Any) -> bool:
    """Whether the branch or loop that is being traced created ``value``, and may mutate it."""
    trace = active_trace()
    return trace is not None and bool(trace.branches) and id(value) in trace.branches[-1].own


MAKERS = frozenset(
    (list, dict, set, sorted, deque, defaultdict, OrderedDict, Counter, copy, deepcopy)
)
"""Python's functions that only construct a new object."""
