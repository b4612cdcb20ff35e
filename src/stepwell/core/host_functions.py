"""Python functions that programs call while they run, by the names that their text has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
FAILED = "a Python function that the program calls has failed"
"""What a program says where one raised; the runtime raises what that was."""


@dataclass(frozen=True)
class HostFunction:
    """A function, and the arrays it takes and gives: dtypes and shapes."""

    function: Callable[..., Any]
    inputs: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]
    outputs: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]

    def results(self, arguments: Sequence[Array]) -> list[Array]:
        """Call it; return what it gives as arrays of the dtypes and shapes it is to have.

        raises ValueError : it gives other shapes, or another number of arrays
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
    """Return what the text of programs calls ``function``; others of its name have other names."""
    with _lock:
        number = 0
        while _known.setdefault(key := f"{name}#{number}", function) != function:
            number += 1
    return key


def known(name: str) -> HostFunction:
    """Return the function of a name; RuntimeError where this process has traced none."""
    if (found := _known.get(name)) is None:
        raise RuntimeError(f"the program calls {name}, which this process has not traced")
    return found


def serve(name: str, memory: Sequence[int], strides: Sequence[int]) -> bool:
    """Call a function on arrays in memory; return whether it raised, which `raised` tells then.

    memory : addresses of what it takes, then of what it gives
    strides : those of all axes of all of them, in elements
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
    except BaseException as error:  # it goes on where the call of the program returns
        _raised.error = error
        return True
    return False


class _Memory:
    """What NumPy makes an array of."""

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
    """Return the array whose first element lies at an address."""
    if 0 in shape:
        return np.empty(shape, dtype)
    bytes = np.asarray(_Memory(address, (*shape, dtype.itemsize), (*steps, 1)))
    return bytes.view(dtype)[..., 0]


def raised() -> BaseException | None:
    """Return, once, what a function raised in the last call of this thread."""
    error = getattr(_raised, "error", None)
    _raised.error = None
    return error
