"""Memory of an OpenCL device: buffers that are used again, and what goes to it and comes back.

A device has one queue, which runs what it is given in order. So a buffer that nobody holds any more
can be handed out at once: whatever still uses it was enqueued before all that is to come.
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
"""Bytes of the smallest buffer: OpenCL has none of 0."""
SMALL = 1 << 12
"""Up to so many bytes sizes of buffers are powers of two, above multiples of this."""
PAGE = 1 << 12
HUGE = 4 << 20
"""Bytes from which on NumPy asks for pages of 2 MiB, as drivers for processors do not: steps of a
page or more then find their addresses in the processor's table of pages."""
KEPT = 8
"""The part of a device's memory that buffers which nobody holds may take up: an eighth."""


@dataclass(eq=False)
class Weight:
    """An array that never changes, and its buffer: there as long as a program holds this."""

    array: Array
    buffer: Any


def on_large_pages(size: int) -> Array:
    """Return memory of the host as NumPy asks for it, from a page's beginning on."""
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
        """How many buffers of a size were made because none was free; uploaded ones apart."""
        self._kept = 0
        self._largest = int(device.handle.max_mem_alloc_size)
        self._most = int(device.handle.global_mem_size) // KEPT
        self._lock = threading.RLock()
        """A garbage collection in the middle of a method may release arrays."""
        self._weights: WeakValueDictionary[int, Weight] = WeakValueDictionary()

    # buffers

    def allocate(self, bytes: int) -> Any:
        """Return a buffer of so many bytes at least; what is in it is anything."""
        size = rounded(bytes)
        free = self._free.get(size)
        if free:
            with self._lock:
                if free:
                    self._kept -= size
                    return free.pop()
        made = self._made(size, lambda: self._new(size))
        with self._lock:
            self._wanted[size] += 1
        return made

    def release(self, memory: Any, bytes: int) -> None:
        """Keep a buffer for whoever wants one of its size, as many as were ever wanted at once."""
        size = rounded(bytes)
        with self._lock:
            full = len(self._free[size]) >= self._wanted[size]
            if full or self._kept + size > self._most:
                return
            self._kept += size
            self._free[size].append(memory)

    def drop(self) -> None:
        """Give back to the driver what nobody holds."""
        with self._lock:
            self._free.clear()
            self._kept = 0

    def _is_large(self, size: int) -> bool:
        """Whether a buffer gains by large pages; the driver refuses what there is no room for."""
        return self._device.is_cpu and HUGE <= size <= self._largest

    def _new(self, size: int) -> Any:
        if not self._is_large(size):
            return self._buffer(self._flags.READ_WRITE, size)
        flags = self._flags.READ_WRITE | self._flags.USE_HOST_PTR
        return self._buffer(flags, 0, on_large_pages(size))

    def _buffer(self, flags: int, size: int = 0, hostbuf: Any = None) -> Any:
        return self._device.cl.Buffer(self._context, flags, size, hostbuf)

    def _made(self, bytes: int, make: Callable[[], Any]) -> Any:
        """Return a buffer, made after what nobody holds was given back where there is no room."""
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
        """Return what to raise where the device has no room."""
        handle = self._device.handle
        most, one = int(handle.global_mem_size), int(handle.max_mem_alloc_size)
        wanted = f" for {bytes:,} bytes" if bytes else ""
        return MemoryError(
            f"{self._device.name} ({self._device.title}) has no room{wanted}: "
            f"it has {most:,} bytes, and {one:,} at most for one array ({error})"
        )

    # arrays

    def upload(self, array: Array) -> Any:
        """Return a buffer with a copy of an array, which is made before this returns."""
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
        flags = access | self._flags.COPY_HOST_PTR  # the queue, which may be busy, is not asked
        return self._made(size, lambda: self._buffer(flags, 0, held))

    def download(self, memory: Any, array: Array) -> None:
        """Fill an array, when all has run that was enqueued."""
        self.transfers.fetch(array.nbytes)
        if array.nbytes:
            self._device.cl.enqueue_copy(self._device.queue, as_bytes(array), memory)

    def copied(self, memory: Any, bytes: int) -> Any:
        """Return a buffer with what another has, copied when all has run that was enqueued."""
        made = self.allocate(bytes)
        if bytes:
            self._device.cl.enqueue_copy(self._device.queue, made, memory, byte_count=bytes)
        return made

    def finish(self) -> None:
        """Wait until all has run that was enqueued."""
        self._device.queue.finish()

    def constant(self, array: Array) -> Weight:
        """Return an array that never changes as a weight: one, however many programs use it."""
        with self._lock:
            found = self._weights.get(id(array))
            if found is not None and found.array is array:
                return found
            made = self.wrapped(array, self._flags.READ_ONLY)
            if made is None:
                self.transfers.give(array.nbytes)
                made = self._copy_of(array, self._flags.READ_ONLY)
            self._weights[id(array)] = weight = Weight(array, made)
            return weight

    def wrapped(self, array: Array, access: int) -> Any | None:
        """Return an array's own memory as a buffer; None where the device has memory of its own."""
        if not self._device.shares_memory:
            return None
        if not array.nbytes:
            return self._buffer(access, LINE)
        return self._buffer(access | self._flags.USE_HOST_PTR, 0, as_bytes(array))


def as_bytes(array: Array) -> Array:
    """Return a contiguous array as one that drivers' bindings take, whatever its dtype."""
    return array if array.dtype.isbuiltin == 1 and array.ndim else array.reshape(-1).view(np.uint8)


def rounded(bytes: int) -> int:
    """Return the size of the buffer for so many bytes: there are few sizes, so they are met again.

    >>> rounded(0), rounded(65), rounded(5000)
    (64, 128, 8192)
    """
    if bytes > SMALL:
        return -(-bytes // SMALL) * SMALL
    return max(1 << (bytes - 1).bit_length(), LINE) if bytes else LINE
