"""The buffer assignment of a host function: each tensor is a view of a buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.analysis.sizes import (
    Shape,
    Size,
    Sizes,
    groups_of,
    kept_axes,
    product,
    static_shape,
)
from stepwell.dialects.types import tensor_type
from stepwell.lowering.bufferize.intervals import Variable
from stepwell.lowering.bufferize.views import (
    Cast,
    Reshape,
    Slice,
    Step,
    Steps,
    buffer_of,
    join,
    view_type,
)
from stepwell.transforms.passes import fail

Kind: TypeAlias = Literal["input", "constant", "updated", "output", "local", "carried", "result"]
"""input and constant are never written; updated is an argument's memory that a result replaces;
carried is a buffer that a loop exchanges; result may be any of these after a loop whose trip count
is unknown.
"""


class Member(NamedTuple):
    """A tensor in a buffer, and its view of that buffer."""

    variable: Variable
    steps: Steps
    without: tuple[Operation, ...] = ()
    """Loops that exchange this buffer and write the tensor's first value to another of theirs."""


@dataclass(eq=False)
class Storage:
    """One buffer, or a view of the buffer that it has been coalesced with."""

    kind: Kind
    type: MemRefType[Attribute]
    sizes: Shape
    within: tuple[Storage, Steps] | None = None
    members: list[Member] = field(default_factory=list[Member])
    """The tensors assigned to it, each with its view; the first one has made it."""
    views: set[Steps] = field(default_factory=set[Steps])
    """All views of it that the function takes."""
    name: str | None = None
    beside: Operation | None = None
    """The op that needs the buffer, if no tensor is assigned to it."""
    ends: list[Storage] = field(default_factory=list["Storage"])
    """The buffers that this may alias: a loop of unknown trip count exchanges them."""
    loop: Operation | None = None
    """That loop; the buffers that are its results are distinct."""


class Assignment:
    """The buffer of every tensor: at first its own, then the one that it is coalesced into."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self._places: dict[SSAValue, tuple[Storage, Steps]] = {}

    def storage(self, value: SSAValue, kind: Kind = "local") -> Storage:
        """Return a new buffer of the type of ``value``."""
        if not isinstance(value.type, TensorType):
            at = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
            assert at is not None
            help = "make a tensor of rank 0 of it: tensor.from_elements"
            fail(at, f"a buffer holds a tensor, not a value of type {value.type}", help)
        return Storage(kind, buffer_of(tensor_type(value)), self.sizes.shape(value))

    def assign(self, variable: Variable, storage: Storage, steps: Steps) -> None:
        """Assign a view of a new buffer to a tensor."""
        self._places[variable.value] = (storage, steps)
        storage.members.append(Member(variable, steps))
        storage.views.add(steps)
        storage.name = storage.name or variable.value.name_hint

    def view(self, value: SSAValue, source: SSAValue, steps: Steps) -> bool:
        """Make ``value`` a view of ``source``; return False if the layout permits none."""
        storage, path = self.of(source)
        path = join(path, steps)
        if view_type(storage.type, path) is None:
            return False
        self._places[value] = (storage, path)
        storage.views.add(path)
        storage.name = storage.name or value.name_hint
        return True

    def root(self, storage: Storage, steps: Steps = ()) -> tuple[Storage, Steps]:
        """Return the buffer that ``storage`` was coalesced into, and the view of it."""
        while storage.within is not None:
            storage, outer = storage.within
            steps = join(outer, steps)
        return storage, steps

    def of(self, value: SSAValue) -> tuple[Storage, Steps]:
        """Return the buffer of ``value``, and the view of it."""
        return self.root(*self._places[value])

    def coalesce(self, inner: Storage, outer: Storage, steps: Steps) -> Callable[[], None]:
        """Make all of ``inner`` the view ``steps`` of ``outer``; return what undoes it."""
        old = (outer.members, outer.views, outer.name, outer.beside)

        def undo() -> None:
            inner.within = None
            outer.members, outer.views, outer.name, outer.beside = old

        inner.within = (outer, steps)
        moved = [m._replace(steps=join(steps, m.steps)) for m in inner.members]
        outer.members = [*outer.members, *moved]
        outer.views = outer.views | {join(steps, path) for path in inner.views}
        outer.name = outer.name or inner.name
        outer.beside = outer.beside or inner.beside
        return undo

    def fits(self, inner: Storage, outer: Storage, steps: Steps) -> bool:
        """Whether every view of ``inner`` is still a view once it is part of ``outer``."""
        if not steps:
            return True
        return all(view_type(outer.type, join(steps, path)) is not None for path in inner.views)


def slice_of(
    sizes: Sizes, op: tensor.ExtractSliceOp | tensor.InsertSliceOp | memref.SubviewOp
) -> Slice:
    """Return the slice that ``op`` extracts or overwrites."""
    small = op.source if isinstance(op, tensor.InsertSliceOp) else op.result
    static = op.static_sizes.get_values()
    return Slice(
        sizes.mixed(op.static_offsets.get_values(), op.offsets),
        sizes.mixed(static, op.sizes),
        sizes.mixed(op.static_strides.get_values(), op.strides),
        kept_axes(static, static_shape(small.type)),
    )


def rows_of(sizes: Sizes, parts: Sequence[SSAValue]) -> Iterator[tuple[Slice, Steps]]:
    """Yield for each part of a stack the slice at the beginning of its row, and its reshape.

    The reshape, if any, gives the slice of rank one the shape of the part.
    """
    shape = sizes.shape(parts[0])
    zero, one, elements = Size.of(0), Size.of(1), product(shape)
    seen = (Reshape((tuple(range(len(shape))),), shape, True),) if len(shape) > 1 else ()
    for row in range(len(parts)):
        yield Slice((Size.of(row), zero), (one, elements), (one, one), (1,)), seen


def step_of(sizes: Sizes, op: Operation) -> Step:
    """Return the step from the operand of a view op to its result."""
    if isinstance(op, tensor.ExtractSliceOp | memref.SubviewOp):
        return slice_of(sizes, op)
    source, target = op.operands[0], op.results[0]
    if isinstance(op, tensor.CastOp | memref.CastOp):
        return Cast(static_shape(source.type), static_shape(target.type))
    return Reshape.between(groups_of(op), sizes.shape(source), sizes.shape(target))


VIEWS = (
    tensor.ExtractSliceOp,
    tensor.ExpandShapeOp,
    tensor.CollapseShapeOp,
    tensor.CastOp,
)
"""Ops whose result is a view of their operand."""
