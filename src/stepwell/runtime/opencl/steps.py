"""Translation of a host schedule's steps into Python closures, once when a program is loaded.

`stepwell.core.host_schedule` defines schedules. Each launch has its own kernel object: arguments
that are the same in every call, numbers and weights, are set when the program is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stepwell.core.dtypes import DTYPES
from stepwell.core.escape import quoted
from stepwell.core.host_checking import MOST_ITEMS
from stepwell.core.host_functions import serve
from stepwell.core.host_schedule import OPERATORS, Step, Tree
from stepwell.runtime.entry import Array
from stepwell.runtime.opencl.building import Build
from stepwell.runtime.opencl.device import Device, OpenCLError

Variables: TypeAlias = dict[str, Any]
Value: TypeAlias = Callable[[Variables], Any]
Place: TypeAlias = tuple[Any, int]
"""A buffer of the device and an offset in bytes."""

LINE = 64
"""Size of the smallest buffer, in bytes: OpenCL has no empty buffers."""
_FAULT = np.dtype({"names": ["number", "values"], "formats": ["i4", "(2,)i8"], "offsets": [0, 8]})
"""The layout of `struct sw_fault`, in which the device records a failed guard."""
_MOST = 1 << 127
_WHOLE = ("input", "output", "constant", "arena")
"""Prefixes of the names of buffers whose offset is 0."""


class Noted(NamedTuple):
    """A launch or copy of a timed call, and its event."""

    of: int | str
    """The number of the kernel in the signature, or `copy_name`."""
    event: Any


@dataclass
class Call:
    """The state of one call: its variables, and the memory of each name."""

    variables: Variables
    memory: dict[str, Place]
    scratch: list[tuple[Any, int]] = field(default_factory=list[tuple[Any, int]])
    """Buffers to release when all steps are enqueued, with the bytes requested for each."""
    waits: bool = False
    """Whether the call must wait, as the device reads memory that the caller may change."""
    noted: list[Noted] = field(default_factory=list[Noted])
    """The launches and copies of a timed call."""


COPY = "copy"


def copy_name(bytes: Tree) -> str:
    """Return the name of a copy; if its size is not static, the name does not contain it.

    >>> copy_name(4096), copy_name(["*", 4, "d0"])
    ('copy of 4,096 bytes', 'copy')
    """
    return f"{COPY} of {bytes:,} bytes" if isinstance(bytes, int) else COPY


Action: TypeAlias = Callable[[Call], None]


class Failed(Exception):
    """A guard or a callback has failed."""

    def __init__(self, number: int, values: Sequence[int]) -> None:
        super().__init__()
        self.number = number
        self.values = values


def check_guards(device: Device, queue: Any, call: Call) -> None:
    """Raise `Failed` if a guard has failed on the device."""
    if "fault" in call.memory:
        found = np.zeros(1, _FAULT)
        device.cl.enqueue_copy(queue, found, call.memory["fault"][0])
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
    """Return ``number`` if it fits 128 bits, those of a product before wrapping, else raise."""
    if -_MOST < number < _MOST or isinstance(number, float):
        return number
    raise OverflowError("a number has more than 128 bits")


class Planned(NamedTuple):
    """A launch of which only buffers differ between calls: argument numbers and buffer indices."""

    kernel: Any
    places: tuple[tuple[int, int], ...]
    items: tuple[int, ...]
    group: tuple[int, ...]
    first: tuple[int, ...] | None


class _OnHost(NamedTuple):
    """A host copy of an array: its place on the device, strides in elements, and bytes."""

    place: Place
    strides: list[int]
    bytes: Array


class Translator:
    """Translates the steps of a schedule into closures."""

    def __init__(
        self, device: Device, made: Build, queue: Any, constants: Mapping[str, Place], timed: bool
    ) -> None:
        self.cl = device.cl
        self.device = device
        self.queue = queue
        self.made = made
        self.constants = constants
        self.timed = timed

    @cached_property
    def enqueue(self) -> Callable[..., None]:
        """The function that enqueues a kernel over a range, without waiting."""
        return partial(self.cl.enqueue_nd_range_kernel, self.queue)

    def plan(self, steps: Sequence[Step], names: Sequence[str]) -> list[Planned] | None:
        """Return the launches of a program of static launches alone, None for other programs.

        names : the names of a call's buffers
        """
        plan: list[Planned] = []
        for step in steps:
            if step["do"] != "launch" or not isinstance(step["items"], int) or self.timed:
                return None
            kernel = self._kernel(step["kernel"], step["arguments"])
            pointers, settings = self._arguments(kernel, step["arguments"])
            if settings:
                return None
            places = tuple((number, names.index(name)) for number, name in pointers)
            ranges = self._ranges(step["items"], self.device.lanes(step))
            plan += [Planned(kernel, places, *each) for each in ranges]
        return plan

    def block(self, steps: Sequence[Step]) -> Action:
        """Return the closure that runs ``steps`` in order."""
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
        memory = self.device.memory

        def run(call: Call) -> None:
            bytes = max(size(call.variables), LINE)
            call.memory[name] = (memory.allocate(bytes), 0)
            call.scratch.append((call.memory[name][0], bytes))

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
        """Return the closure that calls a Python function, on host copies of its arrays."""
        name, number, count = step["function"], step["number"], len(step["inputs"])
        arrays = [self._array(each) for each in (*step["inputs"], *step["outputs"])]

        def run(call: Call) -> None:
            check_guards(self.device, self.queue, call)  # no callback runs after a failed guard
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
        """Return the closure that copies an array to the host, with the gaps of its strides."""
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
        data = data if data.size else np.zeros(LINE, np.uint8)
        place = self.cl.Buffer(self.device.context, flags, hostbuf=data), 0

        def run(call: Call) -> None:
            call.memory[name] = place

        return run

    def _kernel(self, name: str, arguments: Sequence[Step]) -> Any:
        """Return a kernel of the program, after a check of its number of arguments."""
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
        pointers, settings = self._arguments(kernel, step["arguments"])
        set_arg, enqueue = kernel.set_arg, self._enqueuing(kernel, step["of"])
        items, lanes = step["items"], self.device.lanes(step)
        if isinstance(items, int) and not settings:  # the case of all launches of static sizes
            ranges = self._ranges(items, lanes)

            def launch(call: Call) -> None:
                memory = call.memory
                for number, name in pointers:
                    set_arg(number, memory[name][0])
                for each in ranges:
                    enqueue(call, *each)

            return launch
        count = valued(items)

        def run(call: Call) -> None:
            ranges = self._ranges(count(call.variables), lanes)
            if not ranges:
                return
            for number, name in pointers:
                set_arg(number, call.memory[name][0])
            for setting in settings:
                setting(call)
            for each in ranges:
                enqueue(call, *each)

        return run

    def _ranges(self, items: int, lanes: int) -> list[tuple[Any, ...]]:
        """Return global size, local size and offset of the launches of ``items`` work items.

        lanes : the work items of each of ``items``, if these are groups
        """
        if items <= 0:
            return []
        if items > MOST_ITEMS:
            raise OverflowError(f"a launch of {items:,} work items")
        return [
            ((number,), (group,), (first,) if first else None)
            for first, number, group in self.device.groups(items, lanes)
        ]

    def _enqueuing(self, kernel: Any, number: int | None) -> Callable[..., None]:
        """Return the closure that enqueues a kernel over a range, without waiting."""
        enqueue, queue = self.cl.enqueue_nd_range_kernel, self.queue
        of = COPY if number is None else number
        if self.timed:

            def note(call: Call, size: Any, group: Any, first: Any) -> None:
                event = enqueue(queue, kernel, size, group, first)
                call.noted.append(Noted(of, event))

            return note

        def plain(_: Call, size: Any, group: Any, first: Any) -> None:
            enqueue(queue, kernel, size, group, first)

        return plain

    def _arguments(
        self, kernel: Any, arguments: Sequence[Step]
    ) -> tuple[list[tuple[int, str]], list[Action]]:
        """Set constant arguments; return buffers by argument number, and closures for the rest."""
        pointers: list[tuple[int, str]] = []
        settings: list[Action] = []
        number = 0
        for argument in arguments:
            if "buffer" not in argument:
                settings += self._number(kernel, number, argument)
                number += 1
                continue
            name, skip = argument["buffer"], argument["skip"]
            if name.startswith(_WHOLE) and isinstance(skip, int):
                if name in self.constants:
                    kernel.set_arg(number, self.constants[name][0])
                else:
                    pointers.append((number, name))
                kernel.set_arg(number + 1, np.int64(skip))
            else:
                settings.append(self._part(kernel, number, self._place([name, skip])))
            number += 2
        return pointers, settings

    def _number(self, kernel: Any, number: int, argument: Step) -> list[Action]:
        """Set a constant number, or return the closure that sets a variable one in each call."""
        value, type = valued(argument["value"]), DTYPES[argument["dtype"]].numpy.type
        if not isinstance(argument["value"], str | list | tuple):
            kernel.set_arg(number, type(argument["value"]))
            return []
        return [lambda call: kernel.set_arg(number, type(value(call.variables)))]

    def _part(self, kernel: Any, number: int, place: Callable[[Call], Place]) -> Action:
        def run(call: Call) -> None:
            memory, skip = place(call)
            kernel.set_arg(number, memory)
            kernel.set_arg(number + 1, np.int64(skip))

        return run

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
            event = self.cl.enqueue_copy(
                self.queue, b, a, byte_count=bytes, src_offset=start, dst_offset=target_start
            )
            if self.timed:
                call.noted.append(Noted(copy_name(step["bytes"]), event))

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
