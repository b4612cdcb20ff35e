"""Launches of a host schedule, translated into closures when a program is loaded.

Each launch has its own kernel object: arguments that are the same in every call, numbers and
weights, are set when the program is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from stepwell.core.dtypes import DTYPES
from stepwell.core.escape import quoted
from stepwell.core.host_checking import MOST_ITEMS
from stepwell.core.host_schedule import Step
from stepwell.runtime.opencl.building import Build
from stepwell.runtime.opencl.call_state import COPY, Action, Call, Noted, Place, placed, valued
from stepwell.runtime.opencl.device import Device, OpenCLError

_WHOLE = ("input", "output", "constant", "arena")
"""Prefixes of the names of buffers whose offset is 0."""


class Planned(NamedTuple):
    """A launch of which only buffers differ between calls: argument numbers and buffer indices."""

    kernel: Any
    places: tuple[tuple[int, int], ...]
    items: tuple[int, ...]
    group: tuple[int, ...]
    first: tuple[int, ...] | None


@dataclass
class Launches:
    """Translates the launches of a program; ``constants`` are the places of its weights."""

    device: Device
    created: Build
    queue: Any
    constants: Mapping[str, Place]
    timed: bool

    @cached_property
    def enqueue(self) -> Callable[..., None]:
        """The function that enqueues a kernel over a range, without waiting."""
        return partial(self.device.cl.enqueue_nd_range_kernel, self.queue)

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

    def translated(self, step: Step) -> Action:
        """Return the closure that sets the arguments of a launch and enqueues it."""
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

    def _kernel(self, name: str, arguments: Sequence[Step]) -> Any:
        """Return a kernel of the program, after a check of its number of arguments."""
        count = sum(2 if "buffer" in each else 1 for each in arguments)
        try:
            kernel = self.device.cl.Kernel(self.created.program, name)
        except self.device.cl.Error as error:
            raise OpenCLError(
                f"the device's compiler has made no kernel '{quoted(name)}' ({error})",
                help="vectors may be too wide for it: text below nd was scheduled for another "
                "target, perhaps; print it by 'stepwell compile --target opencl --stage ...'",
            ) from None
        if kernel.num_args != count:
            raise ValueError(f"'{quoted(name)}' takes {kernel.num_args} arguments, not {count}")
        return kernel

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
        enqueue, queue = self.device.cl.enqueue_nd_range_kernel, self.queue
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
                settings.append(self._part(kernel, number, placed([name, skip])))
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
