"""Arrays in the memory of a device: results stay there until NumPy needs them.

A device has an object with the methods of `Memory`; OpenCL's is `runtime.opencl.memory`.
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
    """Counts of transfers to a device and back, and of their bytes.

    A NumPy array passed for a device array is counted even if both share memory.
    """

    to_device: int = 0
    to_host: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0

    def give(self, bytes: int) -> None:
        """Count a transfer to the device."""
        self.to_device += 1
        self.bytes_to_device += bytes

    def fetch(self, bytes: int) -> None:
        """Count a transfer to the host."""
        self.to_host += 1
        self.bytes_to_host += bytes


class Memory(Protocol):
    """The memory operations of a device; `MemoryError` if it has no memory left."""

    transfers: Transfers

    def upload(self, array: Array) -> Any:
        """Return device memory with a copy of an array, which may change afterwards."""
        ...

    def download(self, memory: Any, array: Array) -> None:
        """Fill an array from memory after all enqueued work has finished."""
        ...

    def copied(self, memory: Any, bytes: int) -> Any:
        """Return a copy of memory, made on the device."""
        ...

    def release(self, memory: Any, bytes: int) -> None:
        """Free memory; enqueued work may still use it."""
        ...

    def finish(self) -> None:
        """Wait until all enqueued work has finished."""
        ...


class ReadOnHost:
    """An array that is copied to the host when its elements are read."""

    __slots__ = ()

    def item(self) -> Any:
        """Return its only element as a Python number."""
        return np.asarray(self).item()

    def tolist(self) -> Any:
        """Return its elements as a list of lists."""
        return np.asarray(self).tolist()

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __iter__(self) -> Any:
        return iter(np.asarray(self))

    def __str__(self) -> str:
        return str(np.asarray(self))


class DeviceArray(ReadOnHost):
    """An array in the memory of a device, as `sw.device_put` and programs on a device return it.

    It has `shape`, `dtype`, `ndim`, `size`, `nbytes` and `device`, and is an argument of any
    function compiled for that device. ``np.asarray(x)``, ``float(x)``, `item`, `tolist`, `str` and
    iteration copy it to the host and wait until it has been computed; nothing else does. It is
    immutable, except that a program may overwrite it as a donated argument. Its memory is freed
    when it is dropped, or by `delete`.

    device, held, dtype, shape, nbytes : its parts; use `sw.device_put` to make one
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
        """The device's memory object of the array."""
        if self._held is None:
            raise RuntimeError(f"the device array {self._spelled()} was deleted")
        return self._held

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def deleted(self) -> bool:
        """Whether its memory was freed."""
        return self._held is None

    def delete(self) -> None:
        """Free its memory now; any later use is a RuntimeError."""
        held, self._held = self._held, None
        if held is not None:
            self.device.memory.release(held, self.nbytes)

    def __del__(self) -> None:
        held = getattr(self, "_held", None)
        if held is not None:
            self.device.memory.release(held, self.nbytes)

    def block_until_ready(self) -> DeviceArray:
        """Wait until it has been computed."""
        assert self.memory is not None
        self.device.memory.finish()
        return self

    def copy(self) -> DeviceArray:
        """Return a copy, made on the device."""
        created = self.device.memory.copied(self.memory, self.nbytes)
        return DeviceArray(self.device, created, self.dtype, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError(f"a device array is copied to the host: {self!r}")
        found: Array = np.empty(self.shape, self.dtype)
        self.device.memory.download(self.memory, found)
        return found if dtype is None else found.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __format__(self, how: str) -> str:
        return format(self.item(), how) if how and not self.shape else str(self)

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

    def __repr__(self) -> str:
        gone = ", deleted" if self.deleted else ""
        return f"<device array {self._spelled()} on {self.device.name}{gone}>"

    def _spelled(self) -> str:
        return spell(self.dtype.name, self.shape)


def shaped_bytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """Return the size of an array in bytes."""
    return dtype.itemsize * prod(shape)


def _put(array: Array, name: str) -> DeviceArray:
    """Return a pickled array on the device of that name here."""
    device = import_module("stepwell.runtime.opencl.device")
    return put(array, device.open_device(name))


def put(array: Array, device: Any) -> DeviceArray:
    """Return a copy of a NumPy array in the memory of a device."""
    return DeviceArray(device, device.memory.upload(array), array.dtype, array.shape)
