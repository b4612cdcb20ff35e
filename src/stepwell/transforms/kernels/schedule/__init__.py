"""Choose the schedule of every kernel and write it as levels.

Before:  kernel.func @k(...) attributes {kernel.shared = 1} { linalg.generic {rows, columns} ... }
After:   kernel.func @k(...) attributes {kernel.shared = 1,
             kernel.schedule = #kernel.schedule<[parallel d0 {grain 8}, for d1 by 64,
                                                 unroll d1 by 16, vector d1 by 16]>} { ... }

Afterwards every kernel states which shared loops are parallel and how many iterations are worth a
thread; every op, which of its loops is vectorised; a contraction, its register tile; and a large
full reduction, the number of parts it is split into. Existing levels are checked and kept. No
choice that results depend on depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.constness import constant_arguments
from stepwell.analysis.cost import Predictor
from stepwell.analysis.cost.program import Program
from stepwell.analysis.levels import (
    Lanes,
    LoopedOp,
    check_levels,
    loop_ops,
    schedule_of,
    write_schedule,
)
from stepwell.analysis.structured import stride
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.sharing import is_border
from stepwell.transforms.kernels.kernel_signature import launches_of
from stepwell.transforms.kernels.schedule.along import sums_along, vectorise_apart
from stepwell.transforms.kernels.schedule.beyond import NO_ARGUMENTS, Arguments
from stepwell.transforms.kernels.schedule.block_sizes import lanes_of_columns
from stepwell.transforms.kernels.schedule.blocking import choose
from stepwell.transforms.kernels.schedule.contraction import Contraction, as_deep
from stepwell.transforms.kernels.schedule.copies import transposes
from stepwell.transforms.kernels.schedule.double_buffering import pack_while_computing
from stepwell.transforms.kernels.schedule.first_call import FirstCall
from stepwell.transforms.kernels.schedule.groups import Device, write_groups
from stepwell.transforms.kernels.schedule.locked import write_all_tuned
from stepwell.transforms.kernels.schedule.masked import under_masks
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.nontemporal import store_past_caches
from stepwell.transforms.kernels.schedule.prefetching import steps_before_use
from stepwell.transforms.kernels.schedule.reasons import explain_choice, explanations
from stepwell.transforms.kernels.schedule.run_in_parallel import is_scattered, run_in_parallel
from stepwell.transforms.kernels.schedule.scalar import choose_lanes, share_tasks
from stepwell.transforms.kernels.schedule.searching import (
    drop_marks,
    improve,
    is_faster,
    is_taller_better,
    machine_of,
    stay_alone,
)
from stepwell.transforms.kernels.schedule.tiles import register_tile
from stepwell.transforms.kernels.schedule.vectors import (
    STRAIGHT,
    Loops,
    Range,
    at_once,
    best,
    lanes,
    own_axis,
    read,
    sums_rows,
)
from stepwell.transforms.kernels.schedule.versions import with_versions
from stepwell.transforms.kernels.schedule.windows import slides, window_tile, written_out
from stepwell.transforms.passes import Numerics, Pass, fail


@dataclass(frozen=True)
class Schedule(Pass):
    """Choose vector axes, register tiles and parallel loops, and write them as levels.

    machine : the machine as NAME=VALUE with commas, or its name before them
    lock : a lock file; its schedules are written on the kernels they were made for
    call : shapes of the arguments of a call, as "8x64,64x64"; only the versions that run in it are
        written, and the sizes of other calls that need no more
    """

    name = "schedule"
    one_block = True
    numerics: ClassVar[Numerics] = "reassociating"

    machine: str = ""
    lock: str = ""
    call: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedule each kernel."""
        done = write_all_tuned(op, self.lock) if self.lock else set[kernel.FuncOp]()
        machine, launches = machine_of(self.machine), launches_of(op)
        ready, program = constant_arguments(op), Program(op)
        call = FirstCall.of(op, self.call) if self.call else None
        for function in op.ops:
            if not isinstance(function, kernel.FuncOp):
                continue
            tuned = function in done
            if tuned or (not _is_by_hand(function) and not _in_groups(function, machine)):
                choose_lanes(function, machine)
                name = function.sym_name.data
                given = Arguments(
                    ready.get(name, set[int]()),
                    program.idle.get(name, {}),
                    program.unaligned.get(name, ()),
                )
                schedule = partial(_schedule, machine=machine, given=given)
                some = given.ready if machine.l2 and machine.versions else None
                with_versions(function, some, schedule, tuned, machine, call)
                store_past_caches(function, launches.get(name, ()), machine)
                if call is not None and some is not None:
                    call.shorten(function)
        if call is not None:
            call.write_served()


