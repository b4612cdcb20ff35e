"""Arrays in the memory of a device: results stay there until NumPy asks for them.

A device is anything with the methods of `Memory`; OpenCL's is `runtime.opencl.memory`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepwell.core.signature import spell

Array: TypeAlias = "NDArray[Any]"


@dataclass
class Transfers:
    """How often arrays went to a device and came back, and how many bytes they were.

    An array of NumPy in the place of a device's is counted also where both share memory.
    """

    to_device: int = 0
    to_host: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0

    def give(self, bytes: int) -> None:
        """Count an array that goes to the device."""
        self.to_device += 1
        self.bytes_to_device += bytes

    def fetch(self, bytes: int) -> None:
        """Count an array that comes back."""
        self.to_host += 1
        self.bytes_to_host += bytes


class Memory(Protocol):
    """What a device does with memory of its own; `MemoryError` where it has no more."""

    transfers: Transfers

    def upload(self, array: Array) -> Any:
        """Return memory of the device with a copy of an array, which may change from then on."""
        ...

    def download(self, memory: Any, array: Array) -> None:
        """Fill an array from memory, when all has run that was enqueued before."""
        ...

    def copied(self, memory: Any, bytes: int) -> Any:
        """Return a copy of memory, made on the device."""
        ...

    def release(self, memory: Any, bytes: int) -> None:
        """Take memory back: what is enqueued may still use it."""
        ...

    def finish(self) -> None:
        """Wait until all has run that was enqueued."""
        ...


class DeviceArray:
    """An array in the memory of a device, as `sw.device_put` and programs that run there give it.

    It has `shape`, `dtype`, `ndim`, `size`, `nbytes` and `device`, and is an argument of any
    function compiled for that device. ``np.asarray(x)``, ``float(x)``, `item`, `tolist`, `str` and
    iteration copy it to the host, and wait until what computes it has run; nothing else does. It
    cannot change but where a program is given it as a donated argument. Its memory is used again
    when it is dropped, or by `delete`.

    device, held, dtype, shape, nbytes : what it is made of; `sw.device_put` makes one
    raises RuntimeError : it was deleted

    >>> import numpy as np, stepwell as sw
    >>> x = sw.device_put(np.ones((2, 3)), "cpu")
    >>> x, x.nbytes, x.tolist()
    (<device array float64[2, 3] on cpu:0>, 48, [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """

    __slots__ = ("__weakref__", "_held", "device", "dtype", "nbytes", "shape")

    def __init__(
        self,
        device: Any,
        held: Any,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        nbytes: int | None = None,
    ) -> None:
        self.device = device
        self._held = held
        self.dtype = dtype
        self.shape = shape
        self.nbytes = shaped_bytes(dtype, shape) if nbytes is None else nbytes

    @property
    def memory(self) -> Any:
        """What the device has the array in."""
        if self._held is None:
            raise RuntimeError(f"the device array {self._spelled()} was deleted")
        return self._held

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def deleted(self) -> bool:
        """Whether its memory was given back."""
        return self._held is None

    def delete(self) -> None:
        """Give its memory back now; to use it from then on is a RuntimeError."""
        held, self._held = self._held, None
        if held is not None:
            self.device.memory.release(held, self.nbytes)

    def __del__(self) -> None:
        held = getattr(self, "_held", None)
        if held is not None:
            self.device.memory.release(held, self.nbytes)

    def block_until_ready(self) -> DeviceArray:
        """Wait until what computes it has run."""
        assert self.memory is not None
        self.device.memory.finish()
        return self

    def copy(self) -> DeviceArray:
        """Return a copy, made on the device."""
        made = self.device.memory.copied(self.memory, self.nbytes)
        return DeviceArray(self.device, made, self.dtype, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError(f"a device array is copied to the host: {self!r}")
        found: Array = np.empty(self.shape, self.dtype)
        self.device.memory.download(self.memory, found)
        return found if dtype is None else found.astype(dtype, copy=False)

    def item(self) -> Any:
        """Return its one element as a Python number."""
        return np.asarray(self).item()

    def tolist(self) -> Any:
        """Return its elements as a list of lists."""
        return np.asarray(self).tolist()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if how and not self.shape else str(self)

    def __iter__(self) -> Any:
        return iter(np.asarray(self))

    def __getitem__(self, index: Any) -> NoReturn:
        help = "np.asarray(x)[...] copies it whole, a function under sw.jit takes a part there"
        raise TypeError(f"a device array has no parts on the host: {self!r}; help: {help}")

    def __dlpack__(self, **_: Any) -> NoReturn:
        raise BufferError(
            f"{self!r} lies in memory that only its device can name; np.asarray(x) copies it"
        )

    def __dlpack_device__(self) -> NoReturn:
        self.__dlpack__()

    def __copy__(self) -> DeviceArray:
        return self.copy()

    def __deepcopy__(self, memory: Any) -> DeviceArray:
        return self.copy()

    def __reduce__(self) -> Any:
        return _put, (np.asarray(self), self.device.name)

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __repr__(self) -> str:
        gone = ", deleted" if self.deleted else ""
        return f"<device array {self._spelled()} on {self.device.name}{gone}>"

    def _spelled(self) -> str:
        return spell(self.dtype.name, self.shape)


def shaped_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Return how many bytes an array has."""
    return dtype.itemsize * prod(shape)


def _put(array: Array, name: str) -> DeviceArray:
    """Return an array that was pickled, on the device of that name here."""
    device = import_module("stepwell.runtime.opencl.device")
    return put(array, device.open_device(name))


def put(array: Array, device: Any) -> DeviceArray:
    """Return a copy of an array of NumPy in the memory of a device."""
    return DeviceArray(device, device.memory.upload(array), array.dtype, array.shape)
