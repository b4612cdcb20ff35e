"""Find, read and write the elements of a buffer at one point of the loops."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, VectorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.structured import element, in_panels, stride
from stepwell.dialects.kernel.levels import MASK
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.first_lanes import load_first, store_first
from stepwell.lowering.linalg_to_loops.plan import Buffer, Plan
from stepwell.lowering.linalg_to_loops.strides import load_strided
from stepwell.lowering.linalg_to_loops.structured import Access
from stepwell.lowering.linalg_to_loops.virtual_padding import PaddedReader
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, is_dense
from stepwell.transforms.kernels.schedule.vectors import STRIDES

WIDEST = 64
"""Lanes of a vector under a mask, at most: bytes in 512 bits."""


@dataclass
class Memory:
    """The buffers of a kernel while its loops are written."""

    writer: Writer
    plan: Plan
    dims: dict[tuple[SSAValue, int], Index] = field(
        default_factory=dict[tuple[SSAValue, int], Index]
    )
    registers: dict[tuple[SSAValue, int], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, int], SSAValue]
    )
    """The value of each passed buffer at each point of the shared loops."""
    scratch: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """The scratch that replaces a buffer of the kernel within one iteration of the shared loops."""
    slots: int = 1
    lanes: int = 0
    inside: Collection[tuple[SSAValue, int]] = ()
    """The axes of padded images along which the present iteration reads no padding."""

    def is_static(self, buffer: SSAValue, dim: int) -> bool:
        """Whether the extent of a dimension is a compile-time constant."""
        assert isinstance(buffer.type, MemRefType)
        return buffer.type.get_shape()[dim] != DYNAMIC_INDEX

    def dim(self, buffer: SSAValue, dim: int) -> Index:
        """Return the extent of a dimension; the first call must be outside all loops."""
        if (found := self.dims.get((buffer, dim))) is not None:
            return found
        assert isinstance(buffer.type, MemRefType)
        shape = buffer.type.get_shape()
        if shape[dim] != DYNAMIC_INDEX:
            return Index.of(shape[dim])
        if isinstance(owner := buffer.owner, memref.AllocOp):
            value = owner.dynamic_sizes[shape[:dim].count(DYNAMIC_INDEX)]
        else:
            op = memref.DimOp(buffer, self.writer.index(dim))
            value = self.writer.result(op, "n")
        found = self.dims[buffer, dim] = Index.of(value)
        return found

    def open(self, points: Sequence[Point]) -> None:
        """Begin an iteration of the shared loops at ``points``: allocate its scratch."""
        self.registers.clear()
        self.scratch.clear()
        self.slots, self.lanes = len(points), points[0].width
        for value, buffer in self.plan.buffers.items():
            if value in self.plan.padding or buffer.alloc is None or buffer.in_registers:
                continue
            if _is_accessed(self.plan, value):
                self.scratch[value] = self._make_scratch(value, buffer)

    def _make_scratch(self, value: SSAValue, buffer: Buffer) -> SSAValue:
        extents = [self.dim(value, d) for d in buffer.scratch_dims]
        if self._ends_masked() and extents:
            extents[-1] = extents[-1] + (WIDEST - 1)  # room for all lanes of the last vector
        if self.slots > 1:
            extents = [Index.of(self.slots), *extents]
        if self.lanes:
            extents = [*extents, Index.of(self.lanes)]
        shape = [DYNAMIC_INDEX if e.number is None else e.number for e in extents]
        dynamic = [self.writer.value(e) for e in extents if e.number is None]
        op = memref.AllocaOp.get(element(value), 64, shape, dynamic)
        return self.writer.result(op, value.name_hint)

    def _ends_masked(self) -> bool:
        """Whether vectors of some op end under a mask."""
        return any(op.tail == MASK for op in self.plan.ops)

    def read(
        self, access: Access, point: Point, cache: dict[object, SSAValue], hint: str | None = None
    ) -> SSAValue:
        """Return the element, or the vector, that ``access`` reads at ``point``."""
        if (value := self.registers.get((access.buffer, point.slot))) is not None:
            return value
        if not isinstance(access.buffer.type, MemRefType):
            return access.buffer  # a scalar operand has no indices
        if (padding := self.plan.padding.get(access.buffer)) is not None:
            hint = hint or padding.image.name_hint
            proven = [axis for buffer, axis in self.inside if buffer is access.buffer]
            reader = PaddedReader(self.writer, padding, self.dim, hint, proven)
            return reader.read(access, point)
        buffer, at, width = self._place(access, point)
        if width < 0:
            return self._gather(access, point, cache)
        key = self.key(access, point)
        if (value := cache.get(key)) is None:
            hint = hint or buffer.name_hint
            value = cache[key] = self._load(buffer, at, width, point, hint)
        return value

    def _load(
        self, buffer: SSAValue, at: Sequence[Index], width: int, point: Point, hint: str | None
    ) -> SSAValue:
        if width and point.first is not None and buffer not in self.scratch.values():
            return load_first(self.writer, buffer, at, width, point.first, hint)
        return self.writer.load(buffer, at, width, hint)

    def exceeds_row(self, accesses: Sequence[Access], points: Sequence[Point]) -> bool:
        """Whether a vector at ``points`` may extend past its row into virtual padding."""
        readers = [
            (access, PaddedReader(self.writer, padding, self.dim, None))
            for access in accesses
            if (padding := self.plan.padding.get(access.buffer)) is not None
        ]
        return any(reader.exceeds_row(access, p) for access, reader in readers for p in points)

    def key(self, access: Access, point: Point) -> object:
        """Return the cache key of an element or of contiguous lanes."""
        buffer, at, width = self._place(access, point)
        return buffer, tuple(i.key for i in at), width

    def gathered(self, access: Access, point: Point) -> object:
        """Return the cache key of lanes that are not contiguous."""
        buffer, at, _ = self._place(access, point)
        return ("gather", buffer, tuple(i.key for i in at), point.width)

    def _gather(self, access: Access, point: Point, cache: dict[object, SSAValue]) -> SSAValue:
        key = self.gathered(access, point)
        if (value := cache.get(key)) is None and (step := self._step(access, point)):
            value = cache[key] = self._strided(access, point, step, cache)
        if value is None:
            lanes = [self.read(access, point.lane(k), cache) for k in range(point.width)]
            value = cache[key] = self.writer.assemble(lanes)
        return value

    def _step(self, access: Access, point: Point) -> int:
        """Return the stride between lanes if it is in ``STRIDES``, else 0."""
        if access.buffer in self.scratch or not is_dense(access.buffer):
            return 0
        step = stride(access.exprs, point.axis)
        return step if step in STRIDES else 0

    def _strided(
        self, access: Access, point: Point, step: int, cache: dict[object, SSAValue]
    ) -> SSAValue:
        """Load the lanes at a stride of ``step``; equal parts are loaded once."""
        buffer, (*rows, first), _ = self._place(access, point)
        width, hint = point.width, buffer.name_hint

        def load(start: int) -> SSAValue:
            at = [*rows, first + start]
            key = buffer, tuple(i.key for i in at), width
            if key not in cache:
                cache[key] = self.writer.load(buffer, at, width, hint)
            return cache[key]

        return load_strided(self.writer, width, step, load, hint)

    def write(self, access: Access, point: Point, value: SSAValue, last: bool) -> None:
        """Write the element, or the vector, that ``access`` touches at ``point``."""
        buffer = self.plan.buffers[access.buffer]
        if buffer.in_registers:
            self.registers[access.buffer, point.slot] = value
            if buffer.alloc is not None or not last:
                return
        if point.end is None or access.buffer in self.scratch:
            return self._store(access, point, value, buffer.nontemporal)
        loop, end = point.end
        at = point.indices[loop]
        assert at is not None
        enabled = self.writer.compare("slt", at, end)
        self.writer.branch(enabled, lambda: self._store(access, point, value, buffer.nontemporal))

    def _store(self, access: Access, point: Point, value: SSAValue, nontemporal: bool) -> None:
        target, at, width = self._place(access, point)
        if width > 0:
            lanes = self.writer.broadcast(value, width)
            if point.first is not None and access.buffer not in self.scratch:
                at_once = any(padding.masked for padding in self.plan.padding.values())
                return store_first(self.writer, lanes, target, at, point.first, at_once)
            self.writer.store(lanes, target, at, nontemporal)
        elif width == 0:
            self.writer.store(value, target, at)
        else:
            for k in range(point.width):
                lane = self.writer.lane(value, k) if isinstance(value.type, VectorType) else value
                target, at, _ = self._place(access, point.lane(k))
                self.writer.store(lane, target, at)

    def _place(self, access: Access, point: Point) -> tuple[SSAValue, list[Index], int]:
        """Return buffer, indices and lanes: 0 for one element, -1 for scattered lanes."""
        buffer = self.plan.buffers[access.buffer]
        target = self.scratch.get(access.buffer)
        if target is None:
            at = access.at(self.writer, self._indices(point))
            return access.buffer, at, _lanes(access.exprs, point, access.buffer)
        exprs = [access.exprs[d] for d in buffer.scratch_dims]
        at = [self.writer.affine(e, point.indices) for e in exprs]
        if self.slots > 1:
            at = [Index.of(point.slot), *at]
        if self.lanes:
            return target, [*at, Index()], point.width
        return target, at, _lanes(exprs, point, target)

    def _indices(self, point: Point) -> Sequence[Index | None]:
        """Return the indices of a point, or those of the last that has an effect."""
        if point.end is None:
            return point.indices
        loop, end = point.end
        at = point.indices[loop]
        assert at is not None
        return point.bind(loop, self.writer.minimum(at, end + -1)).indices


def _lanes(exprs: Sequence[AffineExpr], point: Point, buffer: SSAValue) -> int:
    """Return the number of contiguous lanes: 0 for one element, -1 for scattered lanes."""
    if not point.width:
        return 0
    panels = in_panels(tuple(exprs), point.axis)
    if panels is not None and panels[1] % point.width == 0 and is_dense(buffer):
        return point.width  # the vector length divides the panel width
    step = stride(tuple(exprs), point.axis)
    if step == 0:
        return 0
    return point.width if step == 1 and panels is None and is_dense(buffer) else -1


def lanes_at(access: Access, loop: int, width: int) -> int:
    """Return ``width`` where that many neighbours along ``loop`` are contiguous, else 0 or -1."""
    point = Point((), loop, width)
    return _lanes(access.exprs, point, access.buffer)


def _is_accessed(plan: Plan, value: SSAValue) -> bool:
    """Whether an op reads or writes elements; some scratch is used for its extents only."""
    return any(
        any(access.buffer is value for access in op.outputs)
        or any(access.buffer is value and op.uses(k) for k, access in enumerate(op.inputs))
        for op in plan.ops
    )