def _in_groups(function: kernel.FuncOp, machine: Machine) -> bool:
    """Schedule a kernel for groups, if the device has them and a schedule is known."""
    if machine.lanes < 2 or not all(isinstance(op, STRAIGHT) for op in function.body.block.ops):
        return False
    ops = [read(op) for op in loop_ops(function)]
    device = Device(machine.lanes, machine.local_memory, machine.compute_units)
    return write_groups(function, ops, choices.number(function, "kernel.shared"), device)


def _is_by_hand(function: kernel.FuncOp) -> bool:
    """Whether a kernel has levels already; they are checked."""
    if (levels := schedule_of(function)) is None:
        return False
    if not function.function_type.outputs:
        fail(
            function, "schedules are written on kernels of tensors", "run schedule before bufferize"
        )
    if levels.has_groups:  # `lowering.nests` checks these
        explain_choice(function, lambda: "groups as written by hand")
        return True
    try:
        check_levels(function, levels)
    except VerifyException as error:
        fail(function, str(error), "`stepwell explain` shows the levels of any kernel")
    explain_choice(function, lambda: "as written by hand")
    return True


def predicted_seconds(function: kernel.FuncOp, machine: Machine) -> float:
    """Schedule a kernel for one thread; return the predicted seconds of a launch.

    The schedule is that of the rules, without the choices that predictions are compared for: these
    take longer than all else.
    """
    one = replace(machine, threads=1, cores=1)
    nest = _nest(function)
    with explanations():  # of a kernel that may not be made
        chosen = _choose(nest, one, NO_ARGUMENTS)
        levels = chosen.levels(nest.ops, nest.shared) if chosen else None
        levels = levels or run_in_parallel(nest, one, NO_ARGUMENTS)
    return Predictor(function, one).predict(levels).seconds


def _schedule(
    function: kernel.FuncOp, some: Range | None, machine: Machine, given: Arguments
) -> None:
    """Write the schedule of a kernel, or of its version for a range of sizes."""
    nest = _nest(function, some)
    if not nest.ops:
        return share_tasks(function)
    if chosen := _choose(nest, machine, given):
        if not _reads_in_place(function, chosen, machine, given):
            return _write_in_steps(nest, chosen, machine, given, some)
        _vectorise(nest, machine, given)
    levels = run_in_parallel(nest, machine, given)
    if some is None and not is_scattered(nest.ops):
        levels = stay_alone(nest, levels, machine)
    write_schedule(function, under_masks(function, levels, machine))


def _choose(nest: Nest, machine: Machine, given: Arguments) -> Contraction | None:
    """Return the blocks, strips or tiles of a large contraction; for others, choose vectors."""
    if transposes(nest, machine):
        return None
    if machine.l2 and sums_along(nest.ops, nest.shared, machine):
        vectorise_apart(nest, machine, given, True)
        return None
    chosen = _contraction(nest, machine, given)
    if chosen is None:
        _vectorise(nest, machine, given)
    return chosen


def _vectorise(nest: Nest, machine: Machine, given: Arguments) -> None:
    """Choose vectors along one loop that all ops share, or along each op's own."""
    if (axis := _shared_axis(nest.ops, nest.shared)) is not None:
        _vectorise_shared(nest, axis, machine)
    else:
        vectorise_apart(nest, machine, given)


