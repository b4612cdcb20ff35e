"""Calls of OpenCL programs: bind arguments and results to device memory, and enqueue the schedule.

A call enqueues every step of its schedule (`steps`). It waits only if the host needs a number that
the device computes, or if results are NumPy arrays. If an argument is a `DeviceArray`, the results
are too; otherwise all arrays are NumPy's, used in place if the device shares the host's memory.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stepwell.core.guards import FIRST
from stepwell.core.host_functions import raised
from stepwell.core.shapes import DYNAMIC
from stepwell.runtime.device_arrays import DeviceArray, shaped_bytes
from stepwell.runtime.entry import Array, Entry, dynamic_sizes, numpy_dtype, result_shapes
from stepwell.runtime.opencl.building import build
from stepwell.runtime.opencl.call_state import Call, Failed, Noted, Place, check_guards, valued
from stepwell.runtime.opencl.device import open_device
from stepwell.runtime.opencl.launches import Launches, Planned
from stepwell.runtime.opencl.memory import as_bytes
from stepwell.runtime.opencl.steps import Translator

LOG = logging.getLogger("stepwell")
LITTLE = 1 << 16
"""Limit, in bytes, up to which a NumPy argument beside device arrays is copied. A copy takes some
microseconds, as long as waking the host; without it the call must wait for the device."""
NO_ROOM = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY")
"""The driver errors that mean out of memory."""


class Plan(NamedTuple):
    """A program that consists of launches alone, all of static sizes."""

    names: Sequence[str]
    """The names of the buffers."""
    launches: Sequence[Planned]
    results: Sequence[tuple[np.dtype[Any], tuple[int, ...], int]]
    """Dtype, shape and size in bytes of each result."""
    arena: int
    """The size of the arena in bytes."""
    enqueue: Callable[..., None]

    def enqueue_all(self, buffers: Sequence[Any]) -> None:
        """Enqueue every launch on these buffers."""
        enqueue = self.enqueue
        for kernel, places, items, group, first in self.launches:
            for number, place in places:
                kernel.set_arg(number, buffers[place])
            enqueue(kernel, items, group, first)

    def run(self, call: Call) -> None:
        """Enqueue every launch on the buffers of a call."""
        self.enqueue_all([call.memory[name][0] for name in self.names])


class OpenCLProgram:
    """An OpenCL program, with the interface of a C program.

    device : the name of the device, as `open_device` takes it
    timed : whether the events of launches and copies are recorded, as `profile` needs it
    """

    def __init__(
        self,
        source: Path,
        entry: Entry,
        constants: Sequence[Array],
        device: str = "",
        timed: bool = False,
    ) -> None:
        self.entry = entry
        self.device = entry.device = open_device(device)
        self._build = build(source, self.device)
        self.noted: list[Noted] = []
        """The events of the last call, if the program is timed."""
        self._timed = timed
        self._upload_logged = False
        self._queue = self.device.timed_queue if timed else self.device.queue
        self._memory = self.device.memory
        self._lock = threading.RLock()
        """Guards the arguments of kernels; reentrant, as a callback may call this program again."""
        signature = entry.signature
        sizes, arena, *steps = signature.host
        self._sizes = [valued(tree) for tree in sizes["sizes"]]
        self._arena_bytes = valued(arena["bytes"])
        self._specs = [(numpy_dtype(spec.dtype), spec.shape) for spec in signature.results]
        self._kinds = [kind for kind, _ in self._specs]
        self._shapes = [shape for _, shape in self._specs]
        self._is_static = not signature.dynamic and not any(DYNAMIC in s for s in self._shapes)
        self._weights = [self._memory.constant(array) for array in constants]
        self._constants: dict[str, Place] = {
            f"constant{number}": (weight.buffer, 0) for number, weight in enumerate(self._weights)
        }
        launches = Launches(self.device, self._build, self._queue, self._constants, timed)
        self._plan = self._planned(launches, steps) if self._is_static else None
        self._run = Translator(launches).block(steps) if self._plan is None else self._plan.run

    def _planned(self, launches: Launches, steps: Sequence[Any]) -> Plan | None:
        """Return the launches of a call, if only the buffers differ between calls, else None."""
        signature = self.entry.signature
        names = [f"input{number}" for number in range(len(signature.arguments))]
        names += [f"output{number}" for number in range(len(signature.results))]
        names.append("arena")
        plan = launches.plan(steps, names)
        if plan is None:
            return None
        shapes = [(kind, shape, shaped_bytes(kind, shape)) for kind, shape in self._specs]
        return Plan(names, plan, shapes, self._arena_bytes({}), launches.enqueue)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check, convert and call."""
        return self.entry.miss(args, kwargs)

    def invoke(self, arguments: tuple[Any, ...], outs: tuple[Any, ...] | None) -> Any:
        """Call with arguments that match the signature.

        raises TypeError : an array is on another device
        raises RuntimeError : the device or the host's part fails, or an array was deleted
        raises MemoryError : the device is out of memory
        """
        for number, each in enumerate(arguments):
            if type(each) is DeviceArray and each.device is not self.device:
                self.entry.check_place(self.entry.signature.arguments[number], each)
        try:
            if self._plan is not None and self._stays(arguments, outs):
                return self._enqueued(self._plan, arguments, outs)
            return self._invoke(arguments, outs)
        except Failed as failed:
            if (error := raised()) is not None:
                raise error from None
            guards = self.entry.signature.guards
            raise guards[failed.number - FIRST].fault(failed.values) from None
        except self.device.cl.Error as error:
            if any(word in str(error) for word in NO_ROOM):
                raise self._memory.full(0, error) from None
            said = f"{self.entry.signature.entry} failed on {self.device.title}: {error}"
        except (ArithmeticError, TypeError, struct.error) as error:
            said = f"{self.entry.signature.entry} failed on the host: {error}"
        raise RuntimeError(said)

    def _stays(self, arguments: Sequence[Any], outs: Sequence[Any] | None) -> bool:
        """Whether all arrays of a call are on the device, and the program has run before."""
        for each in arguments:
            if type(each) is not DeviceArray:
                return False
        for each in outs or ():
            if each is not None and type(each) is not DeviceArray:
                return False
        return bool(arguments) and not self._build.is_new

    def _enqueued(
        self, plan: Plan, arguments: Sequence[DeviceArray], outs: Sequence[Any] | None
    ) -> Any:
        """Enqueue a call whose arrays are all on the device, without waiting."""
        self._check_process()
        device, memory, queue = self.device, self._memory, self._queue
        results = [
            outs[number]
            if outs is not None and outs[number] is not None
            else DeviceArray(device, memory.allocate(bytes), kind, shape, bytes)
            for number, (kind, shape, bytes) in enumerate(plan.results)
        ]
        buffers = [each.memory for each in (*arguments, *results)]
        arena = memory.allocate(plan.arena) if plan.arena else None
        buffers.append(arena)
        with self._lock:
            plan.enqueue_all(buffers)
        if arena is not None:
            memory.release(arena, plan.arena)
        queue.flush()
        return results[0] if len(results) == 1 else tuple(results)

    def _check_process(self) -> None:
        if os.getpid() != self.device.process:
            raise RuntimeError("OpenCL drivers do not survive a fork: start processes by 'spawn'")

    def _invoke(self, arguments: tuple[Any, ...], outs: tuple[Any, ...] | None) -> Any:
        self._check_process()
        call = Call({}, dict(self._constants))
        shapes = self._shapes if self._is_static else self._sized(call, arguments)
        stays = any(type(each) is DeviceArray for each in arguments)
        memory = self._memory
        results: list[Any] = []
        for number, (shape, kind) in enumerate(zip(shapes, self._kinds, strict=True)):
            result = outs[number] if outs is not None else None
            if result is None and stays:
                bytes = shaped_bytes(kind, shape)
                result = DeviceArray(self.device, memory.allocate(bytes), kind, shape, bytes)
            results.append(np.empty(shape, kind) if result is None else result)
        if self._timed:  # work of other calls must not run beside a timed call
            self.device.queue.finish()
        try:
            with self._lock:
                self._enqueue(call, arguments, results, stays)
            self._collect(call, results)
        except BaseException:  # enqueued work uses arrays that may be freed after this
            self._queue.finish()
            raise
        finally:  # temporaries may be reused at once: the queue runs in order
            for held, bytes in call.scratch:
                memory.release(held, bytes)
        return results[0] if len(results) == 1 else tuple(results)

    def _sized(self, call: Call, arguments: Sequence[Any]) -> list[tuple[int, ...]]:
        """Set the variables for the sizes of the arguments; return the shapes of the results."""
        signature = self.entry.signature
        sizes = dynamic_sizes(signature, arguments)
        call.variables.update({f"d{number}": size for number, size in enumerate(sizes)})
        return result_shapes(signature, [n(call.variables) for n in self._sizes])

    def _enqueue(
        self, call: Call, arguments: Sequence[Any], results: Sequence[Any], stays: bool
    ) -> None:
        """Bind the memory of a call and enqueue its steps.

        stays : whether results stay on the device, so that the call need not wait
        """
        places, bytes = call.memory, self._arena_bytes(call.variables)
        arena = self._memory.allocate(bytes)
        call.scratch.append((arena, bytes))
        places["arena"] = (arena, 0)
        for number, array in enumerate(arguments):
            places[f"input{number}"] = (self._argument_memory(call, array, results, stays), 0)
        for number, array in enumerate(results):
            places[f"output{number}"] = (self._result_memory(call, array, arguments, number), 0)
        self._run(call)
        check_guards(self.device, self._queue, call)

    def _argument_memory(self, call: Call, array: Any, results: Sequence[Any], stays: bool) -> Any:
        """Return the memory of an argument."""
        if type(array) is DeviceArray:
            return array.memory
        flags = self.device.cl.mem_flags
        if any(result is array for result in results):  # a donated argument is also a result
            access = flags.READ_WRITE
        else:
            access, array = flags.READ_ONLY, self._aligned(array)
            if stays and array.nbytes <= LITTLE:
                return self._uploaded(call, array)
        held = self._memory.wrapped(array, access)
        if held is None:
            return self._uploaded(call, array)
        call.waits |= stays  # else the caller could change the array before the device reads it
        self._memory.transfers.give(array.nbytes)
        return held

    def _uploaded(self, call: Call, array: Array) -> Any:
        if array.nbytes > LITTLE and not self._upload_logged:
            self._upload_logged = True
            name, where = self.entry.signature.entry, self.device.name
            said = "%s: %s bytes of NumPy go to %s in every call; sw.device_put keeps them there"
            LOG.info(said, name, f"{array.nbytes:,}", where)
        held = self._memory.upload(array)
        call.scratch.append((held, array.nbytes))
        return held

    def _result_memory(self, call: Call, array: Any, arguments: Sequence[Any], number: int) -> Any:
        """Return the memory of a result: that of the argument it replaces, if there is one."""
        if type(array) is DeviceArray:
            return array.memory
        for place, argument in enumerate(arguments):
            if argument is array:
                return call.memory[f"input{place}"][0]
        held = self._memory.wrapped(array, self.device.cl.mem_flags.READ_WRITE)
        if held is None:
            held = self._memory.allocate(array.nbytes)
            call.scratch.append((held, array.nbytes))
        return held

    def _collect(self, call: Call, results: Sequence[Any]) -> None:
        """Wait for NumPy results and fetch them; if there are none, only flush the queue."""
        cl, queue, memory = self.device.cl, self._queue, self._memory
        mapped: list[Any] = []
        waits = self._timed or self._build.is_new or call.waits
        for number, array in enumerate(results):
            if type(array) is DeviceArray:
                continue
            waits = True
            if not array.nbytes:
                continue
            held = call.memory[f"output{number}"][0]
            memory.transfers.fetch(array.nbytes)
            if self.device.shares_memory:
                read, size = cl.map_flags.READ, (array.nbytes,)
                view, _ = cl.enqueue_map_buffer(
                    queue, held, read, 0, size, np.uint8, is_blocking=False
                )
                mapped.append(view)
            else:
                cl.enqueue_copy(queue, as_bytes(array), held)
        if not waits and results:
            queue.flush()
            return
        queue.finish()
        for view in mapped:
            view.base.release(queue)
        self._build.keep()
        self.noted = call.noted

    def _aligned(self, array: Array) -> Array:
        """Return an array, or a copy aligned to 16 bytes if the program has guards."""
        if not self.entry.signature.guards or array.ctypes.data % 16 == 0:
            return array
        return array.copy()
