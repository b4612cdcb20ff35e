"""Plan the structured ops of one kernel as one nest.

Fills are folded into the reductions they initialise; each buffer is classified by how its elements
pass from one op to the next; the kernel's schedule is read and checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.levels import KernelLevels, check_levels, kernel_levels, schedule_of
from stepwell.analysis.levels.in_steps import InSteps
from stepwell.analysis.loop_extents import Loop, loops_of_extent
from stepwell.analysis.structured import dims_of
from stepwell.dialects import kernel
from stepwell.lowering.linalg_to_loops.structured import Access, Structured
from stepwell.lowering.linalg_to_loops.virtual_padding import VirtualPadding, take_padding
from stepwell.transforms.passes import fail

RANGE = "kernel.range"
"""Attribute of a kernel while its loops are written: the range of sizes of this version."""
NOT_OF_LOOPS = ("kernel.shared", "kernel.schedule", "kernel.first_fits", RANGE)
"""Attributes of a kernel that describe the ops this pass removes."""


@dataclass
class Buffer:
    """A memref that the ops of a kernel read or write."""

    alloc: memref.AllocOp | None = None
    """Its allocation, where it is scratch of this kernel."""
    in_registers: bool = False
    """Whether every access is to the one element that belongs to the shared iteration."""
    last_writer: int = -1
    scratch_dims: tuple[int, ...] = ()
    """The dimensions that are not indexed by shared loops alone."""
    nontemporal: bool = False
    """Whether to write it with nontemporal stores."""


NO_LEVELS = KernelLevels(
    kernel.FuncOp("none", FunctionType.from_lists([], []), Region(Block()), {}), None
)
"""Of the ops inside a loop that the user wrote."""


@dataclass
class Plan:
    """The ops to be written as one nest, and their buffers."""

    ops: list[Structured]
    levels: KernelLevels
    buffers: dict[SSAValue, Buffer] = field(default_factory=dict[SSAValue, Buffer])
    padding: dict[SSAValue, VirtualPadding] = field(default_factory=dict[SSAValue, VirtualPadding])
    """Virtual padding: the image that replaces each padded buffer, which is never allocated."""
    alike: Sequence[Loop] = ()
    """In a version for a range of sizes: the loops that run as often as the one it names."""

    @property
    def first(self) -> Structured:
        """The op that defines the shared loops."""
        return self.ops[0]

    @property
    def axis(self) -> int:
        """The vectorised shared loop, or -1."""
        axis = self.first.axis
        return axis if axis < self.levels.shared else -1

    def steps_of(self, op: Structured) -> InSteps | None:
        """Return the levels of an op whose sum is in steps, None for other ops."""
        ops, sums = self.levels.ops, self.levels.sums
        return next((levels for n, levels in sums.items() if ops[n] is op.op), None)

    def lengths(self, op: Structured, k: int) -> tuple[int, int]:
        """Return the least and the greatest extent of a loop; 0 where not known."""
        found = self.levels.function.attributes.get(RANGE)
        if not isinstance(found, kernel.VersionAttr):
            return 0, 0
        shared = k == found.loop.data < self.levels.shared
        return (found.low.data, found.high.data) if shared or (op.op, k) in self.alike else (0, 0)


def checked_levels(function: kernel.FuncOp) -> KernelLevels:
    """Return the levels of a kernel, which may be written by hand."""
    if (found := schedule_of(function)) is not None and not found.has_groups:
        try:
            check_levels(function, found)
        except VerifyException as error:
            fail(function, str(error), "`stepwell explain` shows the levels of any kernel")
    return kernel_levels(function)


def make_plan(ops: Sequence[Structured], levels: KernelLevels, foreign: set[SSAValue]) -> Plan:
    """Plan one run of ops; ``foreign`` are buffers that other code touches too."""
    kept, padding = take_padding(ops)
    some, alike = levels.function.attributes.get(RANGE), list[Loop]()
    if isinstance(some, kernel.VersionAttr):
        alike = loops_of_extent(levels.function, some.loop.data)
    plan = Plan(_fold_fills(kept), levels, padding=padding, alike=alike)
    if levels.sums:  # their loops count from the beginning of a block
        for op in plan.ops:
            op.within = {}
    for op in plan.ops:
        _check_shared(plan, op)
    used_inside = {v for op in plan.ops for v in _used_by_body(op)}
    if padding and (not padding.keys().isdisjoint(used_inside | foreign) or levels.whole_reads):
        fail(ops[0].op, "what kernel.border marks is read by single elements or vectors alone")
    _class_buffers(plan, foreign | used_inside)
    return plan


def _class_buffers(plan: Plan, whole: set[SSAValue]) -> None:
    """Classify the buffers of a plan; ``whole`` are those that other code or bodies touch too."""
    accesses: dict[SSAValue, list[Access]] = {}
    for i, op in enumerate(plan.ops):
        for access in (*op.inputs, *op.outputs):
            accesses.setdefault(access.buffer, []).append(access)
        for access in op.outputs:
            plan.buffers.setdefault(access.buffer, Buffer()).last_writer = i
    for value, found in accesses.items():
        buffer = plan.buffers.setdefault(value, Buffer())
        _class_buffer(buffer, value, found, plan.levels.shared, value in whole)
    for access in (op.outputs[output] for op in plan.ops for output in op.nontemporal):
        plan.buffers[access.buffer].nontemporal = True


def _class_buffer(
    buffer: Buffer,
    value: SSAValue,
    found: Sequence[Access],
    shared: int,
    whole: bool,
) -> None:
    """Decide which elements of a buffer a shared iteration touches."""
    first = found[0].exprs
    alike = all(access.exprs == first for access in found)
    inner = any(k >= shared for k in dims_of(first))
    buffer.in_registers = alike and not inner and not whole
    rank = len(first)
    owner = value.owner
    if not isinstance(owner, memref.AllocOp) or whole:
        buffer.scratch_dims = tuple(range(rank))
        return
    buffer.alloc = owner

    def fixed(dim: int) -> bool:
        expr = first[dim]
        return (
            isinstance(expr, AffineDimExpr)
            and expr.position < shared
            and all(a.exprs[dim] == expr for a in found)
        )

    buffer.scratch_dims = tuple(d for d in range(rank) if not fixed(d))


def _used_by_body(op: Structured) -> list[SSAValue]:
    """Return the buffers that a body loads from, as a gather does."""
    if op.body is None:
        return []
    return [v for o in op.body.walk() for v in o.operands if isinstance(o, memref.LoadOp)]


def _fold_fills(ops: Sequence[Structured]) -> list[Structured]:
    """Drop each fill whose every element is next the initial value of a computation."""
    kept: list[Structured] = []
    for i, op in enumerate(ops):
        if op.value is None or not _fold_into_next(op, ops[i + 1 :]):
            kept.append(op)
    return kept


def _fold_into_next(fill: Structured, later: Sequence[Structured]) -> bool:
    assert fill.value is not None
    target = fill.outputs[0].buffer
    for op in later:
        if any(a.buffer is target for a in op.inputs) or target in _used_by_body(op):
            return False
        for k, output in enumerate(op.outputs):
            if output.buffer is not target:
                continue
            dims = [e.position for e in output.exprs if isinstance(e, AffineDimExpr)]
            if len(set(dims)) != len(output.exprs):
                return False
            op.initial[k] = fill.value
            return True
    return False


def _check_shared(plan: Plan, op: Structured) -> None:
    shared = plan.levels.shared
    if len(op.reductions) < shared:
        fail(op.op, f"the kernel shares {shared} loops, but this op has {len(op.reductions)}")
