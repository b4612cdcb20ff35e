"""Choose the sizes, known at launch only, for which a kernel has a version of its own.

A product of few rows is bound by reading the column operand: that is read in place, by tiles of few
rows. A product of a single row is a loop over that operand, read sequentially. For many rows the
operand is packed instead. So a contraction whose rows are counted at launch has versions for few of
them, and the launch selects.

Some tens of rows compute about as long as such an operand comes from memory: they have a version
whose tiles pack the next part of it, where the cost model predicts a gain.

The operand of a product whose columns, or sum, are counted at launch is packed, as it may be large;
for so few columns, or so short a sum, that it is read in place as fast, there is a version.

Vectors along rows whose length is known at launch only end under a mask: a row of one element takes
the time of a whole vector, and of the reduction of its lanes. So few elements have versions of
their number, as those of a narrow vector have, and rows of one, two and four vectors have ones that
run a vector at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, UnitAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.cost.compute import STRIDES
from stepwell.analysis.levels import (
    KernelLevels,
    kernel_levels,
    levels_of_versions,
    loop_ops,
    write_schedule,
)
from stepwell.analysis.levels.building import with_block
from stepwell.analysis.levels.queries import DOUBLE_BUFFERED
from stepwell.analysis.loop_extents import argument_of_extent, op_of_loop
from stepwell.analysis.structured import bits_of, element, shape, stride
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.kernel.versions import FIRST_FITS, VERSIONS, versions_in
from stepwell.transforms.kernels.kernel_signature import PLAIN, is_unscheduled
from stepwell.transforms.kernels.schedule.along import sums_along
from stepwell.transforms.kernels.schedule.block_sizes import MIN_BLOCK_TILES
from stepwell.transforms.kernels.schedule.blocking import (
    MAX_PANEL_VECTORS,
    MIN_ROWS,
    longest_in_place,
)
from stepwell.transforms.kernels.schedule.first_call import FirstCall
from stepwell.transforms.kernels.schedule.tails import choose_tails
from stepwell.transforms.kernels.schedule.vectors import (
    MASKED_BITS,
    MIN_LANES,
    Loops,
    Range,
    own_axis,
    read,
)
from stepwell.transforms.kernels.versions import set_extent

RANGES_OF_FEW = (1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 8)
"""Ranges of few rows. Bound by memory (`MEMORY_BOUND_ROWS`), an operand is read in strips, by rows
of a known number. Others share a tile of the range's largest number: rows beyond the end repeat the
last row, at most a fifth of them, which is less than the goal for sizes below 64 allows."""
ROW_RANGES = *RANGES_OF_FEW, (RANGES_OF_FEW[-1][1] + 1, MIN_ROWS - 1)
"""Ranges of rows, none of which repay packing."""
SOME_ROWS = MIN_ROWS, MIN_BLOCK_TILES * RANGES_OF_FEW[-1][1]
"""Rows whose tiles are too few to repay packing a panel before they compute: there is a version if
the model predicts that they gain by packing the next part of the operand themselves."""


def with_versions(
    function: kernel.FuncOp,
    ready: Collection[int] | None,
    schedule: Callable[[kernel.FuncOp, Range | None], None],
    tuned: bool,
    machine: Machine,
    call: FirstCall | None,
) -> None:
    """Call ``schedule`` for a kernel, and for each version that it should have.

    ready : arguments that are the same in every call; None where the target has no versions
    tuned : whether the kernel has a schedule from a lock file, which stays beside the versions
    call : the call for which the program is compiled, if it has only the versions that run there
    """
    masks = _has_masks(machine)
    own = function.attributes.pop(SCHEDULE, None) if tuned else None
    some = [] if ready is None else list(ranges(function, machine))
    fitting = call.fitting(function, some) if call is not None and some else None
    some = some if fitting is None else fitting
    copies = [_copy(function, each) for each in some]
    if own is None:
        schedule(function, None)
    else:
        function.attributes[SCHEDULE] = own
    kept: list[tuple[Range, kernel.FuncOp]] = []
    for version, copy in zip(some, copies, strict=True):
        packs = _packs(function, ready or ())
        if not _serves(function, version, packs):
            continue
        copy.set_name(named(function, version))
        if packs:
            _lower(function, copy, version)
        else:
            schedule(copy, version)
        if (version.low, version.high) == SOME_ROWS and not _is_double_buffered(copy):
            continue
        choose_tails(copy, version, masks)
        kept.append((version, copy))
    if own is None:
        choose_tails(function, None, masks)
    same = function.attributes.get(SCHEDULE)
    if kept := [each for each in kept if each[1].attributes.get(SCHEDULE) != same]:
        _write(function, kept)
        if fitting is not None:
            function.attributes[FIRST_FITS] = UnitAttr()


def keep_packed_versions(function: kernel.FuncOp, machine: Machine) -> None:
    """Keep the versions that read panels as wide as those of the kernel's own blocks.

    One for fewer rows than the kernel's tile has, which reads no such panels, becomes the kernel's
    own blocks with a tile of as many rows.
    """
    own, *others = levels_of_versions(function)
    found = versions_in(function.attributes.pop(VERSIONS, None))
    kept: list[tuple[Range, kernel.FuncOp]] = []
    for each, levels in zip(found, others, strict=True):
        some = Range(each.loop.data, each.low.data, each.high.data, each.high.data)
        copy = function.clone()
        if levels.blocks[-2:-1] == own.blocks[-2:-1]:
            copy.attributes[SCHEDULE] = each.schedule
        elif some.loop == own.shared - 2 and _has_smaller_tile(own, some.high):
            _lower(function, copy, some)
            choose_tails(copy, some, _has_masks(machine))
        else:
            continue
        kept.append((some, copy))
    if kept:
        _write(function, kept)


def _has_smaller_tile(own: KernelLevels, rows: int) -> bool:
    """Whether the blocks of a kernel may have a tile of fewer rows, which is no single vector."""
    high, vectors = own.tile
    return rows < high and rows * vectors > 1 and not own.mirrors


def ranges(function: kernel.FuncOp, machine: Machine) -> Iterator[Range]:
    """Yield the ranges of sizes for which a version of a kernel is worth its code.

    No other function decides this; `with_versions` drops those that change nothing.
    """
    shared = choices.number(function, "kernel.shared")
    generics = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp)]
    known = all(DYNAMIC_INDEX not in shape(value) for op in generics for value in op.operands)
    if not shared or known or not is_unscheduled(function, (*PLAIN, tensor.DimOp)):
        return
    ops = [read(op) for op in generics]
    sums = [loops for loops in ops if loops.contracts]
    found: list[Range] = []
    if shared > 1 and len(sums) == 1:
        found = list(_of_shared_loops(function, shared, sums[0], machine))
        found += _read_in_place(function, shared, sums[0], machine)
    yield from found or _of_own_loops(function, ops, shared, machine)


def _of_shared_loops(
    function: kernel.FuncOp, shared: int, found: Loops, machine: Machine
) -> Iterator[Range]:
    """Yield ranges of few rows and of few columns of a contraction.

    Columns are one to four, if vectors run along the sum, and those of a vector and of a panel:
    packing would compute tiles of zeros beside them, and the operand lies as a panel does.
    """
    row, column = shared - 2, shared - 1
    if found.extents[row] == DYNAMIC_INDEX and _is_argument_size(found, row):
        yield from (Range(row, low, high, high) for low, high in (*ROW_RANGES, SOME_ROWS))
    if found.extents[column] == DYNAMIC_INDEX and _is_argument_size(found, column):
        exact = [Range(column, n, n, n) for n in (1, *STRIDES) if n > 0]
        yield from (some for some in exact if _reads_along_sum(function, some, machine))
        lanes, few = _lanes(found, machine), _few_columns(found, shared, machine)
        yield Range(column, 0, lanes, lanes)
        yield from [Range(column, lanes + 1, few, few)] if few > lanes else []


def _read_in_place(
    function: kernel.FuncOp, shared: int, found: Loops, machine: Machine
) -> Iterator[Range]:
    """Yield the range of columns, or of a sum's length, for which an operand is not packed.

    It is worth its code if it is twice as long as that of few columns, which has a version.
    """
    loop, most = longest_in_place(found, shared, machine) or (0, 0)
    known = argument_of_extent(function, loop) is not None
    if most >= 2 * _few_columns(found, shared, machine) and known:
        yield Range(loop, 0, most, most)


def _lanes(found: Loops, machine: Machine) -> int:
    """Return the lanes of a vector of a contraction's results."""
    return machine.full_lanes(bits_of(element(found.op.outputs[0])))


