"""`stepwell.numpy`: traced functions inside a trace, NumPy's outside.

A function that NumPy lacks is compiled when it is called outside a trace.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from stepwell.core.dtypes import dtype_of
from stepwell.frontend.pytree import flatten, unflatten
from stepwell.frontend.statics import key_of
from stepwell.frontend.table import ANYWHERE, FUNCTIONS, UFUNCS, call_named, complete, refusal
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace

_PLAIN = (
    *("dtype", "e", "errstate", "euler_gamma", "inf", "nan", "newaxis", "ndarray", "pi"),
    *("can_cast", "promote_types", "issubdtype", "isdtype", "isscalar", "broadcast_shapes"),
    *("generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating"),
    *("iterable", "mgrid", "ogrid", "r_", "c_", "s_", "index_exp", "indices", "broadcast"),
    *("tril_indices", "triu_indices", "diag_indices", "mask_indices", "ndindex"),
    *("hamming", "hanning", "blackman", "bartlett", "kaiser", "from_dlpack", "min_scalar_type"),
    *("True_", "False_", "common_type", "exceptions", "fromfunction", "ufunc"),
    *("set_printoptions", "get_printoptions", "printoptions", "seterr", "geterr", "typename"),
)
"""Names that are NumPy's own even in a trace: their arguments are never traced."""


_ABSTRACT = frozenset(
    {np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact}
    | {np.floating}
)
"""Classes of scalar types of which we have some; NumPy warns where they become a dtype."""


def _scalar_types() -> list[str]:
    """Return NumPy's names of the supported dtypes, and of their classes."""
    concrete = {t for t in np.sctypeDict.values() if dtype_of(np.dtype(t)) is not None}
    ours = concrete | _ABSTRACT
    return [n for n, t in vars(np).items() if isinstance(t, type) and t in ours]


NAMES = sorted({*_PLAIN, *_scalar_types()})
"""Names that are NumPy's own even in a trace: constants, dtypes, functions of dtypes and shapes."""


class Ufunc:
    """A ufunc: callable, with the methods ``reduce``, ``accumulate``, ``outer`` and ``at``."""

    def __init__(self, theirs: Any, name: str) -> None:
        self.theirs = theirs
        self.__name__ = self.__qualname__ = name
        self.__doc__ = theirs.__doc__

    def __call__(self, /, *inputs: Any, **keywords: Any) -> Any:
        """Call the ufunc."""
        return self._call("__call__", inputs, keywords)

    def reduce(self, /, *inputs: Any, **keywords: Any) -> Any:
        """Combine the elements along an axis."""
        return self._call("reduce", inputs, keywords)

    def accumulate(self, /, *inputs: Any, **keywords: Any) -> Any:
        """Combine the elements up to each position along an axis."""
        return self._call("accumulate", inputs, keywords)

    def outer(self, /, *inputs: Any, **keywords: Any) -> Any:
        """Call the ufunc for each pair of elements."""
        return self._call("outer", inputs, keywords)

    def at(self, /, *inputs: Any, **keywords: Any) -> Any:
        """Apply the ufunc to elements in place."""
        return self._call("at", inputs, keywords)

    def reduceat(self, /, *inputs: Any, **keywords: Any) -> Any:
        """Combine slices; NumPy only."""
        return self._call("reduceat", inputs, keywords)

    def _call(self, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if active_trace() is None:
            return getattr(self.theirs, method)(*inputs, **keywords)
        return Tensor.operators["call_ufunc"](self.theirs, method, inputs, keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.theirs, name)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}' of stepwell.numpy>"


def facades() -> dict[str, Any]:
    """Return the functions of `stepwell.numpy` by name, including NumPy's aliases."""
    complete()
    found: dict[str, Any] = {}
    # `dir` would import NumPy's lazy submodules: a tenth of a second
    theirs = {n: f for n, f in sorted(vars(np).items()) if not n.startswith("_")}
    for name, function in theirs.items():
        if isinstance(function, np.ufunc) and function.__name__ in UFUNCS:
            found[name] = Ufunc(function, name)
        elif callable(function) and not isinstance(function, type):
            own = getattr(function, "__name__", "")
            if own in FUNCTIONS and theirs.get(own) is function:
                found[name] = _facade(own, function)
    for name in FUNCTIONS:
        if "." not in name:
            found.setdefault(name, _facade(name, theirs.get(name)))
    return found


class Submodule:
    """A submodule of NumPy whose supported functions can be traced."""

    def __init__(self, name: str) -> None:
        self.__name__ = f"stepwell.numpy.{name}"
        self._theirs = getattr(np, name)
        for each in FUNCTIONS:
            if each.startswith(f"{name}."):
                own = each.removeprefix(f"{name}.")
                setattr(self, own, _facade(each, getattr(self._theirs, own)))

    def __getattr__(self, name: str) -> Any:
        theirs = getattr(self._theirs, name, None)
        if isinstance(theirs, type):
            return theirs
        said = f"module '{self.__name__}' has no attribute '{name}'"
        if theirs is None or name.startswith("_"):
            raise AttributeError(said)
        own = self.__name__.removeprefix("stepwell.numpy.")
        raise AttributeError(f"{said}: {refusal(f'{own}.{name}')}")

    def __repr__(self) -> str:
        return f"<module '{self.__name__}'>"


def _facade(name: str, theirs: Any) -> Callable[..., Any]:
    ours = FUNCTIONS[name]

    def function(*args: Any, **keywords: Any) -> Any:
        if name in ANYWHERE or active_trace() is not None:
            return call_named(name, args, keywords)
        if theirs is not None:
            return theirs(*args, **keywords)
        return _computed(name, args, keywords)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__module__, function.__doc__ = "stepwell.numpy", ours.__doc__
    return function


def _computed(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of a function that NumPy lacks, compiled once per signature."""
    leaves, tree = flatten((args, keywords))
    arrays = [v for v in leaves if isinstance(v, Tensor | np.ndarray | np.generic | float)]
    where = tuple(isinstance(v, Tensor | np.ndarray | np.generic | float) for v in leaves)
    plain = tuple(v for v, is_array in zip(leaves, where, strict=True) if not is_array)
    return _compiled(name, tree, where, tuple(map(key_of, plain)), Held(plain))(*arrays)


class Held:
    """Values that a cache ignores: all instances are equal, since their keys are arguments too."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    def __hash__(self) -> int:
        return 0


@cache
def _compiled(name: str, tree: Any, where: tuple[bool, ...], keys: Any, plain: Held) -> Any:
    from stepwell.frontend.jit import jit

    def function(*arrays: Any) -> Any:
        given, rest = iter(arrays), iter(plain.values)
        args, keywords = unflatten(tree, [next(given if is_array else rest) for is_array in where])
        return call_named(name, args, keywords)

    function.__name__ = name
    return jit(function, max_traces=None)
