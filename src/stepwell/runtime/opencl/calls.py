"""Calls of OpenCL programs: the host's schedule, translated once into Python closures.

`stepwell.core.host_schedule` says what a schedule is. Arrays of the caller are the device's memory
where it shares the host's (nothing is copied on a CPU); weights and the arena stay there.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stepwell.core.dtypes import DTYPES
from stepwell.core.escape import quoted
from stepwell.core.guards import FIRST
from stepwell.core.host_checking import MOST_ITEMS
from stepwell.core.host_functions import raised, serve
from stepwell.core.host_schedule import OPERATORS, Step, Tree
from stepwell.runtime.entry import Array, Entry, dynamic_sizes, make_results
from stepwell.runtime.opencl.building import Build, build
from stepwell.runtime.opencl.device import Device, OpenCLError, open_device

Variables: TypeAlias = dict[str, Any]
Value: TypeAlias = Callable[[Variables], Any]
Place: TypeAlias = tuple[Any, int]
"""A buffer of the device and how many bytes to skip."""

ALIGNMENT = 64
_FAULT = np.dtype({"names": ["number", "values"], "formats": ["i4", "(2,)i8"], "offsets": [0, 8]})
"""Where the device notes the guard that has failed: `struct sw_fault`."""
_MOST = 1 << 127


@dataclass
class Call:
    """What one call knows: its variables, and the memory behind each name."""

    variables: Variables
    memory: dict[str, Place] = field(default_factory=dict[str, Place])


Action: TypeAlias = Callable[[Call], None]


class Failed(Exception):
    """A guard has failed on the host."""

    def __init__(self, number: int, values: Sequence[int]) -> None:
        super().__init__()
        self.number = number
        self.values = values


class OpenCLProgram:
    """A program of OpenCL, called like one of C."""

    def __init__(
        self, source: Path, entry: Entry, constants: Sequence[Array], device: str = ""
    ) -> None:
        self.entry = entry
        self._device = open_device(device)
        self._build = build(source, self._device)
        self._lock = threading.RLock()
        """A kernel's arguments serve one thread; a callback may call this program again."""
        signature = entry.signature
        sizes, arena, *steps = signature.host
        self._sizes = [valued(tree) for tree in sizes["sizes"]]
        self._arena_bytes = valued(arena["bytes"])
        self._arena: tuple[Any, int] = (None, -1)
        """Memory of the last call, which the next takes, and how many bytes it has."""
        self._run = Translator(self._device, self._build).block(steps)
        flags = self._device.cl.mem_flags
        self._constants = {
            f"constant{number}": (self._wrap(array, flags.READ_ONLY), 0)
            for number, array in enumerate(constants)
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check, convert and call."""
        return self.entry.miss(args, kwargs)

    def invoke(self, arguments: tuple[Array, ...], outs: tuple[Array | None, ...] | None) -> Any:
        """Call with arrays that fit; RuntimeError where the device or the host's part fails."""
        try:
            return self._invoke(arguments, outs)
        except Failed as failed:
            if (error := raised()) is not None:
                raise error from None
            guards = self.entry.signature.guards
            raise guards[failed.number - FIRST].fault(failed.values) from None
        except self._device.cl.Error as error:
            said = f"{self.entry.signature.entry} failed on {self._device.handle.name}: {error}"
        except (ArithmeticError, TypeError, struct.error) as error:
            said = f"{self.entry.signature.entry} failed on the host: {error}"
        raise RuntimeError(said)

    def _invoke(self, arguments: tuple[Array, ...], outs: tuple[Array | None, ...] | None) -> Any:
        if os.getpid() != self._device.process:
            raise RuntimeError("OpenCL drivers do not survive a fork: start processes by 'spawn'")
        signature = self.entry.signature
        sizes = dynamic_sizes(signature, arguments)
        call = Call({f"d{number}": size for number, size in enumerate(sizes)})
        made = make_results(signature, [n(call.variables) for n in self._sizes])
        pairs = zip(outs or made, made, strict=True)
        results = [new if each is None else each for each, new in pairs]
        flags = self._device.cl.mem_flags
        with self._lock:
            call.memory.update(self._constants)
            arena = self._arena_of(self._arena_bytes(call.variables))
            call.memory["arena"] = (arena[0], 0)
            for number, array in enumerate(results):
                call.memory[f"output{number}"] = (self._wrap(array, flags.READ_WRITE), 0)
            for number, array in enumerate(arguments):
                call.memory[f"input{number}"] = self._given(call, array, results)
            try:
                self._run(call)
                check_guards(self._device, call)
            except Failed:  # what was begun works on arrays that nobody may keep
                self._device.queue.finish()
                raise
            finally:
                self._arena = arena
            for number, array in enumerate(results):
                self._bring_back(call.memory[f"output{number}"][0], array)
            self._device.queue.finish()
            self._build.keep()
        return results[0] if len(results) == 1 else tuple(results)

    def _given(self, call: Call, array: Array, results: Sequence[Array]) -> Place:
        """Return the memory of an argument: that of the result that replaces it, if one does."""
        for number, result in enumerate(results):
            if result is array:
                return call.memory[f"output{number}"]
        return self._wrap(self._aligned(array), self._device.cl.mem_flags.READ_ONLY), 0

    def _aligned(self, array: Array) -> Array:
        """Return an array, or a copy of it that begins where elements of any type may."""
        if not self.entry.signature.guards or array.ctypes.data % 16 == 0:
            return array
        return array.copy()

    def _wrap(self, array: Array, access: int) -> Any:
        """Return the memory of an array as a buffer; the device may keep a copy of its own."""
        cl = self._device.cl
        if not array.nbytes:
            return cl.Buffer(self._device.context, access, ALIGNMENT)
        flags = access | cl.mem_flags.USE_HOST_PTR
        return cl.Buffer(self._device.context, flags, hostbuf=array.reshape(-1).view(np.uint8))

    def _bring_back(self, buffer: Any, array: Array) -> None:
        """Have the host see what the device wrote."""
        if not array.nbytes:
            return
        cl, queue = self._device.cl, self._device.queue
        mapped, _ = cl.enqueue_map_buffer(
            queue, buffer, cl.map_flags.READ, 0, (array.nbytes,), np.uint8
        )
        mapped.base.release(queue)

    def _arena_of(self, size: int) -> tuple[Any, int]:
        """Return memory of a size, and how much it is; no other call has it until it is back."""
        found, self._arena = self._arena, (None, -1)
        if size <= found[1]:
            return found
        flags = self._device.cl.mem_flags.READ_WRITE
        return self._device.cl.Buffer(self._device.context, flags, max(size, ALIGNMENT)), size


def check_guards(device: Device, call: Call) -> None:
    """Raise where a guard has failed on the device."""
    if "fault" in call.memory:
        found = np.zeros(1, _FAULT)
        device.cl.enqueue_copy(device.queue, found, call.memory["fault"][0])
        if number := int(found["number"][0]):
            raise Failed(number, found["values"][0].tolist())


def valued(tree: Tree) -> Value:
    """Return a function of the variables that evaluates ``tree``.

    >>> valued(["+", ["*", "d0", 4], 64])({"d0": 3})
    76
    """
    if isinstance(tree, str):
        return lambda variables: variables[tree]
    if not isinstance(tree, list | tuple):
        return lambda _: tree
    name, *operands = tree
    operator, values = OPERATORS[name], [valued(each) for each in operands]
    if len(values) == 2:
        a, b = values
        if name in ("+", "-", "*"):
            return lambda variables: _bounded(operator(a(variables), b(variables)))
        return lambda variables: operator(a(variables), b(variables))
    return lambda variables: operator(*(each(variables) for each in values))


def _bounded(number: Any) -> Any:
    """Return a number of at most the bits of a product, which it has until it is wrapped."""
    if -_MOST < number < _MOST or isinstance(number, float):
        return number
    raise OverflowError("a number has more than 128 bits")


class _OnHost(NamedTuple):
    """An array on the host: where it is on the device, its strides in elements, its bytes."""

    place: Place
    strides: list[int]
    bytes: Array


class Translator:
    """Turns the steps of a schedule into closures."""

    def __init__(self, device: Device, made: Build) -> None:
        self.cl = device.cl
        self.device = device
        self.queue = device.queue
        self.made = made

    def block(self, steps: Sequence[Step]) -> Action:
        """Return what runs ``steps`` in order."""
        actions = [self._ACTIONS[step["do"]](self, step) for step in steps]

        def run(call: Call) -> None:
            for action in actions:
                action(call)

        return run

    def _set(self, step: Step) -> Action:
        names, values = step["names"], [valued(tree) for tree in step["values"]]

        def run(call: Call) -> None:
            found = [value(call.variables) for value in values]
            call.variables.update(zip(names, found, strict=True))

        return run

    def _bind(self, step: Step) -> Action:
        names, places = step["names"], [self._place(place) for place in step["places"]]

        def run(call: Call) -> None:
            found = [place(call) for place in places]
            call.memory.update(zip(names, found, strict=True))

        return run

    def _allocate(self, step: Step) -> Action:
        name, size = step["buffer"], valued(step["bytes"])
        flags = self.cl.mem_flags.READ_WRITE

        def run(call: Call) -> None:
            bytes = max(size(call.variables), ALIGNMENT)
            call.memory[name] = (self.cl.Buffer(self.device.context, flags, bytes), 0)

        return run

    def _zero(self, step: Step) -> Action:
        name, size = step["buffer"], valued(step["bytes"])

        def run(call: Call) -> None:
            (buffer, start), bytes = call.memory[name], size(call.variables)
            if bytes > 0:
                self.cl.enqueue_fill_buffer(self.queue, buffer, np.uint8(0), start, bytes)

        return run

    def _require(self, step: Step) -> Action:
        holds, values = valued(step["holds"]), [valued(tree) for tree in step["values"]]
        number = step["number"]

        def run(call: Call) -> None:
            if not holds(call.variables):
                raise Failed(number, [value(call.variables) for value in values])

        return run

    def _callback(self, step: Step) -> Action:
        """Call a Python function, the arrays being copied to the host and back."""
        name, number, count = step["function"], step["number"], len(step["inputs"])
        arrays = [self._array(each) for each in (*step["inputs"], *step["outputs"])]

        def run(call: Call) -> None:
            check_guards(self.device, call)  # nothing is called after what has failed
            found = [array(call) for array in arrays]
            strides = [n for each in found for n in each.strides]
            if serve(name, [each.bytes.ctypes.data for each in found], strides):
                raise Failed(number, ())
            for each in found[count:]:
                if each.bytes.size:
                    buffer, start = each.place
                    self.cl.enqueue_copy(self.queue, buffer, each.bytes, dst_offset=start)

        return run

    def _array(self, array: Step) -> Callable[[Call], _OnHost]:
        """Return what copies an array to the host, with what lies between its elements."""
        place, size = self._place(array["place"]), DTYPES[array["dtype"]].bytes
        sizes = [valued(tree) for tree in array["sizes"]]
        strides = [valued(tree) for tree in array["strides"]]

        def found(call: Call) -> _OnHost:
            shape = [n(call.variables) for n in sizes]
            steps = [n(call.variables) for n in strides]
            last = sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
            bytes = np.empty((last + 1) * size if all(n > 0 for n in shape) else 0, np.uint8)
            memory, start = place(call)
            if bytes.size:
                self.cl.enqueue_copy(self.queue, bytes, memory, src_offset=start)
            return _OnHost((memory, start), steps, bytes)

        return found

    def _constant(self, step: Step) -> Action:
        name, data = step["buffer"], np.frombuffer(bytes.fromhex(step["bytes"]), np.uint8)
        flags = self.cl.mem_flags.READ_ONLY | self.cl.mem_flags.COPY_HOST_PTR
        data = data if data.size else np.zeros(ALIGNMENT, np.uint8)
        place = self.cl.Buffer(self.device.context, flags, hostbuf=data), 0

        def run(call: Call) -> None:
            call.memory[name] = place

        return run

    def _kernel(self, name: str, arguments: Sequence[Step]) -> Any:
        """Return a kernel of the program, which takes as many arguments as it is given."""
        count = sum(2 if "buffer" in each else 1 for each in arguments)
        try:
            kernel = self.cl.Kernel(self.made.program, name)
        except self.cl.Error as error:
            raise OpenCLError(
                f"the device's compiler has made no kernel '{quoted(name)}' ({error})",
                help="vectors may be too wide for it: text below nd was scheduled for another "
                "target, perhaps; print it by 'stepwell compile --target opencl --stage ...'",
            ) from None
        if kernel.num_args != count:
            raise ValueError(f"'{quoted(name)}' takes {kernel.num_args} arguments, not {count}")
        return kernel

    def _launch(self, step: Step) -> Action:
        kernel = self._kernel(step["kernel"], step["arguments"])
        count = valued(step["items"])
        arguments = [self._argument(each) for each in step["arguments"]]

        def run(call: Call) -> None:
            items = count(call.variables)
            if items <= 0:
                return
            if items > MOST_ITEMS:
                raise OverflowError(f"a launch of {items:,} work items")
            kernel.set_args(*(each for argument in arguments for each in argument(call)))
            for first, number, group in self.device.groups(items):
                self.cl.enqueue_nd_range_kernel(
                    self.queue, kernel, (number,), (group,), (first,) if first else None
                )

        return run

    def _argument(self, argument: Step) -> Callable[[Call], tuple[Any, ...]]:
        if "buffer" in argument:
            place = self._place([argument["buffer"], argument["skip"]])

            def buffer(call: Call) -> tuple[Any, ...]:
                memory, skip = place(call)
                return memory, np.int64(skip)

            return buffer
        value, type = valued(argument["value"]), DTYPES[argument["dtype"]].numpy.type
        if not isinstance(argument["value"], str | list):
            same = (type(argument["value"]),)
            return lambda _: same
        return lambda call: (type(value(call.variables)),)

    def _place(self, place: Sequence[Any]) -> Callable[[Call], Place]:
        name, skip = place[0], valued(place[1])

        def found(call: Call) -> Place:
            memory, start = call.memory[name]
            return memory, start + skip(call.variables)

        return found

    def _copy(self, step: Step) -> Action:
        source, target = self._place(step["source"]), self._place(step["target"])
        size = valued(step["bytes"])

        def run(call: Call) -> None:
            bytes = size(call.variables)
            (a, start), (b, target_start) = source(call), target(call)
            if bytes <= 0 or (a is b and start == target_start):
                return
            self.cl.enqueue_copy(
                self.queue, b, a, byte_count=bytes, src_offset=start, dst_offset=target_start
            )

        return run

    def _read(self, step: Step) -> Action:
        name, source = step["name"], self._place(step["source"])
        dtype = DTYPES[step["dtype"]]

        def run(call: Call) -> None:
            buffer, start = source(call)
            into = np.empty(1, dtype.numpy)
            self.cl.enqueue_copy(self.queue, into, buffer, src_offset=start)
            call.variables[name] = into[0].item()

        return run

    def _write(self, step: Step) -> Action:
        target, value = self._place(step["target"]), valued(step["value"])
        dtype = DTYPES[step["dtype"]].numpy

        def run(call: Call) -> None:
            buffer, start = target(call)
            number = np.array([value(call.variables)], dtype)
            self.cl.enqueue_fill_buffer(self.queue, buffer, number, start, number.nbytes)

        return run

    def _for(self, step: Step) -> Action:
        name, body = step["name"], self.block(step["body"])
        low, high, by = (valued(step[key]) for key in ("from", "to", "step"))

        def run(call: Call) -> None:
            known = call.variables
            step = by(known)
            if step <= 0:
                raise ArithmeticError(f"a loop goes on by {step}")
            for number in range(low(known), high(known), step):
                known[name] = number
                body(call)

        return run

    def _while(self, step: Step) -> Action:
        test, body = self.block(step["test"]), self.block(step["body"])
        condition = valued(step["condition"])

        def run(call: Call) -> None:
            while True:
                test(call)
                if not condition(call.variables):
                    return
                body(call)

        return run

    def _if(self, step: Step) -> Action:
        condition = valued(step["condition"])
        then, otherwise = self.block(step["then"]), self.block(step["else"])

        def run(call: Call) -> None:
            (then if condition(call.variables) else otherwise)(call)

        return run

    _ACTIONS: dict[str, Callable[[Translator, Step], Action]] = {  # noqa: RUF012
        "set": _set,
        "bind": _bind,
        "allocate": _allocate,
        "zero": _zero,
        "require": _require,
        "callback": _callback,
        "constant": _constant,
        "launch": _launch,
        "copy": _copy,
        "read": _read,
        "write": _write,
        "for": _for,
        "while": _while,
        "if": _if,
    }
