"""Print kernels as OpenCL C.

A kernel's body alternates parallel loops and serial code; each becomes a `__kernel` of its own,
with one work-item per iteration, or a single one. Index arithmetic at the top of a body is repeated
in every part that uses it; buffers allocated there are scratch memory of the device.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import ClassVar

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from stepwell.dialects import kernel
from stepwell.dialects.upstream.effects import touches_nothing
from stepwell.lowering.emit.buffers import product
from stepwell.lowering.emit.carried import pass_through_memory
from stepwell.lowering.emit.kinds import INDEX, Kind
from stepwell.lowering.emit.lines import pruned, words
from stepwell.lowering.emit.names import FAULT
from stepwell.lowering.emit.opencl_spelling.values import LANES
from stepwell.lowering.emit.parameters import Parameter, parameters
from stepwell.lowering.emit.unit import FunctionWriter, Piece, Unit
from stepwell.transforms.passes import fail

GLOBAL = "__global "
LOCAL = "__local "
COPYING = 64
"""Work-items in a group that copies a row: two subgroups; more would idle on short rows."""
SHORT = 16
"""The number of elements below which a row is too short for a group."""
LANE = "(long)get_local_id(0)"
LANE_LOOP = "kernel.lane"
BARRIER = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
_ALLOCATIONS = (memref.AllocOp, memref.AllocaOp)
_ELSEWHERE = (*_ALLOCATIONS, memref.DeallocOp, kernel.ReturnOp)
"""Ops that the host executes, and the terminator of a kernel."""


@dataclass(frozen=True)
class Part:
    """One `__kernel`: its parameters, and its parallel loop, if it has one."""

    name: str
    parameters: tuple[Parameter, ...]
    loop: scf.ParallelOp | None = None
    lanes: int = 0
    """The number of work-items in a group, if an iteration of the loop is a group."""


@dataclass
class OpenCLWriter(FunctionWriter):
    """Writes a function of OpenCL C."""

    contracts: ClassVar[bool] = True

    def kind(self, value: SSAValue) -> Kind:
        """Return the kind of a value; fail for vectors that OpenCL lacks."""
        kind = super().kind(value)
        if kind.lanes not in LANES:
            owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
            assert owner is not None
            fail(owner, f"OpenCL has no vectors of {kind.lanes} lanes", "2, 4, 8 and 16 it has")
        return kind

    def parallel(self, op: scf.ParallelOp) -> None:
        """Run one iteration in each work-item of a group, then a barrier."""
        if LANE_LOOP not in op.attributes:
            self.serial(op)
            return
        group = op.parent_op()
        while group is not None and lanes_of(group) == 0:
            group = group.parent_op()
        assert group is not None, "a lane is one of a group"
        (lane,), (count,) = op.body.block.args, op.upperBound
        with self.block(""):
            self.define(lane, LANE, INDEX)
            if self[count] == str(lanes_of(group)):
                self.ops(op.body.block)
            else:
                with self.block(f"if ({self[lane] if lane.first_use else LANE} < {self[count]})"):
                    self.ops(op.body.block)
        last = isinstance(op.next_op, scf.ReduceOp) and op.parent_op() is group
        if not last:
            self.line(BARRIER)

    def array(self, value: SSAValue, element: str, count: int) -> tuple[str, str]:
        """Declare private memory of a work-item, or local memory of its group."""
        space = _space(value)
        if not space:
            return super().array(value, element, count)
        type = self.spelling.memory(element)
        name = self.fresh(value.name_hint, f"{type} *")
        if space == "local":
            self.line(f"{LOCAL}{type} {name}[{count}] __attribute__((aligned(64)));")
            return name, LOCAL
        assert isinstance(value.type, MemRefType)
        self.line(f"{type} {name}[{prod(value.type.get_shape()[1:])}];")
        return name, ""

    def strides_of(self, value: SSAValue, strides: tuple[str, ...]) -> tuple[str, ...]:
        """Drop the stride of the work-items: a private buffer has no room for the others."""
        return ("0", *strides[1:]) if _space(value) == "lanes" else strides


@dataclass
class OpenCLUnit(Unit):
    """The text of an OpenCL C program."""

    parts: dict[str, list[Part]] = field(default_factory=dict[str, list[Part]])
    fault_space: ClassVar[str] = GLOBAL
    repeated: set[Operation] = field(default_factory=set[Operation])
    """Loads of values that one part of a kernel passes to others."""

    @cached_property
    def numbers(self) -> dict[Operation, int]:
        """The number of each kernel in the signature."""
        kernels = (op for op in self.module.ops if isinstance(op, kernel.FuncOp))
        return {op: number for number, op in enumerate(kernels)}

    def parts_of(self, op: kernel.FuncOp) -> list[Part]:
        """Return the parts of a kernel, after writing them if necessary."""
        symbol = op.sym_name.data
        if symbol not in self.parts:
            self.repeated |= pass_through_memory(op.body.block, _groups(op.body.block))
            groups = _groups(op.body.block, self.repeated)
            self.parts[symbol] = [
                self._part(op, self.name("kernel", f"{symbol}_{k}" if k else symbol), group)
                for k, group in enumerate(groups)
            ]
        return self.parts[symbol]

    def _part(self, op: kernel.FuncOp, name: str, group: list[Operation]) -> Part:
        writes = self.written_in(op)
        w = self.writer(name)
        w.note = self.notes.of(op.location)
        arguments: list[SSAValue] = [*op.body.block.args, *scratch(op)]
        wanted = parameters(w, op, arguments, GLOBAL, {*writes, *scratch(op)})
        loop = group[0] if isinstance(group[0], scf.ParallelOp) else None
        known = set(arguments)
        for each in op.body.block.ops:
            if each in group:
                _require(each, known)
                self._write_one(w, each)
            elif self._repeats(each) and known.issuperset(each.operands):
                w.ops_of([each])
            else:
                continue
            known.update(each.results)
            if each is group[-1]:
                break
        return self._finish(w, name, op, wanted, loop)

    def _repeats(self, op: Operation) -> bool:
        return is_pure(op) or op in self.repeated

    def _write_one(self, w: FunctionWriter, op: Operation) -> None:
        if not isinstance(op, scf.ParallelOp):
            w.ops_of([op])
            return
        w.note = self.notes.of(op.location) or w.note
        if lanes_of(op):
            w.define(op.body.block.args[0], "(long)get_group_id(0)", INDEX)
            w.ops(op.body.block)
            return
        work_item(w, op.body.block.args[0], w[op.lowerBound[0]], w[op.step[0]])
        w.serial(op, first=1)

    def _finish(
        self,
        w: FunctionWriter,
        name: str,
        op: Operation,
        wanted: Sequence[Parameter],
        loop: scf.ParallelOp | None,
    ) -> Part:
        """Add the function around the lines written: each buffer has an offset in bytes."""
        lines = pruned(w.lines)
        used = words(lines)
        fault = Parameter(FAULT, self.fault_type, part="fault")
        kept = tuple(p for p in (*wanted, fault) if p.name in used)
        note = self.notes.of(op.location)
        comment = f"  // {note}" if note else ""
        taken: list[str] = []
        rows: list[str] = []
        for p in kept:
            if p.part == "fault":
                taken.append(f"{GLOBAL}char *{p.name}_memory, long {p.name}_skip")
                start = f"({p.type})({p.name}_memory + {p.name}_skip)"
                rows.append(f"  {p.type}const {p.name} = {start};{comment}")
                rows.append(f"  if ({w.spelling.faulted()}) return;{comment}")
                continue
            if p.part != "pointer":
                taken.append(p.declaration)
                continue
            const = "const " if "const " in p.type else ""
            taken.append(f"{GLOBAL}{const}char *{p.name}_memory, long {p.name}_skip")
            start = f"({p.type})({p.name}_memory + {p.name}_skip)"
            rows.append(f"  {p.type}const {p.name} = {start};{comment}")
        head = f"__kernel void {name}({', '.join(taken)}) {{"
        title = f"/* from {note} */\n" if note else ""
        self.pieces.append(Piece(name, title + "\n".join([head, *rows, *map(str, lines), "}"])))
        return Part(name, kept, loop, lanes_of(loop) if loop is not None else 0)

    def copying(self, op: memref.CopyOp) -> Part:
        """Return a kernel that copies between strided buffers, one group for each row.

        Its work-items copy adjacent elements. If the last axis is short, a row is of the last two
        axes.
        """
        name = self.name("kernel", "copy")
        w = self.writer(name)
        w.note = self.notes.of(op.location)
        ends = [op.source, op.destination]
        wanted = parameters(w, op, ends, GLOBAL, {op.destination})
        source, target = (w.buffer(v) for v in ends)
        outside = len(target.sizes) - row_axes(op.destination)
        inside = self._counted(w, "(long)get_group_id(0)", target.sizes[:outside])
        at, end = w.fresh("i", "long"), product(target.sizes[outside:])
        first, step = LANE, "(long)get_local_size(0)"
        with w.block(f"for (long {at} = {first}; {at} < {end}; {at} += {step})"):
            inside += self._counted(w, at, target.sizes[outside:])
            w.line(f"{target.at(inside)} = {source.at(inside)};")
        return replace(self._finish(w, name, op, wanted, None), lanes=COPYING)

    def _counted(self, w: FunctionWriter, place: str, sizes: Sequence[str]) -> list[str]:
        """Split the linear index of an element into indices."""
        found: list[str] = []
        for axis in reversed(range(len(sizes))):
            name = w.fresh("i", "long")
            w.line(f"const long {name} = {place}{f' % {sizes[axis]}' if axis else ''};")
            place = f"{place} / {sizes[axis]}"
            found.insert(0, name)
        return found

    def text(self, title: str) -> str:
        """Return the whole text."""
        prelude = self.spelling.prelude
        parts = [
            f"/* {title}, written by Stepwell. Trailing comments name the source lines. */",
            *prelude.types.values(),
            *prelude.functions.values(),
            *(piece.text for piece in self.globals),
            *(piece.titled(self.notes) for piece in self.pieces),
        ]
        return "\n\n".join(parts) + "\n"


def lanes_of(op: Operation) -> int:
    """Return the number of work-items per iteration of a loop; 0 if it is no group."""
    found = op.attributes.get("kernel.lanes")
    return found.value.data if isinstance(found, IntegerAttr) else 0


def _space(value: SSAValue) -> str:
    owner = value.owner
    found = owner.attributes.get("kernel.space") if isinstance(owner, Operation) else None
    return found.data if isinstance(found, StringAttr) else ""


def row_axes(buffer: SSAValue) -> int:
    """Return how many trailing axes of a buffer a group copies."""
    assert isinstance(buffer.type, MemRefType)
    shape = buffer.type.get_shape()
    return min(len(shape), 2 if shape and 0 <= shape[-1] < SHORT else 1)


def work_item(w: FunctionWriter, index: SSAValue, low: str, step: str) -> None:
    """Compute ``index`` from the number of the work-item."""
    number = "(long)get_global_id(0)"
    scaled = number if step == "1" else f"{number} * {step}"
    w.define(index, scaled if low == "0" else f"{low} + {scaled}", INDEX)


def scratch(op: kernel.FuncOp) -> list[SSAValue]:
    """Return the buffers that a kernel allocates for all of its parts."""
    return [each.memref for each in op.body.block.ops if isinstance(each, _ALLOCATIONS)]


def is_pure(op: Operation) -> bool:
    """Whether an op may be repeated in every part of a kernel."""
    if isinstance(op, func.CallOp):
        return not any(isinstance(v.type, MemRefType) for v in op.operands)
    return not op.regions and touches_nothing(op)


def _groups(block: Block, repeated: Container[Operation] = ()) -> list[list[Operation]]:
    """Return the parallel loops of a kernel's body, and the runs of serial ops between them."""
    groups: list[list[Operation]] = []
    serial: list[Operation] = []
    computed: set[SSAValue] = set()  # by serial code, which is not repeated
    for op in block.ops:
        if isinstance(op, scf.ParallelOp):
            groups += [serial] if serial else []
            groups.append([op])
            serial = []
        elif isinstance(op, _ELSEWHERE) or op in repeated:
            continue
        elif not is_pure(op) or not computed.isdisjoint(op.operands):
            serial.append(op)
            computed.update(op.results)
    return [*groups, serial] if serial else groups


def _require(op: Operation, known: set[SSAValue]) -> None:
    """Check that no part uses a value computed by another."""
    inside = {r for each in op.walk() for r in each.results}
    inside |= {a for each in op.walk() for region in each.regions for a in region.block.args}
    for each in op.walk():
        for operand in each.operands:
            if operand not in known and operand not in inside:
                fail(
                    each,
                    "a value computed by one part of a kernel is used in another",
                    help="pass it through memory: parts run one after the other on the device",
                )
