"""Where each tensor of a host function lives: a view of a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from xdsl.dialects import tensor
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.analysis.sizes import Shape, Size, Sizes, groups_of, kept_axes, product
from stepwell.dialects.types import tensor_type
from stepwell.lowering.bufferize.views import (
    Cast,
    Part,
    Reshape,
    Slice,
    Step,
    Steps,
    buffer_of,
    join,
    part,
    view_type,
)
from stepwell.transforms.passes import fail

Kind: TypeAlias = Literal["input", "constant", "updated", "output", "local", "carried", "result"]
"""input and constant are never written, updated is an argument's memory that a result takes over;
carried and result are what a loop hands on.
"""


@dataclass(eq=False)
class Storage:
    """One buffer, or a view of another that it has been united with."""

    kind: Kind
    type: MemRefType[Attribute]
    sizes: Shape
    within: tuple[Storage, Steps] | None = None
    members: list[tuple[SSAValue, Steps]] = field(default_factory=list[tuple[SSAValue, Steps]])
    """The tensors that live here, each with its view."""
    name: str | None = None
    beside: Operation | None = None
    """The op that needs it, where no tensor does."""


class Places:
    """The storage of every tensor, and what is written where."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.undefined: set[SSAValue] = set()
        """Tensors whose elements nobody has set."""
        self.begun: set[SSAValue] = set()
        """Results that a copy of their destination is written into before the launch."""
        self.copied: set[Operation] = set()
        """Views that could not be one and copy what they see."""
        self.writes: dict[SSAValue, list[tuple[Operation, Step | None]]] = {}
        """For each tensor the ops that write it, wholly or in a slice."""
        self._places: dict[SSAValue, tuple[Storage, Steps]] = {}

    def __contains__(self, value: SSAValue) -> bool:
        return value in self._places

    def new(self, value: SSAValue, kind: Kind = "local") -> Storage:
        """Give ``value`` a buffer of its own."""
        storage = self.storage(value, kind)
        self.put(value, storage, ())
        return storage

    def storage(self, value: SSAValue, kind: Kind = "local") -> Storage:
        """Return a new buffer for what ``value`` holds."""
        if not isinstance(value.type, TensorType):
            at = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
            assert at is not None
            help = "make a tensor of rank 0 of it: tensor.from_elements"
            fail(at, f"a buffer holds a tensor, not a value of type {value.type}", help)
        return Storage(kind, buffer_of(tensor_type(value)), self.sizes.shape(value))

    def put(self, value: SSAValue, storage: Storage, steps: Steps) -> None:
        """Let ``value`` live in a view of ``storage``."""
        self._places[value] = (storage, steps)
        root, path = self.root(storage, steps)
        root.members.append((value, path))
        if root.name is None:
            root.name = value.name_hint

    def view(self, value: SSAValue, source: SSAValue, step: Step) -> bool:
        """Let ``value`` be a view of ``source``; False where it cannot be one."""
        storage, steps = self.of(source)
        path = join(steps, (step,))
        if view_type(storage.type, path) is None:
            return False
        self.put(value, storage, path)
        if source in self.undefined:
            self.undefined.add(value)
        return True

    def root(self, storage: Storage, steps: Steps) -> tuple[Storage, Steps]:
        """Return the buffer that ``storage`` has become part of."""
        while storage.within is not None:
            storage, outer = storage.within
            steps = join(outer, steps)
        return storage, steps

    def of(self, value: SSAValue) -> tuple[Storage, Steps]:
        """Return where ``value`` lives."""
        return self.root(*self._places[value])

    def same_spot(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether two tensors take exactly the same memory (or are about to)."""
        if (pending := self.pending) is not None:
            return self._pending(a, pending) == self._pending(b, pending)
        return self.of(a) == self.of(b)

    pending: tuple[Storage, Storage, Steps] | None = None
    """A union under examination: (this, into this, as this view)."""

    def _pending(
        self, value: SSAValue, pending: tuple[Storage, Storage, Steps]
    ) -> tuple[Storage, Steps]:
        storage, steps = self.of(value)
        inner, outer, path = pending
        return (outer, join(path, steps)) if storage is inner else (storage, steps)

    def parts_written(self, value: SSAValue, steps: Steps) -> Iterator[tuple[Operation, Part]]:
        """Yield what is written of ``value``, which lives at ``steps`` of a buffer."""
        for op, step in self.writes.get(value, ()):
            yield op, part(steps if step is None else join(steps, (step,)))

    def unite(self, inner: Storage, outer: Storage, steps: Steps) -> None:
        """Let the whole of ``inner`` be a view of ``outer``."""
        inner.within = (outer, steps)
        outer.members.extend((value, join(steps, path)) for value, path in inner.members)
        outer.name = outer.name or inner.name
        outer.beside = outer.beside or inner.beside

    def fits(self, inner: Storage, outer: Storage, steps: Steps) -> bool:
        """Whether every view of ``inner`` is still one inside ``outer``."""
        if not steps:
            return True
        paths = {join(steps, path) for _, path in inner.members}
        return all(view_type(outer.type, path) is not None for path in paths)


def slice_of(sizes: Sizes, op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> Slice:
    """Return the slice that ``op`` takes or replaces."""
    small = op.result if isinstance(op, tensor.ExtractSliceOp) else op.source
    static = op.static_sizes.get_values()
    return Slice(
        sizes.mixed(op.static_offsets.get_values(), op.offsets),
        sizes.mixed(static, op.sizes),
        sizes.mixed(op.static_strides.get_values(), op.strides),
        kept_axes(static, tensor_type(small).get_shape()),
    )


def rows_of(sizes: Sizes, parts: Sequence[SSAValue]) -> Iterator[tuple[Slice, Steps]]:
    """Yield for each part of a stack the beginning of a row that it becomes, and how that is seen.

    It is seen as what the part is, which has more axes or as many.
    """
    shape = sizes.shape(parts[0])
    zero, one, elements = Size.of(0), Size.of(1), product(shape)
    seen = (Reshape((tuple(range(len(shape))),), (elements,), shape),) if len(shape) > 1 else ()
    for row in range(len(parts)):
        yield Slice((Size.of(row), zero), (one, elements), (one, one), (1,)), seen


def is_view(op: Operation) -> bool:
    """Whether ``op`` only shows its operand differently."""
    return isinstance(op, _VIEWS)


def step_of(sizes: Sizes, op: Operation) -> Step:
    """Return how a view op shows its operand."""
    if isinstance(op, tensor.ExtractSliceOp):
        return slice_of(sizes, op)
    source, target = op.operands[0], op.results[0]
    if isinstance(op, tensor.CastOp):
        return Cast(tensor_type(source).get_shape(), tensor_type(target).get_shape())
    return Reshape(groups_of(op), sizes.shape(source), sizes.shape(target))


_VIEWS = (
    tensor.ExtractSliceOp,
    tensor.ExpandShapeOp,
    tensor.CollapseShapeOp,
    tensor.CastOp,
)
