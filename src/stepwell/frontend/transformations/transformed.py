"""The results of `sw.grad` and the like: functions, compiled when called, or traced in place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS
from types import MethodType
from typing import Any

import numpy as np

from stepwell.core.tracebacks import entrance
from stepwell.frontend.calls import has_traced
from stepwell.frontend.functions import Function
from stepwell.frontend.promotion import is_number
from stepwell.frontend.pytree import flatten
from stepwell.frontend.specs import ShapeDtypeStruct
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace

Apply = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Traces the transformation of a function, called with these arguments."""

_ANY = inspect.signature(lambda *args, **kwargs: None)  # pyright: ignore[reportUnknownLambdaType]


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a user's function; its control flow is traced."""
    return Tensor.operators["call"](function, *args, **kwargs)


def check_function(what: str, function: Any) -> None:
    """Refuse an object that is not callable."""
    if not callable(function):
        raise TypeError(f"{what} takes a function, got {function!r}")


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function."""
    return str(getattr(function, "__name__", type(function).__name__))


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function; a general one if it has none, as in some libraries.

    For NumPy's ufuncs it has the operands only: other parameters have no meaning here.
    """
    if isinstance(function, np.ufunc):
        kind = inspect.Parameter.POSITIONAL_ONLY
        names = ["x"] if function.nin == 1 else [f"x{k + 1}" for k in range(function.nin)]
        return inspect.Signature([inspect.Parameter(n, kind) for n in names])
    try:
        return inspect.signature(function)
    except ValueError:
        return _ANY


class Body:
    """The function that `jit` traces: ``apply`` writes the transformation of ``function``."""

    def __init__(
        self,
        function: Callable[..., Any],
        what: str,
        apply: Apply,
        signature: inspect.Signature | None = None,
    ) -> None:
        check_function(what, function)
        self.__wrapped__, self.apply = function, apply
        self.__name__ = name_of(function)
        self.__signature__ = signature_of(function) if signature is None else signature

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Write the transformation into the trace."""
        return self.apply(self.__wrapped__, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Write the transformation into the trace."""
        return self.inlined(args, kwargs)


class Transformed(Function):
    """A transformed function: traced in place within a trace, else compiled as by `sw.jit`.

    Arguments that are not data (strings, functions, hashable objects) are static.
    """

    __slots__ = ("_what",)
    always = True

    def __init__(
        self,
        function: Callable[..., Any],
        what: str,
        apply: Apply,
        signature: inspect.Signature | None = None,
    ) -> None:
        self._what = what
        super().__init__(Body(function, what, apply, signature), (), (), {})
        for name in WRAPPER_ASSIGNMENTS:
            if name != "__name__" and hasattr(function, name):
                self.__dict__[name] = getattr(function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<stepwell.{self._what} {self.__name__}{self._signature}>"

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Write the transformation into the trace that calls it."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        return self.__wrapped__(*bound.args, **bound.kwargs)

    @entrance
    def _first(self, *args: Any, **kwargs: Any) -> Any:
        if active_trace() is not None:
            return self.inlined(args, kwargs)
        return super()._first(*args, **kwargs)

    @entrance
    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if active_trace() is not None:
            return self.inlined(args, kwargs)
        return super()._miss(args, kwargs)

    def _bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[inspect.BoundArguments, set[str]]:
        bound, static = super()._bind(args, kwargs)
        return bound, static | {n for n, v in bound.arguments.items() if _is_object(v)}


def _is_object(value: Any) -> bool:
    """Whether an argument is a hashable object that is not data."""
    if is_number(value) or isinstance(value, np.ndarray | np.generic | ShapeDtypeStruct):
        return False
    if hasattr(value, "__array__") or has_traced((value,), {}) or flatten(value)[1] is not ...:
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True