def _nest(function: kernel.FuncOp, some: Range | None = None) -> Nest:
    """Return the nest of a kernel, for which nothing is chosen yet."""
    ops = [_read(op, some) for op in loop_ops(function)]
    return Nest(function, ops, choices.number(function, "kernel.shared"))


def _read(op: LoopedOp, some: Range | None) -> Loops:
    if len(op.results) < len(op.outputs):
        fail(op, "schedules are chosen for kernels of tensors", "run schedule before bufferize")
    return read(op, some)


def _shared_axis(ops: Sequence[Loops], shared: int) -> int | None:
    """Return the shared loop to vectorise; None where the ops' own loops are better."""
    if not shared or any(loops.gathers for loops in ops):
        return None
    total = max(sum(loops.iterations * loops.work for loops in ops), 1)

    def worth(loops: Loops, axis: int | None) -> float:
        score = loops.score(axis) if axis is not None else 0.0
        return score * loops.iterations * loops.work / total

    axis = max(range(shared), key=lambda k: (sum(worth(loops, k) for loops in ops), k))
    together = sum(worth(loops, axis) for loops in ops)
    apart = sum(worth(loops, own_axis(loops, shared)) for loops in ops)
    usable = best(max(ops, key=lambda o: o.iterations * o.work), [axis]) is not None
    if not usable or together < apart:
        return None
    tiled = any(loops.contracts or slides(loops, shared) for loops in ops)
    return axis if together > apart or tiled or not _have_own(ops, shared) else None


def _contraction(nest: Nest, machine: Machine, given: Arguments) -> Contraction | None:
    """Return the blocks, strips or tiles of a large contraction."""
    body = nest.function.body.block
    plain = all(isinstance(op, STRAIGHT) and not is_border(op) for op in body.ops)
    return choose(nest.ops, nest.shared, machine, given) if plain else None


def _write_in_steps(
    nest: Nest, chosen: Contraction, machine: Machine, given: Arguments, some: Range | None
) -> None:
    """Write the levels of the chosen blocks, strips or tiles.

    Rounding depends on the depth of blocks, so all that changes it is asked of the blocks that one
    thread would have, whatever the number of threads.
    """
    function, ops, shared = nest.function, nest.ops, nest.shared
    one = replace(machine, threads=1, cores=1)
    with explanations():  # of choices that are made again
        alone = chosen if machine.threads == 1 else _contraction(nest, one, given) or chosen
    chosen = as_deep(chosen, alone)
    if chosen.taller is not None and alone.taller is not None and not some:
        usual, tall = (each.levels(ops, shared) for each in (alone, alone.taller))
        if is_taller_better(function, usual, tall, machine):
            chosen, alone = chosen.taller, alone.taller
    levels = drop_marks(function, chosen.levels(ops, shared), machine, given)
    rows = some.likely if some is not None and some.loop == shared - 2 else 0
    if some is None or rows:
        with explanations():
            before = drop_marks(function, alone.levels(ops, shared), one, given)
        levels = pack_while_computing(function, levels, before, machine, given, rows)
    write_schedule(function, levels if some else improve(function, levels, machine))


def _reads_in_place(
    function: kernel.FuncOp, chosen: Contraction, machine: Machine, given: Arguments
) -> bool:
    """Whether tiles that read both operands where they lie are predicted to take less time.

    Rounding depends on this choice, so it is made for one thread whatever their number.
    """
    if not chosen.in_place:
        return False
    nest = _nest(function)
    if (axis := _shared_axis(nest.ops, nest.shared)) is None:
        return False
    one = replace(machine, threads=1, cores=1)
    with explanations():  # of choices that may not be made
        if (alone := _contraction(nest, one, given)) is None:
            return False
        packed = drop_marks(function, alone.levels(nest.ops, nest.shared), one, given)
        _vectorise_shared(nest, axis, one)
        if not nest.steps:
            return False
        tiled = run_in_parallel(nest, one, given)
    return is_faster(function, tiled, packed, one, given, chosen.in_place)


