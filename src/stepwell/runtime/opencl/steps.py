"""Translation of a host schedule's steps into Python closures, once when a program is loaded.

`stepwell.core.host_schedule` defines schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stepwell.core.dtypes import DTYPES
from stepwell.core.host_functions import serve
from stepwell.core.host_schedule import Step
from stepwell.runtime.entry import Array
from stepwell.runtime.opencl.call_state import (
    Action,
    Call,
    Failed,
    Noted,
    Place,
    check_guards,
    copy_name,
    placed,
    valued,
)
from stepwell.runtime.opencl.launches import Launches
from stepwell.runtime.opencl.memory import LINE


class _OnHost(NamedTuple):
    """A host copy of an array: its place on the device, strides in elements, and bytes."""

    place: Place
    strides: list[int]
    bytes: Array


class Translator:
    """Translates the steps of a schedule into closures."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        self.device = launches.device
        self.cl = launches.device.cl
        self.queue = launches.queue
        self.timed = launches.timed

    def block(self, steps: Sequence[Step]) -> Action:
        """Return the closure that runs ``steps`` in order."""
        actions = [self._ACTIONS[step["do"]](self, step) for step in steps]

        def run(call: Call) -> None:
            for action in actions:
                action(call)

        return run

    def _launch(self, step: Step) -> Action:
        return self.launches.translated(step)

    def _set(self, step: Step) -> Action:
        names, values = step["names"], [valued(tree) for tree in step["values"]]

        def run(call: Call) -> None:
            found = [value(call.variables) for value in values]
            call.variables.update(zip(names, found, strict=True))

        return run

    def _bind(self, step: Step) -> Action:
        names, places = step["names"], [placed(place) for place in step["places"]]

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
        place, size = placed(array["place"]), DTYPES[array["dtype"]].bytes
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

    def _copy(self, step: Step) -> Action:
        source, target = placed(step["source"]), placed(step["target"])
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
        name, source = step["name"], placed(step["source"])
        dtype = DTYPES[step["dtype"]]

        def run(call: Call) -> None:
            buffer, start = source(call)
            into = np.empty(1, dtype.numpy)
            self.cl.enqueue_copy(self.queue, into, buffer, src_offset=start)
            call.variables[name] = into[0].item()

        return run

    def _write(self, step: Step) -> Action:
        target, value = placed(step["target"]), valued(step["value"])
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
