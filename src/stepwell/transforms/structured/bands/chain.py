"""Grow a chain of ops that run together over one band of rows, from its last op backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.padded import Padded, padded
from stepwell.analysis.structured import (
    contracts,
    extents,
    indices,
    is_not_fused,
    is_parallel,
    shape,
)
from stepwell.transforms.structured.bands.needed_parts import (
    Begin,
    Padding,
    Part,
    Tile,
    loops_of_results,
    tile_of_image,
    tile_read,
)

MOST = 24
"""The most ops of a chain: the members of one kernel are as many, and chains have several."""


@dataclass(eq=False)
class Step:
    """One op of a chain, or an image that is placed within its padding."""

    op: Operation
    loops: Tile
    """The part of each loop that a band computes; of padding, the part of each axis."""
    reads: list[tuple[SSAValue, Tile]]
    """The operands, in order, and the part of each."""
    padded: Padded | None = None

    @property
    def padding(self) -> Padding:
        """Where the image lies within the padding."""
        assert self.padded is not None
        sizes, whole = shape(self.padded.image), shape(self.op.results[0])
        behind = (n - at - m for at, m, n in zip(self.padded.offsets, sizes, whole, strict=True))
        return Padding(tuple(self.padded.offsets), tuple(behind))

    @property
    def reduces(self) -> bool:
        """Whether its operands must be complete before it runs, as they are in memory."""
        return not isinstance(self.op, linalg.GenericOp) or not all(is_parallel(self.op))

    @property
    def slides(self) -> bool:
        """Whether it is a contraction or slides a window: a kernel that no row-wise op shares."""
        op = self.op
        if not isinstance(op, linalg.GenericOp) or all(is_parallel(op)):
            return False
        used = (expr.used_dims() for index in indices(op)[: len(op.inputs)] for expr in index)
        return contracts(op) or any(len(loops) > 1 for loops in used)


@dataclass
class Chain:
    """Ops that are computed for one band of rows of the last one's result after another.

    steps : the last op first
    tiles : the part of each value that a band computes
    """

    last: linalg.GenericOp
    band: dict[int, int]
    """The axes of the result that bands cut, in order, and the indices of each in one band."""
    steps: list[Step] = field(default_factory=list[Step])
    tiles: dict[SSAValue, Tile] = field(default_factory=dict[SSAValue, Tile])
    members: set[Operation] = field(default_factory=set[Operation])
    outside: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values that are read at several places, or as a whole: a band does not compute them."""

    @property
    def rows(self) -> int:
        """The axis of the result along which a band takes several indices."""
        return list(self.band)[-1]

    @property
    def ragged(self) -> bool:
        """Whether the number of rows is known at run time only, so that a band may be shorter."""
        return shape(self.last.results[0])[self.rows] == DYNAMIC_INDEX

    @property
    def nested(self) -> bool:
        """Whether the rows are a loop of their own, within one over the other axes of the band.

        An operand that varies with those axes alone, as keys with the head, is packed once.
        """
        inside = {r for step in self.steps for r in step.op.results}
        begins = [
            {part.begin.root for part in tile.values()}
            for step in self.steps
            for value, tile in step.reads
            if tile and value not in inside and not isinstance(value.owner, linalg.FillOp)
        ]
        rows = len(self.band) - 1
        sizes = shape(self.last.results[0])
        many = any(sizes[axis] != 1 for axis in list(self.band)[:rows])
        return many and any(rows not in roots for roots in begins)

    def grow(self) -> bool:
        """Add the last op, then each producer that may join; return whether there is a chain."""
        (result,) = self.last.results
        sizes = shape(result)
        if DYNAMIC_INDEX in (n for axis, n in enumerate(sizes) if axis not in self.band):
            return False
        self.tiles[result] = {
            axis: Part(Begin(n), min(step, sizes[axis]) if sizes[axis] >= 0 else step)
            for n, (axis, step) in enumerate(self.band.items())
        }
        at: Operation | None = self.last
        while at is not None and len(self.steps) < MOST:
            if any(r in self.tiles and r not in self.outside for r in at.results):
                step = self._step(at)
                if step is None and at is self.last:
                    return False
                if step is not None:
                    self._add(step)
            at = at.prev_op
        return len(self.steps) > 1

    def before(self, count: int) -> Chain:
        """Return the chain of the last ``count`` steps."""
        chain = Chain(self.last, self.band, self.steps[:count])
        chain.tiles = {
            r: self.tiles[r] for s in chain.steps for r in s.op.results if r in self.tiles
        }
        return chain

    @property
    def has_kernels(self) -> bool:
        """Whether its ops are several kernels: a product or window, and another sum."""
        sums = sum(step.reduces and step.padded is None for step in self.steps)
        return sums > 1 and any(step.slides for step in self.steps)

    def fused_at(self, count: int) -> bool:
        """Whether the step after ``count`` shares a kernel with one before, as a sum and a bias."""
        if count == len(self.steps):
            return False
        results = set(self.steps[count].op.results)
        return any(
            not step.reduces and any(value in results for value, _ in step.reads)
            for step in self.steps[:count]
        )

    def _step(self, op: Operation) -> Step | None:
        """Return ``op`` as a step, if it may join the chain."""
        tiles = [self.tiles.get(r, {}) for r in op.results]
        uses = [use.operation for r in op.results for use in r.uses]
        if op is not self.last and any(user not in self.members for user in uses):
            return None
        if any(r in self.outside or not tile for r, tile in zip(op.results, tiles, strict=True)):
            return None
        if isinstance(op, tensor.InsertSliceOp):
            return self._padding(op, tiles[0])
        return self._generic(op, tiles) if isinstance(op, linalg.GenericOp) else None

    def _padding(self, op: tensor.InsertSliceOp, tile: Tile) -> Step | None:
        found = padded(op.result)
        if found is None or self.ragged or not _is_known(shape(found.image), tile):
            return None
        step = Step(op, tile, [], found)
        part = tile_of_image(tile, step.padding, shape(found.image))
        if part is None:
            return None
        step.reads.append((found.image, part))
        return step

    def _generic(self, op: linalg.GenericOp, tiles: Sequence[Tile]) -> Step | None:
        if is_not_fused(op) or any(not isinstance(r.type, TensorType) for r in op.results):
            return None
        loops = loops_of_results(op, tiles)
        if loops is None or not _is_known(extents(op), loops):
            return None
        if any(each.regions for each in op.body.block.ops):
            return None
        reads: list[tuple[SSAValue, Tile]] = []
        for value, index in zip(op.operands, indices(op), strict=True):
            tile = tile_read(op, loops, index)
            if tile is None or (self.ragged and not self._is_plain(tile)):
                return None
            reads.append((value, tile))
        inside = {v for each in op.body.block.ops for v in each.operands}
        inside -= {*op.body.block.args, *(r for each in op.body.block.ops for r in each.results)}
        if any(isinstance(v.type, TensorType) for v in inside):
            return None  # a gather: it may read any row
        return Step(op, loops, reads)

    def _is_plain(self, tile: Tile) -> bool:
        """Whether a tile has the rows of the band themselves, no other ones near them."""
        counter = len(self.band) - 1
        rows = Part(Begin(counter), self.band[self.rows])
        return all(part == rows for part in tile.values() if part.begin.root == counter)

    def _add(self, step: Step) -> None:
        self.steps.append(step)
        self.members.add(step.op)
        for value, tile in step.reads:
            if not isinstance(value.type, TensorType):
                continue
            known = self.tiles.get(value)
            if not tile or (known is not None and not _same_begin(known, tile)):
                self.outside.add(value)
            elif known is None:
                self.tiles[value] = tile
            else:
                self.tiles[value] = {
                    k: max(part, known[k], key=lambda p: p.size) for k, part in tile.items()
                }


def _is_known(sizes: Sequence[int], tile: Tile) -> bool:
    """Whether all sizes are known but those that bands cut."""
    return all(n != DYNAMIC_INDEX or k in tile for k, n in enumerate(sizes))


def _same_begin(a: Tile, b: Tile) -> bool:
    return a.keys() == b.keys() and all(a[k].begin == part.begin for k, part in b.items())
