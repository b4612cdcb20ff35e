"""Write a chain as a loop over bands of rows around its ops, on the part of each tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, LocationAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue

from stepwell.analysis.structured import element, shape
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import PARALLEL, Level, Schedule
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.types import fuse_locations
from stepwell.transforms.structured.bands.chain import Chain, Step
from stepwell.transforms.structured.bands.needed_parts import (
    Begin,
    Part,
    Tile,
    indices_of_results,
    size_of,
    tile_read,
    whole_of,
)
from stepwell.transforms.structured.fuse.draft import located


def levels_of(chain: Chain) -> Schedule:
    """Return the levels of the band: its loops over the result's axes."""
    return Schedule(tuple(Level(PARALLEL, axis, step) for axis, step in chain.band.items()))


def write_bands(chain: Chain) -> Operation:
    """Replace the result of a chain by a loop over its bands; the chain's ops are dead then.

    Where the number of rows is known at run time only and is less than a band's, each row is a
    band.
    """
    last = chain.last
    (result,) = last.results
    block = last.parent_block()
    assert block is not None
    bands = _Bands(chain)
    written: Operation = bands.write()
    ops = bands.outer
    if chain.ragged and chain.band[chain.rows] > 1:
        ops, written = _by_size(chain, bands)
    block.insert_ops_before(ops, last)
    result.replace_all_uses_with(written.results[0])
    written.results[0].name_hint = result.name_hint
    return written


def _by_size(chain: Chain, bands: _Bands) -> tuple[list[Operation], scf.IfOp]:
    """Return a branch to bands of several rows where there are as many, else of one row."""
    single = Chain(chain.last, {**chain.band, chain.rows: 1})
    single.grow()
    others = _Bands(single.before(len(chain.steps)))
    others.write()
    sizes = _Bands(chain)
    rows = sizes.result_sizes()[chain.rows]
    step = arith.ConstantOp(IntegerAttr(chain.band[chain.rows], IndexType()))
    test = arith.CmpiOp(rows, step.result, "sge")
    regions: list[Region] = []
    for each in (bands, others):
        end = scf.YieldOp(each.outer[-1].results[0])
        regions.append(Region(Block([*each.outer, located(end, bands.location)])))
    branch = scf.IfOp(test.result, [chain.last.results[0].type], regions[0], regions[1])
    found = [*sizes.outer, step, test, branch]
    return [located(op, bands.location) for op in found], branch


