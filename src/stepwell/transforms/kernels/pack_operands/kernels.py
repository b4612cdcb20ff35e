"""Find the operand of a blocked contraction to pack; build the kernels that pack and read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    FunctionType,
    IntegerType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from stepwell.analysis.levels import (
    KernelLevels,
    Lanes,
    kernel_levels,
    levels_of_versions,
    write_all,
    write_schedule,
)
from stepwell.analysis.levels.building import Inner, edited, in_threads, nest
from stepwell.analysis.levels.queries import DOTS
from stepwell.analysis.levels.symmetry import squares
from stepwell.analysis.structured import (
    Index,
    array_of_maps,
    element,
    extents,
    in_panels,
    indices,
    is_parallel,
    map_attribute,
    zero_of,
)
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.dialects.kernel.levels import Action, Level, Levels, Schedule
from stepwell.dialects.types import dtype, locate
from stepwell.transforms.kernels.schedule.marks import is_waited_for
from stepwell.transforms.kernels.schedule.versions import keep_packed_versions

PREFETCHED_STEPS = 2
"""Steps of a sum that are written out, with one prefetch of a panel: one in each step takes 4 to
8 % of the time of a product; one in four gains up to 1 % more, but gcc takes 40 ms more, not 15
(Granite Rapids)."""
ELEMENTS_PER_THREAD = 1 << 15
"""Elements that are worth a thread."""


@dataclass(frozen=True)
class Operand:
    """The operand of a blocked contraction that varies with its columns."""

    op: linalg.GenericOp
    number: int
    argument: BlockArgument
    index: Index
    loops: tuple[int, ...]
    """The loops it varies with: batch, column, sums."""
    extents: tuple[int, ...]
    """The extents of these loops."""
    column: int
    """The position of the column loop in ``loops``."""
    width: int
    """Columns of a panel."""
    lanes: int
    """Columns of a vector."""
    repeated: int
    """How often a call would pack it otherwise, once for each block of rows."""
    rows: int = -1
    """The operand that reads the same panels by rows: the same argument; -1 if there is none."""
    part: int = 0
    """Iterations of the last loop whose whole window lies together; 0 if the window has one place.
    """

    @property
    def sums(self) -> list[int]:
        """The extents of the loops that are summed over."""
        return list(self.extents[self.column + 1 :])

    @property
    def convolves(self) -> bool:
        """Whether the sum is over a window, even of size one: columns are not contiguous."""
        return len(self.sums) > 1 or len(self.index) > len(self.loops)

    @property
    def in_rows(self) -> bool:
        """Whether columns are contiguous and fill vectors: whole rows are then read at a time.

        A panel is narrow: its rows alone would be short runs, which hardware does not prefetch.
        """
        beside = self.index[-1] == AffineDimExpr(self.loops[self.column])
        return beside and not self.convolves and self.extents[self.column] >= self.lanes > 1

    @property
    def order_in_memory(self) -> list[int] | None:
        """The reduction loops in the order of their axes in memory, if they are the last axes.

        They can then be merged into one. None where they cannot, or nothing is gained.
        """
        axes = [expr.position for expr in self.index if isinstance(expr, AffineDimExpr)]
        sums = list(self.loops[self.column + 1 :])
        last = axes[len(axes) - len(sums) :]
        return last if self.convolves and sorted(last) == sums else None

    @property
    def groups(self) -> list[list[int]]:
        """The axes of the operand that are packed as one: those of one loop, or of a whole sum."""
        groups: list[list[int]] = []
        sums = self.loops[self.column + 1 :] if self.order_in_memory else ()
        one = False
        for axis, expr in enumerate(self.index):
            loop = expr.position if isinstance(expr, AffineDimExpr) else -1
            if groups and (loop < 0 or (one and loop in sums)):
                groups[-1].append(axis)
            else:
                groups.append([axis])
            one = one or loop in sums
        if len(groups) > 1 and not isinstance(self.index[0], AffineDimExpr):
            groups[:2] = [[*groups[0], *groups[1]]]
        return groups

    @property
    def source(self) -> TensorType[Attribute]:
        """The type that is packed: one axis for each of the groups."""
        kind = self.argument.type
        assert isinstance(kind, TensorType)
        shape = kind.get_shape()
        return TensorType(kind.element_type, [prod(shape[k] for k in g) for g in self.groups])

    @property
    def sizes(self) -> list[int]:
        """The sizes of the packed operand."""
        panels = -(-self.extents[self.column] // self.width)
        before, after = self.extents[: self.column], self.extents[self.column + 1 :]
        if self.part:
            after = (-(-after[-1] // self.part), *after[:-1], self.part)
        return [*before, panels, *after, self.width]

    @property
    def bytes(self) -> int:
        """The bytes of the packed operand."""
        return prod(self.sizes) * dtype(element(self.argument)).bytes


def operand_of(function: kernel.FuncOp) -> Operand | None:
    """Return the operand of ``function``, a blocked contraction, that can be packed."""
    shared = choices.number(function, "kernel.shared")
    sums = [
        op
        for op in function.body.block.ops
        if isinstance(op, linalg.GenericOp) and not all(is_parallel(op))
    ]
    levels = kernel_levels(function)
    if not levels.blocks or len(sums) != 1:
        return None
    (op,) = sums
    lanes, where = levels.lanes[0].width, indices(op)
    along = [
        k
        for k in range(len(op.inputs))
        if op.body.block.args[k].first_use is not None and _varies(where[k], shared)
    ]
    number = along[0] if len(along) == 1 else -1
    value = op.inputs[number]
    if number < 0 or not isinstance(value, BlockArgument):
        return None
    columns = levels.step(shared - 1)
    found = _operand(op, number, value, where[number], shared, columns, lanes)
    whole = not columns % levels.step(shared - 2) and 1 - number not in levels.packs
    rows = 1 - number if squares(op, shared) and whole else -1
    if levels.mirrors and rows < 0:  # both operands must stay the same value
        return None
    repeated, part = _repeated(op, shared, levels.blocks), _part(function, levels, found)
    return found and replace(found, repeated=repeated, rows=rows, part=part)


def rows_of(function: kernel.FuncOp, columns: Operand) -> Operand | None:
    """Return the operand of the rows of ``function``, if it is to be packed as ``columns`` is.

    It is contiguous along the rows, so that a tile would read a few elements of each of many lines.
    Its panels are as wide as those of the columns, and have whole tiles of rows.
    """
    levels, op = kernel_levels(function), columns.op
    shared = choices.number(function, "kernel.shared")
    row, where = shared - 2, indices(op)
    found = [k for k in range(len(op.inputs)) if _uses(where[k], row)]
    if len(found) != 1 or columns.width % levels.step(row) or columns.convolves:
        return None
    (number,) = found
    value, index = op.inputs[number], where[number]
    panels = -(-extents(op)[shared - 1] // columns.width)
    across = index[-1] == AffineDimExpr(row) and not _uses(index, shared - 1)
    if squares(op, shared) or not across or number in levels.packs:
        return None
    if not isinstance(value, BlockArgument):
        return None
    operand = _operand(op, number, value, index, shared, columns.width, columns.lanes, row)
    return operand and replace(operand, repeated=panels)


def _repeated(op: linalg.GenericOp, shared: int, block: Sequence[int]) -> int:
    """Return the number of row blocks; 0 where it is known at run time only."""
    first = shared - (len(block) - 1)
    sizes = extents(op)[first : shared - 1]
    if DYNAMIC_INDEX in sizes:
        return 0
    return prod(-(-size // of) for size, of in zip(sizes, block, strict=False))


def _part(function: kernel.FuncOp, levels: KernelLevels, found: Operand | None) -> int:
    """Return the depth of the blocks of a window that they split; 0 where nothing is split.

    Tiles that begin a part read it from beyond the L2 cache, place by place of the window. As one
    run hardware prefetches it; as a run for each place they wait at the beginning of each: 5 x 5
    places of 376 features to 215 take 0.93 of the time (Zen 4).
    """
    steps, depth = levels.in_steps, levels.blocks[-1]
    window = found is not None and prod(found.sums[:-1]) > 1
    if found is None or steps is None or not window or len(levels_of_versions(function)) > 1:
        return 0
    loop = found.loops[-1]
    others = [index for k, index in enumerate(indices(found.op)) if k != found.number]
    told = any(AffineDimExpr(loop) in index for index in others)  # how often the loop runs
    split = steps.depth == loop and told and "dot" not in levels.packs.values()
    return depth if split and 0 < depth < found.extents[-1] else 0


def _uses(index: Index, loop: int) -> bool:
    return any(loop in expr.used_dims() for expr in index)


def _varies(index: Index, shared: int) -> bool:
    """Whether an operand read at ``index`` varies with the columns and not with the rows."""
    row = _uses(index, shared - 2)
    return _uses(index, shared - 1) and not row and not in_panels(index, shared - 1)


def _operand(
    op: linalg.GenericOp,
    number: int,
    value: BlockArgument,
    index: Index,
    shared: int,
    width: int,
    lanes: int,
    along: int | None = None,
) -> Operand | None:
    loops = [expr.position for expr in index if isinstance(expr, AffineDimExpr)]
    sizes = extents(op)
    units = sum(expr == AffineConstantExpr(0) for expr in index)
    assert isinstance(value.type, TensorType)
    axes = zip(index, value.type.get_shape(), strict=True)
    single = all(size == 1 for expr, size in axes if expr == AffineConstantExpr(0))
    plain = single and len(set(loops)) + units == len(index)
    if not plain or any(sizes[k] == DYNAMIC_INDEX for k in loops) or max(loops) < shared:
        return None
    if not isinstance(element(value), AnyFloat | IntegerType):
        return None
    loops = sorted(loops)
    found = tuple(sizes[k] for k in loops)
    column = loops.index(shared - 1 if along is None else along)
    return Operand(op, number, value, index, tuple(loops), found, column, width, lanes, 0)


def _panels(operand: Operand) -> Index:
    """Return the index, within the panels, of the element at each of the operand's loops."""
    loops: list[AffineExpr] = [AffineDimExpr(k) for k in range(len(operand.loops))]
    column, width, last = loops[operand.column], operand.width, loops[-1]
    before, sums = loops[: operand.column], loops[operand.column + 1 :]
    if operand.part:
        sums = [last // operand.part, *sums[:-1], last % operand.part]
    return (*before, column // width, *sums, column % width)


def _maps(operand: Operand) -> list[Index]:
    """Return the maps of the packing kernel: the one it reads at and the one it writes at."""
    place = {loop: AffineDimExpr(k) for k, loop in enumerate(operand.loops)}
    index = tuple(place[expr.position] for expr in operand.index if isinstance(expr, AffineDimExpr))
    panels = _panels(operand)
    if operand.in_rows:
        column = operand.column
        turned = [AffineDimExpr(k) for k in (*range(column), column + 1, column)]
        return [
            tuple(expr.replace_dims_and_symbols(turned, ()) for expr in each)
            for each in (index, panels)
        ]
    if (order_in_memory := operand.order_in_memory) is None:
        return [index, panels]
    one, size = AffineDimExpr(operand.column + 1), 1
    taken: dict[int, AffineExpr] = {}
    for loop in reversed(order_in_memory):
        extent = operand.extents[operand.loops.index(loop)]
        after: AffineExpr = one // size if size > 1 else one
        size *= extent
        if extent == 1:
            after = AffineConstantExpr(0)
        elif size < prod(operand.sums):
            after = after % extent
        taken[loop] = after
    loops: list[AffineExpr] = [AffineDimExpr(k) for k in range(operand.column + 1)]
    loops += [taken[loop] for loop in operand.loops[operand.column + 1 :]]
    merged = tuple(expr.replace_dims_and_symbols(loops, ()) for expr in panels)
    return [(*index[: -len(order_in_memory)], one), merged]


def packing_kernel(operand: Operand) -> kernel.FuncOp:
    """Return a kernel that copies ``operand`` into panels, padded with zero columns."""
    kind, source = element(operand.argument), operand.source
    target = TensorType(kind, operand.sizes)
    block = Block(arg_types=[source, target])
    given, created = block.args
    given.name_hint, created.name_hint = operand.argument.name_hint, "packed"
    into: SSAValue = created
    if operand.extents[operand.column] % operand.width:
        zero = arith.ConstantOp(zero_of(kind))
        fill = linalg.FillOp([zero.result], [created], [target])
        block.add_ops([zero, fill])
        into = fill.results[0]
    loops = operand.column + 2 if operand.order_in_memory else len(operand.loops)
    body = Block(arg_types=[kind, kind])
    body.args[0].name_hint = operand.argument.name_hint
    body.add_op(linalg.YieldOp(body.args[0]))
    maps = array_of_maps(loops, _maps(operand))
    kinds = [IteratorTypeAttr.parallel()] * loops
    copy = linalg.GenericOp([given], [into], Region(body), maps, kinds, [target])
    block.add_ops([copy, kernel.ReturnOp([copy.results[0]])])
    function = kernel.FuncOp(
        "pack", FunctionType.from_lists([source, target], [target]), Region(block)
    )
    inner, threads = _levels(operand)
    function.attributes["kernel.shared"] = choices.spelled(len(inner.steps))
    write_schedule(function, nest([copy], inner, threads))
    locate(function, operand.op.location)
    return function


def _levels(operand: Operand) -> tuple[Inner, Levels]:
    """Return the levels of a packing kernel: the inner ones, and those of threads."""
    column, lanes, width = operand.column, operand.lanes, operand.width
    before, panels = [1] * column, operand.sizes[column]
    if operand.in_rows:
        outer, each, unit = [*before, 1], panels * width, 1
        inner = Inner([*outer, width], [Lanes(column + 1, lanes, width // lanes)])
    else:
        outer, each, unit = [*before, width], prod(operand.sizes[column + 1 :]), width
        inner = Inner([*before, lanes], [Lanes(column, lanes)])
    if prod(operand.sizes) < 2 * ELEMENTS_PER_THREAD:
        return inner, ()
    return inner, in_threads(outer, -(-ELEMENTS_PER_THREAD // max(each, 1)) * unit)


def _unpacked(levels: KernelLevels, operand: Operand, machine: Machine, same: bool) -> Schedule:
    """Return levels that copy an operand into panels no more.

    Words for dot products are packed from the panels. Prefetches stay for an operand that is the
    ``same`` in every call. Where many tiles read a panel, few steps of each prefetch it.
    """
    number, steps = operand.number, levels.in_steps
    packed = ("pack", number) if levels.packs.get(number) not in DOTS else ()
    every = _steps_between_prefetches(levels, operand, machine) if packed else 1
    new = (Action("prefetch", every),) if every > 1 else ()
    gone = "" if same and not new else "prefetch"

    def plain(level: Level) -> Level:
        kept = (a for a in level.actions if (a.name, a.number) != packed and a.name != gone)
        last = steps is not None and level is steps.levels[steps.splits[-1]]
        return replace(level, actions=(*kept, *(new if last else ())))

    return edited(levels, plain)


def _steps_between_prefetches(levels: KernelLevels, operand: Operand, machine: Machine) -> int:
    """Return how many steps of a sum prefetch one line of panels from beyond the L2 cache.

    The result is 1 if tiles do not wait for panels, or if a block has too few tiles to prefetch
    all lines.
    """
    row = operand.width * dtype(element(operand.argument)).bytes
    waits = is_waited_for(levels.tile, row, machine) and operand.bytes >= machine.l2
    steps = levels.in_steps
    if not waits or steps is None or len(operand.sums) > 1:
        return 1
    turns = levels.blocks[-3] // levels.tile[0] // max(row // machine.l1_line, 1)
    return PREFETCHED_STEPS if turns >= PREFETCHED_STEPS else 1


def read_packed(function: kernel.FuncOp, operand: Operand, machine: Machine, same: bool) -> bool:
    """Make ``function`` read ``operand`` packed; return whether it still reads it unpacked too.

    Then the packed operand is an additional argument, right after the other.

    same : whether the operand is the same in every call
    """
    keep_packed_versions(function, machine)
    old, lists = operand.argument, levels_of_versions(function)
    new = function.body.block.insert_arg(TensorType(element(old), operand.sizes), old.index + 1)
    new.name_hint = f"{old.name_hint}_packed" if old.name_hint else "packed"
    op = operand.op
    op.operands[operand.number] = new
    loops = len(op.iterator_types)
    local = _panels(operand)
    back = [AffineDimExpr(loop) for loop in operand.loops]
    index = tuple(expr.replace_dims_and_symbols(back, ()) for expr in local)
    maps = list(op.indexing_maps.data)
    maps[operand.number] = map_attribute(loops, index)
    if operand.rows >= 0:
        column = operand.loops[operand.column]
        by_rows = [AffineDimExpr(column - 1 if k == column else k) for k in range(loops)]
        op.operands[operand.rows] = new
        rows = tuple(expr.replace_dims_and_symbols(by_rows, ()) for expr in index)
        maps[operand.rows] = map_attribute(loops, rows)
    op.indexing_maps = ArrayAttr(maps)
    if operand.loops[operand.column] == choices.number(function, "kernel.shared") - 1:
        write_all(function, [_unpacked(each, operand, machine, same) for each in lists])
    read = old.first_use is not None
    if not read:
        function.body.block.erase_arg(old)
    function.properties["function_type"] = FunctionType.from_lists(
        list(function.body.block.arg_types), function.function_type.outputs.data
    )
    return read
