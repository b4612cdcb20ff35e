"""The batches that are being traced, by the names that ``axis_name=`` of `sw.vmap` gives them."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from stepwell.frontend.tensor import Tensor


@dataclass(frozen=True)
class Axis:
    """A batch of which one example is being traced."""

    name: Hashable
    size: int
    place: Tensor
    """The number of the example."""

    @property
    def text(self) -> str:
        """What ops call it."""
        return spelled(self.name)


_axes: ContextVar[tuple[Axis, ...]] = ContextVar("axes", default=())


def spelled(name: Hashable) -> str:
    """Return what ops call a batch."""
    return name if isinstance(name, str) else repr(name)


@contextmanager
def named(axis: Axis) -> Generator[None]:
    """Let functions of all examples find ``axis``."""
    token = _axes.set((*_axes.get(), axis))
    try:
        yield
    finally:
        _axes.reset(token)


def axis_called(what: str, name: Hashable) -> Axis:
    """Return the innermost batch of this name.

    raises NameError : none of the functions given to `sw.vmap` around here has it
    """
    known = _axes.get()
    for axis in reversed(known):
        if axis.name == name:
            return axis
    there = ", ".join(repr(n) for n in dict.fromkeys(a.name for a in known))
    help = f"there is {there}" if there else "it is called within a function given to sw.vmap"
    raise NameError(f"{what}: unbound axis name {name!r}: no vmap has axis_name={name!r}; {help}")
