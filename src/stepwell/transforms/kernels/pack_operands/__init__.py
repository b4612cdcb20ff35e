"""Pack operands of blocked contractions once, in the order in which the blocks read them.

Before:  kernel.func @k(%x, %w: tensor<1000x1000xf32>, %y) attributes {... {pack 1} ...} {
           linalg.generic {maps: (i, k), (k, j), (i, j)} ins(%x, %w) ... }
         %y = kernel.launch @k ins(%x, %w) outs(%e)
After:   kernel.func @main_pack(%w, %p: tensor<16x1000x64xf32>) {
           linalg.fill ...  linalg.generic {maps: (k, j), (j floordiv 64, k, j mod 64)} ... }
         kernel.func @k(%x, %w: tensor<16x1000x64xf32>, %y) attributes {... {pack 1} ...} {
           linalg.generic {maps: (i, k), (j floordiv 64, k, j mod 64), (i, j)} ins(%x, %w) ... }
         %p = kernel.launch @main_pack ins(%w) outs(%z)
         %y = kernel.launch @k ins(%x, %p) outs(%e)

Afterwards the operand that varies with the columns is in panels as wide as the register tile, each
read sequentially, if it is the same in every call or in many iterations of a loop, or if several
blocks would otherwise pack it. Several means three; two for blocks that wait for memory; seven for
blocks that pack while they compute; two for a convolution, whose filters are transposed. Features
that blocks of a window split are packed in parts, each with its whole window. In a product of an
operand with itself, the rows are read from the same panels; the rows of a large transposed operand
have their own panels. Contiguous columns are copied in whole rows; tiles prefetch panels that come
too slowly from beyond the L2 cache. Equal packing kernels are merged, and an operand of several
launches is packed once, right after its definition. An unpacked argument that a loop reads in each
of many iterations is copied before the loop, because arguments are seldom aligned to a
cache line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.analysis.constness import constants_of, entries
from stepwell.analysis.levels import kernel_levels
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.transforms.kernels.pack_operands.kernels import (
    Operand,
    operand_of,
    packing_kernel,
    read_packed,
    rows_of,
)
from stepwell.transforms.kernels.pack_operands.rereading import copy_reread_arguments, loop_around
from stepwell.transforms.kernels.same_kernels import Shared
from stepwell.transforms.kernels.schedule.reasons import copy_explanation, explain_choice
from stepwell.transforms.kernels.schedule.searching import machine_of
from stepwell.transforms.passes import Pass

MIN_BLOCKS = 3
"""Blocks of rows from which packing a panel in each costs more than packing it once."""
MIN_WAITING_BLOCKS = 2
"""The same bound where packing waits for memory: blocks read an operand beyond the L2 cache in
short runs and do not prefetch it; a kernel of its own reads whole rows. One panel has whole rows
anyway, and the threads of two blocks pack it at the same time."""
MIN_PACKING_BLOCKS = 7
"""The same bound where blocks pack while they compute."""
MIN_FILTER_BLOCKS = 2
"""The same bound for filters, whose columns are not contiguous."""


@dataclass(frozen=True)
class PackOperands(Pass):
    """Pack operands of blocked contractions: weights, and operands that many blocks would pack.

    Arguments that the iterations of a loop reread are copied to aligned memory.

    l2 : bytes of each core's L2 cache; 0 for no copies of arguments
    l3 : bytes of the last-level cache; a packed operand that is no weight may take half of it
    machine : decides whether panels are prefetched, and whether packing waits for memory
    """

    name = "pack-operands"
    one_block = True
    expects_work = False

    l2: int = 1 << 20
    l3: int = 8 << 20
    machine: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Pack the operands that repay it."""
        wanted: dict[kernel.FuncOp, Operand] = {}
        functions = [f for f in op.ops if isinstance(f, kernel.FuncOp)]
        blocked = [f for f in functions if kernel_levels(f).blocks]
        for function in blocked:
            if (found := operand_of(function)) is not None:
                wanted[function] = found
        if wanted:
            _Packing(op, wanted, self.l3 // 2, machine_of(self.machine)).run()
        if self.l2:
            copy_reread_arguments(op, self.l3 // 2)


@dataclass
class _Packing:
    """Packs the operands of one module."""

    module: ModuleOp
    wanted: dict[kernel.FuncOp, Operand]
    most: int
    """Bytes of a packed operand that differs between calls, at most."""
    machine: Machine
    shared: Shared = field(default_factory=Shared)
    done: dict[tuple[SSAValue, kernel.FuncOp], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, kernel.FuncOp], SSAValue]
    )
    """Packed operands by value and packing kernel."""

    def run(self) -> None:
        """Pack the operands of each launch that gains by it."""
        names = {f.sym_name.data: f for f in self.wanted}
        constants = {v for f in entries(self.module) for v in constants_of(f)}
        launches: dict[kernel.FuncOp, list[kernel.LaunchOp]] = {f: [] for f in self.wanted}
        for op in self.module.walk():
            if isinstance(op, kernel.LaunchOp) and (f := names.get(op.callee.string_value())):
                launches[f].append(op)
        for function, found in launches.items():
            operand = self.wanted[function]
            small = operand.bytes <= self.most
            levels = kernel_levels(function)
            runs = operand.in_rows and operand.extents[operand.column] > operand.width
            waits = operand.bytes >= self.machine.l2 and runs and not levels.prefetch
            once = MIN_WAITING_BLOCKS if waits else MIN_BLOCKS
            once = MIN_PACKING_BLOCKS if "first" in levels.packs.values() else once
            again = small and operand.repeated >= (MIN_FILTER_BLOCKS if operand.convolves else once)
            if "dot" in levels.packs.values():  # blocks pack words themselves, in runs if they can
                again = small and operand.convolves
            number = operand.argument.index
            packed = [
                op
                for op in found
                if again
                or op.operands[number] in constants
                or (small and loop_around(op.operands[number], op) is not None)
            ]
            if packed:
                same = all(op.operands[number] in constants for op in packed)
                found = self._pack(function, operand, packed, len(packed) < len(found), same)
            rows = rows_of(function, operand)
            large = rows is not None and self.machine.l2 // 4 < rows.bytes <= self.most
            if rows and large and rows.repeated >= MIN_BLOCKS:
                self._pack(function, rows, found, keep=False, same=False)
        self.shared.unite()

    def _pack(
        self,
        function: kernel.FuncOp,
        operand: Operand,
        launches: list[kernel.LaunchOp],
        keep: bool,
        same: bool,
    ) -> list[kernel.LaunchOp]:
        """Make ``launches`` read the operand packed; ``keep`` the old kernel for other launches.

        Return the new launches.

        same : whether the operand is the same in every call
        """
        number, block = operand.argument.index, function.parent_block()
        name = function.sym_name.data
        assert block is not None
        kept = None
        if keep:
            kept = function.clone()
            kept.location = function.location
            for old, new in zip(function.walk(), kept.walk(), strict=True):
                new.location = old.location
        packing, new = self.shared.add(packing_kernel(operand), f"{_entry(launches[0])}_pack")
        if new:
            block.insert_op_before(packing, function)
            explain_choice(packing, lambda: _why(operand))
        still_read = read_packed(function, operand, self.machine, same)
        if kept is not None:
            block.insert_op_before(kept, function)
            function.set_name(f"{name}_packed")
            copy_explanation(function, name)
        found: list[kernel.LaunchOp] = []
        for launch in launches:
            ready = self._packed_once(launch.operands[number], packing, operand)
            inputs = list(launch.inputs)
            inputs[number + still_read : number + 1] = [ready]
            found.append(_relaunch(launch, function, inputs))
        return found

    def _packed_once(self, value: SSAValue, packing: kernel.FuncOp, operand: Operand) -> SSAValue:
        """Return ``value`` packed, right after its definition."""
        if (known := self.done.get((value, packing))) is not None:
            return known
        kind = packing.function_type.outputs.data[0]
        assert isinstance(kind, TensorType)
        empty, made_by = tensor.EmptyOp([], kind), value.owner
        ops: list[Operation] = [empty]
        source = value
        if value.type != operand.source:
            reassociation = ArrayAttr(
                ArrayAttr(IntegerAttr(k, i64) for k in group) for group in operand.groups
            )
            view = tensor.CollapseShapeOp.create(
                operands=[value],
                result_types=[operand.source],
                properties={"reassociation": reassociation},
            )
            source = view.results[0]
            source.name_hint = value.name_hint
            ops.append(view)
        launch = kernel.LaunchOp(packing.sym_name.data, [source], [empty.tensor])
        ops.append(launch)
        for op in ops:
            op.location = packing.location
        if isinstance(made_by, Block):
            assert made_by.first_op is not None
            made_by.insert_ops_before(ops, made_by.first_op)
        else:
            assert made_by.parent is not None
            made_by.parent.insert_ops_after(ops, made_by)
        (result,) = launch.results_
        result.name_hint = f"{value.name_hint}_packed" if value.name_hint else "packed"
        self.done[value, packing] = result
        return result


def _relaunch(
    launch: kernel.LaunchOp, function: kernel.FuncOp, inputs: list[SSAValue]
) -> kernel.LaunchOp:
    new = kernel.LaunchOp(function.sym_name.data, inputs, list(launch.outputs))
    new.attributes.update(launch.attributes)
    new.location = launch.location
    assert launch.parent is not None
    launch.parent.insert_op_before(new, launch)
    for old, now in zip(launch.results_, new.results_, strict=True):
        now.name_hint = old.name_hint
        old.replace_all_uses_with(now)
    launch.detach()
    launch.erase()
    return new


def _entry(launch: Operation) -> str:
    """Return the name of the function around ``launch``, in the spelling of kernel names."""
    at: Operation | None = launch
    while at is not None and at.name != "func.func":
        at = at.parent_op()
    name: Attribute | None = at.properties.get("sym_name") if at is not None else None
    return str(getattr(name, "data", "main")).replace(".", "_")


def _why(operand: Operand) -> str:
    """Return the explanation of an operand's layout."""
    return (
        f"packed into panels of {operand.width}, the columns of a register tile, in the order in "
        f"which blocks read them; in vectors of {operand.lanes}"
    )