def _have_own(ops: Sequence[Loops], shared: int) -> bool:
    """Whether some op has a loop of its own to vectorise."""
    return any(own_axis(loops, shared) is not None for loops in ops)


def _vectorise_shared(nest: Nest, axis: int, machine: Machine) -> None:
    ops, shared = nest.ops, nest.shared
    contraction = next((loops for loops in ops if loops.contracts), None)
    window = next((loops for loops in ops if slides(loops, shared)), None)
    tiled = (contraction or window) is not None and axis == shared - 1 and shared >= 2
    width = lanes(ops, axis, machine, overlap=tiled)
    if contraction and tiled:
        width = lanes_of_columns(contraction, axis, width, machine)
    if width == 1:
        said = f"no vectors: loop {axis} is too short for the elements' size"
        explain_choice(nest.function, lambda: said)
        return
    apart = not (contraction or (window and tiled))
    many = _many(ops, axis, width, machine) if apart else 1
    explain_choice(
        nest.function,
        lambda: (
            f"vectors of {width}, {many} at once, along loop {axis}, which all ops share: "
            f"neighbours along it lie side by side in {min(o.score(axis) for o in ops):.0%} of the "
            "accesses or more"
        ),
    )
    for loops in ops:
        loops.lanes = Lanes(axis, width, many)
    if contraction and tiled:
        _tile(nest, contraction, width, machine)
        if any(map(is_border, nest.function.body.block.ops)):  # tests depend on this loop alone
            nest.unroll = (len(contraction.extents) - 1,)
        if nest.steps:
            tile = prod(nest.steps.values()) // width
            nest.prefetch = steps_before_use(contraction, shared, tile, machine)
    elif window and tiled:
        rows, vectors = window_tile(window, shared, width, machine)
        nest.unroll = written_out(window, shared, (rows, vectors))
        if rows * vectors > 1:
            nest.set_tile(rows, vectors * width)


def _many(ops: Sequence[Loops], axis: int, width: int, machine: Machine) -> int:
    """Return how many vectors along a shared loop are in flight in every op.

    Sums over the rows of a matrix read each row in runs: long runs are prefetched by hardware, so
    the sums use half the registers; a quarter where other ops of the kernel have as much work.
    """
    many = min(at_once(loops, axis, width) for loops in ops)
    sums = [loops for loops in ops if sums_rows(loops, axis)]
    if not sums or many < 2:
        return many
    most = machine.vector_registers // 2 // max(len(loops.op.outputs) for loops in sums)
    if len(sums) > 1 or many < 4:
        most //= 2
    while many * 2 <= most and many * 4 * width <= sums[0].size(axis):
        many *= 2
    return many


def _tile(nest: Nest, contraction: Loops, width: int, machine: Machine) -> None:
    """Choose the block of the result that stays in registers: rows by vectors."""
    shared = nest.shared
    high, wide = contraction.extents[shared - 2], contraction.extents[shared - 1]
    likely = contraction.likely
    high, wide = likely.get(shared - 2, high), likely.get(shared - 1, wide)
    deep = prod(contraction.size(k) for k in range(shared, len(contraction.extents)))
    registers = machine.vector_registers // max(len(contraction.op.outputs), 1)
    reads = contraction.accesses[: contraction.reads]
    apart = max((abs(stride(index, shared - 1) or 1) for index in reads), default=1)
    begun = isinstance(contraction.op.outputs[0].owner, linalg.FillOp)
    twice = begun and DYNAMIC_INDEX not in contraction.extents and not likely
    rows, vectors = register_tile(
        high, wide, deep, width, registers, machine.in_flight, apart, twice
    )
    if rows * vectors > 1:
        said = (
            f"{rows} rows by {vectors} vectors of the result stay in registers while the sum runs"
        )
        explain_choice(nest.function, lambda: said)
        nest.set_tile(rows, vectors * width)
