"""``with sw.disable_jit():`` runs functions given to `sw.jit` uncompiled, in Python with NumPy.

Outside such a block a call goes directly to the dispatcher, at no extra cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any
from weakref import WeakSet

import numpy as np

from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.state.variables import Variable
from stepwell.frontend.tracing import active_trace
from stepwell.runtime.device_arrays import DeviceArray

_off: ContextVar[bool] = ContextVar("disable_jit", default=False)
_lock = threading.RLock()
_functions: WeakSet[Any] = WeakSet()
_blocks: list[int] = []
"""One entry for each block that any thread has entered."""
_ARRAYS = np.ndarray | np.generic | Variable
_MODULES = ("stepwell.frontend.nn", "stepwell.frontend.lax")


@contextmanager
def disable_jit() -> Generator[None]:
    """Run functions given to `sw.jit` step by step in Python, in this thread, to debug them.

    Arguments stay as passed, and NumPy computes; breakpoints, `print` and `try` work as usual.
    Functions of `sw.nn` and `sw.lax` called in the block are compiled, each by itself.

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def doubled(x):
    ...     print("of", type(x).__name__)
    ...     return 2 * x
    >>> with sw.disable_jit():
    ...     doubled(np.arange(2))
    of ndarray
    array([0, 2])
    """
    with _lock:
        _blocks.append(0)
        if len(_blocks) == 1:
            _switch_all()
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)
        with _lock:
            _blocks.pop()
            if not _blocks:
                _switch_all()


def serve(function: Any, call: Callable[..., Any]) -> None:
    """Set the callable that serves calls of a function given to `sw.jit`."""
    with _lock:
        _functions.add(function)
        function.served = call
        plain = _blocks and not function.always
        function.__call__ = _switchable(function, call) if plain else call


def _switchable(function: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable that runs the function uncompiled in threads inside a block."""
    plain, takes_out = function.__wrapped__, function.takes_out

    def run(*args: Any, **kwargs: Any) -> Any:
        if not _off.get() or active_trace() is not None:
            return call(*args, **kwargs)
        args, kwargs = _on_host((args, kwargs))
        out = kwargs.pop("out", None) if takes_out else None
        result = plain(*args, **kwargs)
        if out is None:
            return result
        for target, value in zip(flatten(out)[0], flatten(result)[0], strict=True):
            np.copyto(target, value)
        return out

    return run


def _on_host(given: Any) -> Any:
    """Return arguments with each array on a device copied to the host."""
    leaves, tree = flatten(given)
    if not any(type(leaf) is DeviceArray for leaf in leaves):
        return given
    return unflatten(tree, [np.asarray(v) if type(v) is DeviceArray else v for v in leaves])


_kept: dict[ModuleType, dict[str, Any]] = {}
"""The original functions of modules that are replaced while any block is entered."""


def _switch_all() -> None:
    """Switch all functions when the first block is entered, and back when the last one is left."""
    for function in list(_functions):
        serve(function, function.served)
    if not _blocks:
        for module, functions in _kept.items():
            vars(module).update(functions)
        _kept.clear()
        return
    for module in map(import_module, _MODULES):
        public = {name: getattr(module, name) for name in module.__all__}
        own = {name: value for name, value in public.items() if isinstance(value, FunctionType)}
        _kept[module] = own
        vars(module).update({name: _eager(value) for name, value in own.items()})


def _eager(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that compiles ``function`` for arrays when nothing is traced."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _off.get() or active_trace() is not None:
            return function(*args, **kwargs)
        leaves, tree = flatten((args, kwargs))
        at = [k for k, leaf in enumerate(leaves) if isinstance(leaf, _ARRAYS)]

        def of_arrays(*arrays: Any) -> Any:
            values = list(leaves)
            for k, array in zip(at, arrays, strict=True):
                values[k] = array
            given, named = unflatten(tree, values)
            return function(*given, **named)

        jit = import_module("stepwell.frontend.jit").jit
        return jit(of_arrays).served(*(leaves[k] for k in at))

    return run
