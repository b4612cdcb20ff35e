"""Python functions that programs call at run time, by the names in the programs' text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
FAILED = "a Python function that the program calls has failed"
"""A program's error if a function raised; the runtime then raises the function's exception."""


@dataclass(frozen=True)
class HostFunction:
    """A function, and the dtypes and shapes of its arguments and results."""

    function: Callable[..., Any]
    inputs: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
    outputs: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]

    def results(self, arguments: Sequence[Array]) -> list[Array]:
        """Call it; return its results as arrays of the declared dtypes and shapes.

        raises ValueError : it returns other shapes, or another number of arrays
        """
        given = self.function(*arguments)
        if len(given) != len(self.outputs):
            raise ValueError(f"it is to give {len(self.outputs)} arrays, it gave {len(given)}")
        found: list[Array] = []
        for value, (dtype, shape) in zip(given, self.outputs, strict=True):
            array = np.asarray(value)
            if array.shape != shape:
                raise ValueError(f"it is to give an array of shape {shape}, it gave {array.shape}")
            found.append(array.astype(dtype, casting="same_kind"))
        return found


_known: dict[str, HostFunction] = {}
_lock = threading.Lock()
_raised = threading.local()


def called(name: str, function: HostFunction) -> str:
    """Return the name of ``function`` in programs; different functions get different names."""
    with _lock:
        number = 0
        while _known.setdefault(key := f"{name}#{number}", function) != function:
            number += 1
    return key


def known(name: str) -> HostFunction:
    """Return the function of a name; RuntimeError if this process has not traced it."""
    if (found := _known.get(name)) is None:
        raise RuntimeError(f"the program calls {name}, which this process has not traced")
    return found


def serve(name: str, memory: Sequence[int], strides: Sequence[int]) -> bool:
    """Call a function on arrays in memory; return whether it raised: `raised` has the exception.

    memory : addresses of its arguments, then of its results
    strides : of all axes of all arrays, in elements
    """
    try:
        host = known(name)
        views: list[Array] = []
        first = 0
        for address, (dtype, shape) in zip(memory, (*host.inputs, *host.outputs), strict=True):
            steps = [n * dtype.itemsize for n in strides[first : first + len(shape)]]
            first += len(shape)
            views.append(_view(address, dtype, shape, steps))
        count = len(host.inputs)
        arguments = [view.copy() for view in views[:count]]
        for view, value in zip(views[count:], host.results(arguments), strict=True):
            view[...] = value
    except BaseException as error:  # raised again where the program's call returns
        _raised.error = error
        return True
    return False


class _Memory:
    """An object that NumPy makes an array of."""

    def __init__(self, address: int, shape: tuple[int, ...], steps: Sequence[int]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "strides": tuple(steps),
            "typestr": "|u1",
        }


def _view(
    address: int, dtype: np.dtype[Any], shape: tuple[int, ...], steps: Sequence[int]
) -> Array:
    """Return the array whose first element is at an address."""
    if 0 in shape:
        return np.empty(shape, dtype)
    bytes = np.asarray(_Memory(address, (*shape, dtype.itemsize), (*steps, 1)))
    return bytes.view(dtype)[..., 0]


def raised() -> BaseException | None:
    """Return, and forget, the exception that a function raised in this thread's last call."""
    error = getattr(_raised, "error", None)
    _raised.error = None
    return error
