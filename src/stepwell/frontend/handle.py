"""The identity of a traced value: its name in the trace, and how it changes when it is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self
from weakref import ReferenceType, ref

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend.errors import TraceError


class View(NamedTuple):
    """The base that a value is a part of, and how the part is read and written."""

    base: Any
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]
    """Writes the second value to the part's place in the first."""
    index: Any = None
    """The meaning of the index, for ``base[index]``."""
    whole: bool = False
    """Whether the part has all elements of ``base``, in order."""


class State(NamedTuple):
    """The fields of a value that change when it is written to or read again."""

    name: str
    scope: int
    created: str
    stamp: int
    seen: int


class Handle:
    """A name in a trace. Writes give it another name; a `View` is read again after writes."""

    __slots__ = (
        "__weakref__",
        "born",
        "cell",
        "created",
        "graph",
        "kind",
        "name",
        "part",
        "scope",
        "seen",
        "shape",
        "shared",
        "stamp",
        "weak",
    )
    operators: ClassVar[dict[str, Callable[..., Any]]] = {}
    """The implementations of operators and methods, registered by `frontend.operators`."""

    def __init__(
        self, trace: Any, name: str, kind: DType, shape: Shape, scope: int, created: str
    ) -> None:
        self.graph = trace
        """The `Trace` of the tensor; not named ``trace``: ``x.trace()`` is NumPy's method."""
        self.name = name
        self.kind = kind
        self.shape = shape
        self.scope = scope
        """The number of the region that defines the value."""
        self.born = 0
        """For a copy, the number of the region that made it, which may be inside of ``scope``."""
        self.created = created
        """The user's line that made it."""
        self.weak = False
        """Whether it is a Python number, which takes the dtype of the arrays it meets."""
        self.cell: bool | None = None
        """For an argument without axes, whether it is an array (not a number)."""
        self.part: View | None = None
        self.stamp = 0
        """The tick of the last write: grows with each."""
        self.seen = 0
        """The stamp of the base when this part was read."""
        self.shared: list[ReferenceType[Handle]] = []
        """Tensors that may alias this one: whether they do is not known while tracing."""

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the elements (that of `ml_dtypes` for bfloat16)."""
        if self.kind.name == "bf16":
            return np.dtype("bfloat16")  # known to NumPy once ml_dtypes is imported
        return self.kind.numpy

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.kind.bytes

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.kind.bytes * self.size

    @property
    def state(self) -> State:
        """The fields that change when the tensor is written to or read again."""
        return State(self.name, self.scope, self.created, self.stamp, self.seen)

    @state.setter
    def state(self, state: State) -> None:
        self.name, self.scope, self.created, self.stamp, self.seen = state

    def become(self, value: Handle) -> None:
        """Stand for ``value``, of the same type, from now on; parts of it are read again."""
        for other in self.shared:
            if (alive := other()) is not None:
                raise TraceError(
                    f"an array was assigned to that may lie in the same memory as another, made "
                    f"at {alive.created}; where it is a copy of it, say so: x.reshape(...).copy()"
                )
        self.graph.changes(self, written=True)
        self.name, self.scope, self.created = value.name, value.scope, value.created
        self.stamp = self.graph.tick()

    def changes_as_number(self) -> None:
        """Refuse ``x += 1`` if the argument is an array without axes; allow it for numbers."""
        if self.cell:
            raise TraceError(
                f"{self!r} is an array without axes, which is a number here: x += 1 would not "
                "reach the caller's array; write x = x + 1, or pass an array of shape (1,)"
            )
        self.is_array()

    def is_array(self) -> bool:
        """Return whether NumPy has an array here, not a number; the program depends on it."""
        self.graph.apart |= self.cell is not None and not self.weak
        return bool(self.shape or self.cell)

    def write(self, value: Any, what: str = "") -> None:
        """Write ``value`` to all elements, and to the base if this is a view."""
        self.operators["write"](self, value, what)

    def refresh(self) -> None:
        """Read a view again if its base was written to since."""
        if self.part is None:
            return
        base = self.part.base
        base.refresh()
        if self.seen != base.stamp:
            again = self.part.read(base)
            self.graph.changes(self)
            self.name, self.scope, self.created = again.name, again.scope, again.created
            self.stamp, self.seen = self.graph.tick(), base.stamp

    def part_of(
        self,
        base: Handle,
        read: Callable[[Any], Any],
        write: Callable[[Any, Any], None],
        index: Any = None,
        whole: bool = False,
    ) -> Self:
        """Make this tensor a view of ``base`` and return it; numbers are no views, as in NumPy."""
        if self is not base and self.shape:
            self.part, self.seen = View(base, read, write, index, whole), base.stamp
        return self

    def may_share(self, other: Handle) -> Self:
        """Record that this tensor may alias ``other`` and its bases; return it."""
        if self is not other and self.shape:
            while True:
                self.shared.append(ref(other))
                other.shared.append(ref(self))
                if other.part is None:
                    return self
                other = other.part.base
        return self
