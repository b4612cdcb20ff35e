"""The state of a call of an OpenCL program, and the values and places that its steps name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stepwell.core.host_schedule import OPERATORS, Tree
from stepwell.runtime.opencl.device import Device

Variables: TypeAlias = dict[str, Any]
Value: TypeAlias = Callable[[Variables], Any]
Place: TypeAlias = tuple[Any, int]
"""A buffer of the device and an offset in bytes."""

_FAULT = np.dtype({"names": ["number", "values"], "formats": ["i4", "(2,)i8"], "offsets": [0, 8]})
"""The layout of `struct sw_fault`, in which the device records a failed guard."""
_MOST = 1 << 127
COPY = "copy"


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


Action: TypeAlias = Callable[[Call], None]


class Failed(Exception):
    """A guard or a callback has failed."""

    def __init__(self, number: int, values: Sequence[int]) -> None:
        super().__init__()
        self.number = number
        self.values = values


def copy_name(bytes: Tree) -> str:
    """Return the name of a copy; if its size is not static, the name does not contain it.

    >>> copy_name(4096), copy_name(["*", 4, "d0"])
    ('copy of 4,096 bytes', 'copy')
    """
    return f"{COPY} of {bytes:,} bytes" if isinstance(bytes, int) else COPY


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


def placed(place: Sequence[Any]) -> Callable[[Call], Place]:
    """Return a function that finds the place of a name, some bytes further on, in a call."""
    name, skip = place[0], valued(place[1])

    def found(call: Call) -> Place:
        memory, start = call.memory[name]
        return memory, start + skip(call.variables)

    return found