class _Bands:
    """Writes the loop of one chain into ``outer``."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.now: dict[SSAValue, tuple[SSAValue, Tile]] = {}
        """The part of each value that the band has computed."""
        self.begins: dict[Begin, SSAValue] = {}
        self.numbers: dict[int, SSAValue] = {}
        self.slices: dict[tuple[SSAValue, frozenset[tuple[int, Part]]], SSAValue] = {}
        type = chain.last.results[0].type
        self.blocks = [Block(arg_types=[IndexType(), type]) for _ in range(1 + chain.nested)]
        """The bodies of the loops: over rows alone, or over the first axes, then over rows."""
        self.sizes: dict[int, SSAValue] = {}
        self.outer: list[Operation] = []
        self.location: LocationAttr = fuse_locations([s.op.location for s in chain.steps])

    def write(self) -> scf.ForOp:
        """Write the loop, and before it the numbers that it needs."""
        (result,) = self.chain.last.results
        self.sizes = self.result_sizes()
        empty = tensor.EmptyOp(list(self.sizes.values()), result.type)
        self._outside(empty)
        trips = self._counters()
        for step in reversed(self.chain.steps):
            self.location = step.op.location
            if step.padded is not None:
                self._pad(step, step.padded.fill)
            else:
                self._compute(step)
        return self._close(trips, self._insert(*self.now[result]), empty.tensor)

    def _close(self, trips: Sequence[SSAValue], done: SSAValue, empty: SSAValue) -> scf.ForOp:
        """Write the loops around their bodies; return the outermost."""
        zero, one = self._constant(0), self._constant(1)
        starts = [empty, *(block.args[1] for block in self.blocks[:-1])]
        loop: scf.ForOp | None = None
        for depth in range(len(self.blocks) - 1, -1, -1):
            block = self.blocks[depth]
            block.add_op(located(scf.YieldOp(done), self.location))
            loop = scf.ForOp(zero, trips[depth], one, [starts[depth]], block)
            done = loop.results[0]
            done.name_hint = block.args[1].name_hint = self.chain.last.results[0].name_hint
            if depth:
                self._put(loop, depth - 1)
        assert loop is not None
        loop.attributes[SCHEDULE] = kernel.ScheduleAttr(levels_of(self.chain))
        self._outside(loop)
        return loop

    # numbers

    def _outside(self, op: Operation) -> SSAValue:
        self.outer.append(located(op, self.location))
        return op.results[0]

    def _put(self, op: Operation, depth: int = -1) -> SSAValue:
        self.blocks[depth].add_op(located(op, self.location))
        return op.results[0]

    def _depth(self, begin: Begin) -> int:
        """Return the loop, by number, in which a beginning is known."""
        return len(self.blocks) - 1 if begin.root == len(self.chain.band) - 1 else 0

    def _constant(self, number: int) -> SSAValue:
        if number not in self.numbers:
            op = arith.ConstantOp(IntegerAttr(number, IndexType()))
            self.numbers[number] = self._outside(op)
        return self.numbers[number]

    def result_sizes(self) -> dict[int, SSAValue]:
        """Return the sizes of the result's axes that are known at run time."""
        made_by = self.chain.last.outputs[0].owner
        while isinstance(made_by, linalg.FillOp):
            made_by = made_by.outputs[0].owner
        if isinstance(made_by, tensor.EmptyOp):
            unknown = [k for k, n in enumerate(shape(made_by.tensor)) if n == DYNAMIC_INDEX]
            return dict(zip(unknown, made_by.dynamic_sizes, strict=True))
        value = self.chain.last.outputs[0]
        unknown = [k for k, n in enumerate(shape(value)) if n == DYNAMIC_INDEX]
        return {k: self._outside(tensor.DimOp(value, self._constant(k))) for k in unknown}

    def _counters(self) -> list[SSAValue]:
        """Bind where the band begins along each axis; return how often each loop runs."""
        axes = list(self.chain.band)
        last = len(axes) - 1
        groups = [range(last), range(last, last + 1)] if self.chain.nested else [range(last + 1)]
        found: list[SSAValue] = []
        for depth, group in enumerate(groups):
            trips = [self._trips(axes[number]) for number in group]
            rest = self.blocks[depth].args[0]
            rest.name_hint = "band" if depth == len(groups) - 1 else "part"
            for number, count in reversed(list(zip(group, trips, strict=True))):
                at = rest
                if number > group[0]:
                    at = self._put(arith.RemUIOp(rest, count), depth)
                    rest = self._put(arith.DivUIOp(rest, count), depth)
                self._bind(number, axes[number], at, depth)
            total = trips[0]
            for count in trips[1:]:
                total = self._outside(arith.MuliOp(total, count))
            found.append(total)
        return found

    def _trips(self, axis: int) -> SSAValue:
        """Return how many bands there are along an axis."""
        step, size = self.chain.band[axis], shape(self.chain.last.results[0])[axis]
        if size != DYNAMIC_INDEX:
            return self._constant(-(-size // step))
        more = self._outside(arith.AddiOp(self.sizes[axis], self._constant(step - 1)))
        return self._outside(arith.DivUIOp(more, self._constant(step)))

    def _bind(self, number: int, axis: int, at: SSAValue, depth: int) -> None:
        """Bind where the band begins along an axis: the last one ends with it."""
        step, size = self.chain.band[axis], shape(self.chain.last.results[0])[axis]
        if size == 1:
            at = self._constant(0)
        elif step > 1:
            at = self._put(arith.MuliOp(at, self._constant(step)), depth)
            if size == DYNAMIC_INDEX:
                last = self._outside(arith.SubiOp(self.sizes[axis], self._constant(step)))
                at = self._put(arith.MinSIOp(at, last), depth)
            elif size % step:
                at = self._put(arith.MinSIOp(at, self._constant(max(size - step, 0))), depth)
        self.begins[Begin(number)] = at

    def _begin(self, begin: Begin) -> SSAValue:
        if begin not in self.begins:
            assert isinstance(begin.of, Begin)
            value, depth = self._begin(begin.of), self._depth(begin)
            if begin.scale != 1:
                value = self._put(arith.MuliOp(value, self._constant(begin.scale)), depth)
            if begin.shift:
                value = self._put(arith.AddiOp(value, self._constant(begin.shift)), depth)
            if begin.most is not None:
                value = self._put(arith.MaxSIOp(value, self._constant(0)), depth)
                value = self._put(arith.MinSIOp(value, self._constant(begin.most)), depth)
            self.begins[begin] = value
        return self.begins[begin]

    # tensors

    def _slice(self, source: SSAValue, tile: Tile) -> SSAValue:
        """Return the part of a tensor that is computed outside of the band."""
        key = source, frozenset(tile.items())
        if key not in self.slices:
            depth = max(self._depth(part.begin) for part in tile.values())
            self.slices[key] = self._extract(source, self._offsets(tile), tile, depth)
        return self.slices[key]

    def _offsets(self, tile: Tile) -> dict[int, SSAValue | int]:
        """Return where a tile begins along each of its axes, as a number where that is 0."""
        begins = {axis: self._begin(part.begin) for axis, part in tile.items()}
        return {axis: 0 if at is self._constant(0) else at for axis, at in begins.items()}

    def _extract(
        self, source: SSAValue, offsets: Mapping[int, SSAValue | int], tile: Tile, depth: int = -1
    ) -> SSAValue:
        sizes = size_of(shape(source), tile)
        at = [offsets.get(k, 0) for k in range(len(sizes))]
        type = TensorType(element(source), sizes)
        value = self._put(tensor.ExtractSliceOp(source, at, sizes, [1] * len(at), type), depth)
        value.name_hint = source.name_hint
        return value

    def _insert(self, value: SSAValue, tile: Tile) -> SSAValue:
        """Insert the computed part of a band into the tensor that the innermost loop carries."""
        into = self.blocks[-1].args[1]
        offsets = self._offsets(tile)
        return self._inserted(value, into, [offsets.get(k, 0) for k in range(len(shape(into)))])

    def _inserted(
        self, value: SSAValue, into: SSAValue, offsets: Sequence[SSAValue | int]
    ) -> SSAValue:
        static = [DYNAMIC_INDEX if isinstance(at, SSAValue) else at for at in offsets]
        moving = [at for at in offsets if isinstance(at, SSAValue)]
        sizes, ones = shape(value), [1] * len(offsets)
        return self._put(tensor.InsertSliceOp.get(value, into, sizes, static, ones, moving))

    def _read(self, value: SSAValue, tile: Tile) -> SSAValue:
        """Return the part of a value that an op reads."""
        if value not in self.now:
            return self._slice(value, tile) if tile else value
        created, whole = self.now[value]
        if whole == tile:
            return created
        offsets: dict[int, SSAValue | int] = {}
        for axis, part in tile.items():
            if part.begin != whole[axis].begin:
                ours, theirs = self._begin(part.begin), self._begin(whole[axis].begin)
                offsets[axis] = self._put(arith.SubiOp(ours, theirs))
        return self._extract(created, offsets, tile)

    def _empty(self, value: SSAValue, sizes: Sequence[int]) -> SSAValue:
        return self._put(tensor.EmptyOp([], TensorType(element(value), sizes)))

    def _start(self, value: SSAValue, tile: Tile) -> SSAValue:
        """Return the destination of a result: filled, empty, or the part of a tensor."""
        made_by = value.owner
        if value not in self.now and isinstance(made_by, tensor.EmptyOp):
            return self._empty(value, size_of(shape(value), tile))
        if value not in self.now and isinstance(made_by, linalg.FillOp):
            into = self._empty(value, size_of(shape(value), tile))
            return self._put(linalg.FillOp([made_by.inputs[0]], [into], [into.type]))
        return self._read(value, tile)

    def _compute(self, step: Step) -> None:
        """Write a generic on the parts of its operands."""
        op = step.op
        assert isinstance(op, linalg.GenericOp)
        inputs = [
            self._read(value, tile) if isinstance(value.type, TensorType) else value
            for value, tile in step.reads[: len(op.inputs)]
        ]
        outputs = [self._start(value, tile) for value, tile in step.reads[len(op.inputs) :]]
        new = linalg.GenericOp(
            inputs,
            outputs,
            op.body.clone(),
            op.indexing_maps,
            op.iterator_types,
            [v.type for v in outputs],
        )
        for old, now in zip(op.body.walk(), new.body.walk(), strict=True):
            now.location = old.location
        new.attributes.update({k: v for k, v in op.attributes.items() if k != SCHEDULE})
        self._shift_indices(new, step.loops)
        self._put(new)
        for index, old, now in zip(indices_of_results(op), op.results, new.results, strict=True):
            now.name_hint = old.name_hint
            tile = tile_read(op, step.loops, index)
            assert tile is not None
            self.now[old] = now, tile

    def _shift_indices(self, op: linalg.GenericOp, loops: Tile) -> None:
        """Let the body's numbers of iterations count from the beginning of the whole loop."""
        for each in list(op.body.block.ops):
            if isinstance(each, linalg.IndexOp) and each.dim.value.data in loops:
                begin = self._begin(loops[each.dim.value.data].begin)
                uses = list(each.result.uses)
                shifted = arith.AddiOp(each.result, begin)
                shifted.location = each.location
                op.body.block.insert_op_after(shifted, each)
                for use in uses:
                    use.operation.operands[use.index] = shifted.result

    def _pad(self, step: Step, fill: linalg.FillOp) -> None:
        """Write the part of an image, and around it the padding that any band may need."""
        assert step.padded is not None
        image, part = step.reads[0]
        tile = whole_of(part, step.padding)
        sizes = size_of(shape(step.op.results[0]), tile)
        value = self._empty(image, sizes)
        low, high = [0] * len(sizes), list(sizes)
        inner = size_of(shape(image), part)
        for axis, before in enumerate(step.padding.before):
            for begin, end in ((0, before), (before + inner[axis], sizes[axis])):
                if end > begin:
                    at = [*low[:axis], begin, *low[axis + 1 :]]
                    to = [*high[:axis], end, *high[axis + 1 :]]
                    side = [b - a for a, b in zip(at, to, strict=True)]
                    value = self._inserted(self._filled(value, fill, side), value, at)
            low[axis], high[axis] = before, before + inner[axis]
        value = self._inserted(self._read(image, part), value, low)
        value.name_hint = step.op.results[0].name_hint
        begins = {axis: Part(p.begin, tile[axis].size) for axis, p in part.items()}
        self.now[step.op.results[0]] = value, begins

    def _filled(self, like: SSAValue, fill: linalg.FillOp, sizes: Sequence[int]) -> SSAValue:
        """Return one side of the padding."""
        into = self._empty(like, sizes)
        return self._put(linalg.FillOp([fill.inputs[0]], [into], [into.type]))
