"""Memory of an OpenCL device: a pool of buffers, and transfers to and from the host.

A device has one in-order queue. So a released buffer can be reused at once: all commands that use
it were enqueued before any command of its next user.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from stepwell.runtime.device_arrays import Array, Transfers
from stepwell.runtime.opencl.device import Device

LINE = 64
"""Size of the smallest buffer, in bytes: OpenCL has no empty buffers."""
SMALL = 1 << 12
"""Limit, in bytes: sizes of buffers up to this are powers of two, larger ones multiples of it."""
PAGE = 1 << 12
HUGE = 4 << 20
"""Size, in bytes, from which NumPy requests pages of 2 MiB; drivers for CPUs do not. With them,
accesses with strides of a page or more hit the TLB."""
KEPT = 8
"""Released buffers may take up one part in this many of a device's memory."""


@dataclass(eq=False)
class Weight:
    """A constant array and its buffer; both live as long as a program refers to this."""

    array: Array
    buffer: Any


def on_large_pages(size: int) -> Array:
    """Return host memory that NumPy allocates, aligned to a page."""
    held = np.empty(size + PAGE, np.uint8)
    start = -held.ctypes.data % PAGE
    return held[start : start + size]


class DeviceMemory:
    """The memory of one device, for all programs and threads."""

    def __init__(self, device: Device) -> None:
        self.transfers = Transfers()
        self._device = device
        self._flags = device.cl.mem_flags
        self._context = device.context
        self._free: dict[int, list[Any]] = defaultdict(list)
        self._wanted: dict[int, int] = defaultdict(int)
        """The number of buffers made, by size, as none was free; uploads do not count."""
        self._kept = 0
        self._largest = int(device.handle.max_mem_alloc_size)
        self._most = int(device.handle.global_mem_size) // KEPT
        self._lock = threading.RLock()
        """Reentrant: a garbage collection inside a method may release arrays."""
        self._weights: WeakValueDictionary[int, Weight] = WeakValueDictionary()

    # buffers

    def allocate(self, bytes: int) -> Any:
        """Return a buffer of at least ``bytes`` bytes, with undefined contents."""
        size = rounded(bytes)
        free = self._free.get(size)
        if free:
            with self._lock:
                if free:
                    self._kept -= size
                    return free.pop()
        created = self._with_retry(size, lambda: self._new(size))
        with self._lock:
            self._wanted[size] += 1
        return created

    def release(self, memory: Any, bytes: int) -> None:
        """Return a buffer to the pool, which keeps at most the number ever used at once."""
        size = rounded(bytes)
        with self._lock:
            full = len(self._free[size]) >= self._wanted[size]
            if full or self._kept + size > self._most:
                return
            self._kept += size
            self._free[size].append(memory)

    def drop(self) -> None:
        """Free all buffers in the pool."""
        with self._lock:
            self._free.clear()
            self._kept = 0

    def _is_large(self, size: int) -> bool:
        """Whether a buffer should have large pages; above the device's limit the driver decides."""
        return self._device.is_cpu and HUGE <= size <= self._largest

    def _new(self, size: int) -> Any:
        if not self._is_large(size):
            return self._buffer(self._flags.READ_WRITE, size)
        flags = self._flags.READ_WRITE | self._flags.USE_HOST_PTR
        return self._buffer(flags, 0, on_large_pages(size))

    def _buffer(self, flags: int, size: int = 0, hostbuf: Any = None) -> Any:
        return self._device.cl.Buffer(self._context, flags, size, hostbuf)

    def _with_retry(self, bytes: int, make: Callable[[], Any]) -> Any:
        """Return ``make()``; if the device is out of memory, drop the pool and try again."""
        cl = self._device.cl
        try:
            return make()
        except cl.Error:
            self._device.queue.finish()
            self.drop()
        try:
            return make()
        except cl.Error as error:
            raise self.full(bytes, error) from None

    def full(self, bytes: int, error: Any) -> MemoryError:
        """Return the exception for a device that is out of memory."""
        handle = self._device.handle
        most, one = int(handle.global_mem_size), int(handle.max_mem_alloc_size)
        wanted = f" for {bytes:,} bytes" if bytes else ""
        return MemoryError(
            f"{self._device.name} ({self._device.title}) has no room{wanted}: "
            f"it has {most:,} bytes, and {one:,} at most for one array ({error})"
        )

    # arrays

    def upload(self, array: Array) -> Any:
        """Return a buffer with a copy of an array, complete on return."""
        self.transfers.give(array.nbytes)
        return self._copy_of(array, self._flags.READ_WRITE)

    def _copy_of(self, array: Array, access: int) -> Any:
        if not array.nbytes:
            return self.allocate(0)
        if self._is_large(array.nbytes):
            copy = on_large_pages(rounded(array.nbytes))
            copy[: array.nbytes] = array.reshape(-1).view(np.uint8)
            return self._buffer(access | self._flags.USE_HOST_PTR, 0, copy)
        held, size = as_bytes(array), rounded(array.nbytes)
        if size != array.nbytes:
            held = np.empty(size, np.uint8)
            held[: array.nbytes] = array.reshape(-1).view(np.uint8)
        flags = access | self._flags.COPY_HOST_PTR  # this does not wait for a busy queue
        return self._with_retry(size, lambda: self._buffer(flags, 0, held))

    def download(self, memory: Any, array: Array) -> None:
        """Copy a buffer into an array, after all enqueued work."""
        self.transfers.fetch(array.nbytes)
        if array.nbytes:
            self._device.cl.enqueue_copy(self._device.queue, as_bytes(array), memory)

    def copied(self, memory: Any, bytes: int) -> Any:
        """Return a copy of a buffer, made after all enqueued work."""
        created = self.allocate(bytes)
        if bytes:
            self._device.cl.enqueue_copy(self._device.queue, created, memory, byte_count=bytes)
        return created

    def finish(self) -> None:
        """Wait until all enqueued work is finished."""
        self._device.queue.finish()

    def constant(self, array: Array) -> Weight:
        """Return the weight of a constant array: a single one for all programs that use it."""
        with self._lock:
            found = self._weights.get(id(array))
            if found is not None and found.array is array:
                return found
            created = self.wrapped(array, self._flags.READ_ONLY)
            if created is None:
                self.transfers.give(array.nbytes)
                created = self._copy_of(array, self._flags.READ_ONLY)
            self._weights[id(array)] = weight = Weight(array, created)
            return weight

    def wrapped(self, array: Array, access: int) -> Any | None:
        """Return an array's memory as a buffer, None if the device does not share memory."""
        if not self._device.shares_memory:
            return None
        if not array.nbytes:
            return self._buffer(access, LINE)
        return self._buffer(access | self._flags.USE_HOST_PTR, 0, as_bytes(array))


def as_bytes(array: Array) -> Array:
    """Return a contiguous array of any dtype in a form that pyopencl accepts."""
    return array if array.dtype.isbuiltin == 1 and array.ndim else array.reshape(-1).view(np.uint8)


def rounded(bytes: int) -> int:
    """Return the size of the buffer for ``bytes`` bytes: few distinct sizes make reuse likely.

    >>> rounded(0), rounded(65), rounded(5000)
    (64, 128, 8192)
    """
    if bytes > SMALL:
        return -(-bytes // SMALL) * SMALL
    return max(1 << (bytes - 1).bit_length(), LINE) if bytes else LINE
