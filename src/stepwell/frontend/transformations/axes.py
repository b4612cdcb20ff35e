"""The batches being traced, by the names that ``axis_name=`` of `sw.vmap` gives them."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from stepwell.frontend.tensor import Tensor


@dataclass(frozen=True)
class Axis:
    """A batch; one example of it is being traced."""

    name: Hashable
    size: int
    place: Tensor
    """The index of the example."""

    @property
    def text(self) -> str:
        """The name of the batch in the text."""
        return spelled(self.name)


_axes: ContextVar[tuple[Axis, ...]] = ContextVar("axes", default=())


def spelled(name: Hashable) -> str:
    """Return the name of a batch in the text."""
    return name if isinstance(name, str) else repr(name)


@contextmanager
def named(axis: Axis) -> Generator[None]:
    """Make ``axis`` visible to functions that reduce over all examples."""
    token = _axes.set((*_axes.get(), axis))
    try:
        yield
    finally:
        _axes.reset(token)


def axis_called(what: str, name: Hashable) -> Axis:
    """Return the innermost batch of this name.

    raises NameError : no enclosing function given to `sw.vmap` has this axis name
    """
    known = _axes.get()
    for axis in reversed(known):
        if axis.name == name:
            return axis
    there = ", ".join(repr(n) for n in dict.fromkeys(a.name for a in known))
    help = f"there is {there}" if there else "it is called within a function given to sw.vmap"
    raise NameError(f"{what}: unbound axis name {name!r}: no vmap has axis_name={name!r}; {help}")