def _few_columns(found: Loops, shared: int, machine: Machine) -> int:
    """Return up to how many columns the operand of a contraction lies as a packed panel does.

    Columns that are not side by side are gathered, and of a sum of unknown length the operand may
    be larger than any cache: more than a vector of those has no version.
    """
    lanes, deep = _lanes(found, machine), found.extents[shared:]
    along = all(stride(each.place, shared - 1) in (0, 1) for each in found.operands)
    return lanes if DYNAMIC_INDEX in deep or not along else MAX_PANEL_VECTORS * lanes


def _of_own_loops(
    function: kernel.FuncOp, ops: list[Loops], shared: int, machine: Machine
) -> Iterator[Range]:
    """Yield ranges of the first loop beyond the shared ones whose extent is unknown.

    They are a single iteration and, where rows end under a mask, as many as fill a narrow vector,
    or fewer than one; and those of one vector, of two, and of the four that are computed at once:
    one at a time, they need no test for several, nor to be joined.
    """
    most = max((len(loops.extents) for loops in ops), default=0)
    for loop in range(shared, most):
        if argument_of_extent(function, loop) is not None:
            lanes = min(_lanes(loops, machine) for loops in ops if len(loops.extents) > loop)
            few = [*range(1, MIN_LANES + 1), lanes // 2] if _has_masks(machine) else [1]
            yield from (Range(loop, n, n, n) for n in few)
            ends = (2, lanes), (lanes + 1, 2 * lanes), (2 * lanes + 1, 4 * lanes)
            yield from (Range(loop, a, b, lanes) for a, b in ends if _has_masks(machine))
            return


def named(function: kernel.FuncOp, some: Range) -> str:
    """Return the name under which the explanations of a version are given."""
    return f"{function.sym_name.data} d{some.loop} from {some.low} to {some.high}"


def _reads_along_sum(function: kernel.FuncOp, some: Range, machine: Machine) -> bool:
    """Whether a contraction of so few columns reads both operands in vectors along its sum."""
    shared, copy = some.loop + 1, _copy(function, some)
    ops = [read(op, some) for op in copy.body.block.ops if isinstance(op, linalg.GenericOp)]
    if some.high > 1:
        return sums_along(ops, shared, machine)
    (loops,) = [loops for loops in ops if loops.contracts or not all(loops.parallel)][:1]
    axis = own_axis(loops, shared)
    return axis is not None and loops.score(axis) == 1.0


def _copy(function: kernel.FuncOp, some: Range) -> kernel.FuncOp:
    """Return a copy of a kernel, in which the extent of a loop is static if it is only one."""
    copy = function.clone()
    if some.low == some.high:
        set_extent(copy, some.loop, some.low)
    return copy


def _serves(function: kernel.FuncOp, some: Range, packs: bool) -> bool:
    """Whether a version may gain beside the kernel's own levels, which are chosen.

    Of few columns it does in blocks, of a single iteration of an op's own loop in vectors along it
    and in sums that are taken in steps.
    """
    shared = choices.number(function, "kernel.shared")
    summed = some.loop >= shared and some.low < some.high and _packed(function)
    if summed or some.loop == shared - 1 or (some.low, some.high) == SOME_ROWS:
        return _packed(function) and not packs
    if some.loop < shared:
        return True
    levels, op = kernel_levels(function), op_of_loop(function, some.loop)
    if levels.whole_reads:
        return some.low == some.high and levels.in_steps is not None and not packs
    pairs = zip(loop_ops(function), levels.lanes, strict=True)
    return any(each is op and x.axis == some.loop and x.width > 1 for each, x in pairs)


def _is_argument_size(loops: Loops, loop: int) -> bool:
    """Whether an argument of the kernel has the extent of a loop as a size."""
    op = loops.op
    return isinstance(op, linalg.GenericOp) and any(
        isinstance(value, BlockArgument)
        and any(expr == AffineDimExpr(loop) for expr in map.data.results)
        for value, map in zip(op.operands, op.indexing_maps.data, strict=True)
    )


def _packs(function: kernel.FuncOp, ready: Collection[int]) -> bool:
    """Whether an operand will be packed, as wide as the register tile, for every version."""
    return bool(ready) and _packed(function)


def _packed(function: kernel.FuncOp) -> bool:
    """Whether a kernel runs in blocks."""
    return bool(kernel_levels(function).blocks)


def _has_masks(machine: Machine) -> bool:
    """Whether rows may end under a mask."""
    return machine.versions > 0 and machine.vector_bits >= MASKED_BITS


def _is_double_buffered(function: kernel.FuncOp) -> bool:
    """Whether tiles pack the next part of an operand."""
    return DOUBLE_BUFFERED in kernel_levels(function).packs.values()


def _lower(function: kernel.FuncOp, copy: kernel.FuncOp, some: Range) -> None:
    """Write the kernel's own levels for a version, with a tile and blocks of fewer rows."""
    levels = kernel_levels(function)
    *first, _, columns, deep = levels.blocks
    tile = some.high, levels.tile[1]
    write_schedule(copy, with_block(levels, (*first, some.high, columns, deep), tile))


def _write(function: kernel.FuncOp, versions: list[tuple[Range, kernel.FuncOp]]) -> None:
    """Write versions on a kernel."""
    found: list[kernel.VersionAttr] = []
    for some, copy in versions:
        schedule = copy.attributes[SCHEDULE]
        assert isinstance(schedule, kernel.ScheduleAttr)
        found.append(kernel.VersionAttr.of(some.loop, some.low, some.high, schedule))
    function.attributes[VERSIONS] = ArrayAttr(found)
