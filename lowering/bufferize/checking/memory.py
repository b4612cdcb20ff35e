"""Which region of which buffer a value of a function on buffers is, and which of these overlap."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.sizes import Sizes, groups_of, kept_axes
from stepwell.lowering.bufferize.checking.contents import Contents, Region, apart, seen_as
from stepwell.lowering.bufferize.views import Reshape, Slice, join


@dataclass
class Memory:
    """The buffers of one function, each named by the value that it was first."""

    sizes: Sizes
    shared: Mapping[Hashable, Hashable]
    """Outputs that may be the very array of an argument."""
    constant: set[Hashable]
    """What is never written: arguments, globals."""
    _regions: dict[SSAValue, Region] = field(default_factory=dict[SSAValue, Region])
    _any_of: dict[Hashable, Sequence[Region]] = field(
        default_factory=dict[Hashable, Sequence[Region]]
    )
    """For a buffer that a loop exchanges, the regions that it may be."""
    _beside: dict[Hashable, Operation] = field(default_factory=dict[Hashable, Operation])
    """The loop that exchanges it: no two of one loop are the same."""
    _order: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    """Numbers of these, those of inner loops after those of outer ones."""

    def __post_init__(self) -> None:
        self._called = {name: (name, output) for output, name in self.shared.items()}

    def bind(self, value: SSAValue, region: Region) -> None:
        """Let ``value`` be a region."""
        self._regions[value] = region

    def region(self, value: SSAValue) -> Region:
        """Return the region that ``value`` is."""
        return self._regions[value]

    def view(self, op: Operation) -> bool:
        """Note a view; False where ``op`` is none."""
        match op:
            case memref.CastOp():
                step = ()
            case memref.SubviewOp():
                static = op.static_sizes.get_values()
                result = op.result.type
                assert isinstance(result, MemRefType)
                offsets = self.sizes.mixed(op.static_offsets.get_values(), op.offsets)
                strides = self.sizes.mixed(op.static_strides.get_values(), op.strides)
                kept = kept_axes(static, result.get_shape())
                box = Slice(offsets, self.sizes.mixed(static, op.sizes), strides, kept)
                step = seen_as(box, self.sizes.shape(op.source))
            case memref.ExpandShapeOp() | memref.CollapseShapeOp():
                shapes = self.sizes.shape(op.operands[0]), self.sizes.shape(op.results[0])
                step = (Reshape(groups_of(op), *shapes),)
            case _:
                return False
        buffer, path = self._regions[op.operands[0]]
        self.bind(op.results[0], (buffer, join(path, step)))
        return True

    def choose(self, loop: Operation, value: SSAValue, among: Sequence[Region]) -> None:
        """Let ``value``, of a loop, be one of the regions ``among``; no other one of it is that."""
        self.bind(value, (value, ()))
        self._any_of[value], self._beside[value] = among, loop
        self._order.setdefault(value, len(self._order) + 1)

    def name(self, buffer: Hashable) -> Hashable:
        """Return what a buffer is called; the output that replaces an argument is called that."""
        return self.shared.get(buffer, buffer)

    def same(self, a: Region, b: Region) -> bool:
        """Whether two regions are certainly one, or, of arguments, are so or apart."""
        return self.name(a[0]) == self.name(b[0]) and a[1] == b[1]

    def overlap(self, a: Region, b: Region) -> bool:
        """Whether two regions may have elements in common."""
        if self.name(a[0]) == self.name(b[0]):
            return not apart(self.sizes, a[1], b[1])
        loop = self._beside.get(a[0])
        if loop is not None and self._beside.get(b[0]) is loop:
            return False
        inner, outer = (a, b) if self._order.get(a[0], 0) > self._order.get(b[0], 0) else (b, a)
        return any(self.overlap(each, outer) for each in self._any_of.get(inner[0], ()))

    def same_or_apart(self, a: Region, b: Region) -> bool:
        """Whether two regions are one wherever they overlap."""
        if self.same(a, b) or not self.overlap(a, b):
            return True
        inner, outer = (a, b) if self._order.get(a[0], 0) > self._order.get(b[0], 0) else (b, a)
        choices = self._any_of.get(inner[0], ()) if not inner[1] else ()
        return bool(choices) and all(self.same_or_apart(each, outer) for each in choices)

    def within(self, region: Region, others: Sequence[Region]) -> bool:
        """Whether a region is, whichever it is, in a buffer of ``others``."""
        if any(self.name(region[0]) == self.name(other) for other, _ in others):
            return True
        choices = self._any_of.get(region[0], ())
        return bool(choices) and all(self.within(each, others) for each in choices)

    def is_constant(self, region: Region) -> bool:
        """Whether a region may be one of what is never written."""
        return region[0] in self.constant

    def overwrite(self, region: Region, state: Contents) -> None:
        """Let ``state`` forget what the region, and all that may overlap it, held."""
        buffer, path = region
        name = self.name(buffer)
        for other in self._called.get(name, (buffer,)):
            state.overwrite(other, path)
        for other in state.held if buffer in self._any_of else self._any_of:
            if self.name(other) != name:
                held = state.held.get(other, {})
                for each in [h for h in held if self.overlap(region, (other, h[0]))]:
                    del held[each]
