"""Protocols that need the numbers of an array: answered for known values, refused otherwise."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn, Self

import numpy as np

from stepwell.frontend.errors import TraceError
from stepwell.frontend.handle import Handle

_HOW = {
    "bool": "use stepwell.lax.cond, or stepwell.numpy.where to choose element by element",
    "key": "use an array, which a traced number may index, or pass the value in static_argnames",
    "memory": "return it from the function: results are NumPy arrays, which have it",
    "number": "keep it traced, or pass the value in static_argnames",
}


class Flags:
    """The flags of a traced array: it may be written to, and lies nowhere in memory yet."""

    writeable = True

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"'flags.{name}' is about memory, which a traced array does not have")

    def __getitem__(self, name: str) -> bool:
        return getattr(self, str(name).lower())


class HostProtocols(Handle):
    """Conversions to Python's numbers, to arrays of NumPy, and to DLPack."""

    __slots__ = ()

    def __bool__(self) -> bool:
        if (known := self.operators["content"](self)) is not None:
            return bool(known)
        self.refuse("bool", "whether a traced value is true is not known while tracing")

    def __float__(self) -> float:
        if (known := self.operators["content"](self)) is not None:
            return float(known)
        self.refuse("number", "the number in a traced value is not known while tracing")

    def __int__(self) -> int:
        if (known := self.operators["content"](self)) is not None:
            return int(known)
        self.refuse("number", "the number in a traced value is not known while tracing")

    def __index__(self) -> int:
        if self.graph.is_subscript():
            self.graph.check(self)
            raise TraceError(
                f"a list, tuple or array that is no traced value was indexed by one: {self!r}; "
                "index stepwell.numpy.asarray(...) of it, or stepwell.numpy.stack(...), "
                "or pass the index in static_argnames"
            )
        self.refuse("number", "the number in a traced value is not known while tracing")

    def __complex__(self) -> complex:
        self.refuse("number", "the number in a traced value is not known while tracing")

    def item(self, *index: Any) -> Any:
        """Return an element as a Python number."""
        if (known := self.operators["content"](self)) is not None:
            return known.item(*index)
        return self.operators["item"](self, *index)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        if (known := self.operators["content"](self)) is not None:
            return known.tolist()
        return self.operators["tolist"](self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if (known := self.operators["content"](self)) is not None:
            return np.array(known, dtype) if copy or dtype else known
        self.graph.check(self)
        if self.graph.is_subscript():
            raise TraceError(
                f"an array that is no traced value was indexed by one: {self!r}; "
                "index stepwell.numpy.asarray(array), or write with its .at[index].set(value)"
            )
        why = "NumPy was called on a traced value, which has no numbers yet"
        how = "use numpy.copy for a copy, numpy.stack to join values"
        error = TraceError(f"{why}: {self!r}; {how}")
        error.asks_for_numbers = True
        raise error

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return `stepwell.numpy`, as the array API standard asks."""
        return import_module("stepwell.frontend.array_api").namespace(api_version)

    @property
    def flags(self) -> Flags:
        """The flags of the array, of which only ``writeable`` is known."""
        return Flags()

    @property
    def device(self) -> str:
        """The device of the arrays."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: None = None) -> Self:
        """Return the tensor itself: there is one device."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"Unsupported device: {device!r}; arrays lie on 'cpu'")
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of the arrays, in DLPack's numbering."""
        return 1, 0

    def __dlpack__(self, **_: Any) -> NoReturn:
        self.refuse("memory", "a traced value has no memory yet that could be handed on")

    def refuse(self, how: str, why: str) -> NoReturn:
        """Raise a `TraceError` with advice: ``how`` is the unsupported use, a key of `_HOW`."""
        self.graph.check(self)
        untraced = self.operators["why_as_it_is"]() if how in ("bool", "number") else ""
        raise TraceError(f"{why}: {self!r}; {untraced}{_HOW[how]}")
